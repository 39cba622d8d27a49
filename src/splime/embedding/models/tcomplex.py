"""TComplEx (Lacroix et al., 2020): ComplEx, whose predicate is multiplied by a time."""

from __future__ import annotations

from typing import Any

from splime.embedding.models.base import PRODUCTS
from splime.embedding.models.complex import ComplEx
from splime.embedding.settings import PREDICATE, TIME
from splime.embedding.tables import Table, TableMaker, Timed, complex_product

# Their batch of 1,000 queries is ours of 500 facts, each asked both ways; the penalties of those
# are doubled with them, and that of times, which is not, is doubled here.
LACROIX: dict[str, Any] = {
    "init": "small_normal",
    "reciprocal": True,
    "loss": "softmax",
    "optimizer": "adagrad",
    "learning_rate": 0.1,
    "batch_size": 500,
    "n3": 0.01,
    "smooth": 0.02,
    "smooth_cubes": True,
    "epochs": 50,
    "validate_every": 0,
    "distinct": False,
    "precision": "tf32",
}
SMOOTH = PRODUCTS | {"n3": 0.01, "smooth": 0.02, "smooth_cubes": True}


class TComplEx(ComplEx):
    """f(s, p, o, t) = Re⟨s, p t, ō⟩: ComplEx over products."""

    name = "tcomplex"
    knows_time = True
    strong = SMOOTH
    published = {
        "icews14": LACROIX | {"dimension": 2000},
        "yago11k": {"each": "ends", "n3": 0.025, "smooth": 0.002, "epochs": 200},
        "wikidata12k": {"each": "ends", "n3": 0.025, "smooth": 0.005, "epochs": 200},
    }

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """p t."""
        return Timed(tables.level(PREDICATE, width), tables.level(TIME, width), complex_product)
