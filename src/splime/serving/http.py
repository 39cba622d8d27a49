"""What every server here does: it refuses in JSON, closes idle connections, begins and ends."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread
from types import FrameType
from typing import Any, Self, TypeVar

import h11
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from splime.errors import SplimeError, UsageError
from splime.reading import LOG

HOST = "127.0.0.1"
IDLE = 10
"""Seconds without a byte of a request after which a connection is closed."""
_TARGET, _HEADERS = 1 << 16, 100
"""The longest address, and the most headers, of a request."""
_WORDS = {404: "there is no such page"}
_SAFE = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every reply that does not set them itself."""

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]


class Reply(Response):
    """Any value as JSON."""

    media_type = "application/json; charset=utf-8"

    def render(self, content: Any) -> bytes:
        """The text of the value."""
        return msgspec.json.encode(content)


def failure(status: int, why: str, headers: Mapping[str, str] | None = None) -> Reply:
    """What a request that cannot be answered gets."""
    return Reply({"error": why}, status, headers)


def make_app(
    endpoints: Mapping[tuple[str, str], Endpoint], hosts: Sequence[str] | None
) -> Starlette:
    """An application of functions by method and path.

    Only requests for one of the hosts are answered, so that no page from elsewhere can ask by
    another name for this address; without hosts, those for any.
    """
    routes = []
    for (method, path), endpoint in endpoints.items():
        routes.append(route := Route(path, endpoint, methods=[method]))
        route.methods = {method}  # not HEAD with GET, too
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Gate, hosts=hosts)],
        exception_handlers={HTTPException: _refuse},
    )
    app.router.redirect_slashes = False
    return app


@contextmanager
def refusing() -> Iterator[None]:
    """Refuse what is asked wrongly, in the words of the error; no error ends the server."""
    try:
        yield
    except HTTPException:
        raise
    except SplimeError as error:
        raise HTTPException(400, str(error)) from None
    except Exception as error:
        LOG.warning("a request failed: %s: %s", type(error).__name__, error)
        raise HTTPException(500, f"this should not happen: {type(error).__name__}") from None


async def _refuse(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    why, headers = error.detail, error.headers
    if error.status_code == 405 and headers is not None:
        why = f"only {headers['Allow']} is answered here"
    return failure(error.status_code, _WORDS.get(error.status_code, why), headers)


class Gate:
    """Refuses what no function should see, and adds what every reply says."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str] | None) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def send_safe(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _SAFE.items():
                    headers.setdefault(name, value)
            await send(message)

        app = self._refusal(scope) or self._app
        await app(scope, receive, send_safe)

    def _refusal(self, scope: Scope) -> Reply | None:
        headers = Headers(scope=scope)
        host, origin = headers.get("Host", ""), headers.get("Origin")
        if self._hosts is not None and host not in self._hosts:
            return failure(403, f"this host is {self._hosts[0]}")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return failure(403, "requests from other sites are refused")
        if len(scope["raw_path"]) + len(scope["query_string"]) > _TARGET:
            return failure(414, "the address is too long")
        if len(headers) > _HEADERS:
            return failure(431, "there are too many headers")
        return None


async def in_thread(function: Callable[..., T], *given: Any) -> T:
    """Call a function in a thread that, unlike those of anyio, ends with the program."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def call() -> None:
        try:
            future.set_result(function(*given))
        except BaseException as error:
            future.set_exception(error)

    Thread(target=call, daemon=True).start()
    return await asyncio.wrap_future(future)


class Protocol(H11Protocol):
    """uvicorn's, in which connections that say nothing are closed from the beginning, and what is
    no request is refused in JSON."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request."""
        super().connection_made(transport)
        self.timeout_keep_alive = IDLE
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Read on; a part of a request is none yet."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._expect()

    def _expect(self) -> None:
        self._unset_keepalive_if_required()
        close = self.timeout_keep_alive_handler
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, close)

    def send_400_response(self, msg: str) -> None:
        """Refuse it, unless a reply has begun already."""
        if self.conn.our_state is h11.IDLE or self.conn.our_state is h11.SEND_RESPONSE:
            reply = failure(400, "this is no request that can be read", {"Connection": "close"})
            start = h11.Response(status_code=400, headers=reply.raw_headers, reason=b"Bad Request")
            for event in (start, h11.Data(data=bytes(reply.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def configure(app: Any, **options: Any) -> uvicorn.Config:
    """How uvicorn is used here."""
    fixed: dict[str, Any] = {
        "http": Protocol,
        "ws": "none",
        "lifespan": "off",
        "log_config": None,
        "log_level": "critical",
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "h11_max_incomplete_event_size": 4 * _TARGET,
    }
    return uvicorn.Config(app, **fixed, **options)


def listen(host: str, port: int) -> socket.socket:
    """A socket at which requests wait from now on."""
    if not 0 <= port < 1 << 16:
        raise UsageError(f"port {port} is none: they are from 1 to 65535, and 0 takes a free one")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family, backlog=256)
    except OSError as error:
        why = error.strerror or error
        raise UsageError(f"port {port} of {host} cannot be used: {why}") from None
    # Connections inherit it. Else the end of each answer waits 40 ms for the client's
    # acknowledgement of its beginning.
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


class _Server(uvicorn.Server):
    """uvicorn's; a second signal of either kind ends it at once."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            os._exit(128 + sig)  # an answer that is being made cannot be interrupted
        super().handle_exit(sig, frame)


class WebServer:
    """Answers requests at a socket: in the background, or until a signal ends it."""

    def __init__(self, app: Any, at: socket.socket, **options: Any) -> None:
        self._socket = at
        self._server = _Server(configure(app, **options))
        self._thread: Thread | None = None
        self.server_address: tuple[str, int] = at.getsockname()[:2]
        self.server_port = self.server_address[1]

    def start(self) -> Self:
        """Answer in the background, until `stop`."""
        self._thread = Thread(target=self.serve_forever, daemon=True)
        self._thread.start()
        return self

    def serve_forever(self) -> None:
        """Answer until the first SIGINT or SIGTERM, or `stop`; requests that wait are answered."""
        self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """End what `start` began."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
