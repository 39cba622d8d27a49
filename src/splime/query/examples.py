"""Example questions: facts of test, drawn at random, each asked for one of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from splime.graph import Fact, TemporalGraph
from splime.query.answers import Answers
from splime.query.query import Query
from splime.runs import Run
from splime.times import format_ticks

_KINDS = ("object", "subject", "object", "predicate", "subject", "predicate", "time", "time")
_ANSWERS = 5
_SEED = 0


class Examples(NamedTuple):
    """The answers of some runs to each question, by their names; and how they were calibrated."""

    answers: list[dict[str, Answers]]
    notes: list[str]


def ask_examples(runs: Mapping[str, Run]) -> Examples:
    """Ask the first run, and beside it the first one without cuts (else the last)."""
    best, *others = runs
    plain = [name for name in others if not runs[name].is_cut]
    queries = {name: Query(runs[name]) for name in (best, *(plain[:1] or others[-1:]))}
    graph = runs[best].graph
    drawn = np.random.default_rng(_SEED).permutation(len(graph.test))[: len(_KINDS)]
    facts = replace(graph, test=graph.test.take(np.sort(drawn))).rows("test")
    answers = [
        {name: _ask(query, graph, fact, kind) for name, query in queries.items()}
        for fact, kind in zip(facts, _KINDS, strict=False)
    ]
    notes = [f"{name}, objects: {query.calibration('object')}" for name, query in queries.items()]
    return Examples(answers, notes)


def _ask(query: Query, graph: TemporalGraph, fact: Fact, kind: str) -> Answers:
    """Ask for one part of a fact, at the time at which it holds."""
    subject, predicate, object_ = (
        "?" if part == kind else getattr(fact, part) for part in ("subject", "predicate", "object")
    )
    if kind == "time":
        return query.ask(subject, predicate, object_, "?", limit=_ANSWERS)
    ends = np.array([graph.timeline.first, graph.timeline.last])
    begin, end = format_ticks(ends, graph.timeline.granularity)
    during = fact.begin or begin, fact.end or end
    return query.ask(subject, predicate, object_, during=during, limit=_ANSWERS)
