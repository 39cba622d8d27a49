"""DE-SimplE (Goel et al., 2020): SimplE of entities that swing in time."""

from __future__ import annotations

from splime.embedding.models.base import PRODUCTS
from splime.embedding.models.diachronic import GOEL, INTERVALS, Diachronic
from splime.embedding.models.simple import SimplE


class DESimplE(Diachronic, SimplE):
    """f(s, p, o, t) = (⟨s₁, p, o₂⟩ + ⟨o₁, p⁻¹, s₂⟩) / 2; entities swing with year, month, day."""

    name = "de-simple"
    strong = PRODUCTS
    static_share = 0.68
    published = {"icews14": GOEL, "yago11k": INTERVALS, "wikidata12k": INTERVALS}
