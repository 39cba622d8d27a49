"""Where vectors come from: a table turns ids into vectors.

A model compares vectors and does not know how they are made: looked up (`Lookup`), summed over
levels (`Summed`), or made from the vectors of a predicate and of a time (`Timed`). So TTransE is
TransE over a sum, and TNTComplEx is ComplEx over products and static vectors.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import cast

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import embedding

from splime.embedding.initial import make_weights
from splime.errors import UsageError
from splime.scoring.scorer import Ids
from splime.segmentation import Scopes
from splime.settings import PREDICATE, PRODUCT, TIME, Settings
from splime.static import StaticGraph
from splime.times import Ints, calendar


class Table(nn.Module):
    """Turns ids into vectors: each is the sum of its parts, of which penalties are taken."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.size, self.width = size, width
        """How many ids there are, and the length of the vectors."""

    def __len__(self) -> int:
        return self.size

    @abstractmethod
    def parts(self, ids: Tensor) -> list[Tensor]:
        """What the vectors of some ids are the sum of."""

    def forward(self, ids: Tensor) -> Tensor:
        """The vectors of some ids."""
        return added(self.parts(ids))

    def vectors(self) -> Tensor:
        """The vectors of all ids."""
        device = next(self.parameters()).device
        vectors: Tensor = self(torch.arange(len(self), device=device))
        return vectors

    def lookups(self) -> Iterator[Lookup]:
        """The lookups that the table is made of."""
        return (module for module in self.modules() if isinstance(module, Lookup))


def added(parts: list[Tensor]) -> Tensor:
    """The sum of one or more tensors."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


class Lookup(Table):
    """A learned vector for each row. Several ids may share a row: `rows` says which one they have.

    `follows` has a 1 for each row but the first that is the next in time after the row above, and a
    0 for others; None where rows have no order in time.
    """

    rows: Tensor | None
    follows: Tensor | None
    drift: nn.Parameter | None
    """What smoothness lets rows change by from each time to the next."""

    def __init__(
        self, weight: Tensor, *, rows: Tensor | None = None, follows: Tensor | None = None
    ) -> None:
        super().__init__(len(weight if rows is None else rows), weight.shape[1])
        self.weight = nn.Parameter(weight)
        self.register_buffer("rows", rows, persistent=False)
        self.register_buffer("follows", follows, persistent=False)
        self.sparse = False
        """Whether gradients hold only the rows that were looked up."""
        self.register_parameter("drift", None)

    def parts(self, ids: Tensor) -> list[Tensor]:
        """The one vector of each id."""
        rows = ids if self.rows is None else self.rows[ids]
        return [embedding(rows, self.weight, sparse=self.sparse)]

    def vectors(self) -> Tensor:
        """The vectors of all ids, without a copy where each id has a separate row."""
        return self.weight if self.rows is None else super().vectors()


class Summed(Table):
    """Vectors that are sums over levels, such as predicate + coarse scope + scope + time."""

    def __init__(self, levels: Mapping[str, Table]) -> None:
        shapes = {(len(level), level.width) for level in levels.values()}
        super().__init__(*next(iter(shapes)))
        self.levels = nn.ModuleDict(dict(levels))
        if len(shapes) > 1:
            raise ValueError("all levels need vectors of the same length for the same ids")

    def parts(self, ids: Tensor) -> list[Tensor]:
        """The parts of all levels."""
        levels = cast(Iterable[Table], self.levels.values())
        return [part for level in levels for part in level.parts(ids)]


def complex_product(a: Tensor, b: Tensor, *, conjugate: bool = False) -> Tensor:
    """The product a b of complex vectors, or a times the conjugate of b; real parts stand first."""
    (ar, ai), (br, bi) = a.chunk(2, dim=-1), b.chunk(2, dim=-1)
    if conjugate:
        bi = -bi
    return torch.cat([ar * br - ai * bi, ar * bi + ai * br], dim=-1)


def clifford(a: Tensor, b: Tensor) -> Tensor:
    """The product of multivectors 1, e₁, e₂, e₁₂ of the plane: e₁² = e₂² = 1, e₁₂² = -1."""
    (a0, a1, a2, a3), (b0, b1, b2, b3) = a.chunk(4, dim=-1), b.chunk(4, dim=-1)
    return torch.cat(
        [
            a0 * b0 + a1 * b1 + a2 * b2 - a3 * b3,
            a0 * b1 + a1 * b0 - a2 * b3 + a3 * b2,
            a0 * b2 + a2 * b0 + a1 * b3 - a3 * b1,
            a0 * b3 + a3 * b0 + a1 * b2 - a2 * b1,
        ],
        dim=-1,
    )


def project(x: Tensor, w: Tensor) -> Tensor:
    """x - (w·x) w: on the hyperplane of the normal w, if that has length 1."""
    return x - (w * x).sum(-1, keepdim=True) * w


class Timed(Table):
    """Vectors made from a predicate's and a time's, such as their product."""

    def __init__(
        self, predicates: Lookup, times: Table, combine: Callable[[Tensor, Tensor], Tensor]
    ) -> None:
        super().__init__(len(predicates), predicates.width)
        self.predicates, self.times, self.combine = predicates, times, combine

    def parts(self, ids: Tensor) -> list[Tensor]:
        """The one vector that is made for each id."""
        return [self.combine(self.predicates(ids), self.times(ids))]


class Joined(Table):
    """Vectors of several tables, one behind the other."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        every = list(tables.values())
        super().__init__(len(every[0]), sum(table.width for table in every))
        self.tables = nn.ModuleDict(dict(tables))

    def parts(self, ids: Tensor) -> list[Tensor]:
        """The one vector that is joined for each id."""
        return [torch.cat([table(ids) for table in self.tables.values()], dim=-1)]


class TableMaker:
    """Makes tables for the entities and scoped predicates of a static graph, as settings say.

    Where ends have separate predicates, these follow all scoped predicates, in the same
    order; and inverses, with reciprocal predicates, behind all of these.
    Without a generator the vectors take no memory yet: they are filled from a file.
    """

    def __init__(
        self, static: StaticGraph, settings: Settings, generator: Generator | None
    ) -> None:
        self.static, self.settings, self.generator = static, settings, generator

    def weights(self, rows: int, width: int) -> Tensor:
        """First vectors, by the initialiser of the settings."""
        if self.generator is None:
            return torch.empty(rows, width, device="meta")
        settings = self.settings
        # Sun et al.: distances begin near the margin.
        spread = (settings.margin + 2) / settings.dimension
        return make_weights(settings.init, rows, width, self.generator, spread=spread)

    def entities(self, width: int) -> Lookup:
        """A vector for each (scoped) entity."""
        return Lookup(self.weights(len(self.static.entities), width))

    def predicates(self, width: int) -> Table:
        """A vector for each scoped predicate, or the sum over the chosen levels."""
        if self.settings.levels is None:
            return self.scopes(width)
        return Summed({level: self._level(level, width) for level in self.settings.level_names})

    def _level(self, level: str, width: int) -> Table:
        if level == PRODUCT:
            return Timed(self.level(PREDICATE, width), self.level(TIME, width), torch.mul)
        return self.level(level, width)

    def level(self, level: str, width: int) -> Lookup:
        """One level: a vector for each predicate, each timestamp, or each group of neighbours."""
        scopes = self.static.predicates
        if level == PREDICATE:
            return self._lookup(width, scopes.sources, len(scopes.names))
        if level == TIME:
            # A scope of several timestamps has the time in its middle.
            weights = self.weights(len(scopes.timeline), width)
            return Lookup(weights, rows=self.times(), follows=torch.ones(len(weights) - 1))
        if level == "1":
            return self.scopes(width)
        coarser = scopes.coarsen(int(level))
        follows = follows_in_time(coarser, copies=self.copies)
        return self._lookup(width, scopes.members(coarser), len(coarser), follows)

    def scopes(self, width: int) -> Lookup:
        """A vector for each scoped predicate."""
        scopes = self.static.predicates
        weights = self.weights(len(scopes) * self.copies, width)
        return Lookup(weights, follows=follows_in_time(scopes, copies=self.copies))

    @property
    def copies(self) -> int:
        """How many ids a scoped predicate has: at begins, at ends, and as an inverse of each."""
        return (1 + (self.settings.each == "ends")) * (1 + self.settings.reciprocal)

    def times(self) -> Tensor:
        """The timestamp of each scoped predicate, in the middle of its scope."""
        return torch.from_numpy(self.static.predicates.middle.copy()).repeat(self.copies)

    def dates(self) -> Ints:
        """Year, month and day of each timestamp; of a bucket, those in its middle."""
        timeline = self.static.segmentation.timeline
        try:
            return calendar((timeline.starts + timeline.ends) // 2, timeline.granularity)
        except UsageError as error:
            name = self.settings.model
            raise UsageError(f"{name} needs dates: {error}; choose a model without them") from None

    def _lookup(self, width: int, rows: Ids, count: int, follows: Tensor | None = None) -> Lookup:
        """A table in which scoped predicates share rows; inverses have separate rows."""
        ids = torch.from_numpy(rows.astype(np.int64))
        ids = torch.cat([ids + count * copy for copy in range(self.copies)])
        return Lookup(self.weights(count * self.copies, width), rows=ids, follows=follows)


def follows_in_time(scopes: Scopes, *, copies: int = 1) -> Tensor:
    """1 for each scope but the first that continues the predicate of the one before it, else 0.

    >>> import splime
    >>> graph = splime.read([("a", p, "b", year) for p in "pq" for year in (1, 2, 3)], split="none")
    >>> follows_in_time(splime.Timestamp().fit(graph).predicates).tolist()
    [1.0, 1.0, 0.0, 1.0, 1.0]
    """
    same = np.append(scopes.sources[:-1] == scopes.sources[1:], False).astype(np.float32)
    return torch.from_numpy(np.tile(same, copies)[:-1])
