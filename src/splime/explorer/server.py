"""The server of the page: on the loopback address, read-only, for requests with its token."""

from __future__ import annotations

import secrets
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from splime.errors import SplimeError, UsageError
from splime.explorer.looking import Explorer
from splime.explorer.page import POLICY, page_html
from splime.reading import LOG

HOST = "127.0.0.1"
PORT = 8765
"""The default port, unless it is taken."""
TOKEN = "X-Splime-Token"
"""The header with the token. A page from elsewhere cannot send it: a browser would ask first, by a
method that is refused."""
_HEADERS = {
    "Allow": "GET",
    "Cache-Control": "no-store",
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Server(ThreadingTCPServer):
    """Answers requests of the page until it is interrupted."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, explorer: Explorer, port: int | None = None) -> None:
        self.explorer = explorer
        self.token = secrets.token_urlsafe(24)
        self.page = page_html(explorer).encode()
        try:
            super().__init__((HOST, PORT if port is None else port), _Handler)
        except (OSError, OverflowError) as error:
            if port is not None:
                reason = getattr(error, "strerror", None) or error
                raise UsageError(f"port {port} of {HOST} cannot be used: {reason}") from None
            super().__init__((HOST, 0), _Handler)
        self.server_port: int = self.server_address[1]

    @property
    def address(self) -> str:
        """Where the page begins; the browser keeps the token, and sends it with each question."""
        return f"http://{HOST}:{self.server_port}/#{self.token}"

    def start(self) -> Server:
        """Answer in the background, until `stop`."""
        Thread(target=self.serve_forever, daemon=True).start()
        return self

    def stop(self) -> None:
        """End what `start` began."""
        self.shutdown()
        self.server_close()

    def __repr__(self) -> str:
        return f"Server({self.address})"

    def _repr_html_(self) -> str:
        return f'<a href="{self.address}" target="_blank" rel="noopener">{self.address}</a>'

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client has gone: there is no one to answer."""


class _Handler(BaseHTTPRequestHandler):
    """One request in each connection. Its body, if it has one, is never read."""

    server: Server
    server_version, sys_version = "splime", ""
    timeout = 10  # seconds without a byte of a request

    def do_GET(self) -> None:
        """Answer, or say what was wrong."""
        path, _, query = self.path.partition("?")
        given = self.headers.get(TOKEN, "").encode()
        if refused := self._refused():
            self._fail(403, refused)
        elif path == "/":
            self._send(200, "text/html", self.server.page)
        elif not path.startswith("/api/"):
            self._fail(404, "there is no such page")
        elif not secrets.compare_digest(given, self.server.token.encode()):
            self._fail(403, "open the address that splime explore has printed")
        else:
            self._ask(path.removeprefix("/api/"), dict(parse_qsl(query, keep_blank_values=True)))

    def _ask(self, part: str, arguments: dict[str, str]) -> None:
        try:
            answer = msgspec.json.encode(self.server.explorer.answer(part, arguments))
        except SplimeError as error:
            self._fail(400, str(error))
        except Exception as error:  # the server continues
            LOG.warning("a request failed: %s: %s", type(error).__name__, error)
            self._fail(500, f"this should not happen: {type(error).__name__}: {error}")
        else:
            self._send(200, "application/json", answer)

    def _refused(self) -> str:
        """Only the page itself may ask: no other site by another name for this address."""
        hosts = [f"{name}:{self.server.server_port}" for name in (HOST, "localhost")]
        host = self.headers.get("Host")
        if host not in hosts:
            return f"this host is {hosts[0]}"
        if self.headers.get("Origin", f"http://{host}") != f"http://{host}":
            return "requests from other sites are refused"
        return ""

    def _send(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        about = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(content))}
        for name, value in {**about, **_HEADERS}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _fail(self, status: int, why: str) -> None:
        self._send(status, "application/json", msgspec.json.encode({"error": why}))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What http.server refuses by itself; a method that it has no function for is refused as
        what it is."""
        if code == 501:
            self._fail(405, "only GET is answered")
        else:
            self._fail(code, explain or message or "the request cannot be read")

    def log_message(self, format: str, *arguments: Any) -> None:
        """Requests are not logged: they hold questions."""
