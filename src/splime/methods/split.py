"""Parameterised splitting (the paper's Algorithm 2, by the rule of its text), and at random."""

from __future__ import annotations

import heapq
import itertools
import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

import numpy as np

from splime.axes import Range, Values
from splime.counts import Counts
from splime.errors import UsageError
from splime.methods.base import CHOOSING, PREDICATES, FitInput, Method, parameter
from splime.progress import Progress, silent
from splime.times import Ints

GROW = "multiplies the number of predicates (or entities) with facts"


@dataclass(frozen=True, kw_only=True)
class Split(Method):
    """Repeatedly split the scope with the most facts.

    `by="time"` cuts in the middle of its time, `by="count"` where as many facts have ended as are
    still to begin. It stops when there are `grow` times as many predicates as at first, or an
    absolute number of `predicates` or `triples`.

    >>> import splime
    >>> Split(grow=5).fit(splime.load("demo"))
    Segmentation(45 scoped predicates of 9, ...)
    """

    by: Literal["time", "count"] = parameter(
        "time",
        "where to cut: in the middle of the time, or (count) where as many facts have ended as are"
        " still to begin",
    )
    grow: float | None = parameter(None, GROW, 1)
    predicates: int | None = parameter(None, PREDICATES, 1)
    triples: int | None = parameter(None, "final number of triples, at least")

    name = "split"
    standard = {"grow": 5}
    search = {"by": Values(("time", "count")), "grow": Range(2.0, 50.0, log=True)}
    one_of = ("grow", "predicates", "triples")

    def choose(self, data: FitInput, *, progress: Progress = silent) -> list[Ints]:
        """Cut the largest scope that can be cut, until there are enough."""
        cuts: list[list[int]] = [[] for _ in data.counts.totals]
        scopes = ScopeCounts.uncut(data.counts)
        predicates, triples = len(scopes), sum(scope.facts for scope in scopes)
        # Most facts first; ties go to the older scope, which has the lower number, as in the code
        # of the paper.
        number = itertools.count()
        heap = [(-scope.facts, next(number), scope) for scope in scopes]
        heapq.heapify(heap)
        wanted = wanted_predicates(self, predicates)
        before = predicates
        while predicates < wanted if wanted is not None else triples < (self.triples or 0):
            while heap and not heap[0][2].can_be_split:
                heapq.heappop(heap)
            if not heap:
                goal = f"{self.triples:,} triples" if wanted is None else f"{wanted:,} predicates"
                why = (
                    f"Split by {self.by} cannot reach {goal}: it came to {predicates:,} predicates"
                    f" with {triples:,} triples, and none of them spans 4 timestamps with more than"
                    " two different begins and ends any more"
                )
                _fell_short(self, why)
                break
            scope = heapq.heappop(heap)[2]
            at = scope.middle() if self.by == "time" else scope.balance()
            cuts[scope.source].append(2 * at)
            for side in scope.split(at):
                heapq.heappush(heap, (-side.facts, next(number), side))
                triples += side.facts
            triples -= scope.facts
            predicates += 1
            if wanted is not None and predicates % 256 == 0:
                progress(CHOOSING, predicates - before, wanted - before)
        return [np.array(sorted(of_source), np.int64) for of_source in cuts]


@dataclass(frozen=True, kw_only=True)
class RandomSplit(Method):
    """Choose a scope at random, then a timestamp of it at random, and cut there.

    Only timestamps that leave facts on both sides are drawn. It stops when there are `grow` times
    as many predicates as at first, or an absolute number of `predicates`.
    """

    grow: float | None = parameter(None, GROW, 1)
    predicates: int | None = parameter(None, PREDICATES, 1)
    seed: int = parameter(0, "seed of the draws", 0)

    name = "random"
    standard = {"grow": 5}
    search = {"grow": Range(2.0, 50.0, log=True)}
    one_of = ("grow", "predicates")

    def choose(self, data: FitInput, *, progress: Progress = silent) -> list[Ints]:
        """Cut scopes drawn from all that can be cut."""
        rng = np.random.default_rng(self.seed)
        cuts: list[list[int]] = [[] for _ in data.counts.totals]
        scopes = ScopeCounts.uncut(data.counts)
        predicates = len(scopes)
        wanted = wanted_predicates(self, predicates)
        assert wanted is not None
        can_be_cut = [(scope, places) for scope in scopes if len(places := scope.places())]
        while predicates < wanted:
            if not can_be_cut:
                why = (
                    f"RandomSplit cannot reach {wanted:,} predicates: it came to"
                    f" {predicates:,}, and no cut leaves facts on both sides any more"
                )
                _fell_short(self, why)
                break
            drawn = int(rng.integers(len(can_be_cut)))
            scope, places = can_be_cut[drawn]
            can_be_cut[drawn] = can_be_cut[-1]  # the order does not matter, and this is fast
            can_be_cut.pop()
            at = int(places[rng.integers(len(places))])
            cuts[scope.source].append(2 * at)
            can_be_cut += [(side, left) for side in scope.split(at) if len(left := side.places())]
            predicates += 1
        return [np.array(sorted(of_source), np.int64) for of_source in cuts]


def wanted_predicates(method: Split | RandomSplit, there: int) -> int | None:
    """The final number of predicates, if the method has one; an error if there are more already."""
    if method.grow == math.inf:
        raise UsageError("grow must be a finite number, not inf")
    wanted = method.predicates if method.grow is None else grown(there, method.grow)
    if wanted is not None and there > wanted:
        raise UsageError(
            f"{type(method).__name__} cannot reach {wanted:,} predicates: there are {there:,}"
            " already"
        )
    return wanted


def _fell_short(method: Split | RandomSplit, why: str) -> None:
    """An error, or a warning with the default, which is no more than a wish."""
    if method.grow != method.standard["grow"]:
        raise UsageError(f"{why}; ask for less, or merge from timestamps instead")
    warnings.warn(why, stacklevel=3)


def grown(predicates: int, grow: float) -> int:
    """`grow` times the number of predicates, rounded up; 1.1 · 10 is 11, in spite of rounding."""
    return math.ceil(round(grow * predicates, 9))


@dataclass(frozen=True, eq=False)
class ScopeCounts:
    """A scope while it is being split: how many of its facts begin and end at timestamps.

    Facts that reach beyond the scope are clipped to it. Columns are the timestamps at which facts
    begin or end.
    """

    source: int
    time: Ints
    tables: Ints
    """Three rows: begins, ends and instants, which are among begins and ends too."""
    facts: int

    @classmethod
    def uncut(cls, counts: Counts) -> list[Self]:
        """The scope of every source that has facts, before anything is cut."""
        instants = counts.instants
        tables = np.stack([counts.begins + instants, counts.ends + instants, instants])
        totals, offsets = counts.totals.tolist(), counts.offsets.tolist()
        return [
            cls(source, counts.time[start:stop], tables[:, start:stop], total)
            for source, (start, stop, total) in enumerate(
                zip(offsets[:-1], offsets[1:], totals, strict=True)
            )
            if total
        ]

    @cached_property
    def first(self) -> int:
        """The first timestamp of its facts."""
        return int(self.time[(self.tables[0] > 0).argmax()])

    @cached_property
    def last(self) -> int:
        """The last timestamp of its facts."""
        return int(self.time[len(self.time) - 1 - (self.tables[1, ::-1] > 0).argmax()])

    @property
    def can_be_split(self) -> bool:
        """A condition of the paper's code that its text does not mention."""
        return (
            len(self.time) > 2
            and self.last - self.first >= 3
            and int(np.count_nonzero(self.tables[0])) > 2
            and int(np.count_nonzero(self.tables[1])) > 2
        )

    def middle(self) -> int:
        """The middle between its first and last timestamp."""
        return (self.first + self.last) // 2

    def balance(self) -> int:
        """The time at which facts that have ended and facts still to begin differ least."""
        begins, ends, _ = self.tables
        candidates = (begins > 0) | (ends > 0)
        candidates &= (self.time > self.first) & (self.time < self.last)
        if not candidates.any():
            return self.middle()
        to_begin = self.facts - begins.cumsum() + begins
        difference = np.where(candidates, np.abs(ends.cumsum() - to_begin), self.facts + 1)
        return int(self.time[difference.argmin()])

    def places(self) -> range:
        """The timestamps at which a cut leaves facts on both sides."""
        # Facts that begin before the cut, and instants at it, go left; those that end after it go
        # right.
        instants = self.tables[2, (self.tables[0] > 0).argmax()]
        return range(self.first if instants else self.first + 1, self.last)

    def split(self, at: int) -> tuple[ScopeCounts, ScopeCounts]:
        """The scopes on both sides of a cut at a timestamp, by the rule."""
        before, (begins, ends, instants), behind = self.parted(at)
        # Longer facts that begin before the cut and end at it or later; and those that begin at it
        # or before and end later.
        crossing = int(before[0].sum() - before[1].sum())
        leaving = crossing + begins - ends
        left, right = (instants, crossing + instants, instants), (leaving, 0, 0)
        return self.sides(at, before, left, right, behind)

    def parted(self, at: int) -> tuple[Ints, list[int], Ints]:
        """The tables before a timestamp, the numbers at it, and the tables after it."""
        place = int(self.time.searchsorted(at))
        before, behind = self.tables[:, :place], self.tables[:, place:]
        if place == len(self.time) or self.time[place] != at:
            return before, [0, 0, 0], behind
        return before, behind[:, 0].tolist(), behind[:, 1:]

    def sides(
        self,
        at: int,
        before: Ints,
        left: tuple[int, int, int],
        right: tuple[int, int, int],
        behind: Ints,
    ) -> tuple[Self, Self]:
        """Two scopes that meet at a timestamp, from the numbers of each at that timestamp."""
        times = self.time[: before.shape[1]], self.time[len(self.time) - behind.shape[1] :]
        sides = (
            (np.append(times[0], at), np.concatenate([before, np.transpose([left])], axis=1)),
            (np.append(at, times[1]), np.concatenate([np.transpose([right]), behind], axis=1)),
        )
        earlier, later = (
            type(self)(self.source, time, tables, int(tables[0].sum())) for time, tables in sides
        )
        return earlier, later
