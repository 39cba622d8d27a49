"""TA-DistMult (García-Durán et al., 2018): DistMult with a predicate that an LSTM makes."""

from __future__ import annotations

from splime.embedding.models.distmult import DistMult
from splime.embedding.models.sequences import Sequences
from splime.embedding.models.ttranse import BASELINES
from splime.embedding.tables import Table, TableMaker


class TADistMult(DistMult):
    """f(s, p, o, t) = ⟨s, LSTM(p, t), o⟩; t is read digit by digit."""

    name = "ta-distmult"
    knows_time = True
    strong = DistMult.strong | {"optimizer": "adam", "learning_rate": 1e-3, "init": "xavier_normal"}
    published = {
        "icews14": {
            **{name: value for name, value in BASELINES.items() if name not in ("unit", "margin")},
            **{"loss": "bce", "l2": 1e-4},
        },
        "yago11k": {"each": "ends"},
        "wikidata12k": {"each": "ends"},
    }

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """The LSTM's."""
        return Sequences.make(tables, width)
