"""Protocol `fact`: every fact gives one query for its object and one for its subject."""

from __future__ import annotations

import numpy as np
import torch

from splime.arrays import expand
from splime.evaluation.aggregate import Parts, Queries, aggregated
from splime.evaluation.blocks import Estimate, Progress, Side
from splime.evaluation.facts import Options, evaluate
from splime.evaluation.filters import Known, timed
from splime.evaluation.groups import grouped
from splime.evaluation.memory import Room
from splime.evaluation.parts import MEANS, Aggregate, scope_parts, time_costs, time_parts
from splime.evaluation.ranking import Ties
from splime.evaluation.results import Evaluation
from splime.evaluation.scorer import Ask, Scorer, asking
from splime.evaluation.setting import Columns, Setting, columns_at
from splime.graph import Facts, Ids, SplitName, TemporalGraph
from splime.segmentation import Segmentation


def evaluate_facts(
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
    """Rank the object and the subject of every fact of a split among all entities.

    The score of a candidate is aggregated over the scoped predicates that serve the fact's
    interval; a scope that train does not have is replaced by the nearest one of its predicate.
    Where entities are cut too, every timestamp of the interval is a part of weight 1. `memory` is
    the number of bytes that blocks of scores may take; `bootstrap` the number of samples for
    confidence intervals, drawn with `seed`.
    """
    return evaluate(
        "fact",
        graph,
        segmentation,
        Options(split, aggregate, ties, bootstrap, seed, progress, estimate),
        sides=lambda setting: [
            _side(scorer, setting, side, aggregate, memory) for side in ("object", "subject")
        ],
        candidates=len(graph.entities),
        device=scorer.device,
    )


def _side(scorer: Scorer, setting: Setting, side: str, how: Aggregate, memory: int | None) -> Side:
    """The queries for the objects or for the subjects of all facts."""
    queries = entity_queries(scorer, setting, side, how, memory)
    asked, all_known = (
        timed(
            _given(some, side).astype(np.int64) * len(setting.graph.predicates) + some.predicate,
            _wanted(some, side).astype(np.int64),
            some,
        )
        for some in (setting.facts, setting.everything)
    )
    return Side(
        query=queries.number,
        target=asked.id,
        score=queries.score,
        cost=queries.cost,
        known=lambda order: Known(all_known, asked.take(order)),
        block=queries.block,
    )


def entity_queries(
    scorer: Scorer, setting: Setting, side: str, how: Aggregate, memory: int | None
) -> Queries:
    """How the objects or the subjects of the facts of a setting are scored."""
    ask = asking(scorer, side, len(setting.static.entities))
    probe = ask(np.zeros(1, np.int64), np.zeros(1, np.int64))
    candidates = len(setting.graph.entities)
    room = Room(memory, scorer.device, max(4, probe.element_size()), candidates, probe.shape[1])
    given = _given(setting.facts, side)
    if setting.entities is None:
        return _by_scope(ask, setting, given, how, room)
    columns = columns_at(setting, "entity", scorer.device)
    return _by_time(ask, setting, given, how, room, columns)


def _by_scope(ask: Ask, setting: Setting, given: Ids, how: Aggregate, room: Room) -> Queries:
    """Parts are the scoped predicates that serve a fact."""
    parts = scope_parts(setting.triples, len(given), setting.instead.predicates, how)
    several = parts.count > 1
    first, last = parts.predicate[parts.start], parts.predicate[parts.start + parts.count - 1]
    # Facts with one part are the same query whenever they hold. Those come first, and those with
    # the same predicate and entity stand together: their parts are asked for once.
    times = (np.where(several, time, 0) for time in (setting.begin, setting.end))
    number, fact = grouped([several.astype(np.int8), first, given, last, *times])

    def score(start: int, stop: int) -> torch.Tensor:
        some = fact[start:stop]
        if not several[some].any():
            return ask(given[some], first[some])
        query, at = expand(parts.start[some], parts.count[some])
        # The weight of a lone part says nothing; 1 gives the scores that it has without the others.
        weight = np.where(several[some][query], parts.weight[at], 1)
        pairs = Parts(query, given[some][query], parts.predicate[at], weight, None)
        return aggregated(ask, pairs, len(some), how, room=room.parts)

    whole = np.add.reduceat(parts.weight, parts.start)
    weight = np.where(several & (how in MEANS), whole, 1)[fact]
    return Queries(number, parts.count[fact], weight, score, room.queries)


def _by_time(
    ask: Ask, setting: Setting, given: Ids, how: Aggregate, room: Room, columns: Columns
) -> Queries:
    """Parts are the timestamps of a fact: all names are what they are at that time."""
    predicate = setting.facts.predicate
    number, fact = grouped([predicate, given, setting.begin, setting.end])
    begin, end = setting.begin.astype(np.int64), setting.end.astype(np.int64)

    def score(start: int, stop: int) -> torch.Tensor:
        some = fact[start:stop]
        query, time = time_parts(begin[some], end[some], how)
        entity = setting.piece_of_entity(given[some][query], time)
        scope = setting.piece_of_predicate(predicate[some][query], time)
        pairs = Parts(query, entity, scope, np.ones(len(query), np.int64), time)
        return aggregated(ask, pairs, len(some), how, room=room.parts, columns=columns)

    cost = time_costs(begin[fact], end[fact], how)
    weight = cost if how in MEANS else np.ones(len(fact), np.int64)
    return Queries(number, cost, weight, score, room.queries)


def _given(facts: Facts, side: str) -> Ids:
    return facts.subject if side == "object" else facts.object


def _wanted(facts: Facts, side: str) -> Ids:
    return facts.object if side == "object" else facts.subject
