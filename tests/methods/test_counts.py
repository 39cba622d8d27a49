"""Counts by what occurs, against loops over facts; and what is built on them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, strategies as st

from splime.counts import Counts
from splime.methods import merge
from splime.progress import silent

NAMES, TIMES = 4, 9

facts = st.lists(
    st.tuples(st.integers(0, NAMES - 1), st.integers(0, TIMES - 1), st.integers(0, TIMES - 1)).map(
        lambda fact: (fact[0], min(fact[1:]), max(fact[1:]))
    ),
    min_size=1,
    max_size=12,
)


def counted(rows: list[tuple[int, int, int]]) -> Counts:
    source, begin, end = (np.array(column, np.int32) for column in zip(*rows, strict=True))
    return Counts.of(source, begin, end, NAMES, TIMES)


@given(facts)
def test_held_equals_a_loop(rows: list[tuple[int, int, int]]) -> None:
    held = counted(rows).held
    for name, times in enumerate(held.by_name()):
        number = held.facts[held.offsets[name] : held.offsets[name + 1]]
        wanted = [sum(n == name and b <= t <= e for n, b, e in rows) for t in range(TIMES)]
        assert times.tolist() == [t for t in range(TIMES) if wanted[t]]
        assert number.tolist() == [count for count in wanted if count]


@given(facts)
def test_tables_of_all_names_and_timestamps_give_the_same(rows: list[tuple[int, int, int]]) -> None:
    tables = np.zeros((3, NAMES, TIMES), np.int64)
    for name, begin, end in rows:
        if begin == end:
            tables[0, name, begin] += 1
        else:
            tables[1, name, begin] += 1
            tables[2, name, end] += 1
    dense, sparse = Counts.of_tables(*tables), counted(rows)
    for field in Counts.__dataclass_fields__:
        assert np.array_equal(getattr(dense, field), getattr(sparse, field))


def test_memory_follows_from_the_facts() -> None:
    """A table of all names and timestamps would take 80 GB here."""
    rng = np.random.default_rng(0)
    source, begin = (rng.integers(0, 100_000, 1_000).astype(np.int32) for _ in range(2))
    tracemalloc.start()
    try:
        counts = Counts.of(source, begin, begin, 100_000, 100_000)
        assert counts.held.facts.sum() == 1_000
        cuts = 2 * begin.astype(np.int64)
        counts.within(source.astype(np.int64), cuts - 1, cuts + 1)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


def joined_by_loops(weight: list[int], first: list[int], count: int) -> list[bool]:
    groups = [[place] for place in range(len(weight))]
    sums = list(weight)
    for _ in range(count):
        pairs = [
            (sums[at] + sums[at + 1], at)
            for at in range(len(groups) - 1)
            if groups[at + 1][0] not in first
        ]
        _, at = min(pairs)
        groups[at] += groups.pop(at + 1)
        sums[at] += sums.pop(at + 1)
    begins = {group[0] for group in groups}
    return [place in begins for place in range(len(weight))]


@pytest.mark.parametrize("few", [0, 3, 64])
@given(data=st.data())
def test_joining_together_and_one_by_one_are_the_same(few: int, data: st.DataObject) -> None:
    chains = data.draw(
        st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=12), min_size=1, max_size=4)
    )
    weight = [each for chain in chains for each in chain]
    first = np.cumsum([0, *map(len, chains)])[:-1]
    count = data.draw(st.integers(0, len(weight) - len(chains)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge, "_FEW", few)
        begins = merge._join(np.array(weight), first, count, silent)
    assert begins.tolist() == joined_by_loops(weight, first.tolist(), count)
