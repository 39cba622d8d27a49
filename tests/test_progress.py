from __future__ import annotations

import io
import sys

import pytest

from splime.progress import progress_bar, working


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


def test_files_see_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar() as update, working("reading …"):
        update("train.txt", 1, None)
    assert terminal.getvalue() == ""
