"""RotatE (Sun et al., 2019): a predicate turns each complex coordinate of the subject."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from splime.embedding.distances import complex_sizes, dot, l2, moduli, norm, root
from splime.embedding.models.base import DISTANCES, Model
from splime.embedding.tables import Table, TableMaker, complex_product


class RotatE(Model):
    """f(s, p, o) = -Σ |s r - o|, where r = exp(i p): a predicate is its angles.

    The dimension counts complex numbers. With norm 2, which PyKEEN uses, f = -‖s r - o‖₂.
    """

    name = "rotate"
    strong = DISTANCES
    entity_parts = 2
    norms = (1, 2)

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """Angles begin anywhere on the circle."""
        table = tables.predicates(width)
        if tables.generator is not None:
            with torch.no_grad():
                for lookup in table.lookups():
                    angles = torch.rand(lookup.weight.shape, generator=tables.generator) * 2 - 1
                    lookup.weight.copy_(angles * math.pi)
        return table

    def score(self, s: Tensor, p: Tensor, o: Tensor) -> Tensor:
        """The formula."""
        sizes = complex_sizes(complex_product(s, _turn(p)) - o)
        return -norm(sizes, self.norm)

    def object_query(self, s: Tensor, p: Tensor) -> Tensor:
        """‖s r - o‖."""
        return complex_product(s, _turn(p))

    def subject_query(self, p: Tensor, o: Tensor) -> Tensor:
        """‖o r̄ - s‖, since |r| = 1."""
        return complex_product(o, _turn(p), conjugate=True)

    def predicate_query(self, s: Tensor, o: Tensor) -> Tensor:
        """Both; see below."""
        return torch.cat([s, o], dim=-1)

    def compare(self, query: Tensor, candidates: Tensor) -> Tensor:
        """Distances, negative."""
        return -(moduli if self.norm == 1 else l2)(query, candidates)

    def compare_predicates(self, query: Tensor, candidates: Tensor) -> Tensor:
        """Σ |s r - o|, one coordinate after the other; ‖s r - o‖² = ‖s‖² + ‖o‖² - 2 Re⟨o s̄, r̄⟩."""
        s, o = query.chunk(2, dim=-1)
        if self.norm == 2:
            lengths = query.square().sum(-1, keepdim=True)
            product = dot(complex_product(o, s, conjugate=True), _turn(candidates))
            return -root(lengths - 2 * product)
        (sr, si), (or_, oi) = (x.unsqueeze(1).chunk(2, dim=-1) for x in (s, o))
        cosine, sine = _turn(candidates).chunk(2, dim=-1)
        scores = query.new_zeros(len(query), candidates.shape[-2])
        for k in range(sr.shape[-1]):
            c, d = cosine[..., k], sine[..., k]
            real = sr[..., k] * c - si[..., k] * d - or_[..., k]
            imaginary = sr[..., k] * d + si[..., k] * c - oi[..., k]
            scores = scores - root(real.square() + imaginary.square())
        return scores

    def sizes(self, vectors: Tensor) -> Tensor:
        """Moduli."""
        return complex_sizes(vectors)

    def predicate_vectors(self, p: Tensor) -> Tensor:
        """Turns: angles just below π and just above -π are neighbours, and no angle is large."""
        return _turn(p)


def _turn(p: Tensor) -> Tensor:
    return torch.cat([p.cos(), p.sin()], dim=-1)
