"""The facts that a path model reads, both ways, in the orders that its sums need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from splime.arrays import grouped
from splime.graph import Facts
from splime.paths.relative import RelativeScopes, Times


@dataclass(frozen=True, eq=False)
class Order:
    """Directed facts in groups: those of group g are at `starts[g]` to `starts[g + 1]`."""

    starts: Tensor
    source: Tensor
    predicate: Tensor
    target: Tensor
    time: Tensor
    number: Tensor
    """Of the directed fact, which has its weight."""

    def take(self, rows: Tensor) -> Order:
        """Some of the facts, by a mask or by positions, as one group."""
        columns = (self.source, self.predicate, self.target, self.time, self.number)
        chosen = [column[rows] for column in columns]
        return Order(self.starts.new_tensor([0, len(chosen[0])]), *chosen)

    def to(self, device: torch.device | str) -> Order:
        """The same on a device."""
        return Order(*(column.to(device) for column in vars(self).values()))


@dataclass(frozen=True, eq=False)
class DirectedFacts:
    """Every fact as stated (number i) and turned round (i + facts, predicate p + predicates)."""

    entities: int
    predicates: int
    facts: int
    source: Tensor
    """Of each directed fact, by its number."""
    target: Tensor
    times: Times
    """The distinct times of the facts."""
    incoming: Order
    """By target."""
    outgoing: Order
    """By source."""
    alike: Order
    """By predicate."""

    @classmethod
    def of(cls, facts: Facts, entities: int, predicates: int) -> Self:
        """From the columns of facts."""
        count = len(facts)
        number = np.arange(2 * count)
        source = np.concatenate([facts.subject, facts.object])
        target = np.concatenate([facts.object, facts.subject])
        predicate = np.concatenate([facts.predicate, facts.predicate + predicates])
        time, rows = grouped([facts.begin, facts.end, facts.unknown])
        time = np.concatenate([time, time])

        def order(groups: int, key: np.ndarray[Any, Any], *then: np.ndarray[Any, Any]) -> Order:
            by = np.lexsort((number, *reversed(then), key))
            starts = np.concatenate([[0], np.bincount(key, minlength=groups).cumsum()])
            columns = (source, predicate, target, time, number)
            return Order(
                torch.from_numpy(starts.astype(np.int64)),
                *(torch.from_numpy(column[by].astype(np.int32)) for column in columns),
            )

        return cls(
            entities,
            predicates,
            count,
            torch.from_numpy(source.astype(np.int64)),
            torch.from_numpy(target.astype(np.int64)),
            Times.of(facts.take(rows)),
            order(entities, target, predicate),
            order(entities, source, predicate),
            order(2 * predicates, predicate, target),
        )

    @property
    def device(self) -> torch.device:
        """Where they are."""
        return self.incoming.starts.device

    def to(self, device: torch.device | str) -> DirectedFacts:
        """The same on a device."""
        parts = (self.source, self.target, self.times, self.incoming, self.outgoing, self.alike)
        moved: Any = (part.to(device) for part in parts)
        return DirectedFacts(self.entities, self.predicates, self.facts, *moved)

    def scopes(self, relative: RelativeScopes, questions: Times) -> Tensor:
        """The scope of each distinct time for each question: bytes [times, questions]."""
        return relative.scopes(questions, self.times)

    def weights(self, without: Tensor | None = None) -> Tensor:
        """1 for each directed fact; 0, both ways, for the facts with these numbers."""
        weights = torch.ones(2, self.facts, device=self.device)
        if without is not None:
            weights.index_fill_(1, without, 0.0)
        return weights.view(-1)

    def degrees(self, weights: Tensor) -> Tensor:
        """What the weights of the facts into each entity add up to; 1 where that is 0."""
        total = weights.new_zeros(self.entities).index_add(0, self.target, weights)
        return total.where(total > 0, 1)
