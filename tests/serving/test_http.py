"""The rules that hold for both servers: who may ask, what is no request, and how they refuse."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from splime.explorer import Explorer
from splime.explorer.server import Server as PageServer
from splime.query import Query
from splime.serving import http
from splime.serving.api import JsonServer
from splime.serving.http import WebServer
from tests.serving.client import Reply, send

ASKED = {"subject": "entity 1", "predicate": "p1", "object": "?", "at": 1995}


class Asking(NamedTuple):
    """A server, and a request that it answers."""

    server: WebServer
    path: str
    method: str
    headers: dict[str, str]
    token: str
    """The header with the token."""
    body: bytes
    refused: int
    """What a request without the token gets."""

    def send(self, method: str = "", **headers: str) -> Reply:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        method = method or self.method
        body = self.body if method == self.method else b""
        return send(self.server, self.path, method, {**self.headers, **given}, body)

    def breaks(self, patch: pytest.MonkeyPatch) -> None:
        """An error that it does not expect."""
        if isinstance(self.server, PageServer):
            patch.setattr(self.server.explorer, "answer", lambda *_: 1 / 0)
        elif isinstance(self.server, JsonServer):
            patch.setattr(self.server.service.query, "ask", lambda *_, **__: 1 / 0)


@pytest.fixture(params=["page", "service"])
def asking(request: pytest.FixtureRequest, query: Query, server: JsonServer) -> Iterator[Asking]:
    if request.param == "page":
        with PageServer(Explorer([query.run]), 0) as page:
            header = "X-Splime-Token"
            yield Asking(page.start(), "/api/about", "GET", {header: page.token}, header, b"", 403)
        return
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    body = json.dumps(ASKED).encode()
    yield Asking(server, "/ask", "POST", headers, "Authorization", body, 401)


def test_who_may_ask(asking: Asking) -> None:
    port, right = asking.server.server_port, asking.headers[asking.token]
    assert asking.send().status == 200
    for token in ("", "x", right[:-1], right + "x", "é"):
        reply = asking.send(**{asking.token: token})
        assert (reply.status, list(reply.json)) == (asking.refused, ["error"])
    for host in ("example.org", f"example.org:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", ""):
        reply = asking.send(Host=host)
        assert (reply.status, list(reply.json)) == (403, ["error"])
    assert asking.send(Host=f"localhost:{port}").status == 200
    for origin in ("https://example.org", "null", f"http://127.0.0.1:{port + 1}", ""):
        assert asking.send(Origin=origin).status == 403
    assert asking.send(Origin=f"http://127.0.0.1:{port}").status == 200


@pytest.mark.parametrize(
    "method", ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "get", "post", "X"]
)
def test_only_one_method(asking: Asking, method: str) -> None:
    if method != asking.method:
        reply = asking.send(method)
        assert reply.status == 405
        assert reply.headers["Allow"] == asking.method
    assert asking.send().status == 200


def test_replies_are_safe(asking: Asking) -> None:
    for reply in (asking.send(), asking.send(Origin="null"), asking.send("PUT")):
        assert reply.headers["Content-Type"].startswith("application/json")
        assert reply.headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in reply.headers
        assert "Server" not in reply.headers


def test_other_than_requests(asking: Asking) -> None:
    """What is no HTTP is refused, and idle connections delay no other."""
    address = ("127.0.0.1", asking.server.server_port)
    silent = [socket.create_connection(address) for _ in range(20)]
    for sent in (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                 b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n"):  # fmt: skip
        with socket.create_connection(address, timeout=60) as raw:
            raw.sendall(sent)
            assert b'"error"' in raw.recv(65536) + raw.recv(65536)
    assert asking.send().status == 200
    for each in silent:
        each.close()


def test_idle_connections_are_closed(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that say nothing, a part of a request, or nothing more after one."""
    monkeypatch.setattr(http, "IDLE", 0.2)
    lines = [
        f"{asking.method} {asking.path} HTTP/1.1",
        f"Host: 127.0.0.1:{asking.server.server_port}",
    ]
    lines += [f"{name}: {value}" for name, value in asking.headers.items()]
    whole = "\r\n".join([*lines, f"Content-Length: {len(asking.body)}", "", ""]).encode()
    parts = {b"": b"", b"GET / HTTP/1.1\r\nHost:": b"", whole + asking.body: b"HTTP/1.1 200"}
    if asking.body:
        parts[whole + asking.body[:-1]] = b"HTTP/1.1 408"
    for sent, begins in parts.items():
        with socket.create_connection(("127.0.0.1", asking.server.server_port), timeout=60) as raw:
            raw.sendall(sent)
            received = b"".join(iter(lambda: raw.recv(1 << 20), b""))
            assert received[: len(begins)] == begins
            assert bool(received) == bool(begins)


def test_an_error_of_ours_does_not_end_it(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        asking.breaks(patch)
        reply = asking.send()
        assert reply.status == 500
        assert "ZeroDivisionError" in reply.json["error"]
    assert asking.send().status == 200


def test_paths_that_are_not_there(asking: Asking) -> None:
    for path in ("/none", "/../../etc/passwd", "//etc/passwd", "/%2e%2e/etc/passwd"):
        reply = send(asking.server, path, asking.method, asking.headers, asking.body)
        assert (reply.status, list(reply.json)) == (404, ["error"])


def test_it_stops(asking: Asking) -> None:
    assert asking.send().status == 200
    asking.server.stop()
    with pytest.raises(ConnectionRefusedError):
        asking.send()


def test_the_end_of_an_answer_does_not_wait_for_the_client() -> None:
    with (
        http.listen("127.0.0.1", 0) as at,
        socket.create_connection(at.getsockname()),
        at.accept()[0] as connection,
    ):
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
