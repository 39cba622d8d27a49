"""The command: how it begins and ends, and its worker processes."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPException
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import splime
from splime.serving.api import JsonServer
from tests.runs.small import call, small_graph
from tests.serving.client import post, send
from tests.serving.conftest import TOKEN
from tests.serving.test_api import ASKED, BEARER


def test_on_the_command_line(facts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def served(server: JsonServer) -> None:
        """Answer one request, and then somebody presses Ctrl-C."""
        monkeypatch.undo()
        server.start()
        assert post(server, "/ask", ASKED).status == 401
        assert post(server, "/ask", ASKED, **BEARER).status == 200
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(JsonServer, "serve_forever", served)
    done = call("serve", facts, "--port", 0, "--device", "cpu", SPLIME_TOKEN=TOKEN)
    assert done.code == 130
    assert re.search(r"http://127\.0\.0\.1:\d+", done.out)
    assert TOKEN not in done.out + done.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["none.csv"], "there is no such run"),
        (["demo", "--host", "0.0.0.0"], "SPLIME_TOKEN"),
        (["demo", "--port", "70000"], "port 70000"),
        (["demo", "--workers", "0"], "at least 1"),
        (["demo", "--workers", "100000"], "at most"),
        (["demo", "--timeout", "0"], "timeout"),
        (["demo", "--token", ""], "empty"),
    ],
)
def test_what_is_wrong_is_said(
    options: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("serve", "--port", 0, *options)
    assert done.code == 2
    assert words in done.err


@contextmanager
def serving(facts: Path, *options: str, **environment: str) -> Iterator[tuple[Any, Any]]:
    """The program, and where it answers."""
    command = [sys.executable, "-m", "splime", "serve", str(facts), "--port", "0", *options]
    program = subprocess.Popen(
        [*command, "--device", "cpu"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
    )
    try:
        assert program.stdout is not None
        line = program.stdout.readline()
        found = re.search(r"127\.0\.0\.1:(\d+)", line)
        assert found, program.communicate()
        yield program, SimpleNamespace(server_port=int(found[1]))
    finally:
        program.kill()
        program.communicate()


def children(program: Any) -> list[int]:
    """The worker processes (spawned by multiprocessing)."""
    path = Path(f"/proc/{program.pid}/task/{program.pid}/children")
    found = [int(number) for number in path.read_text().split()]
    return [
        number for number in found if b"spawn_main" in Path(f"/proc/{number}/cmdline").read_bytes()
    ]


def until(holds: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def is_gone(number: int) -> bool:
    """Whether a process has ended, though nobody may have asked how."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def sockets(number: int) -> int:
    """How many sockets a process has open."""
    files = Path(f"/proc/{number}/fd").iterdir()
    return sum(str(file.readlink()).startswith("socket:") for file in files)


@pytest.mark.system
@pytest.mark.parametrize(
    ("number", "code", "workers"), [(signal.SIGINT, 130, "2"), (signal.SIGTERM, 143, "1")]
)
def test_it_ends_gracefully(facts: Path, number: signal.Signals, code: int, workers: str) -> None:
    with serving(facts, "--workers", workers) as (program, server):
        assert post(server, "/ask", ASKED).status == 200
        started = children(program)
        assert len(started) == (2 if workers == "2" else 0)
        program.send_signal(number)
        _, err = program.communicate(timeout=60)
        assert program.returncode == code
        assert "Traceback" not in err
        assert all(map(is_gone, started))


@pytest.mark.system
def test_a_worker_that_dies_is_replaced(facts: Path) -> None:
    with serving(facts, "--workers", "2", SPLIME_TOKEN=TOKEN) as (program, server):
        assert post(server, "/ask", ASKED).status == 401
        before = children(program)
        assert len(before) == 2
        until(lambda: post(server, "/ask", ASKED, **BEARER).status == 200)
        address = ("127.0.0.1", server.server_port)

        def both_take_connections() -> bool:
            with ExitStack() as stack:
                for _ in range(40):
                    stack.enter_context(socket.create_connection(address))
                time.sleep(0.5)
                return all(sockets(one) >= 12 for one in before)

        until(both_take_connections)
        os.kill(before[0], signal.SIGKILL)
        until(lambda: is_gone(before[0]))
        lost = 0
        for _ in range(20):  # the other one answers
            try:
                assert post(server, "/ask", ASKED, **BEARER).status == 200
            except (OSError, HTTPException):
                lost += 1
        assert lost <= 1
        until(lambda: len({*children(program)} - {before[0]}) == 2)
        [new] = {*children(program)} - {*before}
        os.kill(before[1], signal.SIGKILL)
        until(lambda: is_gone(before[1]))
        assert post(server, "/ask", ASKED, **BEARER).status == 200  # by the new one
        program.terminate()
        _, err = program.communicate(timeout=60)
        assert f"worker {before[0]} ended" in err
        assert is_gone(new)


@pytest.mark.system
def test_workers_end_with_the_program(facts: Path) -> None:
    with serving(facts, "--workers", "2") as (program, server):
        assert send(server, "/health", "GET", {}).status == 200
        started = children(program)
        assert len(started) == 2
        program.kill()
        program.wait()
        until(lambda: all(map(is_gone, started)))


@pytest.mark.system
def test_workers_read_the_facts_anew(facts: Path, tmp_path: Path) -> None:
    """At SIGHUP. One that cannot begin ends the program, instead of being begun for ever."""
    copy = splime.save(small_graph(test=10), tmp_path / "copy.parquet")
    with serving(copy, "--workers", "2") as (program, server):

        def stated() -> int:
            count: int = send(server, "/health", "GET", {}).json["facts"]
            return count

        few = stated()
        before = {*children(program)}
        copy.write_bytes(facts.read_bytes())
        program.send_signal(signal.SIGHUP)
        until(lambda: stated() > few)
        until(lambda: not before & {*children(program)})
        copy.unlink()
        os.kill(children(program)[0], signal.SIGKILL)
        _, err = program.communicate(timeout=120)
        assert program.returncode == 1
        assert "there is no such run" in err
        assert "a worker could not begin" in err
