"""TNTComplEx (Lacroix et al., 2020): ComplEx, whose predicate has a part that changes in time."""

from __future__ import annotations

from splime.embedding.models.complex import ComplEx
from splime.embedding.settings import PREDICATE, TIME
from splime.embedding.tables import Summed, Table, TableMaker, Timed


class TNTComplEx(ComplEx):
    """f(s, p, o, t) = Re⟨s, p t + q, ō⟩: ComplEx over products plus static vectors."""

    name = "tntcomplex"
    knows_time = True

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """p t + q, each predicate with two vectors."""
        timed = Timed(tables.level(PREDICATE, width), tables.level(TIME, width), "complex")
        return Summed({"timed": timed, "static": tables.level(PREDICATE, width)})
