"""Scores by scopes: those of a query, and how their scores become one.

A query has parts, whose scores become one. A part is a scope that the query's interval lies in;
where entities are cut, it is a timestamp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch

from splime.arrays import changes, expand, grouped
from splime.errors import UsageError
from splime.graph import Facts
from splime.scoring.queries import GIVEN, Block, Queries, Scoring, Spans
from splime.scoring.scoping import NAMES, CutFacts, Kind, Scoping
from splime.scoring.scorer import Candidates, Ids, MemoryBudget, Scorer, check_nan
from splime.static import Aggregate, first_and_last
from splime.times import Ints

MEANS = ("mean", "ends")
"""Those that are divided by the sum of the weights."""

# The scopes of all names at a timestamp are kept, up to so many numbers.
_KEPT = 1 << 23


class ScopedScoring(Scoring):
    """A model over the scopes of a graph."""

    scoping: Scoping
    scorer: Scorer

    def __init__(self, scorer: Scorer, scoping: Scoping) -> None:
        if not isinstance(scorer, Scorer):
            raise UsageError(f"a scorer is a splime.Scorer, not {type(scorer).__name__}")
        self.graph, self.scorer, self.device = scoping.graph, scorer, scorer.device
        self.scoping = scoping.timed if scorer.every_timestamp else scoping

    @property
    def labels(self) -> pa.Array:
        """What the scoped predicates are called."""
        return self.scoping.static.predicates.labels

    @property
    def end_offset(self) -> int:
        """What is added to a scoped predicate at the end of a fact; 0 where it is the same."""
        return len(self.scoping.static.predicates) if self.scorer.ends else 0

    def candidates(self, kind: str) -> Candidates:
        """What the scorer gives scores for."""
        static = self.scoping.static
        predicates = len(static.predicates) + self.end_offset
        columns = predicates if kind == "predicate" else len(static.entities)
        return Candidates(self.scorer, kind, columns)

    def queries(self, kind: Kind, facts: Facts) -> Queries:
        """The queries for the objects, the subjects or the predicates of facts."""
        asked = self.scoping.cut(facts)
        if self.scoping.entities is not None:
            return _TimeQueries(self, kind, asked)
        if kind == "predicate":
            return _PredicateQueries(self, asked)
        return _EntityQueries(self, kind, asked)

    def budget(self, candidates: Candidates) -> MemoryBudget:
        """How many queries and parts fit into memory."""
        itemsize, names = max(4, candidates.itemsize()), len(self.names(candidates.kind))
        return MemoryBudget(self.memory, self.device, itemsize, names, candidates.columns)

    def parts_of(self, asked: CutFacts) -> ScopeParts:
        """The parts of facts whose entities are not cut."""
        triples = asked.triples
        found = triples.fact, triples.predicate, triples.overlap
        return self.scope_parts(*found, asked.facts.unknown)

    def scope_parts(self, fact: Ids, scope: Ids, overlap: Ids, unknown: Ids) -> ScopeParts:
        """The parts of facts whose entities are not cut, from the scopes that they hold in.

        Parts that are the same scope, because of a fallback, are one with the sum of their weights.
        `unknown` has the bits of each fact.
        """
        predicate, weight = self.scoping.predicate_fallback[scope], overlap.astype(np.int64)
        facts, at_end = len(unknown), np.zeros(len(fact), bool)
        if self.how in ("ends", "begin"):
            # Without separate predicates, an unknown begin or end is what it was filled with.
            fill = self.how == "ends" and not self.end_offset
            rows, at_end = first_and_last(fact, unknown * (not fill))
            if self.how == "begin":
                rows, at_end = rows[:, :1], at_end[:, :1]
            rows, at_end = rows.ravel(), at_end.ravel()
            fact, predicate = fact[rows], predicate[rows]
        elif self.end_offset:
            fact, predicate, weight = np.repeat(fact, 2), predicate.repeat(2), weight.repeat(2)
            at_end = np.tile([False, True], len(fact) // 2)
        predicate = predicate + at_end * self.end_offset
        if self.how != "mean":
            weight = np.ones(len(fact), np.int64)
        at = np.flatnonzero(changes(fact, predicate))
        count, weight = np.bincount(fact[at], minlength=facts), np.add.reduceat(weight, at)
        return ScopeParts(count.cumsum() - count, count, predicate[at], weight)

    def _scoped_predicates(self) -> Candidates:
        return _MeanOfEnds(self.scorer, "predicate", len(self.scoping.static.predicates))

    def scoped_predicates(self, facts: Facts) -> Iterator[Block]:
        """The scores of all scoped predicates between the entities of questions."""
        candidates = self._scoped_predicates()
        columns = len(self.scoping.static.predicates)
        room = MemoryBudget(self.memory, self.device, 4, columns, columns)
        asked = self.scoping.cut(facts)
        for start in range(0, len(facts), room.queries):
            rows = np.arange(start, min(start + room.queries, len(facts)))
            query, time = np.arange(len(rows)), asked.begin[rows]
            if self.scoping.entities is not None:
                query, time = time_parts(asked.begin[rows], asked.end[rows], self.how)
            subject, object_ = (
                self.scoping.at(name, getattr(facts, name)[rows][query], time)
                for name in GIVEN["predicate"]
            )
            parts = Parts(query, subject, object_, np.ones(len(query), np.int64))
            scores = aggregated(candidates, parts, len(rows), self.how, room=room.parts)
            weight = np.bincount(query) if self.how in MEANS else np.ones(len(rows))
            divisor = torch.as_tensor(weight, dtype=scores.dtype).to(scores.device)
            yield Block(rows, scores, divisor)

    def scopes_of(self, facts: Facts) -> tuple[Ints, Ints]:
        """The scoped predicates that facts are scored by: how many, and which, in order of time."""
        asked = self.scoping.cut(facts)
        if self.scoping.entities is None:
            parts = self.parts_of(asked)
            fact = np.repeat(np.arange(len(facts)), parts.count)
            scope = parts.predicate % len(self.scoping.static.predicates)
        else:
            fact, time = time_parts(asked.begin, asked.end, self.how)
            scope = self.scoping.at("predicate", facts.predicate[fact], time)
        new = changes(fact, scope)
        return np.bincount(fact[new], minlength=len(facts)), scope[new]

    def spans_of(self, facts: Facts) -> Spans:
        """The spans of the triples of questions, whatever their times."""
        scoping = self.scoping
        size = len(scoping.graph.timeline)
        question = np.repeat(np.arange(len(facts)), size)
        time = np.tile(np.arange(size, dtype=np.int32), len(facts))
        scopes = {}
        for name in NAMES:
            cut = scoping.static.predicates if name == "predicate" else scoping.entities
            sources = getattr(facts, name)[question]
            scopes[name] = sources if cut is None else cut.at(sources, time)
        start = np.flatnonzero(changes(question, *scopes.values()))
        count = np.bincount(question[start], minlength=len(facts))
        return Spans(
            question=question[start],
            number=expand(np.zeros_like(count), count)[1],
            begin=time[start].astype(np.int64),
            end=time[np.append(start[1:], len(time)) - 1].astype(np.int64),
            subject=scoping.entity_fallback[scopes["subject"][start]],
            predicate=scoping.predicate_fallback[scopes["predicate"][start]],
            object=scoping.entity_fallback[scopes["object"][start]],
            scope=scopes["predicate"][start].astype(np.int64),
        )

    def span_block(self, spans: Spans, questions: int) -> Block:
        """The score of every span, a row for each question and a column for each span of it."""
        columns = len(self.scoping.static.predicates)
        candidates = self._scoped_predicates()
        room = MemoryBudget(self.memory, self.device, 4, columns).queries
        row, pair = grouped([spans.subject, spans.object])
        width = int(spans.number.max(initial=-1)) + 1
        scores = torch.full((questions, width), -torch.inf, device=self.device)
        for start in range(0, len(pair), room):
            block = pair[start : start + room]
            of_pairs = candidates.scores(spans.subject[block], spans.object[block])
            at = np.flatnonzero((row >= start) & (row < start + room))
            places = (spans.question[at], spans.number[at], row[at] - start, spans.predicate[at])
            question, number, rows, predicate = (torch.as_tensor(x).to(self.device) for x in places)
            scores[question, number] = of_pairs[rows, predicate].to(scores.dtype)
        return Block(np.arange(questions), scores, torch.ones(questions, device=self.device))


class _MeanOfEnds(Candidates):
    """Scoped predicates, each with the mean of its scores at a begin and at an end."""

    def scores(self, entities: Ids, others: Ids) -> torch.Tensor:
        """A row for each two entities."""
        if not self.scorer.ends:
            return super().scores(entities, others)
        both = Candidates(self.scorer, self.kind, 2 * self.columns).scores(entities, others)
        return both.view(len(both), -1, self.columns).mean(1)


class _EntityQueries(Queries):
    """Parts are the scoped predicates of a fact."""

    def __init__(self, scoring: ScopedScoring, kind: Kind, asked: CutFacts) -> None:
        self.how, self.candidates = scoring.how, scoring.candidates(kind)
        self.given = getattr(asked.facts, GIVEN[kind][0])
        self.parts = parts = scoring.parts_of(asked)
        several = parts.count > 1
        begin, end = parts.predicate[parts.start], parts.predicate[parts.start + parts.count - 1]
        # Facts with one part are the same query whenever they hold. Those come first, and those
        # with the same predicate and entity stand together: their parts are scored once.
        times = (np.where(several, time, 0) for time in (asked.begin, asked.end))
        # Where entities move in time, they are moved once for all that ask at a time.
        time_of = scoring.scorer.time_of
        moved = [] if time_of is None else [time_of[begin]]
        number, self.fact = grouped(
            [several.astype(np.int8), *moved, begin, self.given, end, *times]
        )
        whole = np.add.reduceat(parts.weight, parts.start)
        weight = np.where(several & (self.how in MEANS), whole, 1)
        budget = scoring.budget(self.candidates)
        self.rows = budget.parts
        super().__init__(number, parts.count[self.fact], weight[self.fact], budget.queries)

    def score(self, start: int, stop: int) -> torch.Tensor:
        """The scores of all candidates for the queries from one number up to another."""
        parts, facts = self.parts, self.fact[start:stop]
        given, several = self.given[facts], parts.count[facts] > 1
        if not several.any():
            return self.candidates.scores(given, parts.predicate[parts.start[facts]])
        query, at = expand(parts.start[facts], parts.count[facts])
        # A lone part has weight 1, which gives the scores that it has without the others.
        weight = np.where(several[query], parts.weight[at], 1)
        pairs = Parts(query, given[query], parts.predicate[at], weight)
        return aggregated(self.candidates, pairs, len(facts), self.how, room=self.rows)


class _PredicateQueries(Queries):
    """Parts of a predicate are its scopes that the interval lies in."""

    def __init__(self, scoring: ScopedScoring, asked: CutFacts) -> None:
        self.scoring, self.candidates = scoring, scoring.candidates("predicate")
        facts = asked.facts
        # In the order of time, so that intervals are cut once.
        columns: list[Ids] = [asked.begin, asked.end, facts.unknown, facts.subject, facts.object]
        number, fact = grouped(columns)
        self.given = [column[fact] for column in columns]
        # Every scope may be a part of a query, and takes several numbers beside its score.
        size = len(scoring.names("predicate")) + 8 * self.candidates.columns
        itemsize, one = max(4, self.candidates.itemsize()), np.ones(len(fact), np.int64)
        budget = MemoryBudget(scoring.memory, scoring.device, itemsize, size)
        super().__init__(number, one, one, budget.queries)

    def score(self, start: int, stop: int) -> torch.Tensor:
        """The scores of all candidates for the queries from one number up to another."""
        scopes, how = self.scoring.scoping.static.predicates, self.scoring.how
        sources = np.arange(len(scopes.names), dtype=np.int32)
        *times, subject, object_ = (column[start:stop] for column in self.given)
        row, pair = grouped([subject, object_])
        scores = self.candidates.scores(subject[pair], object_[pair])
        # The parts of every predicate during each different interval.
        interval, one = grouped(times)
        source = np.tile(sources, len(one))
        begin, end, unknown = (
            np.repeat(time[one].astype(np.int32), len(sources)) for time in times
        )
        count, scope, overlap = scopes.cut(source, begin, end, *scopes.find(source, begin, end))
        whose = np.repeat(np.arange(len(source)), count)
        parts = self.scoring.scope_parts(whose, scope, overlap, unknown)
        cells = (interval[:, None] * len(sources) + sources).ravel()
        total = by_cells(scores, np.repeat(row, len(sources)), cells, parts, how)
        return total.view(len(interval), len(sources))


class _TimeQueries(Queries):
    """Parts are the timestamps of a fact: all names are what they are at that time."""

    def __init__(self, scoring: ScopedScoring, kind: Kind, asked: CutFacts) -> None:
        self.scoring, self.candidates = scoring, scoring.candidates(kind)
        times = [asked.begin, asked.end]
        given = [getattr(asked.facts, name) for name in GIVEN[kind]]
        by_time = kind == "predicate"
        number, fact = grouped([*times, *given] if by_time else [*reversed(given), *times])
        self.begin, self.end, *self.given = (column[fact] for column in (*times, *given))
        cost = time_costs(self.begin, self.end, scoring.how)
        weight = cost if scoring.how in MEANS else np.ones(len(fact), np.int64)
        budget = scoring.budget(self.candidates)
        self.rows = budget.parts
        self.names = np.arange(len(scoring.names(kind)), dtype=np.int32)
        self.columns = lru_cache(max(1, _KEPT // max(len(self.names), 1)))(self.columns_at)
        super().__init__(number, cost, weight, budget.queries)

    def columns_at(self, time: int) -> torch.Tensor:
        """The column of every candidate in scores over scoped ones, at a timestamp."""
        times = np.full(len(self.names), time)
        scopes = self.scoring.scoping.at(self.candidates.kind, self.names, times)
        return torch.as_tensor(scopes).to(self.scoring.device)

    def score(self, start: int, stop: int) -> torch.Tensor:
        """The scores of all candidates for the queries from one number up to another."""
        how, scoping = self.scoring.how, self.scoring.scoping
        query, time = time_parts(self.begin[start:stop], self.end[start:stop], how)
        entity, other = (
            scoping.at(name, ids[start:stop][query], time)
            for name, ids in zip(GIVEN[self.candidates.kind], self.given, strict=True)
        )
        parts = Parts(query, entity, other, np.ones(len(query), np.int64), time)
        count = len(self.begin[start:stop])
        return aggregated(self.candidates, parts, count, how, room=self.rows, columns=self.columns)


@dataclass(frozen=True)
class ScopeParts:
    """The scoped predicates of facts, in the order of the facts and of time."""

    start: Ints
    """Where the parts of each fact begin."""
    count: Ints
    predicate: Ints
    weight: Ints


def time_costs(begin: Ints, end: Ints, how: Aggregate) -> Ints:
    """How many parts `time_parts` gives each interval."""
    count = end - begin + 1
    most = {"ends": 2, "begin": 1}.get(how)
    return count if most is None else np.minimum(count, most)


def time_parts(begin: Ints, end: Ints, how: Aggregate) -> tuple[Ints, Ints]:
    """The intervals and timestamps of all parts, where entities are cut.

    >>> [column.tolist() for column in time_parts(np.array([3, 5]), np.array([5, 5]), "mean")]
    [[0, 0, 0, 1], [3, 4, 5, 5]]
    >>> [column.tolist() for column in time_parts(np.array([3, 5]), np.array([5, 5]), "ends")]
    [[0, 0, 1], [3, 5, 5]]
    """
    count = time_costs(begin, end, how)
    step = np.maximum(end - begin, 1) if how == "ends" else np.ones(len(begin), np.int64)
    interval, within = expand(np.zeros(len(begin), np.int64), count)
    return interval, begin[interval] + step[interval] * within


class Parts(NamedTuple):
    """Parts of some queries: the pairs of ids to ask `Candidates` for, and weights."""

    query: Ints
    entity: Ids
    other: Ids
    weight: Ints
    time: Ints | None = None
    """The timestamp of each part, where the columns of candidates depend on it."""

    def take(self, rows: Ints) -> Parts:
        """Some of them, by positions."""
        return Parts(*(None if column is None else column[rows] for column in self))  # type: ignore[arg-type]


def aggregated(
    candidates: Candidates,
    parts: Parts,
    queries: int,
    how: Aggregate,
    *,
    room: int,
    columns: Callable[[int], torch.Tensor] | None = None,
) -> torch.Tensor:
    """A row of scores for each query, from `room` rows of parts at a time.

    Means are not divided by the sum of the weights: it is the same for all candidates of a query.
    Parts of a query are added one by one in the order of time, so the result does not depend on
    `room`. `columns` gives the column of each candidate at a timestamp.
    """
    # Scoped predicates of one source are numbered in the order of time.
    keys = [parts.query, parts.entity, parts.other]
    time_of = candidates.scorer.time_of
    if parts.time is not None:
        keys.append(parts.time)
    elif time_of is not None and candidates.kind != "predicate":
        keys.append(time_of[parts.other])  # entities are moved once for all parts at a time
    order = np.lexsort(keys)
    total: torch.Tensor | None = None
    for start in range(0, len(order), room):
        block = parts.take(order[start : start + room])
        row, asked = grouped((block.entity, block.other))
        scores = candidates.scores(block.entity[asked], block.other[asked])
        if total is None:
            width = scores.shape[1] if columns is None else len(columns(0))
            total = _empty_total(scores, (queries, width), how)
        for members in _layers(_occurrence(block.query) if block.time is None else block.time):
            rows = torch.as_tensor(row[members]).to(scores.device)
            if columns is None or block.time is None:
                values = scores.index_select(0, rows)
            else:
                values = scores[rows[:, None], columns(int(block.time[members[0]]))]
            _add(total, block.query[members], values, block.weight[members], how)
    assert total is not None, "every query has a part"
    check_nan(total)
    return total


def by_cells(
    scores: torch.Tensor, row: Ints, cell: Ints, parts: ScopeParts, how: Aggregate
) -> torch.Tensor:
    """One score for each cell of a table of parts, from a row of scores over scoped predicates.

    Means are divided: cells differ in the sum of their weights where cuts lie at timestamps.
    """
    whose, at = expand(parts.start[cell], parts.count[cell])
    place = row[whose] * scores.shape[1] + parts.predicate[at]
    flat = scores.reshape(-1)
    total = _empty_total(scores, (len(cell),), how)
    for members in _layers(at - parts.start[cell][whose]):
        values = flat[torch.as_tensor(place[members]).to(scores.device)]
        _add(total, whose[members], values, parts.weight[at[members]], how)
    if how in MEANS:
        weight = np.add.reduceat(parts.weight, parts.start)[cell]
        total /= torch.as_tensor(weight, dtype=total.dtype).to(scores.device)
    check_nan(total)
    return total


def _empty_total(scores: torch.Tensor, shape: tuple[int, ...], how: Aggregate) -> torch.Tensor:
    """What parts are added to; half precision would be too coarse for it."""
    dtype = torch.promote_types(scores.dtype, torch.float32)
    return scores.new_full(shape, -torch.inf if how == "max" else 0.0, dtype=dtype)


def _occurrence(numbers: Ints) -> Ints:
    """How many equal numbers stand before each one: 7, 3, 7, 7 gives 0, 0, 1, 2."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    before = np.empty(len(numbers), np.int64)
    before[order] = np.arange(len(numbers)) - np.searchsorted(ordered, ordered)
    return before


def _layers(layer: Ints) -> list[Ints]:
    """Positions by layer; in a layer every query has one part at most."""
    order = np.argsort(layer, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(layer[order])) + 1)


def _add(
    total: torch.Tensor, into: Ints, values: torch.Tensor, weight: Ints, how: Aggregate
) -> None:
    """Take one more part into account, at different places of the total."""
    places = torch.as_tensor(into).to(total.device)
    values = values.to(total.dtype)
    if how == "max":
        total[places] = torch.maximum(total[places], values)
        return
    if (weight != 1).any():
        factor = torch.as_tensor(weight, dtype=total.dtype).to(total.device)
        values *= factor.view(-1, *[1] * (values.ndim - 1))  # a copy of the scores, not theirs
    total.index_add_(0, places, values)
