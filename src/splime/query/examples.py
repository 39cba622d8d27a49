"""Questions about facts of test, answered and explained, for the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from splime.graph import Fact
from splime.query.answers import AnswerOptions, Answers
from splime.query.evidence import Evidence, make_evidence
from splime.query.query import Query
from splime.query.questions import ASKED, quoted
from splime.runs import Run
from splime.scoring.scoping import NAMES, Kind
from splime.timeline import Timeline
from splime.times import format_ticks

_KINDS: tuple[Kind, ...] = (
    *("object", "subject", "object", "predicate", "subject", "predicate", "time", "time"),
)
"""What the example questions ask for."""
_DRAWN = 200
"""Facts of test among which they look for some that can be asked about."""
_SHOWN = 5
"""Answers that are shown beside the right one."""
_REASONS = 3
"""Chains of facts that are shown for an answer."""


class ExampleQuestion(NamedTuple):
    """A fact of test, asked for one of its parts."""

    truth: str | None
    """The name that was left out; None where the time was."""
    answers: dict[str, Answers]
    """The first answers of each run that can tell, and the right one."""
    evidence: dict[str, list[Evidence]]
    """Why the best answer, and why the right one, of each run that knows."""


class Examples(NamedTuple):
    """Questions about facts of test, and how the answers were calibrated."""

    questions: list[ExampleQuestion]
    notes: list[str]


def ask_examples(runs: Mapping[str, Run]) -> Examples:
    """Ask the first run, and beside it the first one without cuts (else the last).

    When a fact held is asked only of runs that have cut its predicate, and of facts with a time.
    """
    best, *others = runs
    plain = [name for name in others if not runs[name].is_cut]
    queries = {name: Query(runs[name]) for name in (best, *(plain[:1] or others[-1:]))}
    graph = runs[best].graph
    drawn = np.random.default_rng(0).permutation(len(graph.test))[:_DRAWN]
    facts = list(replace(graph, test=graph.test.take(drawn)).rows("test"))
    questions = []
    for kind in _KINDS:
        for fact in facts:
            able = {name: query for name, query in queries.items() if _can_tell(kind, query, fact)}
            if able:
                questions.append(_example(kind, able, fact))
                facts.remove(fact)
                break
    notes = [f"{name}, objects: {query.calibration('object')}" for name, query in queries.items()]
    return Examples(questions, notes)


def _can_tell(kind: Kind, query: Query, fact: Fact) -> bool:
    """Whether a run can answer a question about a fact."""
    if kind != "time":
        return True
    cuts = query.run.segmentation
    dated = fact.begin is not None or fact.end is not None
    relative = query.scoring.scoping is None
    return dated and (
        relative or cuts.entities is not None or len(cuts.scopes_of(fact.predicate)) > 1
    )


def _example(kind: Kind, queries: Mapping[str, Query], fact: Fact) -> ExampleQuestion:
    """A question for one part of a fact, at the time at which it holds, and why.

    The right answer is given whatever its rank; of the right times at least the best one.
    """
    subject, predicate, object_ = (
        ASKED if name == kind else quoted(part) for name, part in zip(NAMES, fact[:3], strict=True)
    )
    names = (subject, predicate, object_)
    truth: str = "" if kind == "time" else getattr(fact, kind)
    answers: dict[str, Answers] = {}
    evidence: dict[str, list[Evidence]] = {}
    for name, query in queries.items():
        if kind == "time":
            found = query.answer(*query.read(names, ASKED), AnswerOptions(None))
            right = next((row.rank for row in found if row.known is not None), 0)
            shown = [row for row in found if row.rank <= _SHOWN or row.rank == right]
        else:
            question = query.read(names, during=_when(fact, query.run.graph.timeline))
            also = query.scoring.names(kind).id(truth)
            found = query.answer(*question, AnswerOptions(_SHOWN, also=also))
            shown = found.rows
            if kind != "predicate" and query.scoring.explainer is not None:
                evidence[name] = [
                    make_evidence(query.run, *question, entity, _REASONS)
                    for entity in dict.fromkeys((shown[0].name, truth))
                ]
        calibration = str(query.calibration(kind))  # which the notes have
        remarks = tuple(remark for remark in found.remarks if remark != calibration)
        answers[name] = replace(found, rows=shown, remarks=remarks)
    return ExampleQuestion(None if kind == "time" else truth, answers, evidence)


def _when(fact: Fact, timeline: Timeline) -> tuple[str, str] | None:
    """The time of a fact, where an unknown end is that of the graph; None if it has none."""
    if fact.begin is None and fact.end is None:
        return None
    first, last = format_ticks(np.array([timeline.first, timeline.last]), timeline.granularity)
    return fact.begin or first, fact.end or last
