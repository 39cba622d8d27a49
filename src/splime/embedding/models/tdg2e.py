"""TDG2E (Tang et al., 2020), as we read it: HyTE whose normals come from a GRU over the times."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, normalize

from splime.embedding.initial import fill_recurrent
from splime.embedding.models.hyte import HyTE
from splime.embedding.tables import Lookup, Table, TableMaker, Timed, follows_in_time, project
from splime.settings import PREDICATE, TIME


class TDG2E(HyTE):
    """f(s, p, o, t) = -‖s⊥ + p⊥ - o⊥‖ as HyTE's; the normal of t follows those before it.

    No code of its authors is public. This is ours after their paper: a GRU reads a vector of each
    time, and a gate lets less of the state before it through, the longer ago that time is.
    """

    name = "tdg2e"
    auxiliary = 0.1  # a time must also do with the normal of the one before

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """p⊥."""
        timeline = tables.static.segmentation.timeline
        gaps = np.diff(timeline.starts, prepend=timeline.starts[:1]).astype(np.float32)
        times = GatedTimes(tables.level(TIME, width), torch.from_numpy(gaps), tables.generator)
        return Timed(tables.level(PREDICATE, width), times, project)

    def prepare(self, tables: TableMaker) -> None:
        """The scope before each one."""
        follows = follows_in_time(tables.static.predicates, copies=tables.copies)
        self.previous = torch.arange(len(self.predicates))
        self.previous[1:] -= follows.long()


class GatedTimes(Table):
    """Normals hₖ / |hₖ| of times, where hₖ = (1 - z) n + z g hₖ₋₁.

    z = σ(Wz x + Uz h), q = σ(Wq x + Uq h), n = tanh(Wn x + q Un h) and g = σ(a gap + b).
    """

    gaps: Tensor

    def __init__(self, inputs: Lookup, gaps: Tensor, generator: torch.Generator | None) -> None:
        super().__init__(len(inputs), inputs.width)
        self.inputs = inputs
        self.register_buffer("gaps", gaps, persistent=False)
        width, place = self.width, inputs.weight.device
        self.input = nn.Parameter(torch.empty(3 * width, width, device=place))
        self.recurrent = nn.Parameter(torch.empty(3 * width, width, device=place))
        self.gate = nn.Parameter(torch.zeros(2, width, device=place))
        fill_recurrent(generator, self.input, self.recurrent)
        self._kept: Tensor | None = None

    @property
    def weight(self) -> Tensor:
        """The normals of all times; between two steps of a training they are made once."""
        if torch.is_grad_enabled():
            self._kept = None
            return self._normals()
        if self._kept is None:
            self._kept = self._normals()
        return self._kept

    def _normals(self) -> Tensor:
        read = self.inputs.weight @ self.input.T
        a, b = self.gate
        passing = torch.sigmoid(a * self.gaps.unsqueeze(1) + b)
        h, states = torch.zeros_like(passing[0]), []
        sizes = [2 * self.width, self.width]
        for x, g in zip(read, passing, strict=True):
            (xg, xn), (hg, hn) = (each.split(sizes) for each in (x, self.recurrent @ h))
            z, q = torch.sigmoid(xg + hg).chunk(2)
            h = torch.lerp(torch.tanh(torch.addcmul(xn, q, hn)), g * h, z)
            states.append(h)
        return normalize(torch.stack(states), dim=-1)

    def parts(self, ids: Tensor) -> list[Tensor]:
        """The normal of each id's time."""
        assert self.inputs.rows is not None
        return [embedding(self.inputs.rows[ids], self.weight)]
