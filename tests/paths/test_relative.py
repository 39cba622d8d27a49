"""Relative scopes against a literal reading of Allen's relations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

import splime
from splime.errors import UsageError
from splime.graph import TemporalGraph
from splime.paths.facts import DirectedFacts
from splime.paths.relative import (
    KINDS,
    LEFT_OUT,
    EventScopes,
    IntervalScopes,
    RelativeScopes,
    SingleScope,
    Times,
    fit_relative,
    growing_scopes,
    parse_relative,
)

EDGES = (1, 3, 6, 11)
ticks = st.integers(-30, 30)


@st.composite
def spans(draw: st.DrawFn) -> tuple[int, int, int]:
    """A begin, an end, and which of them is unknown."""
    begin, end = sorted((draw(ticks), draw(ticks)))
    return begin, end, draw(st.sampled_from([0, 0, 0, 1, 2, 3]))


def times(rows: list[tuple[int, int, int]]) -> Times:
    return Times(*(torch.tensor(column) for column in zip(*rows, strict=True)))


def span_of(distance: int, edges: tuple[int, ...], unit: str) -> str:
    """The words for the bin of a distance."""
    for first, following in zip(edges, (*edges[1:], None), strict=True):
        if following is None or distance < following:
            if following is None:
                return f"more than {first - 1} {unit}s"
            if first == following - 1:
                return f"{first} {unit}{'' if first == 1 else 's'}"
            return f"{first}..{following - 1} {unit}s"
    raise AssertionError


def allen(begin: int, end: int, q_begin: int, q_end: int) -> str:
    """One of Allen's thirteen relations, one comparison after the other."""
    if end < q_begin:
        return "before"
    if begin > q_end:
        return "after"
    if begin == q_begin and end == q_end:
        return "equals"
    if begin == q_begin:
        return "starts" if end < q_end else "started by"
    if end == q_end:
        return "finishes" if begin > q_begin else "finished by"
    if begin < q_begin and end > q_end:
        return "contains"
    if begin > q_begin and end < q_end:
        return "during"
    return "overlaps" if begin < q_begin else "overlapped by"


WORDS = {
    "equals": "same begin and end",
    "starts": "same begin",
    "started by": "same begin",
    "finishes": "same end",
    "finished by": "same end",
    "contains": "contains it",
    "during": "within it",
    "overlaps": "overlaps it",
    "overlapped by": "overlaps it",
}


def known(span: tuple[int, int, int]) -> tuple[int, int]:
    begin, end, unknown = span
    return (end if unknown == 1 else begin), (begin if unknown == 2 else end)


def interval_name(
    fact: tuple[int, int, int], question: tuple[int, int, int], own: bool, past: bool
) -> str:
    (begin, end), (q_begin, q_end), unknown = known(fact), known(question), fact[2]
    if past and (unknown == 3 or begin >= q_begin):
        return "left out"
    if unknown == 3:
        return "time unknown" if own else "contains it"
    if past and end >= q_begin:
        return "has not ended before"
    relation = allen(begin, end, q_begin, q_end)
    if relation == "before":
        span = span_of(q_begin - end, EDGES, "year")
        if own and unknown == 2:
            return f"began {span} before, end unknown"
        return f"ended {span} before"
    if relation == "after":
        span = span_of(begin - q_end, EDGES, "year")
        if own and unknown == 1:
            return f"ends {span} after, begin unknown"
        return f"begins {span} after"
    if own and unknown:
        return "begins in it, end unknown" if unknown == 2 else "ends in it, begin unknown"
    return WORDS[relation]


def event_name(
    fact: tuple[int, int, int], question: tuple[int, int, int], own: bool, past: bool
) -> str:
    (begin, _), (q_begin, q_end), unknown = known(fact), known(question), fact[2]
    if past and (unknown == 3 or begin >= q_begin):
        return "left out"
    if unknown == 3:
        return "time unknown" if own else "same year"
    if q_begin <= begin <= q_end:
        return "same year"
    if begin < q_begin:
        return f"{span_of(q_begin - begin, EDGES, 'year')} before"
    return f"{span_of(begin - q_end, EDGES, 'year')} after"


@given(
    facts=st.lists(spans(), min_size=1, max_size=30),
    questions=st.lists(spans(), min_size=1, max_size=4),
    kind=st.sampled_from([EventScopes, IntervalScopes]),
    own=st.booleans(),
    past=st.booleans(),
)
def test_every_pair_has_the_scope_that_a_loop_gives(
    facts: list[Any], questions: list[Any], kind: Any, own: bool, past: bool
) -> None:
    relative = kind("year", EDGES, own, past)
    name = interval_name if kind is IntervalScopes else event_name
    scopes = relative.scopes(times(questions), times(facts), most=17)  # in several blocks
    assert scopes.dtype == torch.uint8
    assert scopes.shape == (len(facts), len(questions))
    for row, fact in zip(scopes.tolist(), facts, strict=True):
        for scope, question in zip(row, questions, strict=True):
            assert relative.name(scope) == name(fact, question, own, past)


@pytest.mark.parametrize("kind", KINDS.values())
@pytest.mark.parametrize("own", [False, True])
def test_every_kind_keeps_the_contract(kind: type[RelativeScopes], own: bool) -> None:
    """Names differ, each scope has one, and settings give back what they were made from."""
    graph = splime.load("demo")
    relative = kind("day", kind.edges_for(graph), own)
    assert len(set(relative.names())) == len(relative) <= LEFT_OUT
    scopes = relative.scopes(Times.of(graph.valid), Times.of(graph.train))
    assert int(scopes.max()) < len(relative)
    assert parse_relative(str(relative)) == (kind, relative.edges)
    assert fit_relative(kind.kind, graph).edges == relative.edges


def test_without_time_there_is_one_scope_unless_only_the_past_counts() -> None:
    facts, questions = times([(1, 5, 0), (7, 9, 0), (2, 3, 3)]), times([(4, 4, 0)])
    assert SingleScope().scopes(questions, facts).flatten().tolist() == [0, 0, 0]
    past = SingleScope(past=True).scopes(questions, facts)
    assert past.flatten().tolist() == [0, LEFT_OUT, LEFT_OUT]


def test_names_say_distances_in_units() -> None:
    days = EventScopes("day", (1, 2, 4))
    assert days.names()[:4] == ["same day", "1 day before", "2..3 days before",
                                "more than 3 days before"]  # fmt: skip
    assert days.name(days.scope((10, 10), (8, 8))) == "2..3 days after"


@pytest.mark.parametrize("edges", [(), (2, 3), (1, 1), (1, 5, 4), (0, 1), tuple(range(1, 200))])
def test_edges_that_make_no_sense(edges: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="edges"):
        EventScopes("day", edges)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("yearly", "kind"),
        ("events:1,x", "first distance"),
        ("events:2,3", "edges"),
        ("none:1", "distances"),
        ("auto:1", "distances"),
    ],
)
def test_settings_that_give_no_scopes(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_relative(text)


def test_edges_follow_from_the_distances_in_train(
    published_graphs: dict[str, TemporalGraph],
) -> None:
    days = fit_relative("auto", published_graphs["icews14"])
    assert str(days) == "events:1,2,4,8,15,31,91"
    years = fit_relative("auto", published_graphs["yago11k"])
    assert isinstance(years, IntervalScopes)
    assert years.edges[:5] == (1, 3, 6, 11, 26)
    assert fit_relative("intervals:1,6", published_graphs["yago11k"]).edges == (1, 6)


@pytest.mark.parametrize("unit", [1, 40])
def test_distances_that_grow_end_at_the_median(unit: int) -> None:
    # Of 400 facts of `a`, one after the other, half of the pairs are 117 or more apart.
    rows = [("a", "p", f"b{i}", unit * i, unit * i) for i in range(400)]
    edges = growing_scopes(splime.read(rows, split="none").train, "step", 7).edges
    assert 100 * unit <= edges[-1] <= 135 * unit
    for step, edge in enumerate(edges):
        assert edge == pytest.approx(edges[-1] ** (step / 6), abs=1)


@given(begins=st.lists(st.integers(0, 500), max_size=20), bins=st.integers(2, 9))
def test_every_graph_has_so_many_distances_that_grow(begins: list[int], bins: int) -> None:
    rows = [("a", "p", f"b{i}", begin, begin) for i, begin in enumerate([0, *begins])]
    graph = splime.read(rows, split="none")
    relative = growing_scopes(graph.train, graph.timeline.granularity, bins)
    assert len(relative.edges) == bins
    assert relative.edges[0] == 1
    assert relative.edges[-1] >= 8


@pytest.mark.parametrize("unit", ["step", "month", "hour", "minute", "second"])
def test_every_granularity_has_edges(unit: Any) -> None:
    random = np.random.default_rng(0)
    begins = random.integers(0, 5_000, 300)
    rows = [("a", "p", f"b{i % 7}", int(begin), int(begin)) for i, begin in enumerate(begins)]
    graph = splime.read(rows, split="none")
    assert fit_relative("auto", graph).edges[0] == 1
    wide = TemporalGraph(
        graph.train, graph.valid, graph.test, graph.entities, graph.predicates,
        type(graph.timeline)(unit, graph.timeline.starts, graph.timeline.ends),
    )  # fmt: skip
    relative = fit_relative("auto", wide)
    assert len(relative.edges) > 3
    assert relative.edges[-1] <= 5_000


def test_a_graph_whose_facts_share_nothing_has_an_edge() -> None:
    graph = splime.read([("a", "p", "b", 1990, 1999), ("c", "p", "d", 2000, 2001)], split="none")
    assert fit_relative("auto", graph).edges == (1,)


def test_directed_facts_keep_each_time_once() -> None:
    graph = splime.load("demo")
    relative = IntervalScopes("year", IntervalScopes.edges_for(graph), unknown=True)
    facts = DirectedFacts.of(graph.train, len(graph.entities), len(graph.predicates))
    questions = Times.of(graph.valid).take(torch.arange(5))
    scopes = facts.scopes(relative, questions)
    assert len(scopes) < len(graph.train) / 5
    by_fact = relative.scopes(questions, Times.of(graph.train))
    number = facts.incoming.number.long() % len(graph.train)
    assert torch.equal(scopes[facts.incoming.time.long()], by_fact[number])
