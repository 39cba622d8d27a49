from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import splime
from splime.errors import UsageError
from splime.graph import SPLITS, Fact, Facts, TemporalGraph
from tests.graphs import graphs, names, predicates, years


def spans(graph: TemporalGraph, fact: Fact) -> tuple[int, int]:
    first, last = graph.timeline.first, graph.timeline.last
    return (
        first if fact.begin is None else int(fact.begin),
        last if fact.end is None else int(fact.end),
    )


@given(graphs(), st.data())
def test_where_is_a_loop_over_the_facts(graph: TemporalGraph, data: st.DataObject) -> None:
    subject, either = data.draw(st.none() | names), data.draw(st.none() | names)
    predicate = data.draw(st.none() | predicates)
    split = data.draw(st.none() | st.sampled_from(SPLITS))
    low, high = graph.timeline.first, graph.timeline.last
    during = sorted((data.draw(st.integers(low, high)), data.draw(st.integers(low, high))))
    for name, vocabulary in (
        (subject, graph.entities),
        (either, graph.entities),
        (predicate, graph.predicates),
    ):
        if name is not None and name not in vocabulary:
            with pytest.raises(UsageError, match="is called"):
                graph.where(subject=subject, predicate=predicate, entity=either)
            return
    selected = graph.where(
        subject=subject,
        predicate=predicate,
        entity=either,
        during=(during[0], during[1]),
        split=split,
    )
    for part in SPLITS:
        wanted = [
            fact
            for fact in graph.rows(part)
            if split in (None, part)
            and subject in (None, fact.subject)
            and predicate in (None, fact.predicate)
            and either in (None, fact.subject, fact.object)
            and spans(graph, fact)[0] <= during[1]
            and spans(graph, fact)[1] >= during[0]
        ]
        assert list(selected.rows(part)) == wanted
    assert selected.entities is graph.entities
    assert selected.timeline is graph.timeline


@given(graphs(), years)
def test_a_snapshot_holds_what_holds(graph: TemporalGraph, year: int) -> None:
    if not graph.timeline.first <= year <= graph.timeline.last:
        with pytest.raises(UsageError, match="outside"):
            graph.at(year)
        return
    wanted = [f for f in graph.rows() if spans(graph, f)[0] <= year <= spans(graph, f)[1]]
    assert list(graph.at(year).rows()) == wanted


@given(graphs())
def test_unknown_times_are_filled_and_remembered(graph: TemporalGraph) -> None:
    facts = graph.facts()
    known = [int(t) for f in graph.rows() for t in (f.begin, f.end) if t is not None]
    assert (facts.begin[facts.unknown == 1] == min(known)).all()
    assert (facts.end[facts.unknown == 2] == max(known)).all()


@given(graphs(), st.integers(1, 30))
def test_buckets_change_the_timeline_only(graph: TemporalGraph, min_facts: int) -> None:
    bucketed = graph.bucket(min_facts)
    assert list(bucketed.rows()) == list(graph.rows())
    begin, end = bucketed.timestamps(bucketed.facts())
    starts, ends = bucketed.timeline.starts, bucketed.timeline.ends
    facts = bucketed.facts()
    assert ((starts[begin] <= facts.begin) & (facts.begin <= ends[begin])).all()
    assert ((starts[end] <= facts.end) & (facts.end <= ends[end])).all()
    assert graph.bucket(min_facts) == bucketed


def test_buckets_from_train_alone() -> None:
    graph = splime.read(
        {
            "train": [("a", "p", "b", year, year) for year in range(2000, 2010)],
            "test": [("a", "p", "b", 1990, 2020)],
        }
    )
    bucketed = graph.bucket(5, "train")
    assert bucketed.timeline.labels() == ["2000..2004", "2005..2009"]
    # Facts beyond the buckets take the nearest one.
    assert [t.tolist() for t in bucketed.timestamps(bucketed.test)] == [[0], [1]]


@given(graphs())
def test_the_order_of_reading_does_not_matter(graph: TemporalGraph) -> None:
    rows = {split: list(graph.rows(split)) for split in SPLITS}
    turned = splime.read({s: r[::-1] for s, r in rows.items()}, granularity="year")
    assert turned.entities == graph.entities
    assert turned.timeline == graph.timeline
    assert sorted(map(str, turned.rows())) == sorted(map(str, graph.rows()))


@given(graphs(), predicates)
def test_compact_forgets_only_names(graph: TemporalGraph, predicate: str) -> None:
    if predicate not in graph.predicates:
        return
    part = graph.where(predicate=predicate)
    compact = part.compact()
    assert list(compact.rows()) == list(part.rows())
    assert set(compact.entities) == {n for f in part.rows() for n in (f.subject, f.object)}
    assert list(compact.predicates) == [predicate]


def test_equality() -> None:
    rows = [("a", "p", "b", 1990, 1995), ("a", "p", "b", 1990, None)]
    graph = splime.read(rows, split="none")
    assert graph == splime.read(rows, split="none")
    assert hash(graph) == hash(splime.read(rows, split="none"))
    # The same span, but one end was not known.
    assert graph != splime.read([rows[0], ("a", "p", "b", 1990, 1995)], split="none")
    assert graph != splime.read(rows[::-1], split="none")
    assert graph != "graph"  # type: ignore[comparison-overlap]


def test_it_cannot_be_changed() -> None:
    graph = splime.read([("a", "p", "b", 1990, 1995)], split="none")
    with pytest.raises(ValueError, match="read-only"):
        graph.train.begin[0] = 0
    with pytest.raises(AttributeError):
        graph.name = "other"  # type: ignore[misc]


def test_broken_columns_are_refused() -> None:
    graph = splime.read([("a", "p", "b", 1990, 1995)], split="none")
    with pytest.raises(UsageError, match="no entity"):
        replace(graph, train=replace(graph.train, subject=np.array([7], np.int32)))
    with pytest.raises(UsageError, match="ends before"):
        replace(graph, train=replace(graph.train, end=np.array([1980])))
    with pytest.raises(UsageError, match="equally long"):
        replace(graph.train, end=np.array([1980, 1990]))
    with pytest.raises(UsageError, match="no split"):
        graph.facts("dev")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="ends before it begins"):
        graph.where(during=(1995, 1990))
    with pytest.raises(UsageError, match="no facts"):
        graph.bucket(1, "test")


def test_rows_for_people() -> None:
    graph = splime.read(
        [("a", "p", "b", "2014-05-13")] * 1 + [("a", "p", "c", "2014-05-14")], split="none"
    )
    assert list(graph.rows(limit=1)) == [Fact("a", "p", "b", "2014-05-13", "2014-05-13")]
    assert list(graph.rows("test", limit=3)) == []
    assert list(graph.rows(limit=0)) == []
    assert len(list(graph.rows("train", limit=9))) == 2
    assert len(Facts.empty()) == 0
