"""The server of the page: on the loopback address, read-only, for requests with its token."""

from __future__ import annotations

import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from splime.errors import SplimeError, UsageError
from splime.explorer.looking import Explorer
from splime.explorer.page import POLICY, served_files
from splime.reading import LOG

HOST = "127.0.0.1"
PORT = 8765
"""The default port, unless it is taken."""
TOKEN = "X-Splime-Token"
"""The header with the token. A page from elsewhere cannot send it: a browser would ask first, by a
method that is refused."""
_FIELDS = 10

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Server(ThreadingHTTPServer):
    """Answers requests of the page until it is interrupted."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, explorer: Explorer, port: int | None = None) -> None:
        self.explorer = explorer
        self.token = secrets.token_urlsafe(24)
        self.files = served_files(explorer)
        try:
            super().__init__((HOST, PORT if port is None else port), _Handler)
        except (OSError, OverflowError) as error:
            if port is not None:
                reason = getattr(error, "strerror", None) or error
                raise UsageError(f"port {port} of {HOST} cannot be used: {reason}") from None
            super().__init__((HOST, 0), _Handler)

    def server_bind(self) -> None:
        """Take the port; the name of this machine is not looked up, which may ask the network."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

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


class _RefusedError(Exception):
    """A request that is not answered: the status, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    """One request in each connection. Its body, if it has one, is never read."""

    server: Server
    server_version, sys_version = "splime", ""
    timeout = 10  # seconds without a byte of a request

    def do_GET(self) -> None:
        """Answer, or say what was wrong."""
        try:
            self._send(200, *self._answer())
        except _RefusedError as error:
            self._fail(error.status, str(error))
        except SplimeError as error:
            self._fail(400, str(error))
        except (TimeoutError, ConnectionError):
            raise
        except Exception as error:  # the server continues
            LOG.warning("a request failed: %s: %s", type(error).__name__, error)
            self._fail(500, f"this should not happen: {type(error).__name__}: {error}")

    def _answer(self) -> tuple[str, bytes]:
        self._check()
        address = urlsplit(self.path)
        if address.path in self.server.files:
            return self.server.files[address.path]
        if not address.path.startswith("/api/"):
            raise _RefusedError(404, "there is no such page")
        given = self.headers.get(TOKEN, "")
        if not secrets.compare_digest(given.encode(), self.server.token.encode()):
            raise _RefusedError(403, "open the address that splime explore has printed")
        try:
            pairs = parse_qsl(
                address.query,
                keep_blank_values=True,
                strict_parsing=bool(address.query),
                errors="strict",
                max_num_fields=_FIELDS,
            )
        except ValueError as error:
            raise _RefusedError(400, f"the question cannot be read: {error}") from None
        arguments = dict(pairs)
        if len(arguments) < len(pairs):
            raise _RefusedError(400, "the question cannot be read: something is given twice")
        answer = self.server.explorer.answer(address.path.removeprefix("/api/"), arguments)
        return "application/json", msgspec.json.encode(answer)

    def _check(self) -> None:
        """Only the page itself may ask: no other site by another name for this address."""
        port = self.server.server_port
        hosts = (f"{HOST}:{port}", f"localhost:{port}")
        host, origin = self.headers.get_all("Host", []), self.headers.get_all("Origin", [])
        if len(host) != 1 or host[0] not in hosts:
            raise _RefusedError(403, f"this host is {hosts[0]}")
        if origin and origin != [f"http://{host[0]}"]:
            raise _RefusedError(403, "requests from other sites are refused")
        if not self.path.startswith("/"):
            raise _RefusedError(400, "this is not a proxy")

    def _send(self, status: int, kind: str, content: bytes, **headers: str) -> None:
        self.send_response(status)
        about = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(content))}
        for name, value in {**about, **_HEADERS, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _fail(self, status: int, why: str, **headers: str) -> None:
        self._send(status, "application/json", msgspec.json.encode({"error": why}), **headers)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What http.server refuses by itself; a method that it has no function for is refused as
        what it is."""
        if code == 501:
            self._fail(405, "only GET is answered", Allow="GET")
        else:
            self._fail(code, explain or message or "the request cannot be read")

    def log_message(self, format: str, *arguments: Any) -> None:
        """Requests are not logged: they hold questions."""
