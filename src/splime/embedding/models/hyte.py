"""HyTE (Dasgupta et al., 2018): TransE on a hyperplane that each time has of its own."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import embedding

from splime.embedding.models.base import DISTANCES
from splime.embedding.models.transe import TransE
from splime.embedding.settings import PREDICATE, TIME
from splime.embedding.tables import Table, TableMaker, Timed, project

# Negatives are moved to the time of each positive, so that there are fewer of them.
MOVED = DISTANCES | {"negatives": 128, "smooth": 0.0}


class HyTE(TransE):
    """f(s, p, o, t) = -‖s⊥ + p⊥ - o⊥‖, where x⊥ = x - (w·x) w and w is the normal of t."""

    name = "hyte"
    knows_time = True
    moves = True
    strong = MOVED
    published = {
        "icews14": {
            "dimension": 128,
            "loss": "margin",
            "margin": 10.0,
            "negatives": 10,
            "share": "none",
            "avoid_known": True,
            "reduction": "sum",
            "learning_rate": 1e-4,
            "batch_size": 50_000,
            "epochs": 2000,
            "validate_every": 50,
            "distinct": False,
        },
        "yago11k": {"aggregate": "begin"},
        "wikidata12k": {"aggregate": "begin"},
    }

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """p⊥."""
        return Timed(tables.level(PREDICATE, width), tables.level(TIME, width), project)

    def at(self, entities: Tensor, time: Tensor) -> Tensor:
        """x⊥."""
        assert isinstance(self.predicates, Timed)
        normals: Tensor = self.predicates.times.weight  # type: ignore[assignment]
        return project(entities, embedding(time, normals))
