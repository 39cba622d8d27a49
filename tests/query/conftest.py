"""Small trained runs of every kind that questions treat differently."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import splime
from splime.graph import TemporalGraph
from splime.runs import Run
from tests.runs.small import small_run

RUNS: dict[str, tuple[Any, dict[str, Any]]] = {
    "vanilla": (splime.Vanilla(), {"model": "transe"}),
    "split": (splime.Split(grow=3), {"model": "transe"}),
    "reciprocal": (splime.Timestamp(fit_on="all"), {"model": "complex", "reciprocal": True}),
    "entities": (splime.Split(grow=2, target="entities"), {"model": "distmult"}),
    "both": (splime.Split(grow=2, target="both"), {"model": "complex", "reciprocal": True}),
}


def valid_graph() -> TemporalGraph:
    """Objects depend on subject, predicate and period; valid has enough facts to calibrate on."""
    draw = random.Random(1)
    rows = []
    for _ in range(330):
        subject, predicate, begin = draw.randrange(14), draw.randrange(4), draw.randrange(16)
        object_ = (subject + 3 * predicate + begin // 4 + draw.randrange(2)) % 14
        end = None if draw.random() < 0.1 else 1990 + begin + draw.randrange(4)
        first = None if draw.random() < 0.05 else 1990 + begin
        rows.append((f"entity {subject}", f"p{predicate}", f"entity {object_}", first, end))
    splits = {"train": rows[:240], "valid": rows[240:305], "test": rows[305:]}
    return splime.read(splits, granularity="year")


@pytest.fixture(scope="session")
def graph() -> TemporalGraph:
    return valid_graph()


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, graph: TemporalGraph) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("asked")
    paths = {}
    for name, (cuts, settings) in RUNS.items():
        more = {"epochs": 60, "validate_every": 0, "learning_rate": 0.1, "dimension": 8}
        run = small_run(graph, folder / name, cuts, **settings, **more)
        paths[name] = run.path
    return paths


@pytest.fixture
def split(trained: dict[str, Path], tmp_path: Path) -> Run:
    """A run of one's own."""
    ignore = shutil.ignore_patterns("calibration.json")
    return Run(shutil.copytree(trained["split"], tmp_path / "run", ignore=ignore))
