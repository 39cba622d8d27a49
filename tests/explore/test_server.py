"""The rules of the server, by plain requests: who may ask what, how much, and how it refuses."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from splime.errors import UsageError
from splime.explorer import Explorer
from splime.explorer.server import Server
from splime.runs import Run
from splime.serving import http
from tests.runs.small import call


class Reply(NamedTuple):
    status: int
    headers: Message  # whose names are in any case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(
    server: Server, path: str, method: str = "GET", *, token: str | None = None, **headers: str
) -> Reply:
    """One request; the right token unless another is given."""
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    given = {"X-Splime-Token": server.token if token is None else token, **headers}
    if "Host" in headers:
        connection.putrequest(method, path, skip_host=True)
    else:
        connection.putrequest(method, path)
    for name, value in given.items():
        connection.putheader(name, value)
    connection.endheaders()
    reply = connection.getresponse()
    made = Reply(reply.status, reply.headers, reply.read())
    connection.close()
    return made


def question(explorer: Explorer, **changed: str) -> str:
    fact = explorer.answer("about", {})["tests"][0]
    given = {"run": "split", "ask": "object", "object": "", "time": fact["time"]}
    given |= {"subject": fact["subject"], "predicate": fact["predicate"]}
    return "/api/ask?" + urlencode(given | changed)


def test_it_answers(server: Server, explorer: Explorer) -> None:
    page = request(server, "/?ask=object&subject=anything", token="")
    assert page.status == 200
    assert "&lt;i&gt;facts&lt;/i&gt;" in page.body.decode()
    assert "<i>facts" not in page.body.decode()
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    reply = request(server, question(explorer))
    assert reply.status == 200
    assert reply.headers["Content-Type"].startswith("application/json")
    assert reply.json["here"]["rows"]
    assert server.address == f"http://127.0.0.1:{server.server_port}/#{server.token}"
    assert server.server_address[0] == "127.0.0.1"
    for each in (page, reply):
        assert each.headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert "http" not in each.headers["Content-Security-Policy"]
        assert each.headers["X-Content-Type-Options"] == "nosniff"
        assert "Access-Control-Allow-Origin" not in each.headers


def test_who_may_ask(server: Server) -> None:
    port = server.server_port
    for token in ("", "x", server.token[:-1], server.token + "x", "é"):
        assert request(server, "/api/about", token=token).status == 403
    for host in ("example.org", f"example.org:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", ""):
        reply = request(server, "/api/about", Host=host)
        assert (reply.status, list(reply.json)) == (403, ["error"])
        assert request(server, "/", Host=host).status == 403
    assert request(server, "/api/about", Host=f"localhost:{port}").status == 200
    for origin in ("https://example.org", "null", f"http://127.0.0.1:{port + 1}", ""):
        assert request(server, "/api/about", Origin=origin).status == 403
    assert request(server, "/api/about", Origin=f"http://127.0.0.1:{port}").status == 200


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "get", "X"]
)
def test_only_get(server: Server, method: str) -> None:
    reply = request(server, "/api/about", method)
    assert reply.status == 405
    assert reply.headers["Allow"] == "GET"
    assert request(server, "/api/about").status == 200


def test_what_is_wrong_is_said_as_json(server: Server, explorer: Explorer) -> None:
    about = "/api/about"
    wrong = {
        question(explorer, subject="nobody at all"): 400,
        question(explorer, time="3000"): 400,
        question(explorer, run="../split"): 400,
        question(explorer) + "&more=1": 400,
        "/api/entity?name=%ff%fe": 400,
        "/api/entity?name": 400,
        "/api/ask?" + "&".join(f"a{n}=1" for n in range(50)): 400,
        "/api/": 400,
        "/api/__class__": 400,
        "/api/../page.py": 400,
        "/../../etc/passwd": 404,
        "/%2e%2e/%2e%2e/etc/passwd": 404,
        "//etc/passwd": 404,
        "/page.py": 404,
        "/../looking.py": 404,
        f"http://127.0.0.1:{server.server_port}{about}": 404,
        f"{about}?{'x' * 70_000}=1": 414,
    }
    for path, status in wrong.items():
        reply = request(server, path)
        assert reply.status == status, path
        assert list(reply.json) == ["error"]
        assert reply.json["error"]
        assert request(server, about).status == 200


def test_other_than_requests(server: Server) -> None:
    """What is no HTTP is refused, and idle connections delay no other."""
    silent = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(20)]
    for sent in (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                 b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n"):  # fmt: skip
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as raw:
            raw.sendall(sent)
            assert b'"error"' in raw.recv(65536) + raw.recv(65536)
    assert request(server, "/api/about").status == 200
    for each in silent:
        each.close()


def test_idle_connections_are_closed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that say nothing, half of a request, or nothing more after one."""
    monkeypatch.setattr(http, "IDLE", 0.2)
    whole = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode()
    for sent in (b"", b"GET / HTTP/1.1\r\nHost:", whole):
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as raw:
            raw.sendall(sent)
            received = b"".join(iter(lambda: raw.recv(1 << 20), b""))
            assert received.startswith(b"HTTP/1.1 200") == (sent == whole)


def test_an_error_of_ours_does_not_end_it(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(server.explorer, "answer", lambda *_: 1 / 0)
        reply = request(server, "/api/about")
        assert reply.status == 500
        assert "ZeroDivisionError" in reply.json["error"]
    assert request(server, "/api/about").status == 200


def test_many_requests_at_once(server: Server, explorer: Explorer) -> None:
    path = question(explorer)
    with ThreadPoolExecutor(50) as pool:
        replies = list(pool.map(lambda _: request(server, path), range(50)))
    assert {reply.status for reply in replies} == {200}
    assert len({reply.body for reply in replies}) == 1


@pytest.mark.system
def test_a_program_ends_though_its_server_runs() -> None:
    """Also after a request; a notebook's kernel must end, too."""
    program = """
import splime, urllib.request
from splime.runs.graph_run import GraphRun
page = splime.explore(GraphRun(splime.load("demo").where(predicate="livesIn")), port=0)
address, token = page.address.split("#")
asked = urllib.request.Request(address + "api/about", headers={"X-Splime-Token": token})
print(urllib.request.urlopen(asked).status)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=120)
    assert (done.stdout.strip(), done.returncode) == (b"200", 0), done.stderr


def test_ports(server: Server, explorer: Explorer) -> None:
    with pytest.raises(UsageError, match=f"port {server.server_port}"):
        Server(explorer, server.server_port)
    with pytest.raises(UsageError, match="port 70000"):
        Server(explorer, 70_000)
    with Server(explorer) as first, Server(explorer) as second:  # one of them takes a free one
        assert first.server_port != second.server_port


def test_on_the_command_line(
    runs: dict[str, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = call("explore", tmp_path / "nothing")
    assert done.code == 2
    assert "there is no such run" in done.err
    done = call("explore", runs["split"].path, "--out", tmp_path / "a.html", "--port", 80)
    assert (done.code, "--port" in done.err) == (2, True)
    done = call("explore", runs["split"].path, "--out", tmp_path / "a.pdf")
    assert (done.code, list(tmp_path.iterdir())) == (2, [])
    asked: list[Reply] = []

    def served(server: Server) -> None:
        """Serve one request, and then somebody presses Ctrl-C."""
        monkeypatch.undo()
        server.start()
        asked.append(request(server, "/api/about"))
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Server, "serve_forever", served)
    done = call("explore", runs["split"].path, "--port", 0)
    assert done.code == 130
    assert re.search(r"http://127\.0\.0\.1:\d+/#\S{32}", done.out)
    assert list(asked[0].json["runs"]) == ["split"]
