"""TransE (Bordes et al., 2013): subject plus predicate is near the object.

TTransE (Leblay & Chekol, 2018) adds a vector of the time to the predicate.
"""

from __future__ import annotations

from torch import Tensor

from splime.embedding.distances import l1, l2, norm
from splime.embedding.models.base import DISTANCES, Model
from splime.embedding.tables import Summed, Table, TableMaker
from splime.settings import PREDICATE, TIME


class TransE(Model):
    """f(s, p, o) = -‖s + p - o‖, with norm 1 or 2."""

    name = "transe"
    strong = DISTANCES | {"smooth": 0.1}
    norms = (1, 2)

    def score(self, s: Tensor, p: Tensor, o: Tensor) -> Tensor:
        """The formula."""
        return -norm(s + p - o, self.norm)

    def object_query(self, s: Tensor, p: Tensor) -> Tensor:
        """‖(s + p) - o‖."""
        return s + p

    def subject_query(self, p: Tensor, o: Tensor) -> Tensor:
        """‖(o - p) - s‖."""
        return o - p

    def predicate_query(self, s: Tensor, o: Tensor) -> Tensor:
        """‖(o - s) - p‖."""
        return o - s

    def compare(self, query: Tensor, candidates: Tensor) -> Tensor:
        """Distances, negative."""
        return -(l1 if self.norm == 1 else l2)(query, candidates)


class TTransE(TransE):
    """f(s, p, o, t) = -‖s + p + t - o‖, with norm 1 or 2: TransE over a sum."""

    name = "ttranse"
    cuts = "timestamps"

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """p + t."""
        return Summed({level: tables.level(level, width) for level in (PREDICATE, TIME)})
