"""TransH (Wang et al., 2014): a translation on the hyperplane of each predicate."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from splime.embedding.distances import dot, squared
from splime.embedding.models.base import DISTANCES, Model
from splime.embedding.tables import project


class TransH(Model):
    """f(s, p, o) = -‖s⊥ + d - o⊥‖², where x⊥ = x - (w·x) w.

    A predicate is the normal w of its hyperplane (brought to length 1) and the translation d.
    """

    name = "transh"
    strong = DISTANCES | {"margin": 1.0}
    predicate_parts = 2
    least_dimension = 2  # on the hyperplane of one dimension everything is the same point

    def score(self, s: Tensor, p: Tensor, o: Tensor) -> Tensor:
        """The formula."""
        w, d = _plane(p)
        return -(project(s, w) + d - project(o, w)).square().sum(-1)

    def object_query(self, s: Tensor, p: Tensor) -> Tensor:
        """What o⊥ should be, and w."""
        w, d = _plane(p)
        return torch.cat([project(s, w) + d, w], dim=-1)

    def subject_query(self, p: Tensor, o: Tensor) -> Tensor:
        """What s⊥ should be, and w."""
        w, d = _plane(p)
        return torch.cat([project(o, w) - d, w], dim=-1)

    def predicate_query(self, s: Tensor, o: Tensor) -> Tensor:
        """The difference that is projected."""
        return s - o

    def compare(self, query: Tensor, candidates: Tensor) -> Tensor:
        """‖q - x + (w·x) w‖² = ‖q - x‖² + 2 (w·x) (q·w) - (w·x)², since w has length 1."""
        q, w = query.chunk(2, dim=-1)
        along = dot(w, candidates)
        across = 2 * (q * w).sum(-1, keepdim=True) - along
        return -(squared(q, candidates) + along * across)

    def predicate_vectors(self, p: Tensor) -> Tensor:
        """With normals of length 1: only their direction counts."""
        return torch.cat(_plane(p), dim=-1)

    def compare_predicates(self, query: Tensor, candidates: Tensor) -> Tensor:
        """‖v - (w·v) w + d‖² = ‖v + d‖² - (w·v)² - 2 (w·v) (w·d)."""
        w, d = _plane(candidates)
        along = dot(query, w)
        return -(squared(query, -d) - along * (along + 2 * (w * d).sum(-1)))


def _plane(p: Tensor) -> tuple[Tensor, Tensor]:
    w, d = p.chunk(2, dim=-1)
    return normalize(w, dim=-1), d
