"""What a model cannot know about a question: names and times that train does not have."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa

from splime.errors import counted
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, Facts, TemporalGraph
from splime.scoring.scoping import NAMES, Kind, Scoping
from splime.scoring.scorer import Ids
from splime.times import Bools, Ints, format_ticks

FEWEST = 10
"""A predicate with fewer facts in train is one that the model hardly knows."""


class TrainCoverage:
    """What train has of every name, and which questions and answers go beyond it.

    A timed model has no fallback scopes. One that `forecasts` is asked about
    times after train, and cannot know those before which there is nothing.
    """

    def __init__(
        self, graph: TemporalGraph, scoping: Scoping | None = None, *, forecasts: bool = False
    ) -> None:
        train = graph.train
        self._graph, self._scoping, self._forecasts = graph, scoping, forecasts
        ends = np.concatenate([train.subject, train.object])
        self._entities = np.bincount(ends, minlength=len(graph.entities))
        self._predicates = np.bincount(train.predicate, minlength=len(graph.predicates))
        # The first and last timestamp at which train has facts of each predicate, as given: what an
        # unknown begin or end was filled with says nothing.
        train = train.take(~train.timeless)
        begin, end = graph.timestamps(train)
        begin, end = (
            np.where(train.unknown & BEGIN_UNKNOWN, end, begin),
            np.where(train.unknown & END_UNKNOWN, begin, end),
        )
        self._first = np.full(len(graph.predicates), len(graph.timeline))
        self._last = np.full(len(graph.predicates), -1)
        np.minimum.at(self._first, train.predicate, begin)
        np.maximum.at(self._last, train.predicate, end)
        self.when = lru_cache(None)(self._when)

    def names(self, kind: str, ids: Ids) -> Bools:
        """Which names (of predicates or entities) train does not, or hardly, have."""
        if kind == "time":
            return np.zeros(len(ids), bool)
        if kind == "predicate":
            return np.asarray(self._predicates[ids] < FEWEST)
        return np.asarray(self._entities[ids] == 0)

    def outside(self, predicates: Ids | None, begin: Ids, end: Ids) -> Bools:
        """Which times (first and last timestamps) lie wholly outside of what train covers.

        That is the time of its facts of a predicate, or of all where there are no `predicates`. A
        forecast goes beyond it where no fact begins before.
        """
        if self._forecasts:
            return np.asarray(begin <= self._first.min())
        first, last = self._covered(predicates)
        return np.asarray(((end < first) | (begin > last)) & (first <= last))

    def _covered(self, predicates: Ids | None) -> tuple[Ints, Ints]:
        if predicates is None:
            return self._first.min(), self._last.max()
        return self._first[predicates], self._last[predicates]

    def asked(self, kind: Kind, facts: Facts) -> Bools:
        """Which questions give a name or a time that train does not have."""
        return np.asarray(np.any([*self._asked(kind, facts).values()], axis=0))

    def _asked(self, kind: Kind, facts: Facts) -> dict[str, Bools]:
        """The same for each name and the time."""
        masks = {name: self.names(name, getattr(facts, name)) for name in NAMES if name != kind}
        if kind != "time":
            predicates = None if kind == "predicate" else facts.predicate
            masks["time"] = self.outside(predicates, *self._graph.timestamps(facts))
            if self._forecasts:
                masks["time"] |= self._far(facts)
        return masks

    def _far(self, facts: Facts) -> Bools:
        """Which times are farther from the last one than any two of the graph from each other."""
        timeline = self._graph.timeline
        return np.asarray(facts.begin - timeline.last > timeline.last - timeline.first)

    def reasons(self, kind: Kind, facts: Facts) -> list[str]:
        """Why each question goes beyond train; empty if it does not."""
        masks, texts = self._asked(kind, facts), [""] * len(facts)
        begin, end = self._graph.timestamps(facts)
        for row in np.flatnonzero(np.any([*masks.values()], axis=0)).tolist():
            parts = []
            for name in (name for name, mask in masks.items() if mask[row]):
                if name == "time":
                    predicate = None if kind == "predicate" else int(facts.predicate[row])
                    parts.append(self.when(predicate, int(begin[row]), int(end[row])))
                else:
                    parts.append(self.about(name, int(getattr(facts, name)[row])))
            texts[row] = "; ".join(dict.fromkeys(parts))
        return texts

    def answers(self, kind: Kind, ids: Ids, facts: Facts) -> Bools:
        """Which answers are such names, or predicates that train does not have at that time.

        `facts` has the question of each answer.
        """
        doubtful = self.names(kind, ids)
        if kind == "predicate":
            doubtful |= self.outside(ids, *self._graph.timestamps(facts))
        return doubtful

    def remarks(self, kind: Kind, ids: Ids, facts: Facts) -> list[str | None]:
        """What train has of each such answer; `facts` as above."""
        begin, end = self._graph.timestamps(facts)
        unknown = self.names(kind, ids)
        texts: list[str | None] = [None] * len(ids)
        for row in np.flatnonzero(self.answers(kind, ids, facts)).tolist():
            if unknown[row]:
                texts[row] = self.about(kind, int(ids[row]), "the answer")
            else:
                texts[row] = self.when(int(ids[row]), int(begin[row]), int(end[row]))
        return texts

    def out_of_place(self, predicate: int, kind: Kind) -> Bools:
        """Which entities are unlike all that train has as objects (or subjects) of a predicate.

        Those are not among them, and share no side of any predicate with one that is.
        """
        train, entities = self._graph.train, len(self._graph.entities)
        there = np.zeros(entities, bool)
        there[getattr(train, kind)[train.predicate == predicate]] = True
        entity = np.concatenate([train.subject, train.object])
        side = np.concatenate([2 * train.predicate, 2 * train.predicate + 1])
        alike = np.zeros(2 * len(self._graph.predicates), bool)
        alike[side[there[entity]]] = True
        fits = there.copy()
        fits[entity[alike[side]]] = True
        # Of names and predicates that train does not have at all, other remarks tell.
        return ~fits & (self._entities > 0) & there.any()

    def about(self, kind: str, number: int, called: str = "") -> str:
        """What train has of a name, as part of a sentence."""
        count = int((self._predicates if kind == "predicate" else self._entities)[number])
        few = f", fewer than {FEWEST}" if count else ""
        what = counted(count, "fact") if count else "no fact"
        names = self._graph.predicates if kind == "predicate" else self._graph.entities
        name = called or names[number]
        return f"train has {what} of {name}{few}"

    def _when(self, predicate: int | None, begin: int, end: int) -> str:
        """The time that train covers, and the fallback at a time beyond it."""
        timeline = self._graph.timeline
        every = predicate is None or self._forecasts
        first, last = self._covered(None if every else np.array(predicate))
        ticks = np.array([timeline.starts[first], timeline.ends[last]])
        covered = " to ".join(format_ticks(ticks, timeline.granularity))
        if self._forecasts:
            return f"train has facts only from {covered}, none just before the time asked about"
        if self._scoping is None:
            whose = "" if predicate is None else f" of {self._graph.predicates[predicate]}"
            return f"train has facts{whose} only from {covered}, not at the time asked about"
        if predicate is None:
            return f"train has facts only from {covered}, and the nearest scopes stand in"
        scopes = self._scoping.static.predicates
        low, high = scopes.find(
            *(np.array([number], np.int32) for number in (predicate, begin, end))
        )
        asked = np.arange(low[0], high[0] + 1)
        used = np.unique(self._scoping.predicate_fallback[asked])
        stands_in = f"{' and '.join(scopes.labels.take(pa.array(used)).to_pylist())} stands in"
        if not len(scopes.cuts_of(predicate)):
            stands_in = "this run has not cut it, so to it that time is like any other"
        elif self._scoping.every_timestamp and np.array_equal(used, asked):
            stands_in = "the model knows that time from facts of other predicates"
        name = self._graph.predicates[predicate]
        return f"train has facts of {name} only from {covered}, and {stands_in}"
