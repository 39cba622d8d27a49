from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

import splime
from splime import leakage
from splime.errors import UsageError
from splime.graph import SPLITS, Fact, TemporalGraph
from splime.leakage import FILTERS, LeakFilter
from tests.graphs import graphs

triples = st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=20)


def literal_report(graph: TemporalGraph, split: str) -> dict[str, object]:
    """The counts as plain loops over facts."""
    first, last = graph.timeline.first, graph.timeline.last

    def span(fact: Fact) -> tuple[int, int]:
        return (
            first if fact.begin is None else int(fact.begin),
            last if fact.end is None else int(fact.end),
        )

    train, mine = list(graph.rows("train")), list(graph.rows(split))  # type: ignore[arg-type]
    known = {fact[:3] for fact in train}
    pairs = {(fact.subject, fact.object) for fact in train}
    distinct = {fact[:3] for fact in mine}
    distances = []
    for fact in mine:
        gaps = []
        for other in train:
            if other[:3] == fact[:3]:
                (begin, end), (other_begin, other_end) = span(fact), span(other)
                gaps.append(max(0, other_begin - end, begin - other_end))
        if gaps:
            distances.append(min(gaps))
    return {
        "duplicates": len(mine) - len(distinct),
        "in_train": len(distinct & known),
        "pairs": sum((s, o) in pairs for s, _, o in distinct),
        "reversed": sum((o, p, s) in known and s != o for s, p, o in distinct),
        "facts": sum(fact in train for fact in mine),
        "distances": sorted(distances),
    }


@given(graphs())
def test_the_report_is_a_count(graph: TemporalGraph) -> None:
    leaks = leakage.report(graph)
    for split in ("valid", "test"):
        wanted = literal_report(graph, split)
        assert leaks.duplicates[split].count == wanted["duplicates"]
        assert leaks.in_train[split].count == wanted["in_train"]
        assert leaks.pair_in_train[split].count == wanted["pairs"]
        assert leaks.reversed_in_train[split].count == wanted["reversed"]
        assert leaks.fact_in_train[split].count == wanted["facts"]
        loops = [fact for fact in graph.rows(split) if fact.subject == fact.object]
        assert leaks.self_loops[split].count == len(loops)
        distances = wanted["distances"]
        assert isinstance(distances, list)
        recurrence = leaks.recurrence[split]
        assert recurrence.facts == len(distances)
        assert recurrence.median == (np.median(distances) if distances else None)
        for at, count in recurrence.within.items():
            assert count == sum(distance <= at for distance in distances)
    assert leaks.duplicates["train"].count == literal_report(graph, "train")["duplicates"]


@given(triples, triples, triples, st.sampled_from(FILTERS))
def test_filters_are_the_papers(
    train: list[tuple[int, ...]],
    valid: list[tuple[int, ...]],
    test: list[tuple[int, ...]],
    kind: LeakFilter,
) -> None:
    wanted = {}
    for split, rows in zip(SPLITS, (train, valid, test), strict=True):
        kept: list[tuple[int, ...]] = []
        for row in rows:
            if kind in ("inter", "both") and split != "train" and row in train:
                continue
            if kind in ("intra", "both") and row in kept:
                continue
            kept.append(row)
        wanted[split] = kept
    arrays = [np.array(rows, np.int32).reshape(-1, 3) for rows in (train, valid, test)]
    filtered = leakage.filter_triples(arrays[0], arrays[1], arrays[2], kind)
    for split, array in zip(SPLITS, arrays, strict=True):
        assert [tuple(row) for row in array[filtered.keep[split]].tolist()] == wanted[split]
        assert filtered.removed[split] == len(array) - len(wanted[split])


def test_huge_ids_do_not_overflow() -> None:
    big = 2**31 - 1
    train = np.array([[big, big, big], [0, big, big - 1]])
    test = np.array([[big, big, big], [big, big, big - 1], [0, big, big - 1], [0, big, big]])
    kept = leakage.filter_triples(train, train[:0], test, "inter").keep["test"]
    assert kept.tolist() == [False, True, False, True]


def test_times_in_microseconds_do_not_overflow() -> None:
    start = 1_600_000_000_000_000
    train = [(f"s{n}", "p", "o", start + n * 10**12) for n in range(20_000)]
    test = [(f"s{n}", "p", "o", start + n * 10**12 + n) for n in range(0, 20_000, 10)]
    leaks = leakage.report(splime.read({"train": train, "test": test}))
    assert leaks.recurrence["test"].median == np.median(range(0, 20_000, 10))
    assert leaks.fact_in_train["test"].count == 1


def test_a_graph_is_filtered() -> None:
    graph = splime.read(
        {
            "train": [("a", "p", "b", 1990), ("a", "p", "b", 1991)],
            "valid": [("a", "p", "c", 1990), ("a", "p", "c", 1991)],
            "test": [("a", "p", "b", 1995), ("b", "p", "a", 1995)],
        }
    )
    filtered, counts = leakage.filter_graph(graph, "both")
    assert [f[:3] for f in filtered.rows()] == [("a", "p", "b"), ("a", "p", "c"), ("b", "p", "a")]
    assert str(counts) == "filter both removed 1 of train, 1 of valid, 1 of test"
    assert leakage.filter_graph(graph, "none")[0] == graph


def test_unknown_filter_suggests() -> None:
    none = np.empty((0, 3), np.int32)
    with pytest.raises(UsageError, match="Did you mean intra or inter"):
        leakage.filter_triples(none, none, none, "intr")  # type: ignore[arg-type]


def test_empty_splits() -> None:
    graph = splime.read([("a", "p", "b", 1990)], split="none")
    leaks = leakage.report(graph)
    assert str(leaks.in_train["test"]) == "0 (0.00 %)"
    assert json.loads(json.dumps(leaks.to_json()))["recurrence"]["test"]["median"] is None
