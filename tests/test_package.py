"""The package as a whole: what importing it costs, and what it offers."""

from __future__ import annotations

import subprocess
import sys

import pytest

import splime


def imported(code: str, *modules: str) -> list[str]:
    """Which of the modules are loaded after some code ran."""
    code = f"import sys, splime; {code}; print(*[m for m in {modules} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.system
def test_importing_is_light() -> None:
    assert imported("pass", "torch", "pandas", "matplotlib", "numpy", "pyarrow", "rich") == []


@pytest.mark.system
def test_loading_is_light() -> None:
    # pandas is not asked for here: Arrow itself imports it where it is installed.
    code = "splime.leakage.report(splime.load('demo'))"
    assert imported(code, "torch", "matplotlib", "rich", "splime.leakage") == ["splime.leakage"]


def test_everything_offered_is_there() -> None:
    offered = vars(splime)["__all__"]
    for name in offered:
        assert getattr(splime, name) is not None
    assert dir(splime) == sorted(offered)
    with pytest.raises(AttributeError, match="attribute lod"):
        getattr(splime, "lod")  # noqa: B009
