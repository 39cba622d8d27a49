"""Products of three beside how well each entity fits the predicate (Toutanova and Chen, 2015)."""

from __future__ import annotations

import torch
from torch import Tensor

from splime.embedding.distances import dot
from splime.embedding.models.base import Model
from splime.embedding.models.complex import ComplEx
from splime.embedding.models.distmult import DistMult


class _Fitting(Model):
    """f(s, p, o) = f'(s, p, o) + ⟨s', pₛ⟩ + ⟨o', pₒ⟩, their model E beside another one, f'.

    An entity has a vector of f' and one that fits predicates, and a predicate one of f', one for
    subjects and one for objects.
    """

    @property
    def dimension(self) -> int:
        """How long a vector is that fits predicates."""
        return self.entities.width // self.entity_parts

    def _split(self, vectors: Tensor, fits: int) -> tuple[Tensor, ...]:
        """What f' reads, and the vectors behind it."""
        width = vectors.shape[-1] - fits * self.dimension
        return tuple(vectors.split([width, *[self.dimension] * fits], dim=-1))

    def score(self, s: Tensor, p: Tensor, o: Tensor) -> Tensor:
        """The formula."""
        (s, fits_s), (o, fits_o) = self._split(s, 1), self._split(o, 1)
        p, of_subject, of_object = self._split(p, 2)
        query = super().object_query(s, p)  # type: ignore[safe-super]  # a product's, next in line
        return (query * o).sum(-1) + (fits_s * of_subject).sum(-1) + (fits_o * of_object).sum(-1)

    def object_query(self, s: Tensor, p: Tensor) -> Tensor:
        """Beside that of f', pₒ, and ⟨s', pₛ⟩, which is the same for all objects."""
        (s, fits), (p, of_subject, of_object) = self._split(s, 1), self._split(p, 2)
        same = (fits * of_subject).sum(-1, keepdim=True)
        own = super().object_query(s, p)  # type: ignore[safe-super]
        return torch.cat([own, of_object, same], dim=-1)

    def subject_query(self, p: Tensor, o: Tensor) -> Tensor:
        """Likewise."""
        (p, of_subject, of_object), (o, fits) = self._split(p, 2), self._split(o, 1)
        same = (fits * of_object).sum(-1, keepdim=True)
        own = super().subject_query(p, o)  # type: ignore[safe-super]
        return torch.cat([own, of_subject, same], dim=-1)

    def predicate_query(self, s: Tensor, o: Tensor) -> Tensor:
        """Likewise."""
        (s, fits_s), (o, fits_o) = self._split(s, 1), self._split(o, 1)
        own = super().predicate_query(s, o)  # type: ignore[safe-super]
        return torch.cat([own, fits_s, fits_o], dim=-1)

    def compare(self, query: Tensor, candidates: Tensor) -> Tensor:
        """Inner products, and what is the same for all."""
        return dot(query[..., :-1], candidates) + query[..., -1:]

    def compare_predicates(self, query: Tensor, candidates: Tensor) -> Tensor:
        """Inner products."""
        return dot(query, candidates)


class EDistMult(_Fitting, DistMult):
    """f(s, p, o) = ⟨s, p, o⟩ + ⟨s', pₛ⟩ + ⟨o', pₒ⟩."""

    name = "e-distmult"
    entity_parts = 2
    predicate_parts = 3


class EComplEx(_Fitting, ComplEx):
    """f(s, p, o) = Re⟨s, p, ō⟩ + ⟨s', pₛ⟩ + ⟨o', pₒ⟩. The dimension counts complex numbers."""

    name = "e-complex"
    entity_parts = 3
    predicate_parts = 4

    def sizes(self, vectors: Tensor) -> Tensor:
        """Moduli, and the sizes of the rest."""
        own, rest = vectors.split([2 * self.dimension, vectors.shape[-1] - 2 * self.dimension], -1)
        return torch.cat([super().sizes(own), rest.abs()], dim=-1)
