from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

import splime
from splime.errors import UsageError
from splime.reading import UNSEEN_IN_TRAIN
from tests.graphs import Row, rows


def named(graph: splime.TemporalGraph, *splits: str) -> tuple[set[str], set[str]]:
    facts = list(graph.rows(*splits))  # type: ignore[arg-type]
    return {n for f in facts for n in (f.subject, f.object)}, {f.predicate for f in facts}


@given(rows(least=1, most=60), st.integers(0, 3), st.booleans())
def test_random(facts: list[Row], seed: int, allow_unseen: bool) -> None:
    whole = splime.read(facts, split="none", granularity="year")
    graph = splime.read(facts, seed=seed, allow_unseen=allow_unseen, granularity="year")
    assert Counter(graph.rows()) == Counter(whole.rows())
    assert len(graph.test) <= round(0.1 * len(whole)) + 1
    if allow_unseen:
        assert len(graph.test) == max(round(0.1 * len(whole)), len(whole) > 4)
    else:
        assert all(
            a <= b
            for a, b in zip(named(graph, "valid", "test"), named(graph, "train"), strict=True)
        )
    assert graph == splime.read(facts, seed=seed, allow_unseen=allow_unseen, granularity="year")


def test_another_seed_is_another_split() -> None:
    facts = [("a", "p", "b", year) for year in range(1000, 1200)]
    one, two = splime.read(facts, seed=1), splime.read(facts, seed=2)
    assert one != two
    assert len(one.test) == len(two.test) == 20


def test_names_that_occur_once_stay_in_train() -> None:
    facts = [(f"s{number}", "p", f"o{number}", 2000) for number in range(50)]
    graph = splime.read(facts)
    assert (len(graph.train), len(graph.valid), len(graph.test)) == (50, 0, 0)
    assert "only 0 of 10 facts could leave train" in graph.reading.remarks[0]


@given(rows(least=2, most=60), st.booleans())
def test_by_time(facts: list[Row], allow_unseen: bool) -> None:
    whole = splime.read(facts, split="none", granularity="year")
    begins = np.sort(whole.train.begin)
    if np.append(begins, begins[-1] + 1)[round(0.8 * len(begins))] == begins[0]:
        with pytest.raises(UsageError, match="cannot split by time"):
            splime.read(facts, split="time", allow_unseen=allow_unseen, granularity="year")
        return
    graph = splime.read(
        facts, split="time", allow_unseen=allow_unseen, granularity="year", allow_loss=True
    )
    for earlier, later in (("train", "valid"), ("train", "test"), ("valid", "test")):
        before, after = graph.facts(earlier), graph.facts(later)  # type: ignore[arg-type]
        if len(before) and len(after):
            assert before.begin.max() < after.begin.min()
    lost = Counter(whole.rows()) - Counter(graph.rows())
    assert sum(lost.values()) == graph.reading.dropped[UNSEEN_IN_TRAIN]
    assert graph.reading.kept == len(graph)
    if allow_unseen:
        assert not lost
    else:
        seen = named(graph, "train")
        assert all(a <= b for a, b in zip(named(graph), seen, strict=True))
        for fact in lost:
            assert not ({fact.subject, fact.object} <= seen[0] and fact.predicate in seen[1])


def test_by_time_takes_the_last_facts() -> None:
    facts = [("a", "p", "b", year) for year in range(1900, 2000)]
    graph = splime.read(facts, split="time", valid=0.2, test=0.1)
    assert [f.begin for f in graph.rows("valid")] == [str(y) for y in range(1970, 1990)]
    assert [f.begin for f in graph.rows("test")] == [str(y) for y in range(1990, 2000)]
    assert graph.reading.remarks == ("split by time: valid begins at 1970, test begins at 1990",)


@pytest.mark.parametrize("shares", [(0.5, 0.5), (-0.1, 0.1), (0.1, 1.0)])
def test_shares_must_leave_train(shares: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="must leave facts for train"):
        splime.read([("a", "p", "b", 1)], valid=shares[0], test=shares[1])


def test_unknown_way() -> None:
    with pytest.raises(UsageError, match="random, time"):
        splime.read([("a", "p", "b", 1)], split="chance")  # type: ignore[arg-type]


def test_split_graph_again() -> None:
    graph = splime.load("demo")
    again = splime.split_graph(graph, "random", seed=3)
    assert len(again) == len(graph)
    assert not np.array_equal(again.test.subject, graph.test.subject)


def test_shares_of_nothing() -> None:
    facts = [("a", "p", "b", year) for year in range(1900, 1910)]
    nothing = splime.read(facts, split="time", valid=0, test=0)
    assert (len(nothing.train), len(nothing.valid), len(nothing.test)) == (10, 0, 0)
    only_test = splime.read(facts, split="time", valid=0, test=0.2)
    assert (len(only_test.train), len(only_test.valid), len(only_test.test)) == (8, 0, 2)
    with pytest.raises(UsageError, match="no facts to split"):
        splime.split_graph(nothing.where(split="test"), "time")
    with pytest.raises(UsageError, match="seed"):
        splime.split_graph(nothing, seed=-1)
