"""CP (Hitchcock, 1927): a product of three, with an entity's own vector for each of its roles."""

from __future__ import annotations

import torch
from torch import Tensor

from splime.embedding.models.base import PRODUCTS, Model


class CP(Model):
    """f(s, p, o) = ⟨s₁, p, o₂⟩: an entity is x₁ as a subject and x₂ as an object."""

    name = "cp"
    strong = PRODUCTS
    entity_parts = 2
    products = True

    def score(self, s: Tensor, p: Tensor, o: Tensor) -> Tensor:
        """The formula."""
        return (_as_subject(s) * p * _as_object(o)).sum(-1)

    def object_query(self, s: Tensor, p: Tensor) -> Tensor:
        """⟨s₁ p, o₂⟩; the other role counts nothing."""
        q = _as_subject(s) * p
        return torch.cat([torch.zeros_like(q), q], dim=-1)

    def subject_query(self, p: Tensor, o: Tensor) -> Tensor:
        """⟨p o₂, s₁⟩."""
        q = p * _as_object(o)
        return torch.cat([q, torch.zeros_like(q)], dim=-1)

    def predicate_query(self, s: Tensor, o: Tensor) -> Tensor:
        """⟨s₁ o₂, p⟩."""
        return _as_subject(s) * _as_object(o)


def _as_subject(x: Tensor) -> Tensor:
    return x.chunk(2, dim=-1)[0]


def _as_object(x: Tensor) -> Tensor:
    return x.chunk(2, dim=-1)[1]
