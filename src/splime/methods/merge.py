"""A predicate for every timestamp (the paper's Algorithm 1), and merging them (Algorithm 3)."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from splime.arrays import changes
from splime.axes import Range
from splime.counts import Counts, Held
from splime.errors import UsageError
from splime.graph import TemporalGraph
from splime.methods.base import CHOOSING, PREDICATES, FitInput, Method, parameter
from splime.progress import Progress, silent
from splime.segmentation import Scopes, Segmentation, covering_cuts
from splime.times import Bools, Ints

# Pairs are merged together while at least one in this many has the smallest sum.
_FEW = 64


@dataclass(frozen=True, kw_only=True)
class Timestamp(Method):
    """Cuts between every two neighbouring timestamps at which facts hold.

    >>> import splime
    >>> len(Timestamp().fit(splime.load("demo")).predicates)
    594
    """

    name = "timestamp"

    def choose(self, data: FitInput, *, progress: Progress = silent) -> list[Ints]:
        """A scope for every timestamp at which a fact holds."""
        held = data.counts.held
        return _cuts(held, np.ones(len(held.time), bool))


def at_every_timestamp(segmentation: Segmentation, graph: TemporalGraph) -> Segmentation:
    """The cuts of `Timestamp` for temporal models: each predicate at every timestamp.

    Such a model learns a time from all predicates, so it can score a predicate at times at which
    the predicate has no facts in train.
    """
    begin, end = graph.timestamps(graph.train)
    names, size = graph.predicates, len(graph.timeline)
    counts = Counts.of(graph.train.predicate, begin, end, len(names), size)
    cuts = [np.arange(1, 2 * size - 1, 2)] * len(names)
    scopes = Scopes.of(names, graph.timeline, cuts, counts)
    return Segmentation(scopes, None, segmentation.method)


@dataclass(frozen=True, kw_only=True)
class Merge(Method):
    """Start from timestamps, and merge the two neighbours of a predicate with the fewest facts.

    A fact counts once for every timestamp. It stops when the predicates that timestamps added are
    divided by `shrink`, or at an absolute number of `predicates`.

    >>> import splime
    >>> len(Merge(shrink=4).fit(splime.load("demo")).predicates)
    155
    """

    shrink: float | None = parameter(
        None, "divides the number of predicates (or entities) that timestamps add", 1
    )
    predicates: int | None = parameter(None, PREDICATES)

    name = "merge"
    standard = {"shrink": 4}
    search = {"shrink": Range(1.5, 20.0, log=True)}
    one_of = ("shrink", "predicates")

    def choose(self, data: FitInput, *, progress: Progress = silent) -> list[Ints]:
        """The cuts of timestamping, minus those between merged scopes."""
        held = data.counts.held
        first = held.offsets[:-1][np.diff(held.offsets) > 0]
        timestamped, original = len(held.time), len(first)
        wanted = self.predicates
        if self.shrink is not None:
            wanted = original + int((timestamped - original) / self.shrink)
        assert wanted is not None
        if not original <= wanted <= timestamped:
            raise UsageError(
                f"Merge cannot reach {wanted:,} predicates: merging goes from the"
                f" {timestamped:,} of timestamping down to the {original:,} there are without time"
            )
        return _cuts(held, _join(held.facts, first, timestamped - wanted, progress))


def _cuts(held: Held, begins: Bools) -> list[Ints]:
    """The cuts of every source, from the timestamps at which scopes begin."""
    begins[held.offsets[:-1][np.diff(held.offsets) > 0]] = False  # no cut before the first
    at = np.flatnonzero(begins)
    return np.split(covering_cuts(held.time)[at - 1], np.searchsorted(at, held.offsets[1:-1]))


def _join(weight: Ints, first: Ints, count: int, progress: Progress) -> Bools:
    """Merge `count` pairs of neighbours, always the two with the smallest sum of weights.

    Ties go to the earliest pair. `first` has the places at which chains begin; neighbours in
    different chains are not merged. Returns which places still begin a scope.
    """
    begins = np.ones(len(weight), bool)
    place, begins_chain = np.arange(len(weight)), np.zeros(len(weight), bool)
    begins_chain[first] = True
    done = 0
    # A union weighs more than the pairs it was chosen from, so pairs with equal sums can be merged
    # together: of those that overlap, every second one. That pays off when there are many.
    while done < count:
        total = np.where(begins_chain[1:], np.iinfo(np.int64).max, weight[:-1] + weight[1:])
        pairs = np.flatnonzero(total == total.min())
        if len(pairs) * _FEW < len(total):
            break
        run = changes(pairs - np.arange(len(pairs)))
        within = np.arange(len(pairs)) - np.flatnonzero(run)[run.cumsum() - 1]
        left = pairs[within % 2 == 0][: count - done]
        weight[left] += weight[left + 1]
        begins[place[left + 1]] = False
        kept = np.ones(len(weight), bool)
        kept[left + 1] = False
        weight, place, begins_chain = weight[kept], place[kept], begins_chain[kept]
        done += len(left)
        progress(CHOOSING, done, count)
    else:
        return begins
    chain = _Chain(weight, begins_chain)
    for number in range(done, count):
        begins[place[chain.join_smallest()]] = False
        if number % 1024 == 0:
            progress(CHOOSING, number, count)
    return begins


class _Chain:
    """Neighbours with weights, merged one by one."""

    def __init__(self, weight: Ints, begins_chain: Bools) -> None:
        self._weight = weight.tolist()  # 0 where a place was merged into the one before it
        self._begins = begins_chain.tolist()
        self._next = list(range(1, len(weight) + 1))
        self._previous = list(range(-1, len(weight) - 1))
        left = np.flatnonzero(~begins_chain[1:])
        self._heap = [*zip((weight[left] + weight[left + 1]).tolist(), left.tolist(), strict=True)]
        heapq.heapify(self._heap)

    def join_smallest(self) -> int:
        """Merge the two neighbours with the smallest sum, and return the place of the second."""
        weight, after, before = self._weight, self._next, self._previous
        while True:
            total, at = heapq.heappop(self._heap)
            right = after[at]
            # Entries of the heap whose places were merged since are out of date.
            if weight[at] and right < len(weight) and weight[at] + weight[right] == total:
                break
        weight[at], weight[right] = total, 0
        after[at] = further = after[right]
        if further < len(weight):
            before[further] = at
            if not self._begins[further]:
                heapq.heappush(self._heap, (total + weight[further], at))
        if not self._begins[at]:
            previous = before[at]
            heapq.heappush(self._heap, (weight[previous] + total, previous))
        return right
