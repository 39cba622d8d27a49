"""What train does not have, chronological splits, far times; against literal loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import splime
from splime.graph import TemporalGraph
from splime.statistics import (
    Window,
    begins_after_train,
    describe,
    evenly,
    facts_over_time,
    time_window,
)

years = st.one_of(st.none(), st.integers(1990, 2005))
facts = st.tuples(*[st.sampled_from("abcdef")] * 3, years, years).filter(
    lambda fact: None in fact[3:] or fact[3] <= fact[4]
)


def some(least: int) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    return st.lists(facts, min_size=least, max_size=8)


def read(train: list[tuple[Any, ...]], test: list[tuple[Any, ...]]) -> TemporalGraph:
    """With a fact that has a time, and all of them kept."""
    first = ("a", "a", "b", 1995, 1996)
    return splime.read(
        {"train": [first, *train], "test": test or [first]},
        granularity="year", first=1980, last=2010, keep_duplicates=True,
    )  # fmt: skip


@given(some(0), some(1))
def test_beside_train(train: list[tuple[Any, ...]], test: list[tuple[Any, ...]]) -> None:
    graph = read(train, test)
    rows = {split: list(graph.rows(split)) for split in ("train", "test")}
    names = {s: {n for f in own for n in (f.subject, f.object)} for s, own in rows.items()}
    predicates = {s: {f.predicate for f in own} for s, own in rows.items()}
    times = {s: [[int(t) for t in f[3:] if t is not None] for f in own] for s, own in rows.items()}
    beside = describe(graph).beside_train["test"]
    assert beside.unseen_entities == len(names["test"] - names["train"])
    assert beside.unseen_predicates == len(predicates["test"] - predicates["train"])
    assert (beside.entities, beside.predicates) == (len(names["test"]), len(predicates["test"]))
    assert beside.unseen == sum(
        not {f.subject, f.object} <= names["train"] or f.predicate not in predicates["train"]
        for f in rows["test"]
    )
    known = [time for each in times["train"] for time in each]
    assert beside.outside == sum(
        any(not min(known) <= time <= max(known) for time in each) for each in times["test"]
    )
    begins = {s: [min(each) for each in own if each] for s, own in times.items()}
    assert beside.begins == (str(min(begins["test"])) if begins["test"] else None)
    after = bool(begins["test"]) and min(begins["test"]) > max(begins["train"])
    assert beside.after_train == after
    assert begins_after_train(graph) == ({"test": min(begins["test"])} if after else {})
    if after:
        hold = [int(f.end or 2010) >= min(begins["test"]) for f in rows["train"]]
        assert beside.still_hold == sum(hold)
    assert describe(graph).without_time == sum(not each for own in times.values() for each in own)


@given(some(1))
def test_facts_hold_at_every_tick(rows: list[tuple[Any, ...]]) -> None:
    """Also between two timestamps; and cells of one tick hold just that."""
    graph = read(rows, [])
    limits, in_all, holding = facts_over_time(graph, np.arange(len(graph.predicates)))
    assert in_all.tolist() == holding.sum(axis=0).tolist()
    window = Window(graph.timeline.first, graph.timeline.last, graph.timeline.first)
    cells = evenly(limits, holding, window, 1_000)
    own = graph.facts()
    for predicate in range(len(graph.predicates)):
        for tick in range(window.first, window.last + 1):
            expected = (own.predicate == predicate) & (own.begin <= tick) & (own.end >= tick)
            at = np.searchsorted(limits, tick - window.origin) - 1
            assert holding[predicate, at] == expected.sum()
            assert cells[predicate, tick - window.first] == pytest.approx(expected.sum())
    coarse = evenly(limits, holding, window, 7)
    length = (window.last - window.first + 1) / coarse.shape[1]
    assert (coarse * length).sum() == pytest.approx(cells.sum())  # nothing gets lost


@pytest.mark.parametrize(
    ("extra", "count", "begin", "end"),
    [
        ([19433], 1, "1900", "1999"),
        ([-5000], 1, "1900", "1999"),
        ([-5000, 19433], 2, "1900", "1999"),
        ([19433] * 30, None, "", ""),  # more than one in a hundred are no mistakes
        ([2090], None, "", ""),  # not beyond a gap as long as all the rest
        ([], None, "", ""),
    ],
)
def test_far_times(extra: list[int], count: int | None, begin: str, end: str) -> None:
    rows = [("a", "p", f"b{n}", year) for n, year in enumerate([*range(1900, 2000), *extra])]
    far = describe(splime.read(rows, split="none", granularity="year")).far_times
    if count is None:
        assert far is None
        return
    assert far is not None
    assert (far.count, far.begin, far.end) == (count, begin, end)
    assert {fact.begin for fact in far.facts} == {str(year) for year in extra}


def test_unknown_ends_that_reach_a_far_time() -> None:
    rows = [("a", "p", f"b{n}", 1900 + n, None if n % 10 == 0 else 1950 + n) for n in range(50)]
    rows += [("a", "p", "c", 9433, 9440)]
    far = describe(splime.read(rows, split="none", granularity="year")).far_times
    assert far is not None
    assert far.filled == 5
    far = describe(splime.read(rows, split="none", granularity="year", last=1999)).far_times
    assert far is not None
    assert far.filled == 0


@given(st.lists(st.integers(-20_000, 20_000), min_size=1, max_size=60))
def test_windows_leave_out_little(ticks: list[int]) -> None:
    rows = [("a", "p", f"b{n}", tick) for n, tick in enumerate(ticks)]
    graph = splime.read(rows, split="none", granularity="step")
    window = time_window(graph)
    outside = sum(not window.first <= tick <= window.last for tick in ticks)
    assert outside <= max(2, 2 * (len(ticks) // 50))
    assert bool(window.remark) == bool(outside)
    assert graph.timeline.first <= window.first <= window.last <= graph.timeline.last
    if outside:  # they take more room than all the others
        assert graph.timeline.last - graph.timeline.first > window.last - window.first
