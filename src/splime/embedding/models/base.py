"""What every model is: tables of vectors, and a score that reads like its formula."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from splime.embedding.settings import Settings
from splime.embedding.tables import Table, TableMaker
from splime.errors import UsageError

# Products: reciprocal predicates, all entities as negatives, N3 and Adagrad (Lacroix et al.).
PRODUCTS: dict[str, Any] = {
    "dimension": 200,
    "init": "small_normal",
    "reciprocal": True,
    "loss": "softmax",
    "n3": 0.03,
    "smooth": 0.1,
    "optimizer": "adagrad",
    "learning_rate": 0.1,
    "batch_size": 1000,
    "each": "fact",
    "epochs": 200,
    "precision": "tf32",
}
# Distances: many shared negatives, weighted by how hard they are (Sun et al.).
DISTANCES: dict[str, Any] = {
    "dimension": 200,
    "loss": "self_adversarial",
    "margin": 6.0,
    "temperature": 1.0,
    "negatives": 500,
    "batch_size": 500,
    "learning_rate": 1e-3,
    "smooth": 0.01,
    "each": "fact",
    "epochs": 300,
}


class Model(nn.Module):
    """Scores triples of vectors: `s`, `p` and `o` are tensors whose last axis is a vector.

    To answer a question, the two vectors that are known become a query vector, which is compared
    with all candidates at once; so all objects of a block of queries cost a matrix product (or a
    matrix of distances), never `queries x entities x dimensions` of memory.
    """

    name: ClassVar[str]
    """What it is called on the command line."""
    strong: ClassVar[Mapping[str, Any]] = {}
    """The settings of its strong preset, where they differ from the defaults."""
    entity_parts: ClassVar[int] = 1
    """How many vectors of the model's dimension an entity has."""
    predicate_parts: ClassVar[int] = 1
    norms: ClassVar[tuple[int, ...]] = ()
    """The norms that a model of distances can use; none for models of products."""
    products: ClassVar[bool] = False
    """Whether `compare` is the inner product, for which the softmax loss has a short way."""
    least_dimension: ClassVar[int] = 1
    knows_time: ClassVar[bool] = False
    """Whether it makes the vectors of its predicates from those of times itself."""

    def __init__(self, entities: Table, predicates: Table, *, norm: int = 1) -> None:
        super().__init__()
        self.entities, self.predicates, self.norm = entities, predicates, norm

    @classmethod
    def make(cls, tables: TableMaker) -> Model:
        """A model over tables for a static graph."""
        settings = tables.settings
        cls.check(settings)
        # Entities are drawn first.
        entities = tables.entities(settings.dimension * cls.entity_parts)
        predicates = cls.predicate_table(tables, settings.dimension * cls.predicate_parts)
        return cls(entities, predicates, norm=settings.norm)

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """Where the vectors of scoped predicates come from; models that know time say otherwise."""
        return tables.predicates(width)

    @classmethod
    def check(cls, settings: Settings) -> None:
        """An error unless the model can have this dimension, norm and levels."""
        if settings.dimension < cls.least_dimension:
            raise UsageError(
                f"{cls.__name__} needs a dimension of at least {cls.least_dimension}, not"
                f" {settings.dimension}"
            )
        if cls.norms and settings.norm not in cls.norms:
            known = " or ".join(map(str, cls.norms))
            raise UsageError(
                f"{cls.__name__} measures distances with norm {known}, not {settings.norm}"
            )
        if settings.levels is not None and cls.knows_time:
            raise UsageError(f"{cls.__name__} has levels of its own; leave levels out")

    @property
    def device(self) -> torch.device:
        """Where its vectors are."""
        return next(self.parameters()).device

    @abstractmethod
    def score(self, s: Tensor, p: Tensor, o: Tensor) -> Tensor:
        """The formula."""

    @abstractmethod
    def object_query(self, s: Tensor, p: Tensor) -> Tensor:
        """What `compare` scores objects against."""

    @abstractmethod
    def subject_query(self, p: Tensor, o: Tensor) -> Tensor:
        """What `compare` scores subjects against."""

    @abstractmethod
    def predicate_query(self, s: Tensor, o: Tensor) -> Tensor:
        """What `compare_predicates` scores predicates against."""

    @abstractmethod
    def compare(self, query: Tensor, candidates: Tensor) -> Tensor:
        """Scores of entities: `(n, m)` from queries `(n, ·)` and `(m, d)` or `(n, m, d)`."""

    def compare_predicates(self, query: Tensor, candidates: Tensor) -> Tensor:
        """Scores of predicates, likewise; most models compare them as they compare entities."""
        return self.compare(query, candidates)

    def sizes(self, vectors: Tensor) -> Tensor:
        """The size of every coordinate, for the penalties; complex models take the modulus."""
        return vectors.abs()

    def predicate_vectors(self, p: Tensor) -> Tensor:
        """Predicates as the vectors that the formula works with, for the penalties."""
        return p
