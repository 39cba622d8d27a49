"""TTransE (Leblay & Chekol, 2018): TransE, with a vector for the time added to the predicate."""

from __future__ import annotations

from typing import Any

from splime.embedding.models.transe import TransE
from splime.embedding.settings import PREDICATE, TIME
from splime.embedding.tables import Summed, Table, TableMaker

# The set-up of RE-Net's baselines.
BASELINES: dict[str, Any] = {
    "dimension": 100,
    "init": "xavier_uniform",
    "loss": "margin",
    "margin": 1.0,
    "negatives": 2,
    "share": "none",
    "unit": "penalty",
    "reduction": "sum",
    "learning_rate": 1e-3,
    "batch_size": 512,
    "epochs": 1000,
    "validate_every": 25,
    "distinct": False,
}


class TTransE(TransE):
    """f(s, p, o, t) = -‖s + p + t - o‖, with norm 1 or 2: TransE over a sum."""

    name = "ttranse"
    knows_time = True
    published = {
        "icews14": BASELINES,
        "yago11k": {"aggregate": "ends"},
        "wikidata12k": {"aggregate": "ends"},
    }

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """p + t."""
        return Summed({level: tables.level(level, width) for level in (PREDICATE, TIME)})
