"""What a model must provide, and how many rows of scores fit into memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from splime.errors import SplimeError, UsageError, explain_out_of_memory
from splime.times import Ints

Ids: TypeAlias = npt.NDArray[np.integer]

_DEFAULT = {"cpu": 512 << 20, "cuda": 4 << 30}
# Larger blocks are given back to the system and faulted in again by the C library each time, and
# fall out of the cache between scoring and counting; but for each a model reads all its entities.
_CPU_BLOCK, _CPU_ROWS = 16 << 20, 64


class Scorer(ABC):
    """Scores over the ids of a StaticGraph; higher is better.

    Ids are int64 tensors on `device`, equally long; scores are float tensors on it with a row for
    each pair of ids. -inf is a score, NaN is not.
    """

    device: torch.device
    """Where ids are wanted and scores are made."""
    every_timestamp: bool = False
    """Whether it has each predicate at each time that train has, with facts then or without."""
    ends: bool = False
    """Whether scoped predicates have a second id for the ends of facts, behind all others."""
    time_of: Ints | None = None
    """The time of each scoped predicate, where entities change in time: queries at the same time
    are asked together."""

    @abstractmethod
    def objects(self, subject: torch.Tensor, predicate: torch.Tensor) -> torch.Tensor:
        """A column for each (scoped) entity."""

    @abstractmethod
    def subjects(self, predicate: torch.Tensor, object: torch.Tensor) -> torch.Tensor:
        """A column for each (scoped) entity."""

    @abstractmethod
    def predicates(self, subject: torch.Tensor, object: torch.Tensor) -> torch.Tensor:
        """A column for each scoped predicate."""


@dataclass(frozen=True)
class Candidates:
    """All objects, subjects or predicates that a scorer gives scores for."""

    scorer: Scorer
    kind: str
    columns: int
    """How many there are."""

    def scores(self, entities: Ids, others: Ids) -> torch.Tensor:
        """A row for each known entity and predicate, or for each two entities.

        The known entity comes before the predicate, for objects and subjects alike.
        What comes back has the right shape and no NaN.
        """
        scorer, kind = self.scorer, self.kind
        entity, other = (
            torch.as_tensor(ids, dtype=torch.int64).to(scorer.device) for ids in (entities, others)
        )
        if kind == "subject":
            scores = scorer.subjects(other, entity)
        else:
            scores = (scorer.objects if kind == "object" else scorer.predicates)(entity, other)
        shape = (len(entities), self.columns)
        if tuple(scores.shape) != shape or not scores.is_floating_point():
            raise SplimeError(
                f"the model scored {len(entities):,} queries for a {kind} with {scores.dtype} of"
                f" shape {tuple(scores.shape)}; floats of shape {shape} were expected: was it"
                " trained on this graph and segmentation?"
            )
        check_nan(scores)
        return scores

    def itemsize(self) -> int:
        """The bytes of a score."""
        return self.scores(np.zeros(1, np.int64), np.zeros(1, np.int64)).element_size()


def check_nan(scores: torch.Tensor) -> None:
    """An error where a score is not a number."""
    # The maximum is NaN if any score is, and needs no memory.
    if scores.numel() and bool(torch.isnan(scores.amax())):
        raise SplimeError(
            "the model gave scores that are not numbers (NaN), so nothing can be ranked; its"
            " training diverged (a smaller learning rate may help), or it adds inf to -inf"
        )


class MemoryBudget:
    """The rows of scores that fit into `memory` bytes, for queries and for their parts.

    A query has a row of scores over `candidates`, and while it is ranked a copy of it and two
    masks. Where it may have parts, a part has a row over `columns`, and two copies over
    `candidates` while it is added.
    """

    def __init__(
        self,
        memory: int | None,
        device: torch.device,
        itemsize: int,
        candidates: int,
        columns: int | None = None,
    ) -> None:
        given = _DEFAULT.get(device.type, 512 << 20) if memory is None else memory
        if isinstance(given, bool) or not isinstance(given, int) or given < 1:
            raise UsageError(f"memory is a number of bytes, such as {512 << 20}, not {memory!r}")
        query = candidates * (2 * itemsize + 2)
        part = 0 if columns is None else (columns + 2 * candidates) * itemsize
        if given < query + part:
            raise UsageError(
                f"{given:,} bytes of memory are too few for one query over {candidates:,}"
                f" candidates; it needs at least {query + part:,}"
            )
        # Half for the queries, but a part must fit beside them.
        whole = given if columns is None else min(given // 2, given - part)
        self.queries = max(1, whole // query)
        self.parts = (given - self.queries * query) // part if part else 0
        if device.type == "cpu":
            most = max(_CPU_ROWS, _CPU_BLOCK // (max(candidates, columns or 0) * itemsize))
            self.queries, self.parts = min(self.queries, most), min(self.parts, most)


memory_errors = partial(
    explain_out_of_memory,
    "lower `memory` (--memory), the bytes that blocks of scores may take, to rank with less",
)
"""Running out of memory as an error that names the number to lower."""
