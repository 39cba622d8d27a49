"""TeRo (Xu et al., 2020): times turn entities, and a predicate leads from one to another."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from splime.embedding.distances import complex_sizes, l1, norm
from splime.embedding.models.base import Model
from splime.embedding.models.hyte import MOVED
from splime.embedding.settings import PREDICATE
from splime.embedding.tables import Table, TableMaker, complex_parts, complex_product

XU: dict[str, Any] = {
    "dimension": 500,
    "init": "xavier_uniform",
    "reciprocal": True,
    "both_ways": True,
    "loss": "self_adversarial",
    "margin": 110.0,
    "temperature": 0.5,
    "weights": "learned",
    "negatives": 10,
    "share": "none",
    "optimizer": "adagrad",
    "learning_rate": 0.1,
    "batch_size": 512,
    "epochs": 5000,
    "validate_every": 50,
    "patience": 4,
    "distinct": False,
}


class TeRo(Model):
    """f(s, p, o, t) = -‖s(t) + p - o̅(t)‖₁, where x(t) = x exp(i t): a time is its angles.

    The dimension counts complex numbers; the norm adds up real and imaginary parts.
    """

    name = "tero"
    knows_time = True
    moves = True
    entity_parts = 2
    predicate_parts = 2
    strong = MOVED
    # Their loss is of the sum over begin and end, with margins of 50 and 20; ours is of each.
    published = {
        "icews14": XU,
        "yago11k": {"each": "ends", "loss": "margin", "margin": 25.0, "unit": "clip"},
        "wikidata12k": {"each": "ends", "margin": 10.0, "learning_rate": 0.3},
    }

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """Predicates do not change."""
        return tables.level(PREDICATE, width)

    def prepare(self, tables: TableMaker) -> None:
        """The angles of times."""
        times = len(tables.static.segmentation.timeline)
        self.angles = nn.Parameter(tables.weights(times, tables.settings.dimension))

    def at(self, entities: Tensor, time: Tensor) -> Tensor:
        """x exp(i t)."""
        angles = embedding(time, self.angles)
        return complex_product(entities, torch.cat([angles.cos(), angles.sin()], dim=-1))

    def score(self, s: Tensor, p: Tensor, o: Tensor) -> Tensor:
        """The formula."""
        return -norm(s + p - _mirrored(o), 1)

    def object_query(self, s: Tensor, p: Tensor) -> Tensor:
        """‖(s + p)‾ - o‖."""
        return _mirrored(s + p)

    def subject_query(self, p: Tensor, o: Tensor) -> Tensor:
        """‖(o̅ - p) - s‖."""
        return _mirrored(o) - p

    def predicate_query(self, s: Tensor, o: Tensor) -> Tensor:
        """‖(o̅ - s) - p‖."""
        return _mirrored(o) - s

    def compare(self, query: Tensor, candidates: Tensor) -> Tensor:
        """Distances, negative."""
        return -l1(query, candidates)

    def sizes(self, vectors: Tensor) -> Tensor:
        """Moduli."""
        return complex_sizes(vectors)


def _mirrored(x: Tensor) -> Tensor:
    real, imaginary = complex_parts(x)
    return torch.cat([real, -imaginary], dim=-1)
