"""DE-TransE (Goel et al., 2020): TransE between entities that swing in time."""

from __future__ import annotations

from splime.embedding.models.diachronic import GOEL, INTERVALS, Diachronic
from splime.embedding.models.hyte import MOVED
from splime.embedding.models.transe import TransE


class DETransE(Diachronic, TransE):
    """f(s, p, o, t) = -‖s(t) + p - o(t)‖, with norm 1 or 2; x(t) swings with year, month, day."""

    name = "de-transe"
    strong = MOVED
    published = {
        "icews14": GOEL | {"norm": 2},
        "yago11k": INTERVALS,
        "wikidata12k": INTERVALS,
    }
