"""The server of the page: on the loopback address, read-only, for requests with its token."""

from __future__ import annotations

import secrets

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from splime.errors import UsageError
from splime.explorer.looking import Explorer
from splime.explorer.page import POLICY, page_html
from splime.serving.http import HOST, Reply, WebServer, in_thread, listen, make_app, refusing

PORT = 8765
"""The default port, unless it is taken."""
TOKEN = "X-Splime-Token"
"""The header with the token. A page from elsewhere cannot send it: a browser would ask first, by a
method that is refused."""


class Server(WebServer):
    """Answers requests of the page."""

    def __init__(self, explorer: Explorer, port: int | None = None) -> None:
        self.explorer = explorer
        self.token = secrets.token_urlsafe(24)
        self._page = HTMLResponse(
            page_html(explorer),
            headers={"Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'"},
        )
        try:
            at = listen(HOST, PORT if port is None else port)
        except UsageError:
            if port is not None:
                raise
            at = listen(HOST, 0)
        hosts = [f"{name}:{at.getsockname()[1]}" for name in (HOST, "localhost")]
        endpoints = {("GET", "/"): self._show, ("GET", "/api/{part:path}"): self._ask}
        super().__init__(make_app(endpoints, hosts), at)

    @property
    def address(self) -> str:
        """Where the page begins; the browser keeps the token, and sends it with each question."""
        return f"http://{HOST}:{self.server_port}/#{self.token}"

    def __repr__(self) -> str:
        return f"Server({self.address})"

    def _repr_html_(self) -> str:
        return f'<a href="{self.address}" target="_blank" rel="noopener">{self.address}</a>'

    async def _show(self, _: Request) -> Response:
        return self._page

    async def _ask(self, request: Request) -> Response:
        given = request.headers.get(TOKEN, "").encode("latin-1")
        if not secrets.compare_digest(given, self.token.encode()):
            raise HTTPException(403, "open the address that splime explore has printed")
        asked = request.path_params["part"], dict(request.query_params)
        with refusing():
            return Reply(await in_thread(self.explorer.answer, *asked))
