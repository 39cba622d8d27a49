"""Entries of registries that installed packages add."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from splime.errors import SplimeError
from splime.plugins import Registry

GROUP = "splime.examples"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package with three entries: one works, one is broken, one has a taken name."""
    (tmp_path / "added_examples.py").write_text("two = 2\n", encoding="utf-8")
    about = tmp_path / "added_examples-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: added-examples\nVersion: 1.0\n", encoding="utf-8"
    )
    (about / "entry_points.txt").write_text(
        f"[{GROUP}]\ntwo = added_examples:two\nbroken = added_examples:three\n"
        "one = added_examples:two\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_an_installed_package_adds_entries(package: Path, caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry(GROUP, {"one": 1, "zero": 0})
    assert registry["one"] == 1
    with caplog.at_level(logging.WARNING, "splime"):
        assert list(registry) == ["one", "zero", "two", "broken"]
    assert "the name 'one' is taken" in caplog.text
    assert "added-examples" in caplog.text
    assert registry["two"] == 2
    assert list(registry) == ["one", "zero", "two", "broken"]
    assert len(registry) == 4
    assert "broken" in registry
    assert "three" not in registry


def test_an_entry_that_cannot_be_loaded_names_its_package(package: Path) -> None:
    registry = Registry(GROUP, {"one": 1})
    with pytest.raises(SplimeError, match=r"'broken' of splime.examples \(package added-examples"):
        registry["broken"]
    with pytest.raises(KeyError):
        registry["three"]
