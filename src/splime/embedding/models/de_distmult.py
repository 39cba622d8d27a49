"""DE-DistMult (Goel et al., 2020): DistMult of entities that swing in time."""

from __future__ import annotations

from splime.embedding.models.base import PRODUCTS
from splime.embedding.models.diachronic import GOEL, INTERVALS, Diachronic
from splime.embedding.models.distmult import DistMult


class DEDistMult(Diachronic, DistMult):
    """f(s, p, o, t) = ⟨s(t), p, o(t)⟩; x(t) swings with year, month and day."""

    name = "de-distmult"
    strong = PRODUCTS
    published = {"icews14": GOEL, "yago11k": INTERVALS, "wikidata12k": INTERVALS}
