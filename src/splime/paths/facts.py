"""The facts that a path model reads, both ways, in the orders that its sums need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from splime.arrays import grouped
from splime.graph import Facts
from splime.paths.relative import LEFT_OUT, RelativeScopes, Times

_QUESTIONS = 32
"""For which facts are counted at once."""


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
    predicate: Tensor
    target: Tensor
    time: Tensor
    """The place of its time among the distinct ones."""
    times: Times
    """The distinct times of the facts."""

    @classmethod
    def of(cls, facts: Facts, entities: int, predicates: int) -> Self:
        """From the columns of facts."""
        time, rows = grouped([facts.begin, facts.end, facts.unknown])

        def both(one: np.ndarray[Any, Any], turned: np.ndarray[Any, Any]) -> Tensor:
            return torch.from_numpy(np.concatenate([one, turned]).astype(np.int32))

        return cls(
            entities,
            predicates,
            len(facts),
            both(facts.subject, facts.object),
            both(facts.predicate, facts.predicate + predicates),
            both(facts.object, facts.subject),
            both(time, time),
            Times.of(facts.take(rows)),
        )

    # An order is made when it is first needed: answers need fewer of them than training.

    @cached_property
    def incoming(self) -> Order:
        """By target."""
        return self._order(self.target, self.entities, self.predicate, 2 * self.predicates)

    @cached_property
    def outgoing(self) -> Order:
        """By source."""
        return self._order(self.source, self.entities, self.predicate, 2 * self.predicates)

    @cached_property
    def alike(self) -> Order:
        """By predicate."""
        return self._order(self.predicate, 2 * self.predicates, self.target, self.entities)

    def _order(self, key: Tensor, groups: int, then: Tensor, size: int) -> Order:
        """By a key, then by another column, then by number."""
        by = torch.argsort(key.long() * size + then, stable=True)
        starts = torch.bincount(key, minlength=groups).cumsum(0)
        return Order(
            torch.cat([starts.new_zeros(1), starts]),
            self.source[by],
            self.predicate[by],
            self.target[by],
            self.time[by],
            by.int(),
        )

    @property
    def device(self) -> torch.device:
        """Where they are."""
        return self.source.device

    def to(self, device: torch.device | str) -> DirectedFacts:
        """The same on a device."""
        parts = (self.source, self.predicate, self.target, self.time, self.times)
        moved: Any = (part.to(device) for part in parts)
        return DirectedFacts(self.entities, self.predicates, self.facts, *moved)

    @cached_property
    def on_processor(self) -> DirectedFacts:
        """The same where numba can read them."""
        return self if self.device.type == "cpu" else self.to("cpu")

    def scopes(self, relative: RelativeScopes, questions: Times) -> Tensor:
        """The scope of each distinct time for each question: bytes [times, questions]."""
        return relative.scopes(questions, self.times)

    def weights(self, without: Tensor | None = None) -> Tensor:
        """1 for each directed fact; 0, both ways, for the facts with these numbers."""
        if without is None:
            return self._ones
        return self._ones.view(2, -1).index_fill(1, without, 0.0).view(-1)

    @cached_property
    def _ones(self) -> Tensor:
        return torch.ones(2 * self.facts, device=self.device)

    def degrees(self, weights: Tensor, scopes: Tensor) -> Tensor:
        """What the weights of the facts add up to that arrive at each entity, for each question.

        1 where none does.
        """
        target, time = self.target.long(), self.time.long()
        blocks = []
        for block in scopes.split(_QUESTIONS, 1):
            arrives = weights.unsqueeze(1) * (block != LEFT_OUT)[time]
            total = weights.new_zeros(self.entities, block.shape[1])
            blocks.append(total.index_add_(0, target, arrives))
        total = torch.cat(blocks, 1)
        return total.where(total > 0, 1)
