"""DistMult (Yang et al., 2015): a product of three, the same in both directions."""

from __future__ import annotations

from torch import Tensor

from splime.embedding.models.base import PRODUCTS, Model


class DistMult(Model):
    """f(s, p, o) = ⟨s, p, o⟩ = Σ s p o."""

    name = "distmult"
    strong = PRODUCTS | {"n3": 0.05}
    products = True

    def object_query(self, s: Tensor, p: Tensor) -> Tensor:
        """⟨s p, o⟩."""
        return s * p

    def subject_query(self, p: Tensor, o: Tensor) -> Tensor:
        """⟨p o, s⟩."""
        return p * o

    def predicate_query(self, s: Tensor, o: Tensor) -> Tensor:
        """⟨s o, p⟩."""
        return s * o
