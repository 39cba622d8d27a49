"""Questions about facts of test that were drawn, not picked, with the answers of two runs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from rich.table import Table
from rich.text import Text

from splime.graph import Fact, TemporalGraph
from splime.query import Answers, Query
from splime.query.answers import percent
from splime.report.html import Html, join, rendered, tag
from splime.report.tables import make_table
from splime.runs import Run
from splime.times import Bools, Ints, format_ticks

_KINDS = ("object", "subject", "object", "predicate", "subject", "predicate", "time", "time")
_ANSWERS = 5
_SEED = 0
_ABOUT = (
    "Facts drawn from test at random, each asked for one of its parts. What test states is bold;"
    " answers that train states have no probability, since the model has seen them."
)


def examples_html(runs: Mapping[str, Run]) -> Html:
    """What the first of some runs answers, and beside it the first one without cuts."""
    graph = next(iter(runs.values())).graph
    queries = {name: Query(run) for name, run in _beside(runs).items()}
    rows = np.random.default_rng(_SEED).permutation(len(graph.test))[: len(_KINDS)]
    facts = list(graph.keep(_only(graph, rows)).rows("test"))
    parts = [tag("p", _ABOUT, class_="note")]
    for fact, kind in zip(facts, _KINDS, strict=False):
        answers = {name: _ask(query, graph, fact, kind) for name, query in queries.items()}
        tables = [rendered(_table(name, found)) for name, found in answers.items()]
        title = next(iter(answers.values())).question.text
        parts += [tag("h3", title), tag("div", *tables, class_="answers")]
    notes = (f"{name}, objects: {query.calibration('object')}" for name, query in queries.items())
    return join(*parts, *(tag("p", note, class_="note") for note in notes))


def _beside(runs: Mapping[str, Run]) -> dict[str, Run]:
    """The first run, and the first other one without cuts, or else the last one."""
    first, *others = runs
    plain = [name for name in others if not runs[name].is_cut]
    return {name: runs[name] for name in (first, *(plain[:1] or others[-1:]))}


def _only(graph: TemporalGraph, rows: Ints) -> dict[str, Bools]:
    """Masks that choose some facts of test, and nothing else."""
    masks: dict[str, Bools] = {split: np.zeros(len(facts), bool) for split, facts in graph.splits()}
    masks["test"][rows] = True
    return masks


def _ask(query: Query, graph: TemporalGraph, fact: Fact, kind: str) -> Answers:
    """One part of a fact asked for, at the time at which it holds."""
    subject, predicate, object_ = (
        "?" if part == kind else getattr(fact, part) for part in ("subject", "predicate", "object")
    )
    if kind == "time":
        return query.ask(subject, predicate, object_, "?", limit=_ANSWERS)
    ends = graph.timeline.first, graph.timeline.last
    begin, end = format_ticks(np.array(ends), graph.timeline.granularity)
    during = fact.begin or begin, fact.end or end
    return query.ask(subject, predicate, object_, during=during, limit=_ANSWERS)


def _table(name: str, found: Answers) -> Table:
    """The answers of a run; what test states is bold."""
    columns = ("", "answer", "probability", "known from")
    table = make_table(name, *columns, words=("answer", "known from"))
    for answer in found:
        known = "" if answer.known is None else str(answer.known)
        sure = "" if answer.probability is None else percent(answer.probability)
        style = "bold" if answer.known is not None and answer.known.split == "test" else ""
        table.add_row(str(answer.rank), Text(answer.name, style=style), sure, Text(known))
    return table
