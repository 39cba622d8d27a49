"""TeRo (Xu et al., 2020): times turn entities, and a predicate leads from one to another."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from splime.embedding.distances import complex_sizes, l1, norm
from splime.embedding.models.base import Model
from splime.embedding.models.hyte import MOVED
from splime.embedding.tables import TableMaker, complex_product


class TeRo(Model):
    """f(s, p, o, t) = -‖s(t) + p - o̅(t)‖₁, where x(t) = x exp(i t): a time is its angles.

    The dimension counts complex numbers; the norm adds up real and imaginary parts.
    """

    name = "tero"
    cuts = "timestamps"
    entities_vary = True
    entity_parts = 2
    predicate_parts = 2
    strong = MOVED

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
    real, imaginary = x.chunk(2, dim=-1)
    return torch.cat([real, -imaginary], dim=-1)
