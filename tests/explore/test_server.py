"""What the server of the page answers, and refuses; tests/serving/test_http.py has its rules."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import pytest

from splime.errors import UsageError
from splime.explorer import Explorer
from splime.explorer.server import Server
from splime.runs import Run
from tests.runs.small import call
from tests.serving.client import Reply, send


def request(server: Server, path: str, *, token: str | None = None) -> Reply:
    """One request; the right token unless another is given."""
    return send(server, path, "GET", {"X-Splime-Token": server.token if token is None else token})


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
