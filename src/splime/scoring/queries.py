"""The scores of all candidates: of queries that protocols rank, and of questions in the same way.

A query has parts, whose scores become one. A part is a scope that the query's interval lies in;
where entities are cut, it is a timestamp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import torch

from splime.arrays import changes, expand, grouped
from splime.collective import Rows
from splime.errors import check_name
from splime.graph import Facts
from splime.scoring.doubts import Doubts
from splime.scoring.scoping import NAMES, CutFacts, Kind, KnownAnswers, KnownFacts, Scoping
from splime.scoring.scorer import Ask, Ids, Room, Scorer, asking, check_nan
from splime.static import Aggregate, first_and_last
from splime.times import Ints

MEANS = ("mean", "ends")
"""Those that are divided by the sum of the weights."""

# The scopes of all names at a timestamp are kept, up to so many numbers.
_KEPT = 1 << 23
# What a query gives, in the order in which a scorer is asked.
GIVEN = {
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
    """What the scores of each query must be divided by to be means; 1 if they are no means."""
    score: Callable[[int, int], torch.Tensor]
    """The scores of all candidates for the queries from one number up to another."""
    block: int
    """How many queries fit into a block."""
    rows: Rows | None = None
    """The candidates that the columns of the scores are, where other workers have the rest."""
    alone: bool = True
    """Whether a worker can score queries without the others."""

    @cached_property
    def _order(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.number, kind="stable")
        return order, self.number[order]

    def scored(self, start: int, stop: int) -> tuple[Ints, Ints, torch.Tensor]:
        """The facts that ask queries from one number up to another, the row of each, the scores."""
        facts, row = self.asked(start, stop)
        return facts, row, self.score(start, stop)

    def asked(self, start: int, stop: int) -> tuple[Ints, Ints]:
        """The same without the scores."""
        order, number = self._order
        low, high = np.searchsorted(number, (start, stop)).tolist()
        return order[low:high], number[low:high] - start

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
    """What each row must be divided by to be a mean."""


class Spans(NamedTuple):
    """The spans of some triples, by question and in the order of time.

    In each all three names lie in the same scopes; where only predicates are cut, it is a scope.
    """

    question: Ints
    number: Ints
    """The position of the span in its question, from 0."""
    begin: Ints
    """The first timestamp."""
    end: Ints
    subject: Ints
    """The (scoped) subject that is asked for."""
    predicate: Ints
    object: Ints
    scope: Ints
    """The scoped predicate at that time; `predicate` may be its fallback."""


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
        check_name("aggregation", self.how, get_args(Aggregate))

    @property
    def has_absolute_scopes(self) -> bool:
        """Whether answers are scored by scopes of predicates; else the model knows time itself."""
        return True

    def questions_for(self, kind: Kind) -> int:  # noqa: ARG002
        """How many questions to the model one question of a kind takes, about."""
        return 1

    @cached_property
    def known(self) -> KnownFacts:
        """The facts of all splits, to look answers up in."""
        return KnownFacts(self.scoping.graph)

    @cached_property
    def doubts(self) -> Doubts:
        """What train does not have, and the model cannot know."""
        return Doubts(self.scoping)

    @property
    def _end(self) -> int:
        """What is added to a scoped predicate at the end of a fact; 0 where it is the same."""
        return len(self.scoping.static.predicates) if getattr(self.scorer, "ends", False) else 0

    def queries(self, kind: Kind, asked: CutFacts) -> Queries:
        """The queries for the objects, the subjects or the predicates of facts."""
        static, of_predicates = self.scoping.static, kind == "predicate"
        candidates = len(self.scoping.names(kind))
        columns = len(static.predicates) + self._end if of_predicates else len(static.entities)
        here: Rows | None = getattr(self.scorer, "rows", None)
        rows = None if of_predicates else here
        ask = asking(self.scorer, kind, columns if rows is None else len(rows))
        probe = ask(np.zeros(1, np.int64), np.zeros(1, np.int64))
        itemsize, device = max(4, probe.element_size()), self.scorer.device
        if rows is not None:  # all workers have blocks of the same queries
            candidates = columns = rows.most
        if of_predicates and self.scoping.entities is None:
            # Every scope may be a part of a query, and takes several numbers beside its score.
            room = Room(self.memory, device, itemsize, candidates + 8 * columns)
            queries = self._predicates_by_scope(asked, ask, room)
        else:
            room = Room(self.memory, device, itemsize, candidates, columns)
            by = self._entities_by_scope if self.scoping.entities is None else self._by_time
            queries = by(kind, asked, ask, room)
        return replace(queries, rows=rows, alone=here is None)

    def _entities_by_scope(self, kind: Kind, asked: CutFacts, ask: Ask, room: Room) -> Queries:
        """Parts are the scoped predicates of a fact."""
        given = getattr(asked.facts, GIVEN[kind][0])
        triples = asked.triples
        parts = self.scope_parts(
            triples.fact, triples.predicate, triples.overlap, asked.facts.unknown
        )
        several = parts.count > 1
        begin, end = parts.predicate[parts.start], parts.predicate[parts.start + parts.count - 1]
        # Facts with one part are the same query whenever they hold. Those come first, and those
        # with the same predicate and entity stand together: their parts are asked for once.
        times = (np.where(several, time, 0) for time in (asked.begin, asked.end))
        keys: list[Ids] = [several.astype(np.int8), begin, given, end, *times]
        moved = getattr(self.scorer, "time_of", None)
        if moved is not None:
            keys.insert(1, moved[begin])  # entities move in time: once for all that ask at a time
        number, fact = grouped(keys)

        def score(start: int, stop: int) -> torch.Tensor:
            some = fact[start:stop]
            if not several[some].any():
                return ask(given[some], begin[some])
            query, at = expand(parts.start[some], parts.count[some])
            # A lone part has weight 1, which gives the scores that it has without the others.
            weight = np.where(several[some][query], parts.weight[at], 1)
            pairs = Parts(query, given[some][query], parts.predicate[at], weight)
            order = None if moved is None else moved[pairs.other]
            return aggregated(ask, pairs, len(some), self.how, room=room.parts, order=order)

        whole = np.add.reduceat(parts.weight, parts.start)
        weight = np.where(several & (self.how in MEANS), whole, 1)[fact]
        return Queries(number, parts.count[fact], weight, score, room.queries)

    def _predicates_by_scope(self, asked: CutFacts, ask: Ask, room: Room) -> Queries:
        """Parts of a predicate are its scopes that the interval lies in."""
        scopes = self.scoping.static.predicates
        sources = np.arange(len(scopes.names), dtype=np.int32)
        # In the order of time, so that intervals are cut once.
        facts = asked.facts
        columns: list[Ids] = [asked.begin, asked.end, facts.unknown, facts.subject, facts.object]
        number, fact = grouped(columns)
        queries = [column[fact] for column in columns]

        def score(start: int, stop: int) -> torch.Tensor:
            *times, subject, object_ = (column[start:stop] for column in queries)
            row, pair = grouped([subject, object_])
            scores = ask(subject[pair], object_[pair])
            # The parts of every predicate during each different interval.
            interval, one = grouped(times)
            source = np.tile(sources, len(one))
            begin, end, unknown = (
                np.repeat(time[one].astype(np.int32), len(sources)) for time in times
            )
            count, scope, overlap = scopes.cut(source, begin, end, *scopes.find(source, begin, end))
            whose = np.repeat(np.arange(len(source)), count)
            parts = self.scope_parts(whose, scope, overlap, unknown)
            cells = (interval[:, None] * len(sources) + sources).ravel()
            total = by_cells(scores, np.repeat(row, len(sources)), cells, parts, self.how)
            return total.view(len(interval), len(sources))

        one = np.ones(len(fact), np.int64)
        return Queries(number, one, one, score, room.queries)

    def _by_time(self, kind: Kind, asked: CutFacts, ask: Ask, room: Room) -> Queries:
        """Parts are the timestamps of a fact: all names are what they are at that time."""
        names, times = GIVEN[kind], [asked.begin, asked.end]
        given = [getattr(asked.facts, name) for name in names]
        number, fact = grouped(
            [*times, *given] if kind == "predicate" else [*reversed(given), *times]
        )
        begin, end, *given = (column[fact] for column in (*times, *given))
        every = np.arange(len(self.scoping.names(kind)), dtype=np.int32)

        @lru_cache(max(1, _KEPT // max(len(every), 1)))
        def columns(time: int) -> torch.Tensor:
            """The column of every candidate in scores over scoped ones, at a timestamp."""
            scopes = self.scoping.at(kind, every, np.full(len(every), time))
            return torch.as_tensor(scopes).to(self.scorer.device)

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

    def scope_parts(
        self, fact: Ids, scope: Ids, overlap: Ids, unknown: npt.NDArray[np.integer]
    ) -> ScopeParts:
        """The parts of facts whose entities are not cut, from the scopes that they hold in.

        Parts that are the same scope, because of a fallback, are one with the sum of their weights.
        `unknown` has the bits of each fact.
        """
        predicate, weight = self.scoping.predicate_fallback[scope], overlap.astype(np.int64)
        facts, at_end = len(unknown), np.zeros(len(fact), bool)
        if self.how in ("ends", "begin"):
            # Without predicates of their own, an unknown begin or end is what it was filled with.
            fill = self.how == "ends" and not self._end
            rows, at_end = first_and_last(fact, unknown * (not fill))
            if self.how == "begin":
                rows, at_end = rows[:, :1], at_end[:, :1]
            rows, at_end = rows.ravel(), at_end.ravel()
            fact, predicate = fact[rows], predicate[rows]
        elif self._end:
            fact, predicate, weight = np.repeat(fact, 2), predicate.repeat(2), weight.repeat(2)
            at_end = np.tile([False, True], len(fact) // 2)
        predicate = predicate + at_end * self._end
        if self.how != "mean":
            weight = np.ones(len(fact), np.int64)
        at = np.flatnonzero(changes(fact, predicate))
        count, weight = np.bincount(fact[at], minlength=facts), np.add.reduceat(weight, at)
        return ScopeParts(count.cumsum() - count, count, predicate[at], weight)

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

    def _ask_predicates(self, subject: Ids, object: Ids) -> torch.Tensor:
        """A column for each scoped predicate: at a begin and at an end, where these differ."""
        columns = len(self.scoping.static.predicates)
        scores = asking(self.scorer, "predicate", columns + self._end)(subject, object)
        return scores.view(len(scores), -1, columns).mean(1) if self._end else scores

    def scoped_predicates(self, facts: Facts) -> Iterator[Block]:
        """The scores of all scoped predicates between the entities of questions."""
        ask = self._ask_predicates
        columns = len(self.scoping.static.predicates)
        room = Room(self.memory, self.scorer.device, 4, columns, columns)
        asked = self.scoping.cut(facts)
        for start in range(0, len(facts), room.queries):
            some = np.arange(start, min(start + room.queries, len(facts)))
            query, time = np.arange(len(some)), asked.begin[some]
            if self.scoping.entities is not None:
                query, time = time_parts(asked.begin[some], asked.end[some], self.how)
            subject, object_ = (
                self.scoping.at(name, getattr(facts, name)[some][query], time)
                for name in GIVEN["predicate"]
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
            triples = asked.triples
            parts = self.scope_parts(
                triples.fact, triples.predicate, triples.overlap, facts.unknown
            )
            fact = np.repeat(np.arange(len(facts)), parts.count)
            scope = parts.predicate % len(self.scoping.static.predicates)
            new = changes(fact, scope)
            return np.bincount(fact[new], minlength=len(facts)), scope[new]
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
        scorer, columns = self.scorer, len(self.scoping.static.predicates)
        ask = self._ask_predicates
        room = Room(self.memory, scorer.device, 4, columns).queries
        row, pair = grouped([spans.subject, spans.object])
        order = np.argsort(row, kind="stable")
        ordered = row[order]
        width = int(spans.number.max(initial=-1)) + 1
        scores = torch.full((questions, width), -torch.inf, device=scorer.device)
        for start in range(0, len(pair), room):
            some = pair[start : start + room]
            of_pairs = ask(spans.subject[some], spans.object[some])
            low, high = np.searchsorted(ordered, (start, start + room)).tolist()
            at = order[low:high]
            places = (spans.question[at], spans.number[at], row[at] - start, spans.predicate[at])
            question, number, own, predicate = (
                torch.as_tensor(x).to(scorer.device) for x in places
            )
            scores[question, number] = of_pairs[own, predicate].to(scores.dtype)
        return Block(np.arange(questions), scores, torch.ones(questions, device=scorer.device))

    def known_spans(self, facts: Facts, spans: Spans) -> KnownAnswers:
        """The spans in which the triples of questions are known to hold."""
        question, fact = self.known.pairs("time", facts)
        begin, end = self.known.graph.timestamps(self.known.facts.take(fact))
        count = np.bincount(spans.question, minlength=len(facts))
        pair, span = expand((count.cumsum() - count)[question], count[question])
        held = (spans.begin[span] <= end[pair]) & (spans.end[span] >= begin[pair])
        pair, span = pair[held], span[held]
        question, number, fact = question[pair], spans.number[span], fact[pair]
        # A fact without time does not say when, so it marks no span.
        order = np.lexsort((fact, self.known.undated[fact], number, question))
        known = self.known.once(question[order], number[order], fact[order])
        return known._replace(fact=np.where(self.known.undated[known.fact], -1, known.fact))


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
    """Parts of some queries: the pairs of ids to ask for, as `Ask` takes them, and weights."""

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
    ask: Ask,
    parts: Parts,
    queries: int,
    how: Aggregate,
    *,
    room: int,
    columns: Callable[[int], torch.Tensor] | None = None,
    order: Ints | None = None,
) -> torch.Tensor:
    """A row of scores for each query, from `room` rows of parts at a time.

    Means are not divided by the sum of the weights: it is the same for all candidates of a query.
    Parts of a query are added one by one in the order of time, so the result does not depend on
    `room`. `columns` gives the column of each candidate at a timestamp. Parts with the same `order`
    are asked for together.
    """
    # Scoped predicates of one source are numbered in the order of time.
    keys = (parts.query, parts.entity, parts.other)
    before = [column for column in (order, parts.time) if column is not None]
    order = np.lexsort((*keys, *before))
    total: torch.Tensor | None = None
    for start in range(0, len(order), room):
        some = parts.take(order[start : start + room])
        row, asked = grouped((some.entity, some.other))
        scores = ask(some.entity[asked], some.other[asked])
        if total is None:
            width = scores.shape[1] if columns is None else len(columns(0))
            total = _empty_total(scores, (queries, width), how)
        for members in _layers(_occurrence(some.query) if some.time is None else some.time):
            rows = torch.as_tensor(row[members]).to(scores.device)
            if columns is None or some.time is None:
                values = scores.index_select(0, rows)
            else:
                values = scores[rows[:, None], columns(int(some.time[members[0]]))]
            _add(total, some.query[members], values, some.weight[members], how)
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
