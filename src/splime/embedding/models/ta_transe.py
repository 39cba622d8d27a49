"""TA-TransE (García-Durán et al., 2018): TransE with a predicate that an LSTM makes."""

from __future__ import annotations

from splime.embedding.models.sequences import Sequences
from splime.embedding.models.transe import TransE
from splime.embedding.models.ttranse import BASELINES
from splime.embedding.tables import Table, TableMaker


class TATransE(TransE):
    """f(s, p, o, t) = -‖s + LSTM(p, t) - o‖, with norm 1 or 2; t is read digit by digit."""

    name = "ta-transe"
    knows_time = True
    published = {
        "icews14": BASELINES,
        "yago11k": {"each": "ends"},
        "wikidata12k": {"each": "ends"},
    }

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """The LSTM's."""
        return Sequences.make(tables, width)
