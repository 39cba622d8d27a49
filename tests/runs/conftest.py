from __future__ import annotations

from pathlib import Path

import pytest

from splime.graph import TemporalGraph
from splime.runs import Run
from tests.runs.small import small_graph, small_run


@pytest.fixture(autouse=True)
def pykeen_home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """PyKEEN makes a folder for its datasets when it is imported; not in the user's home."""
    monkeypatch.setenv("PYSTOW_HOME", str(tmp_path_factory.getbasetemp() / "pystow"))


@pytest.fixture(scope="package")
def graph() -> TemporalGraph:
    return small_graph()


@pytest.fixture(scope="package")
def finished(tmp_path_factory: pytest.TempPathFactory, graph: TemporalGraph) -> Path:
    """A finished run, only to be read."""
    return small_run(graph, tmp_path_factory.mktemp("finished") / "run").path


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Run:
    """A finished run of one's own."""
    import shutil

    return Run(shutil.copytree(finished, tmp_path / "copied"))
