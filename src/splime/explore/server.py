"""The server of the page: on the loopback address, for whoever has its token, and only to read."""

from __future__ import annotations

import secrets
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR
from socketserver import TCPServer
from threading import BoundedSemaphore, Thread
from time import monotonic
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from splime.errors import SplimeError, UsageError
from splime.explore.looking import Explorer
from splime.explore.page import POLICY, served_files
from splime.reading import LOG

HOST = "127.0.0.1"
PORT = 8765
"""Where the page is, unless another port is asked for or this one is taken."""
TOKEN = "X-Splime-Token"
"""The header with the token. A page from elsewhere cannot send it: a browser would ask first, by a
method that is refused."""
_LONGEST = 8_192  # characters of an address
_FIELDS = 10
_CONNECTIONS, _AT_ONCE = 64, 16  # threads, and requests that are worked on or wait for it
_SECONDS, _HURRY = 10, 1  # until a client has sent its request; the latter if others wait

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
        self.working = BoundedSemaphore(_AT_ONCE)
        self._connected = BoundedSemaphore(_CONNECTIONS)
        self.reading: dict[Any, float] = {}
        """The connections whose requests have not arrived yet, and since when."""
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

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread; where there are enough, those that send nothing make way."""
        while not self._connected.acquire(timeout=0.1):
            self._hang_up(_HURRY)
        self.reading[request] = monotonic()
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._connected.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """What the thread does."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.reading.pop(request, None)
            self._connected.release()

    def service_actions(self) -> None:
        """What the server does now and then: a client that sends byte by byte is not waited for."""
        self._hang_up(_SECONDS)

    def _hang_up(self, seconds: float) -> None:
        for request, since in self.reading.copy().items():
            if monotonic() - since > seconds and self.reading.pop(request, 0.0):
                with suppress(OSError):  # it has gone
                    request.shutdown(SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client has gone: nobody can be told."""


class _RefusedError(Exception):
    """A request that is not answered: the status, and why."""

    def __init__(self, status: int, why: str, **headers: str) -> None:
        super().__init__(why)
        self.status, self.headers = status, headers


class _Handler(BaseHTTPRequestHandler):
    """One request in each connection. Its body, if it has one, is never read."""

    server: Server
    server_version, sys_version = "splime", ""
    timeout = _SECONDS

    def do_GET(self) -> None:
        """Answer, or say what was wrong."""
        self.server.reading.pop(self.connection, None)
        try:
            self._send(200, *self._answer())
        except _RefusedError as error:
            self._fail(error.status, str(error), **error.headers)
        except SplimeError as error:
            self._fail(400, str(error))
        except (TimeoutError, ConnectionError):
            raise
        except Exception as error:  # the server goes on, whatever it was
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
        if not self.server.working.acquire(blocking=False):
            raise _RefusedError(503, f"{_AT_ONCE} requests wait already", **{"Retry-After": "1"})
        try:
            part = address.path.removeprefix("/api/")
            answer = self.server.explorer.answer(part, arguments)
            return "application/json", msgspec.json.encode(answer)
        finally:
            self.server.working.release()

    def _check(self) -> None:
        """Only the page itself may ask: no other site by a name of its own for this address."""
        port = self.server.server_port
        hosts = (f"{HOST}:{port}", f"localhost:{port}")
        host, origin = self.headers.get_all("Host", []), self.headers.get_all("Origin", [])
        if len(host) != 1 or host[0] not in hosts:
            raise _RefusedError(403, f"this host is {hosts[0]}")
        if origin and origin != [f"http://{host[0]}"]:
            raise _RefusedError(403, "a page from elsewhere may not ask")
        if not self.path.startswith("/"):
            raise _RefusedError(400, "this is no proxy")
        if len(self.path) > _LONGEST:
            raise _RefusedError(414, f"an address has at most {_LONGEST:,} characters")

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
        """Questions are nobody else's business."""
