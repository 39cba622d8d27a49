"""ComplEx (Trouillon et al., 2016): a product of three complex vectors, the object conjugated."""

from __future__ import annotations

from torch import Tensor

from splime.embedding.distances import complex_sizes
from splime.embedding.models.base import PRODUCTS, Model
from splime.embedding.tables import complex_product


class ComplEx(Model):
    """f(s, p, o) = Re⟨s, p, ō⟩. The dimension counts complex numbers."""

    name = "complex"
    strong = PRODUCTS
    entity_parts = 2
    predicate_parts = 2
    products = True

    def object_query(self, s: Tensor, p: Tensor) -> Tensor:
        """Re⟨s p, ō⟩: Re(a b̄) is the inner product of a and b as real vectors."""
        return complex_product(s, p)

    def subject_query(self, p: Tensor, o: Tensor) -> Tensor:
        """Re⟨o p̄, s̄⟩."""
        return complex_product(o, p, conjugate=True)

    def predicate_query(self, s: Tensor, o: Tensor) -> Tensor:
        """Re⟨o s̄, p̄⟩."""
        return complex_product(o, s, conjugate=True)

    def sizes(self, vectors: Tensor) -> Tensor:
        """Moduli."""
        return complex_sizes(vectors)
