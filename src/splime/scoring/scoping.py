"""What scoring needs of a graph: the scopes to ask a model for, and what its facts state already.

Where train does not know the scope of a time, the nearest one that it knows is the fallback.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from splime.arrays import changes, distinct, expand
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, SPLITS, Facts, TemporalGraph
from splime.segmentation import Scopes
from splime.static import StaticGraph, Triples, cut_facts
from splime.times import Bools, Ints, format_ticks

Kind: TypeAlias = Literal["object", "subject", "predicate", "time"]
"""The answer to a question: what, who, which predicate, when."""
KINDS: tuple[Kind, ...] = get_args(Kind)
SIDES: tuple[Kind, ...] = ("object", "subject")
"""Answers that are entities."""
NAMES = ("subject", "predicate", "object")


class CutFacts(NamedTuple):
    """Facts, the triples that the cuts make of them, and their first and last timestamps."""

    facts: Facts
    triples: Triples
    begin: Ints
    end: Ints


@dataclass(frozen=True, eq=False)
class Scoping:
    """A static graph, and for every scope the one to score: itself, or its fallback.

    Made once for a graph and its cuts, and shared by validation, evaluation and questions.
    """

    static: StaticGraph
    every_timestamp: bool = False
    """Whether the model has each predicate at each time that train has."""

    @cached_property
    def timed(self) -> Scoping:
        """The same for a model that has each predicate at each time."""
        return Scoping(self.static, every_timestamp=True)

    @property
    def graph(self) -> TemporalGraph:
        """The facts."""
        return self.static.graph

    @property
    def entities(self) -> Scopes | None:
        """The scoped entities, if entities are cut."""
        return self.static.segmentation.entities

    @cached_property
    def predicate_fallback(self) -> Ints:
        """The scoped predicate to score in place of each one."""
        scopes, train = self.static.predicates, self.static.train
        seen = np.zeros(len(scopes), bool)
        seen[train.predicate] = True
        if not self.every_timestamp:
            return nearest_seen(scopes, seen)
        # Only a time at which train has no facts at all is unknown.
        time, at = scopes.middle, np.arange(len(scopes.timeline))
        times = distinct(time[seen])
        after = times[np.searchsorted(times, at).clip(max=len(times) - 1)]
        before = times[(np.searchsorted(times, at, side="right") - 1).clip(min=0)]
        nearest = np.where(np.abs(at - before) <= np.abs(after - at), before, after)[time]
        known = nearest == time
        return np.where(known, np.arange(len(scopes)), scopes.at(scopes.sources, nearest))

    @cached_property
    def entity_fallback(self) -> Ints:
        """The (scoped) entity to score in place of each one."""
        if self.entities is None:
            return np.arange(len(self.static.entities))
        seen = np.zeros(len(self.entities), bool)
        seen[self.static.train.subject] = seen[self.static.train.object] = True
        return nearest_seen(self.entities, seen)

    def cut(self, facts: Facts) -> CutFacts:
        """Facts with their triples; those of a split are cut already."""
        split = next((name for name, part in self.graph.splits() if part is facts), None)
        if split is not None:
            triples = getattr(self.static, split)
        else:
            triples = cut_facts(self.static.segmentation, facts, self.graph)
        begin, end = (time.astype(np.int64) for time in self.graph.timestamps(facts))
        return CutFacts(facts, triples, begin, end)

    def at(self, kind: str, sources: npt.NDArray[np.int32], timestamps: Ints) -> Ints:
        """The scopes to score of predicates (or of subjects and objects) at timestamps."""
        if kind == "predicate":
            return self.predicate_fallback[self.static.predicates.at(sources, timestamps)]
        if self.entities is None:
            return sources.astype(np.int64)
        return self.entity_fallback[self.entities.at(sources, timestamps)]


def nearest_seen(scopes: Scopes, seen: Bools) -> Ints:
    """For every scope the nearest seen one of its source, the earlier of two equally near.

    Near is measured in timestamps from one scope's last to the next one's first. Scopes of a
    source that was never seen stay what they are.
    """
    size = len(scopes)
    scope = np.arange(size)
    before = np.maximum.accumulate(np.where(seen, scope, -1))
    after = np.minimum.accumulate(np.where(seen, scope, size)[::-1])[::-1]
    has_before, has_after = before >= 0, after < size
    before, after = np.where(has_before, before, scope), np.where(has_after, after, scope)
    has_before &= scopes.sources[before] == scopes.sources
    has_after &= scopes.sources[after] == scopes.sources
    earlier = has_before & (
        ~has_after | (scopes.first - scopes.last[before] <= scopes.first[after] - scopes.last)
    )
    nearest: Ints = np.where(earlier, before, np.where(has_after, after, scope))
    return nearest


class Keyed(NamedTuple):
    """Facts by what they answer: all that a query gives as one number, the answer, and the time."""

    key: Ints
    id: Ints
    begin: Ints
    end: Ints

    def take(self, rows: Ints) -> Keyed:
        """Some of them, by positions."""
        return Keyed(*(column[rows] for column in self))


def keyed(kind: Kind, facts: Facts, graph: TemporalGraph) -> Keyed:
    """Facts as answers of one kind, by their times as given.

    An unknown begin or end is infinitely far.
    """
    far = np.iinfo(np.int64)
    begin = np.where(facts.unknown & BEGIN_UNKNOWN, far.min, facts.begin)
    end = np.where(facts.unknown & END_UNKNOWN, far.max, facts.end)
    key = np.zeros(len(facts), np.int64)
    for name in NAMES:
        if name != kind:
            names = graph.predicates if name == "predicate" else graph.entities
            key = key * len(names) + getattr(facts, name)
    ids = np.zeros_like(key) if kind == "time" else getattr(facts, kind).astype(np.int64)
    return Keyed(key, ids, begin, end)


class KnownFact(NamedTuple):
    """The fact that states an answer: its split, and when it holds; None is an unknown time."""

    split: str
    begin: str | None
    end: str | None

    @property
    def dated(self) -> bool:
        """Whether it says when, at least since or until when."""
        return (self.begin, self.end) != (None, None)

    def __str__(self) -> str:
        if not self.dated:
            return f"{self.split}, without time"
        begin, end = self.begin or "?", self.end or "?"
        return f"{self.split} {begin}" if begin == end else f"{self.split} {begin}..{end}"


class KnownAnswers(NamedTuple):
    """Pairs of a question and an answer that a fact states."""

    question: Ints
    id: Ints
    fact: Ints
    """Position among the facts of all splits; -1 if those that state it do not say when."""
    learned: Bools
    """Whether a fact of train states it: the model has seen it."""


class KnownFacts:
    """The facts of all splits, looked up by what questions give."""

    def __init__(self, graph: TemporalGraph) -> None:
        self.graph, self.facts = graph, graph.facts()
        self.undated = self.facts.timeless
        """Which facts have neither begin nor end."""
        self._upto = np.cumsum([len(facts) for _, facts in graph.splits()])
        self._indexes: dict[Kind, tuple[Keyed, Ints]] = {}

    def pairs(self, kind: Kind, asked: Facts) -> tuple[Ints, Ints]:
        """Pairs of a question and a fact that answers it at some time that is asked about.

        A fact with an unknown begin or end holds without end on that side.
        """
        if kind not in self._indexes:
            facts = keyed(kind, self.facts, self.graph)
            order = np.argsort(facts.key, kind="stable")
            self._indexes[kind] = facts.take(order), order
        known, order = self._indexes[kind]
        key = keyed(kind, asked, self.graph).key
        low = np.searchsorted(known.key, key, side="left")
        question, at = expand(low, np.searchsorted(known.key, key, side="right") - low)
        overlap = known.begin[at] <= asked.end[question]
        overlap &= known.end[at] >= asked.begin[question]
        return question[overlap], order[at[overlap]]

    def answers(self, kind: Kind, asked: Facts) -> KnownAnswers:
        """The known answers, each once to a question, with the earliest fact that states it.

        Facts with a time go before those without, and facts of train before others.
        """
        question, fact = self.pairs(kind, asked)
        ids = getattr(self.facts, kind)[fact].astype(np.int64)
        before = (self.facts.begin[fact], ~self.learned(fact), self.undated[fact])
        order = np.lexsort((fact, *before, ids, question))
        return self.once(question[order], ids[order], fact[order])

    def once(self, question: Ints, ids: Ints, fact: Ints) -> KnownAnswers:
        """Sorted answers without those that repeat the one before."""
        new = changes(question, ids)
        learned = np.bincount(new.cumsum() - 1, self.learned(fact), minlength=int(new.sum()))
        return KnownAnswers(question[new], ids[new], fact[new], learned > 0)

    def learned(self, facts: Ints) -> Bools:
        """Which facts, given by their positions, are of train."""
        of_train: Bools = facts < self._upto[0]
        return of_train

    def describe(self, facts: Ints) -> list[KnownFact | None]:
        """The split and dates of facts; -1 is none."""
        granularity = self.graph.timeline.granularity
        shown = self.facts.take(np.maximum(facts, 0))
        begin, end = (
            np.array(format_ticks(ticks, granularity), object) for ticks in (shown.begin, shown.end)
        )
        begin[shown.unknown & BEGIN_UNKNOWN > 0] = None
        end[shown.unknown & END_UNKNOWN > 0] = None
        split = np.searchsorted(self._upto, facts, side="right").tolist()
        rows = zip(facts.tolist(), split, begin, end, strict=True)
        return [
            None if fact < 0 else KnownFact(SPLITS[split], *times) for fact, split, *times in rows
        ]
