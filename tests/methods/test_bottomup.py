"""Against ruptures itself.

Real signatures are full of equal distances, hence of unions that cost the same. ruptures leaves
such ties to the rounding of its sums, so that its answer can change with the order of the columns.
The search must therefore equal ruptures' exactly, ties included, on the *same* Gram matrix; on the
signal itself it must do so where there are no ties, and at the paper's settings.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import ruptures  # type: ignore[import-untyped, unused-ignore]
from hypothesis import given, strategies as st
from ruptures.base import BaseCost  # type: ignore[import-untyped, unused-ignore]
from ruptures.exceptions import (  # type: ignore[import-untyped, unused-ignore]
    BadSegmentationParameters,
)
from scipy.sparse import block_diag, csr_array  # type: ignore[import-untyped, unused-ignore]

from splime.graph import TemporalGraph
from splime.methods.bottomup import Floats, Gram, Limit, Signals, change_rows
from splime.methods.signatures import PROXIMITIES, signatures

PAPER = {
    "wikidata12k": ("preferential_attachment", 2.5),
    "yago11k": ("preferential_attachment", 5),
    "icews14": ("adamic_adar", 25),
}
IN_RUPTURES = {"epsilon": "epsilon", "penalty": "pen", "changes": "n_bkps"}


def matrix(signal: csr_array) -> Floats:
    """The Gram matrix of the rows of a signal."""
    row, column = np.indices((signal.shape[0],) * 2)
    gram: Floats = Gram(Signals.of_rows(signal)).entries(row.ravel(), column.ravel())
    gram = gram.reshape(row.shape)
    np.fill_diagonal(gram, 1)
    return gram


def changes_of(signal: csr_array, min_size: int = 1, **stop: Any) -> list[int]:
    _, rows = change_rows(Signals.of_rows(signal), Limit(**stop), min_size=min_size)
    return [int(row) for row in rows]


class KnownGram(BaseCost):  # type: ignore[misc, unused-ignore]
    """ruptures' kernel cost on a Gram matrix that is there already."""

    model = "known gram"
    min_size = 1

    def fit(self, signal: Floats) -> KnownGram:
        self.signal = signal
        return self

    def error(self, start: int, end: int) -> float:
        block = self.signal[start:end, start:end]
        value: float = np.diagonal(block).sum() - block.sum() / (end - start)
        return value


def searched(gram: Floats, min_size: int, **stop: float) -> list[int] | None:
    """ruptures' search on a Gram matrix; None if it refuses."""
    search = ruptures.BottomUp(custom_cost=KnownGram(), jump=1, min_size=min_size).fit(gram)
    return _predict(search, **stop)


def detected(signal: Floats, min_size: int, **stop: float) -> list[int] | None:
    """ruptures from beginning to end."""
    return _predict(ruptures.BottomUp(model="rbf", jump=1, min_size=min_size).fit(signal), **stop)


def _predict(search: Any, **stop: float) -> list[int] | None:
    try:
        ends = search.predict(**{IN_RUPTURES[name]: value for name, value in stop.items()})
    except BadSegmentationParameters:
        return None
    return [int(end) for end in ends[:-1]]


@st.composite
def signals(draw: st.DrawFn) -> csr_array:
    """Few distinct rows, normalised as signatures are: most distances occur many times."""
    width, kinds = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    rows = draw(st.lists(st.integers(0, kinds - 1), min_size=1, max_size=60))
    some = draw(st.randoms(use_true_random=False))
    kind = np.array([[some.choice([0, 0, 1, 2, 4]) for _ in range(width)] for _ in range(kinds)])
    length = np.sqrt((kind**2).sum(axis=1, keepdims=True))
    return csr_array((kind / np.where(length == 0, 1, length))[rows])


stops = st.one_of(
    st.fixed_dictionaries({"epsilon": st.floats(0, 20)}),
    st.fixed_dictionaries({"penalty": st.floats(0, 3)}),
    st.fixed_dictionaries({"changes": st.integers(0, 20)}),
)


@given(signals(), st.integers(1, 3), stops)
def test_search_is_that_of_ruptures(signal: csr_array, size: int, stop: dict[str, Any]) -> None:
    changes, expected = changes_of(signal, size, **stop), searched(matrix(signal), size, **stop)
    if expected is None and "changes" in stop:  # more than there is room for: as many as there is
        assert len(changes) <= stop["changes"]
    else:
        assert changes == (expected or [])


@given(signals(), st.integers(1, 3), st.data())
def test_stopping_exactly_at_a_cost(signal: csr_array, size: int, data: st.DataObject) -> None:
    gram = matrix(signal)
    if len(gram) < size:
        return
    bounds = [0, *changes_of(signal, size, changes=len(gram)), len(gram)]
    kept = data.draw(st.integers(0, len(bounds) - 2))
    ends = [0, *changes_of(signal, size, changes=kept), len(gram)]
    cost = KnownGram().fit(gram)
    epsilon = float(cost.sum_of_costs(ends[1:]))
    assert changes_of(signal, size, epsilon=epsilon) == searched(gram, size, epsilon=epsilon)
    if len(ends) > 2:
        start, middle, end = ends[:3]
        penalty = float(
            cost.error(start, end) - (cost.error(start, middle) + cost.error(middle, end))
        )
        changes = changes_of(signal, size, penalty=penalty)
        assert changes == searched(gram, size, penalty=penalty)


@pytest.mark.parametrize("rows", [2, 3, 5, 17, 40, 120, 300])
@pytest.mark.parametrize("columns", [1, 7, 400])
def test_signals_without_ties(rows: int, columns: int) -> None:
    random = np.random.default_rng(rows * 1_000 + columns)
    # One column has no zeros, so that no two rows are equal.
    dense = random.random((rows, columns)) * (random.random((rows, columns)) < 0.3)
    dense[:, 0] = random.random(rows)
    signal = csr_array(dense)
    gram = matrix(signal)
    np.testing.assert_allclose(gram, ruptures.costs.CostRbf().fit(dense).gram, atol=1e-10)
    for size in (1, 2, 3):
        stops: list[dict[str, Any]] = [
            *({"epsilon": share * rows} for share in (0, 0.01, 0.1, 0.3, 2)),
            *({"penalty": penalty} for penalty in (0, 0.1, 0.5, 1, 100)),
            *({"changes": changes} for changes in (0, 1, 2, rows // 5)),
        ]
        for stop in stops:
            expected = detected(dense, size, **stop)
            if expected is not None:
                assert changes_of(signal, size, **stop) == expected


@given(signals())
def test_costs_from_prefix_sums_are_as_near_as_said(signal: csr_array) -> None:
    gram = Gram(Signals.of_rows(signal))
    bounds = [*combinations(range(0, signal.shape[0] + 1, 3), 3)]
    start, middle, end = np.array(bounds, np.int64).reshape(-1, 3).T
    near, exact = (
        cost(start, end) - (cost(start, middle) + cost(middle, end))
        for cost in (gram.near, gram.exact)
    )
    assert (np.abs(near - exact) <= gram.slack[0]).all()
    assert gram.slack[0] < 1e-9


@given(signals(), st.data())
def test_exact_costs_are_those_of_ruptures(signal: csr_array, data: st.DataObject) -> None:
    """To the last bit, since that decides between ties."""
    rows = signal.shape[0]
    start = data.draw(st.integers(0, rows - 1))
    end = data.draw(st.integers(start + 1, rows))
    [cost] = Gram(Signals.of_rows(signal)).exact(np.array([start]), np.array([end]))
    assert cost == KnownGram().fit(matrix(signal)).error(start, end)


@given(st.lists(signals(), min_size=1, max_size=5), stops)
def test_many_signals_of_runs_are_cut_as_each_alone(
    several: list[csr_array], stop: dict[str, Any]
) -> None:
    together = csr_array(block_diag(several))
    own = np.repeat(np.arange(len(several)), [signal.shape[0] for signal in several])
    dense = together.toarray()
    begins = np.append(True, (dense[1:] != dense[:-1]).any(axis=1) | (own[1:] != own[:-1]))
    first = np.flatnonzero(begins)
    sizes, counts = np.diff(np.append(first, len(own))), np.bincount(own[first])
    whose, rows = change_rows(Signals(together[first], sizes, counts), Limit(**stop))
    for number, signal in enumerate(several):
        changes = (rows[whose == number] - np.flatnonzero(own == number)[0]).tolist()
        expected = searched(matrix(signal), 1, **stop)
        if expected is None:
            assert len(changes) <= stop["changes"]
        else:
            assert changes == expected


@given(signals())
def test_gram_is_that_of_ruptures(signal: csr_array) -> None:
    gram = matrix(signal)
    assert (gram == gram.T).all()
    assert (gram.diagonal() == 1).all()
    dense = signal.toarray()
    if len(dense) > 1:
        np.testing.assert_allclose(gram, ruptures.costs.CostRbf().fit(dense).gram, rtol=1e-10)


def test_rows_that_differ_by_rounding_are_equal() -> None:
    """Else the median distance would be rounding, and all others infinite beside it."""
    random = np.random.default_rng(3)
    row = random.random(20) / 3
    same = np.where(random.random((31, 20)) < 0.5, row, np.nextafter(row, 1))
    gram = matrix(csr_array(np.vstack([same, np.eye(20)[:9]])))
    assert gram[0, 1:31] == pytest.approx(np.exp(-0.01))
    assert gram[31, 32] == pytest.approx(np.exp(-2))  # γ = 1: more than half of the distances are 0


RealSignatures = Callable[[str, str], list[csr_array]]


@pytest.fixture(scope="module")
def real_signatures(published_graphs: dict[str, TemporalGraph]) -> RealSignatures:
    """Signatures of every predicate of a dataset, by a measure."""

    @cache
    def signatures_of(name: str, measure: str) -> list[csr_array]:
        graph = published_graphs[name]
        facts = graph.facts()
        begin, end = graph.timestamps(facts)
        found = []
        for predicate in range(len(graph.predicates)):
            mine = facts.predicate == predicate
            columns = (begin[mine], end[mine], facts.subject[mine], facts.object[mine])
            found.append(signatures(*columns, proximity=PROXIMITIES[measure]).scores)
        return found

    return signatures_of


@pytest.mark.parametrize("name", PAPER)
def test_real_signatures_at_the_settings_of_the_paper(
    real_signatures: RealSignatures, name: str
) -> None:
    measure, epsilon = PAPER[name]
    for signal in real_signatures(name, measure):
        changes = changes_of(signal, 2, epsilon=epsilon)
        if signal.shape[0] < 2:
            assert changes == []
        else:
            assert changes == detected(signal.toarray(), 2, epsilon=epsilon)


@pytest.mark.system
@pytest.mark.parametrize("name", PAPER)
@pytest.mark.parametrize("measure", PROXIMITIES)
def test_real_signatures_with_all_their_ties(
    real_signatures: RealSignatures, name: str, measure: str
) -> None:
    _, epsilon = PAPER[name]
    settings: list[tuple[int, dict[str, Any]]] = [
        (1, {"epsilon": epsilon}),
        (2, {"penalty": 0.5}),
        (3, {"changes": 4}),
    ]
    for signal in real_signatures(name, measure):
        gram = matrix(signal)
        for size, stop in settings:
            expected = searched(gram, size, **stop)
            if expected is not None:
                assert changes_of(signal, size, **stop) == expected


def test_too_few_rows() -> None:
    for rows in range(1, 4):
        assert changes_of(csr_array(np.eye(rows)), 2, epsilon=0) == []
    assert changes_of(csr_array(np.eye(4)), 2, epsilon=0) == [2]
