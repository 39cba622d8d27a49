"""What a protocol over facts works on: the facts of a split, cut, with what stands in for gaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias

import numpy as np
import torch

from splime.errors import UsageError
from splime.evaluation.fallback import Fallback, fallback
from splime.graph import Facts, Ids, SplitName, TemporalGraph, check_split
from splime.segmentation import Scopes, Segmentation
from splime.static import StaticGraph, Triples, apply, cut_facts
from splime.times import Ints

# The pieces of all names at a timestamp are kept, up to so many numbers.
_KEPT = 1 << 23


@dataclass(frozen=True)
class Setting:
    """The facts to ask for, and the pieces that their names lie in."""

    graph: TemporalGraph
    facts: Facts
    triples: Triples
    """What the segmentation makes of the facts."""
    begin: Ids
    end: Ids
    static: StaticGraph
    instead: Fallback
    left_out: dict[str, int]
    """Rows of the split that the reader dropped, by reason."""

    @classmethod
    def of(cls, graph: TemporalGraph, segmentation: Segmentation, split: SplitName) -> Setting:
        """Of all facts of a split, which must have some."""
        check_split(split)
        facts: Facts = getattr(graph, split)
        if not len(facts):
            raise UsageError(f"{split} has no facts to rank; splime.split_graph makes splits")
        static = apply(segmentation, graph)
        left_out: dict[str, int] = {}
        for source in graph.reading.sources:
            if source.split == split:
                for reason, count in source.dropped.items():
                    left_out[reason] = left_out.get(reason, 0) + count
        begin, end = graph.timestamps(facts)
        triples = getattr(static, split)
        return cls(graph, facts, triples, begin, end, static, fallback(static), left_out)

    def about(self, facts: Facts) -> Setting:
        """The same graph and cuts, for any other facts."""
        begin, end = self.graph.timestamps(facts)
        triples = cut_facts(self.static.segmentation, facts, self.graph)
        return replace(self, facts=facts, triples=triples, begin=begin, end=end, left_out={})

    @property
    def entities(self) -> Scopes | None:
        """The scoped entities, if entities are cut."""
        return self.static.segmentation.entities

    @cached_property
    def everything(self) -> Facts:
        """What is known: the facts of all splits."""
        return self.graph.facts()

    def piece_of_predicate(self, predicate: Ids, time: Ints) -> Ints:
        """The scoped predicates that predicates are at a timestamp."""
        at = time.astype(np.int32)
        return self.instead.predicates[self.static.predicates.find(predicate, at, at)[0]]

    def piece_of_entity(self, entity: Ids, time: Ints) -> Ints:
        """The (scoped) entities that entities are at a timestamp."""
        if self.entities is None:
            return entity.astype(np.int64)
        at = time.astype(np.int32)
        return self.instead.entities[self.entities.find(entity, at, at)[0]]


Columns: TypeAlias = Callable[[int], torch.Tensor]
"""Tells the column of every candidate in scores over scoped ones, at a timestamp."""


def columns_at(
    setting: Setting, kind: Literal["entity", "predicate"], device: torch.device
) -> Columns:
    """The columns of all entities, or of all predicates."""
    entity = kind == "entity"
    piece = setting.piece_of_entity if entity else setting.piece_of_predicate
    names = setting.graph.entities if entity else setting.graph.predicates
    every = np.arange(len(names), dtype=np.int32)

    @lru_cache(max(1, _KEPT // max(len(every), 1)))
    def at(time: int) -> torch.Tensor:
        return torch.as_tensor(piece(every, np.full(len(every), time))).to(device)

    return at
