from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from splime.analysis.comparing import run_names
from splime.errors import UsageError


def test_names_of_runs() -> None:
    def named(*paths: str) -> list[str]:
        runs: Any = [SimpleNamespace(path=Path(path)) for path in paths]
        return run_names(runs)

    assert named("a/merge") == ["merge"]
    assert named("a/merge", "a/random") == ["merge", "random"]
    assert named("a/merge", "b/merge", "b/other") == ["a/merge", "b/merge", "b/other"]
    assert named("x/a/run", "y/a/run") == ["x/a/run", "y/a/run"]
    with pytest.raises(UsageError, match="given more than once"):
        named("a/run", "a/run")
