"""Which scopes a model is asked for: those of a time, or else the nearest ones that train knows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from splime.graph import Facts, Ids, SplitName, TemporalGraph
from splime.segmentation import Scopes
from splime.static import StaticGraph, Triples, cut_facts
from splime.times import Bools, Ints
from splime.vocabulary import Vocabulary


class CutFacts(NamedTuple):
    """Facts, the triples that the cuts make of them, and their first and last timestamps."""

    facts: Facts
    triples: Triples
    begin: Ints
    end: Ints


@dataclass(frozen=True, eq=False)
class Scoping:
    """A static graph, and for every scope the one to ask for: itself, or its fallback.

    Made once for a graph and its cuts, and shared by validation, evaluation and questions.
    """

    static: StaticGraph

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
        """The scoped predicate to ask for in place of each one."""
        seen = np.zeros(len(self.static.predicates), bool)
        seen[self.static.train.predicate] = True
        return nearest_seen(self.static.predicates, seen)

    @cached_property
    def entity_fallback(self) -> Ints:
        """The (scoped) entity to ask for in place of each one."""
        if self.entities is None:
            return np.arange(len(self.static.entities))
        seen = np.zeros(len(self.entities), bool)
        seen[self.static.train.subject] = seen[self.static.train.object] = True
        return nearest_seen(self.entities, seen)

    def names(self, kind: str) -> Vocabulary:
        """The names of predicates (or of subjects and objects)."""
        return self.graph.predicates if kind == "predicate" else self.graph.entities

    def of_split(self, split: SplitName) -> CutFacts:
        """The facts of a split, which are cut already."""
        return self._with_times(getattr(self.graph, split), getattr(self.static, split))

    def cut(self, facts: Facts) -> CutFacts:
        """Any other facts, such as questions."""
        return self._with_times(facts, cut_facts(self.static.segmentation, facts, self.graph))

    def _with_times(self, facts: Facts, triples: Triples) -> CutFacts:
        begin, end = (time.astype(np.int64) for time in self.graph.timestamps(facts))
        return CutFacts(facts, triples, begin, end)

    def at(self, kind: str, sources: Ids, timestamps: Ints) -> Ints:
        """The scopes to ask for of predicates (or of subjects and objects) at timestamps."""
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
