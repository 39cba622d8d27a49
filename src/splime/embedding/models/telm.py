"""TeLM (Xu et al., 2021): a product of multivectors of the plane, whose time drifts along."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from splime.embedding.distances import root
from splime.embedding.models.base import Model
from splime.embedding.models.tcomplex import SMOOTH
from splime.embedding.tables import Table, TableMaker, Timed, clifford
from splime.settings import PREDICATE, TIME


class TeLM(Model):
    """f(s, p, o, t) = ⟨s (p t) ō⟩, the scalar part of products in Cl(2,0).

    The dimension counts multivectors a + b e₁ + c e₂ + d e₁₂. The smoothness of times is that of
    what is left of their differences after a common drift, which is learned. In the first
    quarter of the epochs b and c are 0, as in TComplEx; then the optimizer begins anew.
    """

    name = "telm"
    cuts = "timestamps"
    strong = SMOOTH
    entity_parts = 4
    predicate_parts = 4
    products = True

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """p t."""
        times = tables.level(TIME, width)
        times.drift = nn.Parameter(tables.weights(1, width))
        return Timed(tables.level(PREDICATE, width), times, clifford)

    def prepare(self, tables: TableMaker) -> None:
        """b and c are 0, and so are their gradients."""
        if tables.generator is not None:
            for weight in self.parameters():
                _vector_part(weight).zero_()

    def begin_epoch(self, epoch: int, epochs: int) -> bool:
        """After a quarter of the epochs, b and c are a thousandth of a and d."""
        if epoch < epochs // 4 or _vector_part(self.entities.vectors()).any():
            return False
        for weight in self.parameters():
            _vector_part(weight).copy_(1e-3 * weight.unflatten(-1, (4, -1))[:, ::3])
        return True

    def object_query(self, s: Tensor, p: Tensor) -> Tensor:
        """⟨(s p) ō⟩ = m₀ o₀ - m₁ o₁ - m₂ o₂ + m₃ o₃."""
        return _signed(clifford(s, p), 1, -1, -1, 1)

    def subject_query(self, p: Tensor, o: Tensor) -> Tensor:
        """⟨s (p ō)⟩ = s₀ n₀ + s₁ n₁ + s₂ n₂ - s₃ n₃."""
        return _signed(clifford(p, _conjugate(o)), 1, 1, 1, -1)

    def predicate_query(self, s: Tensor, o: Tensor) -> Tensor:
        """⟨(ō s) p⟩: the scalar part of a product stays when its factors go around."""
        return _signed(clifford(_conjugate(o), s), 1, 1, 1, -1)

    def sizes(self, vectors: Tensor) -> Tensor:
        """The lengths of multivectors."""
        return root(vectors.unflatten(-1, (4, -1)).square().sum(-2))


def _vector_part(weight: Tensor) -> Tensor:
    """b and c, to be changed in place."""
    vectors: Tensor = weight.detach().unflatten(-1, (4, -1))[:, 1:3]
    return vectors


def _signed(x: Tensor, *signs: int) -> Tensor:
    parts = x.chunk(4, dim=-1)
    return torch.cat([sign * part for sign, part in zip(signs, parts, strict=True)], dim=-1)


def _conjugate(x: Tensor) -> Tensor:
    return _signed(x, 1, -1, -1, -1)
