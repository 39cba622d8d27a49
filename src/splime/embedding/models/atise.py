"""ATiSE (Xu et al., 2020): entities and predicates are normal distributions that drift in time."""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor

from splime.embedding.distances import pairwise
from splime.embedding.models.base import Model, clip
from splime.embedding.tables import Lookup, Table, TableMaker
from splime.settings import PREDICATE, ATiSESettings, Settings

_LEAST = 0.005
# Rows hold α and ω of so many steps of time. Adam moves all numbers alike, and a late time
# multiplies these: at rates above the authors' .00003, waves would lose their phase.
_SPAN = 100
_TINY = 1e-6


class ATiSE(Model):
    """f(s, p, o, t) = -KL between p(t) and s(t) - o(t), both ways; all are normal distributions.

    The mean of x at t is e + α t w + β sin(2π ω t), its diagonal variance c. t counts timestamps,
    or pieces of as many as the setting `gran` says.
    """

    name = "atise"
    settings_class = ATiSESettings
    cuts = "timestamps"
    entities_vary = True
    entity_parts = 2  # mean and variance
    predicate_parts = 2
    strong = {
        "dimension": 100,
        "init": "xavier_uniform",
        "reciprocal": True,
        "both_ways": True,
        "loss": "self_adversarial",
        "margin": 1.0,
        "temperature": 0.5,
        "weighting": "learned",
        "negatives": 10,
        "share": "none",
        "optimizer": "adam",
        "learning_rate": 3e-3,
        "each": "fact",
        "epochs": 100,
        "batch_size": 512,
        "validate_every": 20,
        "patience": 4,
        "distinct": False,
    }
    gran = 1

    @classmethod
    def entity_table(cls, tables: TableMaker, width: int) -> Table:
        """Rows of e, w, β, ω, c and α."""
        return Lookup(_first_rows(tables, len(tables.static.entities), width // 2))

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """The same for predicates, at the time of each scope."""
        rows = tables.level(PREDICATE, 1)
        weight = _first_rows(tables, len(rows.weight), width // 2)
        times = tables.times() // _gran(tables.settings)
        return _Drifting(Lookup(weight, rows=rows.rows), times)

    def prepare(self, tables: TableMaker) -> None:
        """The steps of time."""
        self.gran = _gran(tables.settings)

    def at(self, entities: Tensor, time: Tensor) -> Tensor:
        """The mean and the variance."""
        return drifted(entities, time // self.gran)

    def constrain(self, settings: Settings) -> None:
        """Variances keep their limits; e and w are no longer than 1."""
        least = _least_variance(settings)
        for lookup in (*self.entities.lookups(), *self.predicates.lookups()):
            e, w, _, _, variance, _ = _split(lookup.weight)
            clip(e)
            clip(w)
            variance.clamp_(least, 100 * least)

    def score(self, s: Tensor, p: Tensor, o: Tensor) -> Tensor:
        """The formula."""
        (ms, vs), (mp, vp), (mo, vo) = (x.chunk(2, dim=-1) for x in (s, p, o))
        return -_divergence(mp - ms + mo, vs + vo, vp)

    def object_query(self, s: Tensor, p: Tensor) -> Tensor:
        """p - s, and both variances."""
        (ms, vs), (mp, vp) = s.chunk(2, dim=-1), p.chunk(2, dim=-1)
        return torch.cat([mp - ms, vs, vp], dim=-1)

    def subject_query(self, p: Tensor, o: Tensor) -> Tensor:
        """-(p + o), and both variances: the square of the difference has no sign."""
        (mp, vp), (mo, vo) = p.chunk(2, dim=-1), o.chunk(2, dim=-1)
        return torch.cat([-mp - mo, vo, vp], dim=-1)

    def predicate_query(self, s: Tensor, o: Tensor) -> Tensor:
        """o - s, and its variance."""
        (ms, vs), (mo, vo) = s.chunk(2, dim=-1), o.chunk(2, dim=-1)
        return torch.cat([mo - ms, vs + vo], dim=-1)

    def compare(self, query: Tensor, candidates: Tensor) -> Tensor:
        """The candidate's variance is in a denominator, so there is no matrix product."""

        def score(query: Tensor, x: Tensor) -> Tensor:
            (apart, own, of_predicate), (mean, variance) = query.chunk(3, -1), x.chunk(2, -1)
            return -_divergence(apart + mean, own + variance, of_predicate)

        return pairwise(score, query, candidates)

    def compare_predicates(self, query: Tensor, candidates: Tensor) -> Tensor:
        """Likewise."""

        def score(query: Tensor, p: Tensor) -> Tensor:
            (apart, variance), (mean, of_predicate) = query.chunk(2, -1), p.chunk(2, -1)
            return -_divergence(apart + mean, variance, of_predicate)

        return pairwise(score, query, candidates)


def _gran(settings: Settings) -> int:
    return cast(ATiSESettings, settings).gran or 1


def _least_variance(settings: Settings) -> float:
    return cast(ATiSESettings, settings).variance or _LEAST


class _Drifting(Table):
    """Predicates as they are at the times of their scopes."""

    times: Tensor

    def __init__(self, rows: Lookup, times: Tensor) -> None:
        super().__init__(len(rows), 2 * (rows.width // 5))
        self.rows = rows
        self.register_buffer("times", times, persistent=False)

    def parts(self, ids: Tensor) -> list[Tensor]:
        """The mean and the variance."""
        return [drifted(self.rows(ids), self.times[ids])]


def drifted(rows: Tensor, time: Tensor) -> Tensor:
    """The mean e + α t w + β sin(2π ω t), and the variance, of rows at timestamps."""
    e, w, beta, omega, variance, alpha = _split(rows)
    t = time.to(rows.dtype).unsqueeze(-1) / _SPAN
    mean = e + alpha * t * w + beta * torch.sin(2 * math.pi * omega * t)
    return torch.cat([mean, variance.expand_as(mean)], dim=-1)


def _split(rows: Tensor) -> tuple[Tensor, ...]:
    width = rows.shape[-1] // 5
    parts: tuple[Tensor, ...] = rows.split([width] * 5 + [1], dim=-1)
    return parts


def _divergence(apart: Tensor, of_entities: Tensor, of_predicate: Tensor) -> Tensor:
    """A quarter of Σ cₑ/cₚ + cₚ/cₑ + D² (1/cₚ + 1/cₑ) - 2."""
    ce, cp = of_entities.clamp_min(_TINY), of_predicate.clamp_min(_TINY)
    terms = ce / cp + cp / ce + apart.square() * (1 / cp + 1 / ce) - 2
    return terms.sum(-1) / 4


def _first_rows(tables: TableMaker, count: int, width: int) -> Tensor:
    """α and β begin at 0, variances anywhere between their limits, e and w no longer than 1."""
    rows = tables.weights(count, 5 * width + 1)
    if tables.generator is not None:
        e, w, beta, omega, variance, alpha = _split(rows)
        least = _least_variance(tables.settings)
        share = torch.rand(variance.shape, generator=tables.generator)
        variance.copy_(least * (1 + 99 * share))
        clip(e)
        clip(w)
        beta.zero_()
        alpha.zero_()
        omega.mul_(_SPAN)
    return rows
