"""Terminals that lack letters, and names that would be commands or markup to a progress bar."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from splime.progress import progress_bar, working
from tests.test_progress import Terminal

TEXT = "Zoë\tliveş in\t東京\t1990\nZoë\tp\tb 😀\t1991\nc\tp\tb\t1992\n"


def run(*arguments: str | Path, encoding: str) -> str:
    """What a program writes to a terminal with an encoding, as the terminal sees it."""
    done = subprocess.run(
        [sys.executable, "-m", "splime", *map(str, arguments)],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert b"Traceback" not in done.stderr
    said = done.stderr.decode(encoding)
    return done.stdout.decode(encoding) or said


@pytest.mark.system
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_no_silent_question_marks(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text(TEXT, encoding="utf-8")
    shown = run("inspect", path, encoding=encoding)
    assert r"live\u015f in" in shown
    assert "?" not in shown.partition("next: ")[0]  # where a question stands
    report = json.loads(run("inspect", path, "--json", encoding=encoding))
    assert report["statistics"]["predicates"] == 2
    shown = run("inspect", tmp_path / "東.tsv", encoding=encoding)
    assert r"\u6771.tsv: there is no such file" in shown


@pytest.mark.parametrize("name", ["[/a]", "[red]x", "a\x1b[2Jb", "\u202ea"])
def test_progress_shows_names_as_they_are(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar() as update:
        update(name, 1, 2, name)
    with working(name):
        pass
    seen = terminal.getvalue()
    escaped = name.encode("unicode_escape").decode()
    assert escaped in seen
    assert "\x1b[2Jb" not in seen
    assert "\u202e" not in seen
