"""Predicate ranking: which predicate holds between two entities during an interval."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import torch

from splime.evaluation.aggregate import Parts, Queries, aggregated, by_cells
from splime.evaluation.blocks import Estimate, Progress, Side
from splime.evaluation.facts import Options, evaluate
from splime.evaluation.filters import Known, timed
from splime.evaluation.groups import grouped
from splime.evaluation.memory import Room
from splime.evaluation.parts import (
    MEANS,
    Aggregate,
    ScopeParts,
    scope_parts,
    time_costs,
    time_parts,
)
from splime.evaluation.ranking import Ties
from splime.evaluation.results import Evaluation
from splime.evaluation.scorer import Ask, Scorer, asking
from splime.evaluation.setting import Columns, Setting, columns_at
from splime.graph import Ids, SplitName, TemporalGraph
from splime.segmentation import Segmentation
from splime.static import Triples


def evaluate_predicates(
    scorer: Scorer,
    graph: TemporalGraph,
    segmentation: Segmentation,
    *,
    split: SplitName = "test",
    aggregate: Aggregate = "mean",
    ties: Ties = "mean",
    memory: int | None = None,
    bootstrap: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    estimate: Estimate | None = None,
) -> Evaluation:
    """Rank the predicate of every fact of a split among all source predicates.

    The score of a predicate is aggregated over its scopes that serve the fact's interval, as in
    protocol `fact`; its other scopes are left out.
    """
    return evaluate(
        "predicate",
        graph,
        segmentation,
        Options(split, aggregate, ties, bootstrap, seed, progress, estimate),
        sides=lambda setting: [_side(scorer, setting, aggregate, memory)],
        candidates=len(graph.predicates),
        device=scorer.device,
    )


class _Pairs(NamedTuple):
    """Distinct queries, in the order of time."""

    subject: Ids
    object: Ids
    begin: Ids
    end: Ids

    def between(self, start: int, stop: int) -> _Pairs:
        """Some of them."""
        return _Pairs(*(column[start:stop] for column in self))


Score: TypeAlias = Callable[[int, int], torch.Tensor]


def _side(scorer: Scorer, setting: Setting, how: Aggregate, memory: int | None) -> Side:
    facts, graph = setting.facts, setting.graph
    queries = predicate_queries(scorer, setting, how, memory)
    asked, known = (
        timed(
            some.subject.astype(np.int64) * len(graph.entities) + some.object,
            some.predicate.astype(np.int64),
            some,
        )
        for some in (facts, setting.everything)
    )
    return Side(
        query=queries.number,
        target=asked.id,
        score=queries.score,
        cost=queries.cost,
        known=lambda order: Known(known, asked.take(order)),
        block=queries.block,
    )


def predicate_queries(
    scorer: Scorer, setting: Setting, how: Aggregate, memory: int | None
) -> Queries:
    """How the predicates of the facts of a setting are scored."""
    facts = setting.facts
    ask = asking(scorer, "predicate", len(setting.static.predicates))
    probe = ask(np.zeros(1, np.int64), np.zeros(1, np.int64))
    itemsize, columns = max(4, probe.element_size()), probe.shape[1]
    number, fact = grouped([setting.begin, setting.end, facts.subject, facts.object])
    begin, end = setting.begin[fact], setting.end[fact]
    pairs = _Pairs(facts.subject[fact], facts.object[fact], begin, end)
    candidates, one = len(setting.graph.predicates), np.ones(len(fact), np.int64)
    if setting.entities is None:
        # Every scope may be a part of a query, and takes several numbers beside its score.
        room = Room(memory, scorer.device, itemsize, candidates + 8 * columns)
        return Queries(number, one, one, _by_scope(ask, setting, pairs, how), room.queries)
    room = Room(memory, scorer.device, itemsize, candidates, columns)
    pieces = columns_at(setting, "predicate", scorer.device)
    score = _by_time(ask, setting, pairs, how, room, pieces)
    cost = time_costs(begin.astype(np.int64), end.astype(np.int64), how)
    return Queries(number, cost, cost if how in MEANS else one, score, room.queries)


def _by_scope(ask: Ask, setting: Setting, pairs: _Pairs, how: Aggregate) -> Score:
    """Parts of a predicate are its scopes that serve the interval."""
    scopes = setting.static.predicates

    def parts_during(begin: Ids, end: Ids) -> ScopeParts:
        """The parts of every predicate during each interval."""
        source = np.tile(np.arange(len(scopes.names), dtype=np.int32), len(begin))
        begin, end = (np.repeat(time, len(scopes.names)) for time in (begin, end))
        low, high = scopes.find(source, begin, end)
        count, piece, overlap = scopes.cut(source, begin, end, low, high)
        whose = np.repeat(np.arange(len(source)), count)
        nobody = np.zeros(len(whose), np.int32)
        triples = Triples(nobody, piece, nobody, whose, overlap)
        return scope_parts(triples, len(source), setting.instead.predicates, how)

    def score(start: int, stop: int) -> torch.Tensor:
        some = pairs.between(start, stop)
        row, asked = grouped([some.subject, some.object])
        scores = ask(some.subject[asked], some.object[asked])
        interval, first = grouped([some.begin, some.end])
        parts = parts_during(some.begin[first], some.end[first])
        sources = len(scopes.names)
        cells = (interval[:, None] * sources + np.arange(sources)).ravel()
        total = by_cells(scores, np.repeat(row, sources), cells, parts, how)
        return total.view(len(interval), sources)

    return score


def _by_time(
    ask: Ask,
    setting: Setting,
    pairs: _Pairs,
    how: Aggregate,
    room: Room,
    columns: Columns,
) -> Score:
    """Parts are the timestamps of the interval: all names are what they are at that time."""

    def score(start: int, stop: int) -> torch.Tensor:
        some = pairs.between(start, stop)
        query, time = time_parts(some.begin.astype(np.int64), some.end.astype(np.int64), how)
        subject = setting.piece_of_entity(some.subject[query], time)
        object_ = setting.piece_of_entity(some.object[query], time)
        parts = Parts(query, subject, object_, np.ones(len(query), np.int64), time)
        return aggregated(ask, parts, len(some.begin), how, room=room.parts, columns=columns)

    return score
