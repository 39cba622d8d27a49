"""Vectors of scoped predicates, how smooth they are over time, and where t-SNE puts them."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import combinations, pairwise
from math import dist
from pathlib import Path
from statistics import fmean

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, strategies as st

import splime
from splime.analysis.embeddings import distances, flatten, learned, project, smoothness
from splime.errors import DataError, SplimeError, UsageError
from splime.graph import TemporalGraph
from splime.runs import Run
from tests.runs.small import small_run

numbers = st.floats(-100, 100, width=32)


@pytest.fixture(scope="module")
def fine(graph: TemporalGraph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run cut at every timestamp."""
    return small_run(graph, tmp_path_factory.mktemp("fine") / "run", splime.Timestamp()).path


@given(
    st.integers(1, 3).flatmap(
        lambda width: st.lists(
            st.lists(numbers, min_size=width, max_size=width), min_size=3, max_size=9
        )
    )
)
def test_distances_are_the_double_loop(vectors: list[list[float]]) -> None:
    near: list[float] = []
    far: list[float] = []
    for i, j in combinations(range(len(vectors)), 2):
        (near if j - i == 1 else far).append(dist(vectors[i], vectors[j]))
    means = distances(np.array(vectors))
    assert means.scopes == len(vectors)
    assert means.neighbours == pytest.approx(fmean(near))
    assert means.others == pytest.approx(fmean(far), abs=1e-9)


def test_order_in_time_decides() -> None:
    line = np.arange(30.0)[:, None] * [3.0, 4.0]
    assert distances(line).ratio < 0.1
    shuffled = [distances(np.random.default_rng(seed).permutation(line)).ratio for seed in range(9)]
    assert 0.8 < fmean(shuffled) < 1.2
    back_and_forth = np.arange(30.0)[:, None] % 2
    assert distances(back_and_forth).ratio > 1.5
    assert distances(np.ones((5, 2))).ratio == 1.0


def literal(run: Run, vectors: npt.NDArray[np.float32]) -> dict[str, float]:
    """Names and loops only: scope by scope, with those that train has triples of."""
    known = {predicate for _, predicate, _ in run.static.rows("train")}
    labels = run.static.predicates.labels.to_pylist()
    ratios = {}
    for name in run.graph.predicates:
        rows = [
            vectors[labels.index(scope.name)]
            for scope in run.segmentation.scopes_of(name)
            if scope.name in known
        ]
        if len(rows) >= 4:
            near = [dist(a, b) for a, b in pairwise(rows)]
            far = [dist(rows[i], rows[j]) for j in range(len(rows)) for i in range(j - 1)]
            ratios[name] = fmean(near) / fmean(far)
    return ratios


def test_of_a_run(fine: Path) -> None:
    run = Run(fine)
    measured = smoothness(run)
    expected = literal(run, run.tensors["predicates"].numpy())
    assert {name: each.ratio for name, each in measured.predicates.items()} == pytest.approx(
        expected
    )
    assert set(expected) == {"p0", "p1", "p2"}
    weights = [each.scopes for each in measured.predicates.values()]
    assert sum(weights) == len(np.unique(run.static.train.predicate))
    mean = sum(w * expected[n] for n, w in zip(measured.predicates, weights, strict=True))
    assert measured.overall == pytest.approx(mean / sum(weights))


def test_planted_vectors(fine: Path) -> None:
    """Scopes that move along a line are smooth, whatever else is in the table."""
    run = Run(fine)
    table = run.model.predicates.vectors()
    table[:] = torch.arange(len(table))[:, None]
    assert (smoothness(run).overall or 9) < 0.3
    table[:] = torch.arange(len(table))[torch.randperm(len(table))][:, None]
    assert (smoothness(run).overall or 0) > 0.6


@pytest.mark.parametrize("model", ["distmult", "rotate", "transh"])
def test_reciprocal_and_odd_models(graph: TemporalGraph, tmp_path: Path, model: str) -> None:
    """Only the first half counts, and as the vectors that the formula works with."""
    run = small_run(
        graph, tmp_path / "run", splime.Timestamp(), model=model, reciprocal=model == "distmult",
        loss="bce", epochs=1,
    )  # fmt: skip
    count = len(run.static.predicates)
    assert len(run.model.predicates.vectors()) == count * (2 if model == "distmult" else 1)
    vectors = run.model.predicate_vectors(run.model.predicates.vectors()).numpy()[:count]
    if model == "rotate":
        angles = run.tensors["predicates"].numpy()
        np.testing.assert_allclose(vectors, np.hstack([np.cos(angles), np.sin(angles)]), rtol=1e-5)
    measured = smoothness(run)
    assert {n: each.ratio for n, each in measured.predicates.items()} == pytest.approx(
        literal(run, vectors)
    )


def test_scopes_that_train_does_not_have(graph: TemporalGraph, tmp_path: Path) -> None:
    less = replace(graph, train=graph.train.take(np.arange(15)))
    cuts = splime.Timestamp(fit_on="all")
    run = small_run(less, tmp_path / "run", cuts, epochs=1, batch_size=8)
    known = np.unique(run.static.train.predicate)
    assert len(known) < len(run.static.predicates)
    assert learned(run)[0].tolist() == known.tolist()
    assert project(run).scopes.tolist() == known.tolist()


def test_few_scopes(run: Run, graph: TemporalGraph, tmp_path: Path) -> None:
    assert smoothness(run).predicates == {}  # each predicate is cut once or not at all
    assert smoothness(run).overall is None
    vanilla = small_run(graph, tmp_path / "vanilla", splime.Vanilla(), epochs=1)
    with pytest.raises(UsageError, match="at least 5 scoped predicates, and this run learned 3;"):
        project(vanilla)


def test_other_runs(run: Run, fine: Path) -> None:
    run.engine = "pykeen"
    for ask in (smoothness, project):
        with pytest.raises(UsageError, match="no vectors of this model"):
            ask(run)
    damaged = Run(fine)
    damaged.model.predicates.vectors()[:] = float("nan")
    with pytest.raises(DataError, match=r"model\.safetensors: some embeddings are not finite"):
        smoothness(damaged)


# t-SNE


def test_the_map_is_steady(fine: Path) -> None:
    first, again = project(Run(fine)), project(Run(fine))
    assert first.positions.shape == (len(first.scopes), 2)
    assert np.array_equal(first.positions, again.positions)
    run = Run(fine)
    assert project(run) is project(run)


def test_the_map_keeps_near_what_is_near() -> None:
    draw = np.random.default_rng(0)
    groups = np.repeat([[0.0] * 8, [50.0] * 8], 12, axis=0) + draw.normal(size=(24, 8))
    places = flatten(groups)
    for row in range(24):
        others = np.argsort(np.linalg.norm(places - places[row], axis=1))[1:6]
        assert (others // 12 == row // 12).all()


@pytest.mark.parametrize("shape", [(5, 3), (6, 1), (60, 70)])
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_odd_vectors(shape: tuple[int, int], spread: float) -> None:
    """Few, short, long, and all the same."""
    places = flatten(np.random.default_rng(0).normal(size=shape) * spread)
    assert places.shape == (shape[0], 2)
    assert np.isfinite(places).all()


def test_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(SplimeError, match=r"pip install 'splime-kg\[plot\]'"):
        flatten(np.zeros((9, 2)))
