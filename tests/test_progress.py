from __future__ import annotations

import io
import re
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from splime.progress import progress_bar, working
from tests.runs.small import call


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("as_bytes", [True, False])
def test_people_see_a_bar(monkeypatch: pytest.MonkeyPatch, as_bytes: bool) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    with progress_bar(bytes=as_bytes) as update:
        update("train.txt", 1_000, None)
        update("train.txt", 2_000, 2_000)
    seen = terminal.getvalue()
    assert "train.txt" in seen
    assert ("kB" if as_bytes else "2000/2000") in seen


def test_people_see_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with working("reading …"):
        pass
    assert "reading" in terminal.getvalue()


class Clock:
    """Stands in for the module time."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("splime.progress.time", clock)
    return clock


def log_file(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What is no terminal; no fixture, since pytest takes the stream back before the test."""
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    return log


def test_files_see_nothing_of_short_work(monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_file(monkeypatch)
    with progress_bar() as update, working("reading …"):
        update("train.txt", 1, None)
        update("train.txt", 2, 2)
    assert log.getvalue() == ""


def test_files_see_lines_now_and_then(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    log = log_file(monkeypatch)
    with progress_bar() as update:
        for second in range(100):
            clock.now = float(second)
            update("training", 50 * second, 10_000, f"loss {second}")
            update("short", second, 1_000_000)
    # The training stopped early: its last line says where.
    assert log.getvalue().splitlines() == [
        "training: about 3 min in all",
        "short: about 278 h in all",
        "training: 1,500 of 10,000, loss 30",
        "training: 3,000 of 10,000, loss 60",
        "training: 4,500 of 10,000, loss 90",
        "training: 4,950 of 10,000, loss 99",
    ]


def test_long_work_is_announced(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    log = log_file(monkeypatch)
    with progress_bar(shorter="--questions 500") as update:
        for done in range(31):
            update("long", done, 100)
            update("short", done, 30)  # 15 seconds in all
            update("unknown", done)
            clock.now += 0.5 if done else 20.0  # the first step also prepares
        update("one step", 0, 4)
        clock.now += 31  # a long step counts
        update("one step", 1, 4)
    announced = [line for line in log.getvalue().splitlines() if "about" in line]
    assert announced == [
        "long: about 50 s in all; shorter: --questions 500",
        "one step: about 2 min in all; shorter: --questions 500",
    ]


def test_people_at_a_terminal_are_told(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    with progress_bar(shorter="[b]less[/b]") as update:
        update("training", 0, 100)
        clock.now = 40.0
        update("training", 20, 100)
    assert "training: about 3 min in all; shorter: [b]less[/b]" in terminal.getvalue()


def test_the_end_has_a_line(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    log = log_file(monkeypatch)
    with progress_bar(bytes=True) as update:
        clock.now = 31.0
        update("train.txt", 1_500_000)
        clock.now = 32.0
        update("train.txt", 2_000_000, 2_000_000)
        update("valid.txt", 1_000, 1_000)
    assert log.getvalue().splitlines() == [
        "train.txt: 1.5 MB",
        "train.txt: 2.0 MB of 2.0 MB",
    ]


def test_long_work_shows_life(monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_file(monkeypatch)
    told = threading.Event()
    monkeypatch.setattr("splime.progress.EVERY", 0.001)
    monkeypatch.setattr(log, "flush", told.set)
    with working("reading facts.tsv …"):
        assert told.wait(60)
    assert log.getvalue().startswith("reading facts.tsv … 0 s\n")


def test_a_training_in_a_log_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("splime.progress.EVERY", 0.0)
    settings = ("--model", "distmult", "--dimension", 4, "--epochs", 2, "--batch-size", 4000)
    done = call("train", "demo", *settings, "--validate-every", 1, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    lines = [line for line in done.err.splitlines() if line.startswith("training: ")]
    assert len(lines) == 4
    assert re.fullmatch(
        r"training: 4 of 4, loss [\d.]+, [\d,.]+ steps/s, valid MRR [\d.]+ \(best\)", lines[-1]
    )
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", done.err)


def test_people_see_bars_in_a_notebook(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    """One output below the cell, which is drawn again as the work goes on."""
    display = pytest.importorskip("IPython.display", reason="IPython is not installed")
    published: list[dict[str, Any]] = []

    class Publisher:
        is_publishing = True

        def publish(self, **message: Any) -> None:
            published.append(message)

    shell = SimpleNamespace(kernel=object(), display_pub=Publisher())
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    monkeypatch.setattr("IPython.core.interactiveshell.InteractiveShell.initialized", lambda: True)
    monkeypatch.setattr("IPython.core.interactiveshell.InteractiveShell.instance", lambda: shell)
    assert display
    with progress_bar() as update:
        update("a <b>", 1, 4)
        update("a <b>", 2, 4)  # too soon to draw it
        clock.now += 1
        update("a <b>", 3, 4, "loss 2")
        update("more", 5)
    ids = {message["transient"]["display_id"] for message in published}
    assert len(ids) == 1
    assert [message.get("update", False) for message in published] == [False, True, True]
    drawn = [message["data"]["text/html"] for message in published]
    assert "1/4" in drawn[0]
    assert "a &lt;b&gt;" in drawn[1]
    assert "3/4" in drawn[1]
    assert "loss 2" in drawn[1]
    assert "5/?" in published[-1]["data"]["text/plain"]
    assert capsys.readouterr().err == ""
