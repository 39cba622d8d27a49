"""Diachronic entities (Goel et al., 2020): some coordinates swing with the year, month and day.

DE-TransE, DE-DistMult and DE-SimplE are TransE, DistMult and SimplE of such entities.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from splime.embedding.models.base import PRODUCTS, Model
from splime.embedding.models.distmult import DistMult
from splime.embedding.models.hyte import MOVED
from splime.embedding.models.simple import SimplE
from splime.embedding.models.transe import TransE
from splime.embedding.tables import Table, TableMaker
from splime.errors import UsageError
from splime.settings import DiachronicSettings, Settings


class Diachronic(Model):
    """An entity at (y, m, d) = [static part | Σ over u in (y, m, d) of A_u sin(W_u u + B_u)].

    Where the granularity is the year there is one such wave, and so on.
    """

    cuts = "timestamps"
    entities_vary = True
    settings_class = DiachronicSettings
    static_share = 0.36
    dates: Tensor

    @classmethod
    def check(cls, settings: Settings) -> None:
        """An error also where no coordinate would move."""
        super().check(settings)
        if cls._moving(settings) < 1:
            raise UsageError(
                f"with dimension {settings.dimension} and static_share {cls._static(settings)}"
                f" nothing of {cls.__name__} would change in time"
            )

    @classmethod
    def _moving(cls, settings: Settings) -> int:
        """How many coordinates change in time."""
        return settings.dimension - round(cls._static(settings) * settings.dimension)

    @classmethod
    def _static(cls, settings: Settings) -> float:
        share = cast(DiachronicSettings, settings).static_share
        return cls.static_share if share is None else share

    @classmethod
    def entity_table(cls, tables: TableMaker, width: int) -> Table:
        """A row has the static part, and for each unit amplitudes, frequencies and phases."""
        moving, units = cls._moving(tables.settings), _dates(tables).shape[1]
        return tables.entities(width + cls.entity_parts * moving * (3 * units - 1))

    def prepare(self, tables: TableMaker) -> None:
        """The dates of timestamps."""
        self.moving = self._moving(tables.settings)
        self.register_buffer("dates", _dates(tables), persistent=False)

    def at(self, entities: Tensor, time: Tensor) -> Tensor:
        """The static part beside the waves."""
        date = self.dates[time].unsqueeze(-2).unsqueeze(-1)
        x = entities.unflatten(-1, (self.entity_parts, -1))
        fixed = x.shape[-1] - 3 * self.dates.shape[1] * self.moving
        static, waves = x.split([fixed, x.shape[-1] - fixed], dim=-1)
        amplitude, frequency, phase = waves.unflatten(-1, (3, -1, self.moving)).unbind(-3)
        moved = (amplitude * torch.sin(frequency * date + phase)).sum(-2)
        static = static.expand(*moved.shape[:-1], fixed)
        return torch.cat([static, moved], dim=-1).flatten(-2)


def _dates(tables: TableMaker) -> Tensor:
    """Those of timestamps, as numbers of the model's own kind."""
    return torch.from_numpy(tables.dates()).to(torch.get_default_dtype())


class DETransE(Diachronic, TransE):
    """f(s, p, o, t) = -‖s(t) + p - o(t)‖, with norm 1 or 2; x(t) swings with year, month, day."""

    name = "de-transe"
    strong = MOVED


class DEDistMult(Diachronic, DistMult):
    """f(s, p, o, t) = ⟨s(t), p, o(t)⟩; x(t) swings with year, month and day."""

    name = "de-distmult"
    strong = PRODUCTS


class DESimplE(Diachronic, SimplE):
    """f(s, p, o, t) = (⟨s₁, p, o₂⟩ + ⟨o₁, p⁻¹, s₂⟩) / 2; entities swing with year, month, day."""

    name = "de-simple"
    strong = PRODUCTS
    static_share = 0.68
