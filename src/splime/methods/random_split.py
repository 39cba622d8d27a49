"""Splits at random (the baseline of the paper)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from splime.axes import Range
from splime.errors import UsageError
from splime.methods.base import Known, Method
from splime.methods.split import ScopeCounts, grown
from splime.progress import Progress, silent
from splime.times import Ints


@dataclass(frozen=True, kw_only=True)
class RandomSplit(Method):
    """Choose a scope at random, then a timestamp of it at random, and cut there.

    Only timestamps that leave facts on both sides are drawn. It stops when there are `grow` times
    as many predicates as at first, or an absolute number of `predicates`.
    """

    grow: float | None = field(
        default=None, metadata={"help": "how many times as many predicates to end with"}
    )
    predicates: int | None = field(
        default=None, metadata={"help": "how many predicates to end with"}
    )
    seed: int = field(default=0, metadata={"help": "seed of the draws"})

    name = "random"
    standard = {"grow": 5}
    search = {"grow": Range(2.0, 50.0, log=True)}
    one_of = ("grow", "predicates")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.grow is not None and not 1 <= self.grow < math.inf:
            raise UsageError(f"grow must be at least 1, not {self.grow}")
        if self.predicates is not None and self.predicates < 1:
            raise UsageError(f"predicates must be at least 1, not {self.predicates}")

    def choose(self, known: Known, *, progress: Progress = silent) -> list[Ints]:  # noqa: ARG002
        """Cut scopes drawn from all that can be cut."""
        rng = np.random.default_rng(self.seed)
        cuts: list[list[int]] = [[] for _ in known.counts.totals]
        scopes = ScopeCounts.uncut(known.counts)
        predicates = len(scopes)
        wanted = self.predicates if self.grow is None else grown(predicates, self.grow)
        assert wanted is not None
        if predicates > wanted:
            raise UsageError(
                f"RandomSplit cannot reach {wanted:,} predicates: there are {predicates:,} already"
            )
        can_be_cut = [(scope, places) for scope in scopes if len(places := scope.places())]
        while predicates < wanted:
            if not can_be_cut:
                raise UsageError(
                    f"RandomSplit cannot reach {wanted:,} predicates: it came to"
                    f" {predicates:,}, and no cut leaves facts on both sides any more"
                )
            drawn = int(rng.integers(len(can_be_cut)))
            scope, places = can_be_cut[drawn]
            can_be_cut[drawn] = can_be_cut[-1]  # the order does not matter, and this is fast
            can_be_cut.pop()
            at = int(places[rng.integers(len(places))])
            cuts[scope.source].append(2 * at)
            can_be_cut += [(side, own) for side in scope.split(at) if len(own := side.places())]
            predicates += 1
        return [np.array(sorted(own), np.int64) for own in cuts]
