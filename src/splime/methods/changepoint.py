"""CPD-based efficient splitting: cuts where the neighbourhood of a predicate changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from splime.errors import UsageError
from splime.methods.base import Advance, Known, Method
from splime.methods.proximity import find_proximity
from splime.methods.signatures import change_cuts
from splime.times import Ints


@dataclass(frozen=True, kw_only=True)
class ChangePointSplit(Method):
    """Cuts at the change points of who is linked to whom, predicate by predicate.

    The signature of a timestamp has the proximity of every pair that the predicate links then;
    bottom-up search with the kernelised mean change finds where signatures change.
    """

    proximity: str = field(
        default="preferential_attachment",
        metadata={"help": "jaccard, adamic_adar or preferential_attachment"},
    )
    epsilon: float | None = field(
        default=None, metadata={"help": "cost that may remain: the higher, the fewer cuts"}
    )
    penalty: float | None = field(
        default=None, metadata={"help": "instead of epsilon: the cost of a change point"}
    )
    changes: int | None = field(
        default=None, metadata={"help": "instead of epsilon: change points of every predicate"}
    )
    min_size: int = field(default=1, metadata={"help": "fewest timestamps between change points"})
    closed: bool = field(
        default=True,
        metadata={"help": "count an entity among its own neighbours, as the paper's figures do"},
    )

    needs_facts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        find_proximity(self.proximity)
        limits = (self.epsilon, self.penalty, self.changes)
        if sum(limit is not None for limit in limits) != 1:
            raise UsageError("ChangePointSplit needs one of epsilon, penalty and changes")
        for name, limit in (("epsilon", self.epsilon), ("penalty", self.penalty)):
            if limit is not None and not limit > 0:
                raise UsageError(f"{name} must be greater than 0, not {limit}")
        if self.changes is not None and self.changes < 0:
            raise UsageError(f"changes must be 0 or more, not {self.changes}")
        if self.min_size < 1:
            raise UsageError(f"min_size must be at least 1, not {self.min_size}")

    def choose(self, known: Known, *, advance: Advance | None = None) -> list[Ints]:
        """The cuts of each name, from the facts it has."""
        order = np.argsort(known.name, kind="stable")
        stops = np.cumsum(np.bincount(known.name, minlength=len(known.counts.totals)))
        cuts = []
        for name, rows in enumerate(np.split(order, stops[:-1])):
            times = change_cuts(
                known.begin[rows],
                known.end[rows],
                known.subject[rows],
                known.object[rows],
                proximity=self.proximity,
                closed=self.closed,
                min_size=self.min_size,
                epsilon=self.epsilon,
                penalty=self.penalty,
                changes=self.changes,
            )
            # A change at a timestamp is a cut just before it.
            cuts.append(2 * np.array(times, np.int64) - 1)
            if advance is not None:
                advance(name + 1, len(stops))
        return cuts
