"""TIMEPLEX's gadgets (Jain et al., 2020): scores from the times of an entity's other facts.

`Pairs` looks at the other facts of a candidate: how long before or after them do facts of the
predicate use to begin? `Recurrent` looks at the same triple at other times.
"""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from splime.static import StaticGraph

_LEAST = 0.01
"""The least variance of gaps."""


class Gadget(nn.Module):
    """Scores of candidates in a role (0 is the subject, 1 the object) for a predicate at a time.

    It counts nothing until `strength` is set, which training does for its last epochs.
    """

    full: float
    """Its weight once enabled."""
    facts: Tensor
    """Subjects, predicates, objects and begins of train."""
    scopes: Tensor
    """The predicates and the ticks in the middle of the scoped predicates."""

    def __init__(self, static: StaticGraph) -> None:
        super().__init__()
        train, scopes = static.graph.train, static.predicates
        self.entities, self.sources = len(static.graph.entities), len(scopes.names)
        self.strength = nn.Parameter(torch.zeros(1), requires_grad=False)
        begins, _ = train.known_times()
        facts = np.stack([train.subject, train.predicate, train.object, begins])
        of_scopes = np.stack([scopes.sources, scopes.timeline.starts[scopes.middle]])
        for name, columns in (("facts", facts), ("scopes", of_scopes)):
            self.register_buffer(name, torch.from_numpy(columns.astype(np.int64)), persistent=False)

    def sides(self, role: int) -> tuple[Tensor, ...]:
        """Of the facts: entities in a role, those in the other, predicates and begins."""
        subjects, predicates, objects, begins = self.facts
        entities = (subjects, objects)
        return entities[role], entities[1 - role], predicates, begins

    def all_entities(
        self, role: int, given: Tensor, scope: Tensor, target: Tensor | None = None
    ) -> Tensor:
        """A row for each query: all entities in a role, beside a given one in the other.

        A fact of train with the answer `target` must not answer itself.
        """
        p, time = self.scopes[:, scope]
        return self.strength * self.scores(role, given, p, time, target)

    @abstractmethod
    def scores(
        self, role: int, given: Tensor, p: Tensor, time: Tensor, target: Tensor | None
    ) -> Tensor:
        """The formula."""

    def all_scopes(self, subject: Tensor, object: Tensor) -> Tensor:
        """A row for each pair of entities: all scoped predicates, by both roles."""
        rows = [
            self.of_one(1, o, s, *self.scopes) + self.of_one(0, s, o, *self.scopes)
            for s, o in zip(subject, object, strict=True)
        ]
        return self.strength * torch.stack(rows) if rows else self.scopes[:0]

    @abstractmethod
    def of_one(self, role: int, one: Tensor, given: Tensor, p: Tensor, time: Tensor) -> Tensor:
        """The scores of one entity for many predicates at times."""


class Pairs(Gadget):
    """The mean over other facts (p', t') in the role of exp(-(t' - t - m)² / 2v) + c, weighted.

    m and v are the mean and the variance of gaps between facts of p' and p of one entity; weights
    and c are learned for each pair of predicates. An entity without facts has one of no predicate.
    """

    full = 3.0
    mean: Tensor
    variance: Tensor

    def __init__(self, static: StaticGraph) -> None:
        super().__init__(static)
        shape = (2, self.sources + 1, self.sources)
        self.weight = nn.Parameter(torch.full(shape, 0.1))
        self.offset = nn.Parameter(torch.full(shape, -0.2))
        gaps = [self._gaps(*self.sides(role)) for role in (0, 1)]
        for name, moments in zip(("mean", "variance"), zip(*gaps, strict=True), strict=True):
            self.register_buffer(name, torch.stack(moments).float(), persistent=False)

    def _gaps(
        self, entity: Tensor, beside: Tensor, predicates: Tensor, begins: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The means and variances of t' - t over all pairs of facts of one entity."""
        time, shape = begins - begins.double().mean(), (self.entities, self.sources)
        cell = entity * self.sources + predicates
        count, first, second = (
            torch.zeros(shape, dtype=torch.float64).view(-1).index_add(0, cell, own).view(shape)
            for own in (torch.ones_like(time), time, time.square())
        )
        pairs = (count.T @ count).clamp_min(1)
        mean = (first.T @ count - count.T @ first) / pairs
        square = (second.T @ count + count.T @ second - 2 * first.T @ first) / pairs
        variance = (square - mean.square()).clamp_min(_LEAST)
        nothing = torch.zeros(1, self.sources, dtype=torch.float64)
        return torch.cat([mean, nothing]), torch.cat([variance, nothing + 1])

    def _facts(self, role: int) -> tuple[Tensor, Tensor, Tensor]:
        """Entities, predicates and begins of facts; entities without any have one of none."""
        entity, _, predicates, begins = self.sides(role)
        without = torch.ones(self.entities, dtype=torch.bool, device=entity.device)
        without[entity] = False
        missing = without.nonzero().squeeze(1)
        none = torch.full_like(missing, self.sources)
        return (
            torch.cat([entity, missing]),
            torch.cat([predicates, none]),
            torch.cat([begins, torch.zeros_like(missing)]),
        )

    def _terms(
        self, role: int, other: Tensor, begin: Tensor, p: Tensor, time: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The weight and the value of each fact, for each query."""
        at = role, other, p.unsqueeze(1)
        gap = (begin - time.unsqueeze(1)).to(self.mean.dtype) - self.mean[at]
        near = torch.exp(-gap.square() / (2 * self.variance[at]))
        return self.weight[at].exp(), near * (other < self.sources) + self.offset[at]

    def scores(
        self, role: int, given: Tensor, p: Tensor, time: Tensor, target: Tensor | None
    ) -> Tensor:
        """The formula."""
        entity, other, begin = self._facts(role)
        weight, value = self._terms(role, other, begin, p, time)
        if target is not None:
            own = (entity == target.unsqueeze(1)) & (other == p.unsqueeze(1))
            weight = weight.masked_fill(own & (begin == time.unsqueeze(1)), 0.0)
        empty = weight.new_zeros(len(p), self.entities)
        total = empty.index_add(1, entity, weight * value)
        return total / empty.index_add(1, entity, weight).clamp_min(1e-9)

    def of_one(self, role: int, one: Tensor, given: Tensor, p: Tensor, time: Tensor) -> Tensor:
        """The formula for one entity."""
        entity, other, begin = self._facts(role)
        own = (entity == one).nonzero().squeeze(1)
        weight, value = self._terms(role, other[own], begin[own], p, time)
        return (weight * value).sum(1) / weight.sum(1)


class Recurrent(Gadget):
    """w exp(-(gap - m)² / 2v) + c by the gap to the nearest other time of the same triple, else 0.

    m and v are the mean and the variance of the gaps between two such times that follow each other,
    for each predicate; w and c are learned for it.
    """

    full = 5.0
    mean: Tensor
    variance: Tensor

    def __init__(self, static: StaticGraph) -> None:
        super().__init__(static)
        self.weight = nn.Parameter(torch.ones(2, self.sources))
        self.offset = nn.Parameter(torch.full((2, self.sources), -0.1))
        rows = sorted(set(zip(*self.facts.tolist(), strict=True)))
        gaps: list[list[int]] = [[] for _ in range(self.sources)]
        for one, other in pairwise(rows):
            if one[:3] == other[:3]:
                gaps[one[1]].append(other[3] - one[3])
        for name, measure, least in (("mean", np.mean, -np.inf), ("variance", np.var, _LEAST)):
            own = torch.tensor([float(measure(each)) if each else 0.0 for each in gaps])
            self.register_buffer(name, own.clamp_min(least), persistent=False)

    def _score(self, role: int, p: Tensor, gap: Tensor) -> Tensor:
        """0 where there is no other time, and the gap is infinite."""
        there = gap.isfinite()
        apart = torch.where(there, gap, 0.0) - self.mean[p]
        near = torch.exp(-apart.square() / (2 * self.variance[p]))
        return torch.where(there, self.weight[role, p] * near + self.offset[role, p], 0.0)

    def scores(
        self, role: int, given: Tensor, p: Tensor, time: Tensor, target: Tensor | None
    ) -> Tensor:
        """The formula; a time that is asked about is no other one."""
        entity, beside, predicates, begins = self.sides(role)
        same = (beside == given.unsqueeze(1)) & (predicates == p.unsqueeze(1))
        row, fact = (same & (begins != time.unsqueeze(1))).nonzero(as_tuple=True)
        gaps = torch.full((len(p), self.entities), torch.inf, device=p.device)
        apart = (begins[fact] - time[row]).abs().to(gaps.dtype)
        place = row * self.entities + entity[fact]
        gaps = gaps.view(-1).scatter_reduce(0, place, apart, "amin").view_as(gaps)
        return self._score(role, p.unsqueeze(1), gaps)

    def of_one(self, role: int, one: Tensor, given: Tensor, p: Tensor, time: Tensor) -> Tensor:
        """The formula for one entity."""
        entity, beside, predicates, begins = self.sides(role)
        own = ((entity == one) & (beside == given)).nonzero().squeeze(1)
        apart = begins[own] - time.unsqueeze(1)
        other = (predicates[own] == p.unsqueeze(1)) & (apart != 0)
        none = torch.full((len(p), 1), torch.inf, device=p.device)
        gaps = torch.where(other, apart.abs().float(), torch.inf)
        gap = torch.cat([gaps, none], dim=1).amin(1)
        return self._score(role, p, gap)


GADGETS: dict[str, type[Gadget]] = {"pairs": Pairs, "recurrent": Recurrent}
