"""The preset `quick` takes a part where all would take too long, and says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from splime.graph import TemporalGraph
from splime.runs import train
from splime.training import native, paths
from tests.runs.small import small_graph


@pytest.fixture(scope="module")
def graph() -> TemporalGraph:
    return small_graph(test=60)


@pytest.mark.parametrize("model", ["path", "complex"])
def test_small_graphs_are_taken_whole(graph: TemporalGraph, tmp_path: Path, model: str) -> None:
    run = train(graph, None, tmp_path / "run", model=model, preset="quick", warn=pytest.fail)
    settings = run.config["settings"]
    assert not settings.keys() & {"steps", "reach", "valid_questions"}
    assert len(run.history) == {"path": 1, "complex": 20}[model]
    assert settings.get("weights") == {"path": "1", "complex": None}[model]


def test_long_paths(graph: TemporalGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "_QUICK_SECONDS", 0.015)
    monkeypatch.setattr(paths, "_QUICK_REACH", 10)
    monkeypatch.setattr(paths, "_QUICK_VALID", 8)
    told: list[str] = []
    run = train(graph, None, tmp_path / "run", preset="quick", warn=told.append)
    settings = run.config["settings"]
    assert (settings["steps"], settings["reach"], settings["valid_questions"]) == (1, 10, 8)
    assert len(run.history) == 1
    assert len(told) == 1
    for part in ("1 step", "validation on 8 questions", "the nearest 10 facts"):
        assert part in told[0]
    again = train(graph, None, tmp_path / "run", preset="quick", warn=told.append)
    assert again.config == run.config
    chosen: dict[str, Any] = {"epochs": 1, "reach": 50, "valid_questions": 6}
    run = train(graph, None, tmp_path / "own", preset="quick", warn=pytest.fail, **chosen)
    assert "steps" not in run.config["settings"]
    assert chosen.items() <= run.config["settings"].items()
    run = train(graph, None, tmp_path / "strong", epochs=1, warn=pytest.fail)
    assert "reach" not in run.config["settings"]


@pytest.mark.parametrize(("seconds", "epochs", "steps"), [(1e-9, 1, 1), (1.5e-4, 3, None)])
def test_long_factors(
    graph: TemporalGraph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    epochs: int,
    steps: int | None,
) -> None:
    monkeypatch.setattr(native, "_QUICK_SECONDS", seconds)
    monkeypatch.setattr(native, "_QUICK_SCORES", 1)
    monkeypatch.setattr(native, "_QUICK_VALID", 10)
    told: list[str] = []
    run = train(graph, None, tmp_path / "r", model="complex", preset="quick", warn=told.append)
    settings = run.config["settings"]
    assert settings.get("steps") == steps
    assert settings["valid_questions"] == 10
    assert len(run.history) == epochs
    assert run.history[-1].valid is not None
    assert "validation on 10 questions" in told[0]
