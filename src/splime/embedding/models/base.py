"""What every model is: tables of vectors, and a score that reads like its formula."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from splime.embedding.distances import dot
from splime.embedding.gadgets import Gadget
from splime.embedding.tables import Table, TableMaker
from splime.errors import UsageError
from splime.settings import PREDICATE, Settings

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


def clip(vectors: Tensor) -> None:
    """Shorten vectors that are longer than 1."""
    vectors.div_(torch.linalg.vector_norm(vectors, dim=-1, keepdim=True).clamp_min(1.0))


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
    settings_class: ClassVar[type[Settings]] = Settings
    cuts: ClassVar[Literal["any", "timestamps"]] = "any"
    """`timestamps`: it has vectors of times, and scores any predicate at any time."""
    entities_vary: ClassVar[bool] = False
    """Whether entities change with the time: `at` says how."""
    entity_penalty: ClassVar[float] = 1.0
    """Weight of entities in l2 and n3, where predicates have 1."""
    auxiliary: ClassVar[float] = 0.0
    """Weight of a second loss with the previous scope (TDG2E)."""
    gadget: Gadget | None
    """Adds scores from the times of other facts."""
    time_of: Tensor | None
    """The timestamp of each scoped predicate, where entities change with it."""
    previous: Tensor | None
    """The scope before each scoped predicate, of the same; of the first itself."""

    def __init__(self, entities: Table, predicates: Table, *, norm: int = 1) -> None:
        super().__init__()
        self.entities, self.predicates, self.norm = entities, predicates, norm
        self.register_module("gadget", None)
        self.register_buffer("time_of", None, persistent=False)
        self.register_buffer("previous", None, persistent=False)

    @classmethod
    def make(cls, tables: TableMaker) -> Model:
        """A model over tables for a static graph."""
        settings = tables.settings
        cls.check(settings)
        # Entities are drawn first.
        entities = cls.entity_table(tables, settings.dimension * cls.entity_parts)
        predicates = cls.predicate_table(tables, settings.dimension * cls.predicate_parts)
        model = cls(entities, predicates, norm=settings.norm)
        if cls.entities_vary:
            if tables.static.segmentation.entities is not None:
                raise UsageError(
                    f"{cls.__name__} moves entities in time itself; cut predicates alone"
                )
            model.time_of = tables.times()
        model.prepare(tables)
        return model

    def prepare(self, tables: TableMaker) -> None:
        """What else a model takes from the settings or the graph, once its tables are made."""

    @classmethod
    def entity_table(cls, tables: TableMaker, width: int) -> Table:
        """Where the vectors of entities come from, before `at` moves them."""
        return tables.entities(width)

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """Where the vectors of scoped predicates come from; temporal models override it."""
        return tables.level(PREDICATE, width) if cls.entities_vary else tables.predicates(width)

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
        if settings.levels is not None and cls.cuts == "timestamps":
            raise UsageError(f"{cls.__name__} has fixed levels; leave levels out")

    def at(self, entities: Tensor, time: Tensor) -> Tensor:
        """Entities as they are at timestamps, of which there is one for each, or for several."""
        return entities

    def begin_epoch(self, epoch: int, epochs: int) -> bool:
        """Before each epoch, counted from 0; whether the optimizer begins anew."""
        return False

    def gadget_scores(
        self, kind: str, given: Tensor, p: Tensor, target: Tensor | None = None
    ) -> Tensor | None:
        """What the gadget adds to the scores of all entities as the object (or subject)."""
        if self.gadget is None or not bool(self.gadget.strength):
            return None
        scopes = self.gadget.scopes.shape[1]
        roles = (p < scopes) == (kind == "object")  # of an inverse, it is the other one
        scores = self.entities.vectors().new_zeros(len(p), len(self.entities))
        for role in (False, True):
            rows = (roles == role).nonzero().squeeze(1)
            own = None if target is None else target[rows]
            more = self.gadget.all_entities(int(role), given[rows], p[rows] % scopes, own)
            scores = scores.index_copy(0, rows, more.to(scores.dtype))
        return scores

    def constrain(self, settings: Settings) -> None:
        """Bring vectors back to where they may be, after each step."""
        if settings.unit == "clip":
            for lookup in self.entities.lookups():
                clip(lookup.weight)

    @property
    def device(self) -> torch.device:
        """Where its vectors are."""
        return next(self.parameters()).device

    def score(self, s: Tensor, p: Tensor, o: Tensor) -> Tensor:
        """The formula; unless a model says otherwise, an inner product."""
        return (self.object_query(s, p) * o).sum(-1)

    @abstractmethod
    def object_query(self, s: Tensor, p: Tensor) -> Tensor:
        """What `compare` scores objects against."""

    @abstractmethod
    def subject_query(self, p: Tensor, o: Tensor) -> Tensor:
        """What `compare` scores subjects against."""

    def query(self, kind: str, known: Tensor, p: Tensor) -> Tensor:
        """What `compare` scores entities against as the object (or subject)."""
        return self.object_query(known, p) if kind == "object" else self.subject_query(p, known)

    @abstractmethod
    def predicate_query(self, s: Tensor, o: Tensor) -> Tensor:
        """What `compare_predicates` scores predicates against."""

    def compare(self, query: Tensor, candidates: Tensor) -> Tensor:
        """Scores of entities: `(n, m)` from queries `(n, ·)` and `(m, d)` or `(n, m, d)`."""
        return dot(query, candidates)

    def compare_predicates(self, query: Tensor, candidates: Tensor) -> Tensor:
        """Scores of predicates, likewise; most models compare them as they compare entities."""
        return self.compare(query, candidates)

    def sizes(self, vectors: Tensor) -> Tensor:
        """The size of every coordinate, for the penalties; complex models take the modulus."""
        return vectors.abs()

    def predicate_vectors(self, p: Tensor) -> Tensor:
        """Predicates as the vectors that the formula works with, for the penalties."""
        return p
