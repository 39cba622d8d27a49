"""Parameterised splitting (the paper's Algorithm 2, by the rule of its running text)."""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from splime.errors import UsageError
from splime.methods.base import Advance, Known, Method
from splime.methods.pieces import whole
from splime.times import Ints


@dataclass(frozen=True, kw_only=True)
class Split(Method):
    """Again and again cut the predicate with the most facts in two.

    `by="time"` cuts in the middle of its time, `by="count"` where as many facts have ended as are
    still to begin. It goes on until there are `grow` times as many predicates as in the beginning,
    or an absolute number of `predicates`, or of `triples`.
    """

    by: Literal["time", "count"] = field(
        default="time", metadata={"help": "where to cut: in the middle of the time, or by count"}
    )
    grow: float | None = field(
        default=None, metadata={"help": "how many times as many predicates to end with"}
    )
    predicates: int | None = field(
        default=None, metadata={"help": "how many predicates to end with"}
    )
    triples: int | None = field(
        default=None, metadata={"help": "how many triples to end with, at least"}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.by not in ("time", "count"):
            raise UsageError(f"Split cuts by time or by count, not by {self.by!r}")
        if sum(limit is not None for limit in (self.grow, self.predicates, self.triples)) != 1:
            raise UsageError("Split needs one of grow, predicates and triples")
        if self.grow is not None and not 1 <= self.grow < math.inf:
            raise UsageError(f"grow must be at least 1, not {self.grow}")

    def choose(self, known: Known, *, advance: Advance | None = None) -> list[Ints]:
        """Cut the largest piece that can be cut, until enough."""
        cuts: list[list[int]] = [[] for _ in known.counts.totals]
        pieces = [
            whole(known.counts, name) for name in np.flatnonzero(known.counts.totals).tolist()
        ]
        predicates, triples = len(pieces), sum(piece.facts for piece in pieces)
        # Most facts first; ties go to the piece that was there first (so it was in the figures of
        # the paper), which the number of the piece tells.
        number = itertools.count()
        heap = [(-piece.facts, next(number), piece) for piece in pieces]
        heapq.heapify(heap)
        wanted = self.predicates
        if self.grow is not None:
            wanted = math.ceil(round(self.grow * predicates, 9))
        begun = predicates
        while predicates < wanted if wanted is not None else triples < (self.triples or 0):
            while heap and not heap[0][2].can_be_split:
                heapq.heappop(heap)
            if not heap:
                raise UsageError(self._stuck(predicates, triples, wanted))
            piece = heapq.heappop(heap)[2]
            at = piece.middle() if self.by == "time" else piece.balance()
            cuts[piece.name].append(2 * at)
            for part in piece.split(at):
                heapq.heappush(heap, (-part.facts, next(number), part))
                triples += part.facts
            triples -= piece.facts
            predicates += 1
            if advance is not None and wanted is not None and predicates % 256 == 0:
                advance(predicates - begun, wanted - begun)
        return [np.array(sorted(own), np.int64) for own in cuts]

    def _stuck(self, predicates: int, triples: int, wanted: int | None) -> str:
        goal = f"{self.triples:,} triples" if wanted is None else f"{wanted:,} predicates"
        return (
            f"Split by {self.by} cannot reach {goal}: it came to {predicates:,} predicates with"
            f" {triples:,} triples, and none of them spans 4 timestamps with more than two"
            " different begins and ends any more; ask for less, or merge from timestamps instead"
        )
