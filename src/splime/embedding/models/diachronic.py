"""Diachronic entities (Goel et al., 2020): some coordinates swing with the year, month and day."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from splime.embedding.models.base import Model
from splime.embedding.settings import PREDICATE, Settings
from splime.embedding.tables import Table, TableMaker
from splime.errors import UsageError

GOEL: dict[str, Any] = {
    "dimension": 100,
    "init": "xavier_uniform",
    "loss": "sampled_softmax",
    "negatives": 1000,
    "share": "none",
    "dropout": 0.4,
    "learning_rate": 1e-3,
    "batch_size": 512,
    "epochs": 500,
    "validate_every": 20,
    "distinct": False,
}
"""500 negatives of each side."""
INTERVALS = {"each": "begin"}


class Diachronic(Model):
    """An entity at (y, m, d) = [static part | Σ over u in (y, m, d) of A_u sin(W_u u + B_u)].

    Where the granularity is the year there is one such wave, and so on.
    """

    knows_time = True
    moves = True
    static_share = 0.36
    dates: Tensor

    @classmethod
    def check(cls, settings: Settings) -> None:
        """An error also where no coordinate would move."""
        super().check(settings)
        if cls._moving(settings) < 1:
            raise UsageError(
                f"with dimension {settings.dimension} and static_share {settings.static_share}"
                f" nothing of {cls.__name__} would change in time"
            )

    @classmethod
    def _moving(cls, settings: Settings) -> int:
        """How many coordinates change in time."""
        share = cls.static_share if settings.static_share is None else settings.static_share
        return settings.dimension - round(share * settings.dimension)

    @classmethod
    def entity_table(cls, tables: TableMaker, width: int) -> Table:
        """A row has the static part, and for each unit amplitudes, frequencies and phases."""
        moving, units = cls._moving(tables.settings), _dates(tables).shape[1]
        return tables.entities(width + cls.entity_parts * moving * (3 * units - 1))

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """Predicates do not change."""
        return tables.level(PREDICATE, width)

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
