"""The notebooks run from the top, and show what is stored in them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.test_docs import ROOT


def pictures(cell: Any) -> list[bool]:
    """Which of the things that a cell shows are pictures; what others complain of is left out."""
    shown = [each for each in cell.get("outputs", ()) if each.get("name") != "stderr"]
    return ["image/png" in each.get("data", {}) for each in shown]


def run(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a notebook in a folder; all that it shows as text."""
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
    monkeypatch.setenv("TMPDIR", str(folder))
    stored = nbformat.read(ROOT / "docs" / "notebooks" / f"{name}.ipynb", as_version=4)
    notebook = nbformat.from_dict(stored)
    for cell in notebook.cells:
        cell.pop("outputs", None)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    for cell, before in zip(notebook.cells, stored.cells, strict=True):
        assert pictures(cell) == pictures(before), cell.source
    outputs = [each for cell in notebook.cells for each in cell.get("outputs", ())]
    return "\n".join(each.get("text") or each.data.get("text/plain", "") for each in outputs)


def figures(shown: str) -> dict[str, float]:
    """The MRR of each run that was compared."""
    (compared,) = re.findall(r"^Comparison\(.*: MRR (.*)\)$", shown, re.M)
    return {
        name: float(mrr) for name, mrr in (each.rsplit(" ", 1) for each in compared.split(", "))
    }


@pytest.mark.system
def test_the_idea_of_the_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = run("cuts", tmp_path, monkeypatch)
    mrr = figures(shown)
    assert mrr["split"] > mrr["vanilla"] + 0.05
    assert "1  Melcourt" in shown
    assert "Sara Finnby livesIn[1967..1976] Quenwick" in shown


@pytest.mark.system
def test_your_own_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("notebooks", "data"):
        (tmp_path / name).mkdir()
    shutil.copy(ROOT / "docs" / "data" / "staff.csv", tmp_path / "data")
    shown = run("own-csv", tmp_path / "notebooks", monkeypatch)
    assert "1  Data Platform" in shown
    assert "Birgit Berg reports to Jonas Jansen" in shown
    assert re.search(r"^0 +Yusuf Romano +Search", shown, re.M)


@pytest.mark.system
def test_forecasting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = run("forecasting", tmp_path, monkeypatch)
    assert re.search(r"Backtest\(demo: 4 windows, MRR path 0.4", shown)
    assert "at 2021" in shown


@pytest.mark.slow
def test_who_will_visit_whom(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPLIME_DATA", str(published))
    shown = run("icews14", tmp_path, monkeypatch)
    assert "Barack Obama" in shown
    mrr = figures(shown)
    assert mrr["days"] > mrr["no time"] + 0.05
