"""A predicate for every timestamp (the paper's Algorithm 1), and joining them (Algorithm 3)."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from splime.axes import Range
from splime.errors import UsageError
from splime.methods.base import CHOOSING, PREDICATES, Known, Method, parameter
from splime.progress import Progress, silent
from splime.segmentation import covering_cuts
from splime.times import Ints


@dataclass(frozen=True, kw_only=True)
class Timestamp(Method):
    """Cuts between every two neighbouring timestamps at which facts hold."""

    name = "timestamp"

    def choose(self, known: Known, *, progress: Progress = silent) -> list[Ints]:  # noqa: ARG002
        """A scope for every timestamp at which a fact holds."""
        return [covering_cuts(np.flatnonzero(row)) for row in known.counts.holding]


@dataclass(frozen=True, kw_only=True)
class Merge(Method):
    """Start from timestamps, and join the two neighbours of a predicate with the fewest facts.

    A fact counts once for every timestamp. It stops when the predicates that timestamps added are
    divided by `shrink`, or at an absolute number of `predicates`.
    """

    shrink: float | None = parameter(
        None, "by what to divide the number of predicates (or entities) that timestamps add"
    )
    predicates: int | None = parameter(None, PREDICATES)

    name = "merge"
    standard = {"shrink": 4}
    search = {"shrink": Range(1.5, 20.0, log=True)}
    one_of = ("shrink", "predicates")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shrink is not None and not self.shrink >= 1:
            raise UsageError(f"shrink must be at least 1, not {self.shrink}")

    def choose(self, known: Known, *, progress: Progress = silent) -> list[Ints]:
        """The cuts of timestamping, minus those between joined scopes."""
        holding = known.counts.holding
        held = [np.flatnonzero(row) for row in holding]
        timestamped, original = sum(map(len, held)), sum(len(times) > 0 for times in held)
        wanted = self.predicates
        if self.shrink is not None:
            wanted = original + int((timestamped - original) / self.shrink)
        assert wanted is not None
        if not original <= wanted <= timestamped:
            raise UsageError(
                f"Merge cannot reach {wanted:,} predicates: merging goes from the"
                f" {timestamped:,} of timestamping down to the {original:,} there are without time"
            )
        to_join = timestamped - wanted
        chains = _Chains([row[times] for row, times in zip(holding, held, strict=True)])
        for done in range(to_join):
            chains.join_smallest()
            if done % 1024 == 0:
                progress(CHOOSING, done, to_join)
        return [covering_cuts(own)[chains.separate(source)] for source, own in enumerate(held)]


class _Chains:
    """For every source a chain of scopes with their numbers of facts; neighbours can be joined."""

    def __init__(self, weights: list[Ints]) -> None:
        self._weight = [row.tolist() for row in weights]
        self._next = [list(range(1, len(row) + 1)) for row in weights]
        self._previous = [list(range(-1, len(row) - 1)) for row in weights]
        # Ties go to the first source, and there to the earliest pair.
        self._heap = [
            (row[at] + row[at + 1], source, at)
            for source, row in enumerate(self._weight)
            for at in range(len(row) - 1)
        ]
        heapq.heapify(self._heap)

    def join_smallest(self) -> None:
        """Join the two neighbours with the smallest sum."""
        while True:
            total, source, at = heapq.heappop(self._heap)
            weight, after = self._weight[source], self._next[source]
            right = after[at] if weight[at] is not None else len(weight)
            if right < len(weight) and weight[at] + weight[right] == total:
                break
        weight[at], weight[right] = total, None
        after[at] = after[right]
        before = self._previous[source]
        if after[at] < len(weight):
            before[after[at]] = at
            heapq.heappush(self._heap, (total + weight[after[at]], source, at))
        if before[at] >= 0:
            heapq.heappush(self._heap, (weight[before[at]] + total, source, before[at]))

    def separate(self, source: int) -> list[bool]:
        """For every two timestamps next to each other, whether a cut is still between them."""
        return [weight is not None for weight in self._weight[source][1:]]
