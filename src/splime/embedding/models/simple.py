"""SimplE (Kazemi & Poole, 2018): CP in both directions, with an inverse of each predicate."""

from __future__ import annotations

import torch
from torch import Tensor

from splime.embedding.models.base import PRODUCTS, Model


class SimplE(Model):
    """f(s, p, o) = (⟨s₁, p, o₂⟩ + ⟨o₁, p⁻¹, s₂⟩) / 2."""

    name = "simple"
    strong = PRODUCTS
    entity_parts = 2
    predicate_parts = 2
    products = True

    def score(self, s: Tensor, p: Tensor, o: Tensor) -> Tensor:
        """The formula."""
        (s1, s2), (forth, back), (o1, o2) = s.chunk(2, -1), p.chunk(2, -1), o.chunk(2, -1)
        return (s1 * forth * o2 + o1 * back * s2).sum(-1) / 2

    def object_query(self, s: Tensor, p: Tensor) -> Tensor:
        """⟨s₂ p⁻¹, o₁⟩ + ⟨s₁ p, o₂⟩."""
        (s1, s2), (forth, back) = s.chunk(2, -1), p.chunk(2, -1)
        return torch.cat([s2 * back, s1 * forth], dim=-1) / 2

    def subject_query(self, p: Tensor, o: Tensor) -> Tensor:
        """⟨p o₂, s₁⟩ + ⟨p⁻¹ o₁, s₂⟩."""
        (forth, back), (o1, o2) = p.chunk(2, -1), o.chunk(2, -1)
        return torch.cat([forth * o2, back * o1], dim=-1) / 2

    def predicate_query(self, s: Tensor, o: Tensor) -> Tensor:
        """⟨s₁ o₂, p⟩ + ⟨o₁ s₂, p⁻¹⟩."""
        (s1, s2), (o1, o2) = s.chunk(2, -1), o.chunk(2, -1)
        return torch.cat([s1 * o2, o1 * s2], dim=-1) / 2
