"""TComplEx (Lacroix et al., 2020): ComplEx, whose predicate is multiplied by a time.

TNTComplEx has a second, static vector of each predicate beside it.
"""

from __future__ import annotations

from splime.embedding.models.base import PRODUCTS
from splime.embedding.models.complex import ComplEx
from splime.embedding.tables import Summed, Table, TableMaker, Timed, complex_product
from splime.settings import PREDICATE, TIME

SMOOTH = PRODUCTS | {"n3": 0.01, "smooth": 0.02, "smooth_cubes": True}


class TComplEx(ComplEx):
    """f(s, p, o, t) = Re⟨s, p t, ō⟩: ComplEx over products."""

    name = "tcomplex"
    cuts = "timestamps"
    strong = SMOOTH

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """p t."""
        return Timed(tables.level(PREDICATE, width), tables.level(TIME, width), complex_product)


class TNTComplEx(TComplEx):
    """f(s, p, o, t) = Re⟨s, p t + q, ō⟩: ComplEx over products plus static vectors."""

    name = "tntcomplex"
    entity_penalty = 2.0  # an entity is in both products

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """p t + q, each predicate with two vectors."""
        timed = super().predicate_table(tables, width)
        return Summed({"timed": timed, "static": tables.level(PREDICATE, width)})
