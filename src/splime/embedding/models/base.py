"""What every model is: two tables of embeddings, and a score that reads like its formula."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import ClassVar

import torch
from torch import Generator, Tensor, nn

from splime.embedding.initial import make_table
from splime.errors import UsageError


class Model(nn.Module):  # type: ignore[misc]
    """Scores triples of embeddings: `s`, `p` and `o` are tensors whose last axis is an embedding.

    To answer a question, the two parts that are known become a query vector, which is compared
    with all candidates at once; so all objects of a block of queries cost a matrix product (or a
    matrix of distances), never `queries x entities x dimensions` of memory.
    """

    entity_parts: ClassVar[int] = 1
    """How many vectors of the model's dimension an entity has."""
    predicate_parts: ClassVar[int] = 1
    norms: ClassVar[tuple[int, ...]] = ()
    """The norms that a model of distances can use; none for models of products."""
    products: ClassVar[bool] = False
    """Whether `compare` is the inner product, for which the softmax loss has a short way."""
    least_dimension: ClassVar[int] = 1

    def __init__(
        self,
        entities: int,
        predicates: int,
        dimension: int,
        *,
        norm: int = 1,
        init: str = "xavier_normal",
        spread: float = 1.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        self._check(dimension, norm)
        self.norm = norm
        generator = generator or torch.Generator().manual_seed(0)
        first = partial(make_table, init, generator=generator, spread=spread)
        self.entities = nn.Parameter(first(entities, dimension * self.entity_parts))
        self.predicates = nn.Parameter(first(predicates, dimension * self.predicate_parts))

    def _check(self, dimension: int, norm: int) -> None:
        name = type(self).__name__
        if dimension < self.least_dimension:
            raise UsageError(
                f"{name} needs a dimension of at least {self.least_dimension}, not {dimension}"
            )
        if self.norms and norm not in self.norms:
            known = " or ".join(map(str, self.norms))
            raise UsageError(f"{name} measures distances with norm {known}, not {norm}")

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


def complex_parts(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """The real parts, which stand first, and the imaginary ones."""
    real, imaginary = vectors.chunk(2, dim=-1)
    return real, imaginary


def complex_product(a: Tensor, b: Tensor, *, conjugate: bool = False) -> Tensor:
    """The product a b of complex vectors, or a times the conjugate of b."""
    (ar, ai), (br, bi) = complex_parts(a), complex_parts(b)
    if conjugate:
        bi = -bi
    return torch.cat([ar * br - ai * bi, ar * bi + ai * br], dim=-1)
