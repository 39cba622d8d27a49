"""TTransE (Leblay & Chekol, 2018): TransE, with a vector for the time added to the predicate."""

from __future__ import annotations

from splime.embedding.models.transe import TransE
from splime.embedding.settings import PREDICATE, TIME
from splime.embedding.tables import Summed, Table, TableMaker


class TTransE(TransE):
    """f(s, p, o, t) = -‖s + p + t - o‖, with norm 1 or 2: TransE over a sum."""

    name = "ttranse"
    knows_time = True

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """p + t."""
        return Summed({level: tables.level(level, width) for level in (PREDICATE, TIME)})
