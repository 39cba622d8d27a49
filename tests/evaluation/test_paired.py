"""The paired bootstrap, against loops that say what it is."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from splime.errors import UsageError
from splime.evaluation import Metrics, bootstrap
from splime.evaluation.metrics import (
    COMPARED,
    FEWEST,
    Difference,
    Floats,
    compare_ranks,
    holm,
)
from splime.times import Ints


def paired_bootstrap(first: Floats, second: Floats, **options: Any) -> dict[str, Difference]:
    """The differences of two rankings."""
    return compare_ranks([first, second], **options)[1][0, 1]


def some_ranks(seed: int, facts: int = 40, queries: int = 2, worst: int = 15) -> Floats:
    ranks: Floats = np.random.default_rng(seed).integers(1, worst, (facts, queries)) / 1.0
    return ranks


def slow(first: Floats, second: Floats, samples: int, level: float, seed: int) -> list[Difference]:
    """Sample by sample: the metrics of both rankings over the drawn facts, and what they differ."""
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(0, len(first), len(first)) for _ in range(samples)]
    differences = []
    for metric in COMPARED:

        def difference(rows: Ints, metric: str = metric) -> float:
            one, other = Metrics.of(first[rows]), Metrics.of(second[rows])
            value: float = getattr(one, metric) - getattr(other, metric)
            return value if abs(value) > 1e-12 else 0.0

        values = [difference(rows) for rows in drawn]
        not_more = sum(value <= 0 for value in values)
        not_less = sum(value >= 0 for value in values)
        p = min(1.0, 2 * (min(not_more, not_less) + 1) / (samples + 1))
        low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2]).tolist()
        differences.append(Difference(difference(np.arange(len(first))), low, high, p))
    return differences


@given(
    st.integers(0, 2**20), st.integers(FEWEST, 40), st.integers(1, 2), st.sampled_from([0.5, 0.95])
)
def test_against_loops(seed: int, facts: int, queries: int, level: float) -> None:
    first, second = some_ranks(seed, facts, queries), some_ranks(seed + 1, facts, queries)
    differences = paired_bootstrap(first, second, samples=60, level=level, seed=seed)
    for one, other in zip(differences.values(), slow(first, second, 60, level, seed), strict=True):
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))
        assert one.p == other.p


@given(st.integers(0, 2**20))
def test_exchanged(seed: int) -> None:
    first, second = some_ranks(seed), some_ranks(seed + 1)
    one = paired_bootstrap(first, second, samples=200)
    other = paired_bootstrap(second, first, samples=200)
    for name in COMPARED:
        assert one[name].value == -other[name].value
        assert one[name].low == pytest.approx(-(other[name].high or 0))
        assert one[name].p == other[name].p


def test_equal_ranks_never_differ() -> None:
    ranks = some_ranks(0)
    nothing = Difference(0.0, 0.0, 0.0, 1.0)
    assert set(paired_bootstrap(ranks, ranks.copy(), samples=100).values()) == {nothing}
    # Equal in every metric, although not in every rank.
    swapped = paired_bootstrap(
        np.array([[1.0, 20.0]] * 30), np.array([[20.0, 1.0]] * 30), samples=100
    )
    assert set(swapped.values()) == {nothing}


def test_a_small_but_constant_difference_is_found() -> None:
    """What intervals of both by themselves would not show."""
    ranks = some_ranks(0, 300)
    intervals, differences = compare_ranks([ranks, ranks + 1], samples=1_000)
    lower, higher = intervals[1], intervals[0]
    assert lower is not None
    assert higher is not None
    assert lower["hits10"][1] > higher["hits10"][0]
    assert differences[0, 1]["hits10"].p == 2 / 1_001
    assert (differences[0, 1]["mrr"].low or 0) > 0


@given(st.integers(0, 2**20), st.integers(1, FEWEST - 1))
def test_few_facts_prove_nothing(seed: int, facts: int) -> None:
    """One fact would give p = .0002: drawn again and again, it is always the same."""
    first, second = some_ranks(seed, facts), some_ranks(seed + 1, facts)
    intervals, differences = compare_ranks([first, second], samples=100)
    assert intervals == [None, None]
    for metric, difference in differences[0, 1].items():
        one, other = (getattr(Metrics.of(ranks), metric) for ranks in (first, second))
        assert difference.value == pytest.approx(one - other)
        assert difference == Difference(difference.value)
    assert bootstrap(first, samples=100) is None


def test_chance_is_found_as_often_as_said() -> None:
    """Of pairs that do not differ, about one in twenty seems to."""
    wrong = 0
    for seed in range(200):
        first, second = some_ranks(2 * seed, FEWEST), some_ranks(2 * seed + 1, FEWEST)
        p = paired_bootstrap(first, second, samples=400)["mrr"].p
        assert p is not None
        wrong += p <= 0.05
    assert 3 <= wrong <= 20


def test_many_at_once_are_as_one_by_one() -> None:
    ranks = [some_ranks(seed) for seed in range(4)]
    intervals, differences = compare_ranks(ranks, samples=300, level=0.9, seed=3)
    for each, own in zip(ranks, intervals, strict=True):
        alone = bootstrap(each, samples=300, level=0.9, seed=3)
        assert alone is not None
        assert own is not None
        for name, ends in alone.items():
            assert own[name] == pytest.approx(ends)
    assert [*differences] == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    for (one, other), found_pair in differences.items():
        pair = paired_bootstrap(ranks[one], ranks[other], samples=300, level=0.9, seed=3)
        assert {n: d.p for n, d in pair.items()} == {n: d.p for n, d in found_pair.items()}


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm(p_values: list[float]) -> None:
    corrected = holm(p_values)
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    for rank, at in enumerate(order):
        before = [(len(p_values) - r) * p_values[a] for r, a in enumerate(order[: rank + 1])]
        assert corrected[at] == min(1.0, max(before))
    shuffled = random.Random(0).sample(p_values, len(p_values))
    assert sorted(holm(shuffled)) == sorted(corrected)


def test_nonsense() -> None:
    ranks = some_ranks(0)
    with pytest.raises(UsageError, match="same facts"):
        paired_bootstrap(ranks, ranks[1:])
    with pytest.raises(UsageError, match="samples"):
        paired_bootstrap(ranks, ranks, samples=0)
    with pytest.raises(UsageError, match="level"):
        paired_bootstrap(ranks, ranks, level=95)
    with pytest.raises(UsageError, match="at least one"):
        paired_bootstrap(ranks[:0], ranks[:0])
