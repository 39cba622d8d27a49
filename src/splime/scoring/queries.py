"""The scores of all candidates for queries, in blocks that fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import torch

from splime.arrays import expand, grouped
from splime.graph import Facts
from splime.scoring.known import Kind, KnownFacts
from splime.scoring.parts import (
    MEANS,
    Aggregate,
    Parts,
    ScopeParts,
    aggregated,
    by_cells,
    check_aggregate,
    scope_parts,
    time_costs,
    time_parts,
)
from splime.scoring.scoping import CutFacts, Scoping
from splime.scoring.scorer import Ask, Room, Scorer, asking
from splime.static import Triples
from splime.times import Ints

# The scopes of all names at a timestamp are kept, up to so many numbers.
_KEPT = 1 << 23
# What a query gives, in the order in which a scorer is asked.
_GIVEN = {
    "object": ("subject", "predicate"),
    "subject": ("object", "predicate"),
    "predicate": ("subject", "object"),
}


@dataclass(frozen=True)
class Queries:
    """The distinct queries of some facts, and how they are scored."""

    number: Ints
    """The query of every fact."""
    cost: Ints
    """How many rows are scored for each query."""
    weight: Ints
    """What the scores of each query are to be divided by to be means; 1 if they are no means."""
    score: Callable[[int, int], torch.Tensor]
    """The scores of all candidates for the queries from one number up to another."""
    block: int
    """How many queries fit into a block."""

    @cached_property
    def _order(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.number, kind="stable")
        return order, self.number[order]

    def scored(self, start: int, stop: int) -> tuple[Ints, Ints, torch.Tensor]:
        """The facts that ask queries from one number up to another, the row of each, the scores."""
        order, number = self._order
        low, high = np.searchsorted(number, (start, stop)).tolist()
        return order[low:high], number[low:high] - start, self.score(start, stop)

    def blocks(self) -> Iterator[tuple[Ints, Ints, torch.Tensor]]:
        """All queries, block by block, as `scored` gives them."""
        for start in range(0, len(self.cost), self.block):
            yield self.scored(start, min(start + self.block, len(self.cost)))


class Block(NamedTuple):
    """A row of scores over all candidates for some questions; -inf is no candidate."""

    rows: Ints
    """The positions of the questions."""
    scores: torch.Tensor
    """Made for this block; whoever takes it may write into it."""
    weight: torch.Tensor
    """What each row is to be divided by to be a mean."""


@dataclass(frozen=True, eq=False)
class Scoring:
    """A model over the scopes of a graph: the scores of candidates at a time.

    Protocols and questions take their scores from here, so that they are the same.
    """

    scorer: Scorer
    scoping: Scoping
    how: Aggregate = "mean"
    memory: int | None = None
    """The number of bytes that blocks of scores may take."""

    def __post_init__(self) -> None:
        check_aggregate(self.how)

    @cached_property
    def known(self) -> KnownFacts:
        """The facts of all splits, to look answers up in."""
        return KnownFacts(self.scoping.graph)

    def queries(self, kind: Kind, asked: CutFacts) -> Queries:
        """The queries for the objects, the subjects or the predicates of facts."""
        graph, static = self.scoping.graph, self.scoping.static
        of_predicates = kind == "predicate"
        candidates = len(graph.predicates if of_predicates else graph.entities)
        columns = len(static.predicates if of_predicates else static.entities)
        ask = asking(self.scorer, kind, columns)
        probe = ask(np.zeros(1, np.int64), np.zeros(1, np.int64))
        itemsize, device = max(4, probe.element_size()), self.scorer.device
        if of_predicates and self.scoping.entities is None:
            # Every scope may be a part of a query, and takes several numbers beside its score.
            room = Room(self.memory, device, itemsize, candidates + 8 * columns)
            return self._predicates_by_scope(asked, ask, room)
        room = Room(self.memory, device, itemsize, candidates, columns)
        if self.scoping.entities is None:
            return self._entities_by_scope(kind, asked, ask, room)
        return self._by_time(kind, asked, ask, room)

    def _entities_by_scope(self, kind: Kind, asked: CutFacts, ask: Ask, room: Room) -> Queries:
        """Parts are the scoped predicates of a fact."""
        given = getattr(asked.facts, _GIVEN[kind][0])
        parts = scope_parts(asked.triples, len(given), self.scoping.predicate_fallback, self.how)
        several = parts.count > 1
        begin, end = parts.predicate[parts.start], parts.predicate[parts.start + parts.count - 1]
        # Facts with one part are the same query whenever they hold. Those come first, and those
        # with the same predicate and entity stand together: their parts are asked for once.
        times = (np.where(several, time, 0) for time in (asked.begin, asked.end))
        number, fact = grouped([several.astype(np.int8), begin, given, end, *times])

        def score(start: int, stop: int) -> torch.Tensor:
            some = fact[start:stop]
            if not several[some].any():
                return ask(given[some], begin[some])
            query, at = expand(parts.start[some], parts.count[some])
            # A lone part has weight 1, which gives the scores that it has without the others.
            weight = np.where(several[some][query], parts.weight[at], 1)
            pairs = Parts(query, given[some][query], parts.predicate[at], weight)
            return aggregated(ask, pairs, len(some), self.how, room=room.parts)

        whole = np.add.reduceat(parts.weight, parts.start)
        weight = np.where(several & (self.how in MEANS), whole, 1)[fact]
        return Queries(number, parts.count[fact], weight, score, room.queries)

    def _predicates_by_scope(self, asked: CutFacts, ask: Ask, room: Room) -> Queries:
        """Parts of a predicate are its scopes that the interval lies in."""
        scopes = self.scoping.static.predicates
        sources = np.arange(len(scopes.names), dtype=np.int32)
        # In the order of time, so that intervals are cut once.
        columns = [asked.begin, asked.end, asked.facts.subject, asked.facts.object]
        number, fact = grouped(columns)
        queries = [column[fact] for column in columns]

        def parts_during(begin: Ints, end: Ints) -> ScopeParts:
            """The parts of every predicate during each interval."""
            source = np.tile(sources, len(begin))
            begin, end = (np.repeat(time, len(sources)) for time in (begin, end))
            count, scope, overlap = scopes.cut(source, begin, end, *scopes.find(source, begin, end))
            whose = np.repeat(np.arange(len(source)), count)
            nobody = np.zeros(len(whose), np.int32)
            triples = Triples(nobody, scope, nobody, whose, overlap)
            return scope_parts(triples, len(source), self.scoping.predicate_fallback, self.how)

        def score(start: int, stop: int) -> torch.Tensor:
            begin, end, subject, object_ = (column[start:stop] for column in queries)
            row, pair = grouped([subject, object_])
            scores = ask(subject[pair], object_[pair])
            interval, one = grouped([begin, end])
            parts = parts_during(begin[one], end[one])
            cells = (interval[:, None] * len(sources) + sources).ravel()
            total = by_cells(scores, np.repeat(row, len(sources)), cells, parts, self.how)
            return total.view(len(interval), len(sources))

        one = np.ones(len(fact), np.int64)
        return Queries(number, one, one, score, room.queries)

    def _by_time(self, kind: Kind, asked: CutFacts, ask: Ask, room: Room) -> Queries:
        """Parts are the timestamps of a fact: all names are what they are at that time."""
        names, times = _GIVEN[kind], [asked.begin, asked.end]
        given = [getattr(asked.facts, name) for name in names]
        number, fact = grouped(
            [*times, *given] if kind == "predicate" else [*reversed(given), *times]
        )
        begin, end, *given = (column[fact] for column in (*times, *given))
        columns = self._columns(kind)

        def score(start: int, stop: int) -> torch.Tensor:
            query, time = time_parts(begin[start:stop], end[start:stop], self.how)
            entity, other = (
                self.scoping.at(name, ids[start:stop][query], time)
                for name, ids in zip(names, given, strict=True)
            )
            parts = Parts(query, entity, other, np.ones(len(query), np.int64), time)
            count = len(begin[start:stop])
            return aggregated(ask, parts, count, self.how, room=room.parts, columns=columns)

        cost = time_costs(begin, end, self.how)
        weight = cost if self.how in MEANS else np.ones(len(fact), np.int64)
        return Queries(number, cost, weight, score, room.queries)

    def _columns(self, kind: Kind) -> Callable[[int], torch.Tensor]:
        """The column of every candidate in scores over scoped ones, at a timestamp."""
        graph = self.scoping.graph
        size = len(graph.predicates if kind == "predicate" else graph.entities)
        every = np.arange(size, dtype=np.int32)

        @lru_cache(max(1, _KEPT // max(size, 1)))
        def at(time: int) -> torch.Tensor:
            scopes = self.scoping.at(kind, every, np.full(size, time))
            return torch.as_tensor(scopes).to(self.scorer.device)

        return at

    def blocks(self, kind: Kind, facts: Facts) -> Iterator[Block]:
        """The scores of questions for objects, subjects or predicates."""
        queries = self.queries(kind, self.scoping.cut(facts))
        for asked, row, scores in queries.blocks():
            # Questions that are the same query differ in what is known at their times.
            for start in range(0, len(asked), queries.block):
                rows = asked[start : start + queries.block]
                weight = torch.as_tensor(queries.weight[queries.number[rows]], dtype=scores.dtype)
                own = torch.as_tensor(row[start : start + queries.block]).to(scores.device)
                yield Block(rows, scores.index_select(0, own), weight.to(scores.device))

    def scoped_predicates(self, facts: Facts) -> Iterator[Block]:
        """The scores of all scoped predicates between the entities of questions."""
        columns = len(self.scoping.static.predicates)
        ask = asking(self.scorer, "predicate", columns)
        room = Room(self.memory, self.scorer.device, 4, columns, columns)
        asked = self.scoping.cut(facts)
        for start in range(0, len(facts), room.queries):
            some = np.arange(start, min(start + room.queries, len(facts)))
            query, time = np.arange(len(some)), asked.begin[some]
            if self.scoping.entities is not None:
                query, time = time_parts(asked.begin[some], asked.end[some], self.how)
            subject, object_ = (
                self.scoping.at(name, getattr(facts, name)[some][query], time)
                for name in _GIVEN["predicate"]
            )
            parts = Parts(query, subject, object_, np.ones(len(query), np.int64))
            scores = aggregated(ask, parts, len(some), self.how, room=room.parts)
            weight = np.bincount(query) if self.how in MEANS else np.ones(len(some))
            divisor = torch.as_tensor(weight, dtype=scores.dtype).to(scores.device)
            yield Block(some, scores, divisor)

    def scopes_of(self, facts: Facts) -> tuple[Ints, Ints]:
        """The scoped predicates that facts are scored by: how many, and which, in order of time."""
        asked = self.scoping.cut(facts)
        if self.scoping.entities is None:
            fallback = self.scoping.predicate_fallback
            parts = scope_parts(asked.triples, len(facts), fallback, self.how)
            return parts.count, parts.predicate
        fact, time = time_parts(asked.begin, asked.end, self.how)
        scope = self.scoping.at("predicate", facts.predicate[fact], time)
        new = np.ones(len(scope), bool)
        new[1:] = (fact[1:] != fact[:-1]) | (scope[1:] != scope[:-1])
        return np.bincount(fact[new], minlength=len(facts)), scope[new]
