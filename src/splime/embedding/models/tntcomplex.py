"""TNTComplEx (Lacroix et al., 2020): TComplEx, and a second, static vector of each predicate."""

from __future__ import annotations

from splime.embedding.models.tcomplex import LACROIX, TComplEx
from splime.embedding.settings import PREDICATE
from splime.embedding.tables import Summed, Table, TableMaker


class TNTComplEx(TComplEx):
    """f(s, p, o, t) = Re⟨s, p t + q, ō⟩: ComplEx over products plus static vectors."""

    name = "tntcomplex"
    entity_penalty = 2.0  # an entity is in both products
    published = {
        "icews14": LACROIX | {"dimension": 1560},
        "yago11k": {"each": "fact"},
        "wikidata12k": {"each": "fact"},
    }

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """p t + q, each predicate with two vectors."""
        timed = super().predicate_table(tables, width)
        return Summed({"timed": timed, "static": tables.level(PREDICATE, width)})
