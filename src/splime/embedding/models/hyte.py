"""HyTE (Dasgupta et al., 2018): TransE on the hyperplane of each time."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import embedding

from splime.embedding.models.base import DISTANCES
from splime.embedding.models.transe import TransE
from splime.embedding.tables import Table, TableMaker, Timed, project
from splime.settings import PREDICATE, TIME

# Negatives are moved to the time of each positive, so that there are fewer of them.
MOVED = DISTANCES | {"negatives": 128, "smooth": 0.0}


class HyTE(TransE):
    """f(s, p, o, t) = -‖s⊥ + p⊥ - o⊥‖, where x⊥ = x - (w·x) w and w is a vector of t.

    As in its authors' program, w is not kept at length 1, so x⊥ lies on no hyperplane in general.
    """

    name = "hyte"
    cuts = "timestamps"
    entities_vary = True
    strong = MOVED

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """p⊥."""
        return Timed(tables.level(PREDICATE, width), tables.level(TIME, width), project)

    def at(self, entities: Tensor, time: Tensor) -> Tensor:
        """x⊥."""
        assert isinstance(self.predicates, Timed)
        normals: Tensor = self.predicates.times.weight  # type: ignore[assignment]
        return project(entities, embedding(time, normals))
