from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from splime.errors import UsageError
from splime.timeline import Timeline

spans = st.lists(
    st.tuples(st.integers(1900, 1960), st.integers(0, 40)).map(lambda s: (s[0], s[0] + s[1])),
    min_size=1,
    max_size=80,
)


def literal_buckets(facts: list[tuple[int, int]], min_facts: int) -> list[tuple[int, int]]:
    """The rule of the paper's code, year by year, as loops."""
    first = min(begin for begin, _ in facts)
    last = max(end for _, end in facts)
    buckets, start, year = [], first, first
    while year <= last:
        inside = 0
        for begin, end in facts:
            if start <= begin <= year or start <= end <= year:
                inside += 1
        still = 0
        for _, end in facts:
            if end >= year:
                still += 1
        if inside >= min_facts and still >= min_facts:
            buckets.append((start, year))
            start = year + 1
        year += 1
    if start <= last:
        buckets.append((start, last))
    return buckets


@given(spans, st.integers(1, 20))
def test_buckets_follow_the_literal_rule(facts: list[tuple[int, int]], min_facts: int) -> None:
    begin, end = (np.array(column) for column in zip(*facts, strict=True))
    timeline = Timeline.of(np.concatenate([begin, end]), "year")
    buckets = timeline.bucket(begin, end, min_facts=min_facts)
    wanted = literal_buckets(facts, min_facts)
    bounds = [(int(a), int(b)) for a, b in zip(buckets.starts, buckets.ends, strict=True)]
    assert bounds == wanted


@given(
    st.lists(st.integers(-50, 50), min_size=1),
    st.lists(st.integers(-80, 80), min_size=1, max_size=300),
)
def test_index_is_the_last_timestamp_not_after(ticks: list[int], asked: list[int]) -> None:
    timeline = Timeline.of(np.array(ticks), "step")
    distinct = sorted(set(ticks))
    wanted = [max((i for i, t in enumerate(distinct) if t <= tick), default=0) for tick in asked]
    # Both ways to look up: a table for many facts, a binary search for few.
    assert timeline.index(np.array(asked)).tolist() == wanted
    assert [int(timeline.index(np.array([tick]))[0]) for tick in asked] == wanted


def test_every_index_is_a_date() -> None:
    days = Timeline.of(np.array([16203, 16205]), "day")
    assert days.labels() == ["2014-05-13", "2014-05-15"]
    assert [days.label(0), days.label(-1)] == ["2014-05-13", "2014-05-15"]
    assert repr(days) == "Timeline(2 timestamps by day, 2014-05-13..2014-05-15)"
    with pytest.raises(UsageError, match="does not exist"):
        days.label(2)


def test_a_time_outside_says_the_range() -> None:
    years = Timeline.of(np.array([1990, 2000]), "year")
    assert years.interval("1995-05", 1996) == (1995, 1996)
    assert years.interval(1980, 2100) == (1980, 2100)
    with pytest.raises(UsageError, match="2001 lies outside of the graph's time, 1990 to 2000"):
        years.interval(2001, 2001)
    with pytest.raises(UsageError, match=r"2000 for what holds today.*forecast"):
        years.interval(2023, 2023)
    with pytest.raises(UsageError, match="ends before it begins"):
        years.interval(1995, 1994)


def test_nonsense_is_refused() -> None:
    one, two = np.array([1, 5]), np.array([3, 4])
    with pytest.raises(UsageError):
        Timeline("year", np.array([], np.int64), np.array([], np.int64))
    with pytest.raises(UsageError):
        Timeline("year", one, two)
    with pytest.raises(UsageError):
        Timeline("year", np.array([1, 2]), np.array([2, 3]))
    with pytest.raises(UsageError, match="at least 1"):
        Timeline.of(one, "year").bucket(one, one, min_facts=0)


def test_it_cannot_be_changed() -> None:
    years = Timeline.of(np.array([1990, 2000]), "year")
    with pytest.raises(ValueError, match="read-only"):
        years.starts[0] = 1
    assert years == Timeline.of(np.array([2000, 1990]), "year")
    assert years != Timeline.of(np.array([2000, 1990]), "step")
