"""Change points by bottom-up search with the kernelised mean change: what ruptures'
`BottomUp(model="rbf", jump=1)` does, of many sparse signals at once.

The cost of a segment of n rows with Gram matrix K is  n - (sum of K over the segment) / n.

Given the same Gram matrix, the change points are exactly those of ruptures. Its own Gram matrix
differs from the one here by rounding, which can decide between unions that cost the same, just as
the order of the signal's columns does in ruptures.

Neighbouring rows that are equal are one *run* with a size. Runs, and rows, are counted over all
signals; a segment is given by its first run and the one behind its last.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from splime.arrays import batches, changes as differ, distinct, expand, grouped
from splime.times import Bools, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array  # type: ignore[import-untyped, unused-ignore]

Floats: TypeAlias = npt.NDArray[np.float64]

# Squared distances of unit vectors below this are rounding: those rows are equal. Without it
# the median could be noise, and the kernel's width with it.
_EQUAL = 1e-12
# ruptures clips γ·d² to these before the exponential.
_LEAST, _MOST = 1e-2, 1e2
# What it costs to join equal rows, whatever their number.
_EQUAL_GAIN = 1 - math.exp(-_LEAST)
# Squared distances of unit vectors are at most 2, and so is their median: what is farther apart
# than this is never clipped to the least, and costs more to join than equal rows.
_APART = 2 * _LEAST + 1e-4
# Costs that differ by this differ in truth: it is far above any rounding.
_CLEAR = 1e-6
# Up to so many equal rows the order of their unions is worked out.
_LONGEST = 1_000
# Products of rows that are made together, and entries that are summed together: bound the memory.
_PRODUCTS, _ENTRIES = 1 << 25, 1 << 20


class Signals(NamedTuple):
    """Runs of equal rows, signal after signal."""

    scores: csr_array
    """A row for each run, of length 1 or 0; different signals have no column in common."""
    sizes: Ints
    """How many equal rows each run stands for."""
    counts: Ints
    """How many runs each signal has, at least one."""

    @classmethod
    def of_rows(cls, scores: csr_array) -> Signals:
        """One signal, row by row; none if there are no rows."""
        rows = scores.shape[0]
        return cls(scores, np.ones(rows, np.int64), np.full(min(rows, 1), rows))


class Limit(NamedTuple):
    """When to stop joining: one of the three."""

    epsilon: float | None = None
    penalty: float | None = None
    changes: int | None = None

    def equal_unions(self, rows: Ints) -> Ints | None:
        """How many unions of equal rows signals of so many rows allow; None if rounding decides."""
        if self.changes is not None:
            return np.maximum(rows - 1 - self.changes, 0)
        if self.penalty is not None:
            return rows if self.penalty > _EQUAL_GAIN + _CLEAR else None
        assert self.epsilon is not None
        unions = math.ceil(self.epsilon / _EQUAL_GAIN)
        over = unions * _EQUAL_GAIN - self.epsilon
        return np.full(len(rows), unions) if _CLEAR < over < _EQUAL_GAIN - _CLEAR else None


def change_rows(signals: Signals, limit: Limit, *, min_size: int = 1) -> tuple[Ints, Ints]:
    """The rows at which a new segment begins, and whose they are; without the first rows.

    Joining equal rows costs less than anything else, so that a search begins with that. It is not
    searched for: in what order equal rows are joined follows from their number.

    >>> from scipy.sparse import csr_array
    >>> rows = Signals.of_rows(csr_array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]))
    >>> [change_rows(rows, Limit(**stop))[1].tolist() for stop in ({"changes": 1}, {"penalty": 2})]
    [[2], []]
    """
    scores, sizes, counts = signals
    first = counts.cumsum() - counts
    signal = np.repeat(np.arange(len(counts)), counts)
    rows, at = np.add.reduceat(sizes, first), sizes.cumsum() - sizes
    unions = limit.equal_unions(rows) if min_size == 1 else None
    if unions is None:
        ends_early, by_rows = np.zeros(len(counts), bool), np.ones(len(counts), bool)
    else:
        squares = scores.multiply(scores).sum(axis=1)
        distance = squares[1:] + squares[:-1] - 2 * scores[1:].multiply(scores[:-1]).sum(axis=1)
        alike = (distance < _APART) & ~differ(signal)[1:]
        by_rows = np.bincount(signal[1:], alike, len(counts)) > 0
        ends_early = (unions < rows - counts) & ~by_rows
        by_rows |= ends_early & (np.maximum.reduceat(sizes, first) > _LONGEST)
        ends_early &= ~by_rows
    starts = [np.empty(0, np.int64)]
    if unions is not None and ends_early.any():
        own = ends_early[signal]
        starts.append(_starts_in_runs(at[own], sizes[own], signal[own], unions))
    # The others are searched together: those of about as many runs need about as many steps.
    times = np.where(by_rows[signal], sizes, 1)
    count = np.add.reduceat(times, first)
    order = np.argsort(count, kind="stable")
    order = order[~ends_early[order]]
    for batch in batches(_products(scores, times, signal)[order], _PRODUCTS):
        some = order[batch]
        _, run = expand(first[some], counts[some])
        whose, row = expand(at[run], times[run])
        run = run[whose]
        gram = Gram(Signals(scores[run], (sizes // times)[run], count[some]))
        starts.append(row[bottom_up(gram, limit, first_segments(count[some], min_size)).starts])
    start = np.sort(np.concatenate(starts))
    whose = np.searchsorted(at[first], start, side="right") - 1
    later = start > at[first][whose]
    return whose[later], start[later]


def _products(scores: csr_array, times: Ints, signal: Ints) -> Ints:
    """How many products a Gram matrix of each signal takes, if each run is there so many times."""
    run = np.repeat(np.arange(len(times)), np.diff(scores.indptr))
    column = np.bincount(scores.indices, times[run], scores.shape[1])
    products = np.bincount(signal, times)
    products += np.bincount(signal[run], times[run] * column[scores.indices], len(products))
    return products.astype(np.int64)


def first_segments(counts: Ints, min_size: int) -> Ints:
    """Where segments begin if signals are halved repeatedly, while `min_size` allows it."""

    def halve(start: int, end: int) -> list[int]:
        middle = start + (end - start) // 2
        small = end - start < 2 * min_size
        return [start] if small else halve(start, middle) + halve(middle, end)

    if min_size == 1:
        return np.arange(counts.sum())
    upto = counts.cumsum()
    bounds = zip((upto - counts).tolist(), upto.tolist(), strict=True)
    return np.array([at for start, end in bounds for at in halve(start, end)], np.int64)


def _starts_in_runs(at: Ints, sizes: Ints, signal: Ints, unions: Ints) -> Ints:
    """Where segments begin if a search ends while it joins equal rows, after so many unions.

    Unions of equal rows cost the same but for rounding, which follows from their numbers alone.
    So the order is known in each run, and of several runs the cheapest union comes first, the
    earliest on ties: what follows a dearer union in its run comes right after it.
    """
    lengths, number = np.unique(sizes, return_inverse=True)
    gains, middles = _unions_of_equal(lengths)
    before = np.append(0, (lengths - 1).cumsum())
    run, place = expand(before[number], sizes - 1)
    order = np.lexsort((gains[place], signal[run]))
    run, place = run[order], place[order]
    beginning = differ(signal[run])
    rank = np.arange(len(run)) - np.flatnonzero(beginning)[beginning.cumsum() - 1]
    joined = rank < unions[signal[run]]
    _, row = expand(at, sizes)
    return np.setdiff1d(row, (at[run] + middles[place])[joined], assume_unique=True)


def _unions_of_equal(sizes: Ints) -> tuple[Floats, Ints]:
    """The unions in runs of equal rows, run after run in order: the highest gain so far, and how
    many rows of the run lie before the middle."""
    costs = EqualRows(sizes)
    unions = bottom_up(costs, Limit(changes=0), np.arange(sizes.sum()))
    order = np.argsort(costs.signal[unions.middle], kind="stable")
    gains = np.split(unions.gain[order], (sizes - 1).cumsum()[:-1])
    middles = unions.middle[order]
    highest = np.concatenate([np.maximum.accumulate(gain) for gain in gains])
    return highest, middles - costs.first[costs.signal[middles]]


class Unions(NamedTuple):
    """What a search did."""

    starts: Ints
    """Where the segments begin that are left."""
    middle: Ints
    """Where the right one began of two segments that were joined, in order."""
    gain: Floats
    """How much that added to the total cost."""


def bottom_up(costs: Gram | EqualRows, limit: Limit, starts: Ints) -> Unions:
    """Join neighbouring segments of each signal until its limit.

    The two neighbours whose union raises the total cost least are joined, the earlier ones on ties,
    while the total is below `epsilon`, or while it rises by less than `penalty`, or while there are
    more than `changes` change points. The total is compared *before* joining, so that it may end
    above `epsilon`. A step joins two segments of every signal that has not reached its limit.
    """
    segments = _Segments(costs, limit, starts)
    middles, gains = [np.empty(0, np.int64)], [np.empty(0)]
    new = starts[segments.inside[starts]]
    while True:
        segments.weigh(new)
        middle = segments.within_limit(segments.cheapest())
        if not len(middle):
            break
        new, gain = segments.join(middle)
        middles.append(middle)
        gains.append(gain)
    return Unions(np.flatnonzero(segments.begins), np.concatenate(middles), np.concatenate(gains))


class _Segments:
    """The segments of all signals, each by its first run, and what the unions of two would cost.

    A union is given by the *middle*, where its right segment begins. Near gains are right to within
    the slack, so that only candidates that close to the best need the exact one: real signals are
    full of ties, and rounding must not decide them in another way than it does in ruptures.
    """

    def __init__(self, costs: Gram | EqualRows, limit: Limit, starts: Ints) -> None:
        self.costs, self.limit = costs, limit
        self.first, self.signal = costs.first, costs.signal
        runs = len(self.signal)
        self.slack = costs.slack[self.signal]
        self.inside = np.append(~differ(self.signal), False)
        """Whether the segment that begins there has one before it in its signal."""
        self.end, self.begin = np.zeros((2, runs + 1), np.int64)
        """Where a segment ends, and where the one before it begins."""
        self.end[starts] = np.append(starts[1:], runs)
        self.begin[self.end[starts]] = starts
        self.cost, self.union = np.zeros((2, runs))
        self.cost[starts] = costs.near(starts, self.end[starts])
        self.count = np.bincount(self.signal[starts], minlength=len(self.first))
        self.total = np.zeros(len(self.first))
        np.add.at(self.total, self.signal[starts], self.cost[starts])
        self.low, self.high = np.full((2, runs), np.inf)
        self.exact, self.exact_union = np.full((2, runs), np.nan)
        self.begins = np.zeros(runs, bool)
        self.begins[starts] = True

    def weigh(self, middle: Ints) -> None:
        """Compute the near gains of unions."""
        left = self.begin[middle]
        self.union[middle] = self.costs.near(left, self.end[middle])
        gain, slack = self._gain(middle), self.slack[middle]
        self.low[middle], self.high[middle] = gain - slack, gain + slack
        self.exact_union[middle] = np.nan

    def _gain(self, middle: Ints) -> Floats:
        gain: Floats = self.union[middle] - (self.cost[self.begin[middle]] + self.cost[middle])
        return gain

    def cheapest(self) -> Ints:
        """The cheapest union of each signal, the earliest on ties."""
        low, high, penalty = self.low, self.high, self.limit.penalty
        while True:
            best = np.minimum.reduceat(high, self.first)
            middle = np.flatnonzero(low <= np.minimum(best, np.finfo(float).max)[self.signal])
            whose = self.signal[middle]
            unclear = np.bincount(whose, minlength=len(self.first))[whose] > 1
            if penalty is not None:
                unclear |= (low[middle] < penalty) & (penalty <= high[middle])
            unclear &= low[middle] < high[middle]
            if not unclear.any():
                return middle[differ(whose)]
            self._weigh_exactly(middle[unclear])

    def _weigh_exactly(self, middle: Ints) -> None:
        left = self.begin[middle]
        parts = np.concatenate([left, middle])
        parts = distinct(parts[np.isnan(self.exact[parts])])
        self.exact[parts] = self.costs.exact(parts, self.end[parts])
        self.exact_union[middle] = self.costs.exact(left, self.end[middle])
        gain = self.exact_union[middle] - (self.exact[left] + self.exact[middle])
        self.low[middle] = self.high[middle] = gain

    def within_limit(self, middle: Ints) -> Ints:
        """The unions of signals that have not reached their limit; the others are done."""
        whose = self.signal[middle]
        if self.limit.changes is not None:
            goes_on = self.count[whose] > self.limit.changes + 1
        elif self.limit.penalty is not None:
            goes_on = self.low[middle] < self.limit.penalty
        else:
            assert self.limit.epsilon is not None
            far = np.abs(self.total[whose] - self.limit.epsilon)
            for one in whose[far <= (self.count * self.costs.slack)[whose]]:
                starts = self.first[one] + np.flatnonzero(self.begins[self.signal == one])
                self.total[one] = self.costs.exact(starts, self.end[starts]).cumsum()[-1]
            goes_on = self.total[whose] < self.limit.epsilon
        if not goes_on.all():
            stops = np.zeros(len(self.first), bool)
            stops[whose[~goes_on]] = True
            self.low[stops[self.signal]] = self.high[stops[self.signal]] = np.inf
        return middle[goes_on]

    def join(self, middle: Ints) -> tuple[Ints, Floats]:
        """Join the segments of unions; the unions that change by it, and the gains."""
        left, right, gain = self.begin[middle], self.end[middle], self._gain(middle)
        whose = self.signal[middle]
        self.total[whose] += gain
        self.count[whose] -= 1
        self.low[middle] = self.high[middle] = np.inf
        self.begins[middle] = False
        self.end[left], self.begin[right] = right, left
        self.cost[left], self.exact[left] = self.union[middle], self.exact_union[middle]
        return np.concatenate([left[self.inside[left]], right[self.inside[right]]]), gain


class EqualRows:
    """Costs of signals that are parts of larger ones, and of which all rows are equal."""

    def __init__(self, counts: Ints) -> None:
        self.first = counts.cumsum() - counts
        self.signal = np.repeat(np.arange(len(counts)), counts)
        self.slack = np.zeros(len(counts))
        self._costs: Floats = np.array([_equal_cost(rows) for rows in range(int(counts.max()) + 1)])

    def exact(self, start: Ints, end: Ints) -> Floats:
        """The costs of segments."""
        costs: Floats = self._costs[end - start]
        return costs

    near = exact


@cache
def _equal_cost(rows: int) -> float:
    block = np.full((1, rows, rows), np.exp(-_LEAST))
    return float(_summed(block, np.array([False]))[0]) if rows else 0.0


def _summed(blocks: Floats, whole: Bools) -> Floats:
    """The costs of segments of as many rows, from their Gram matrices.

    The sum over a part of a larger matrix is rounded differently from that over a whole one.
    """
    rows = blocks.shape[1]
    blocks[:, np.arange(rows), np.arange(rows)] = 1
    parts = np.empty((len(blocks), rows, rows + 1))[:, :, :rows]
    parts[:] = blocks
    sums = parts.sum(axis=(1, 2))
    sums[whole] = blocks[whole].reshape(-1, rows**2).sum(axis=1)
    costs: Floats = rows - sums / rows
    return costs


def _kernel(distances: Floats, gamma: Floats) -> Floats:
    """exp(-γ d²), clipped as ruptures does."""
    kernel: Floats = np.exp(-np.clip(distances * gamma, _LEAST, _MOST))
    return kernel


class Gram:
    """K[i, j] = exp(-γ |x_i - x_j|²) between the rows of signals, as ruptures takes it.

    γ is 1 / median squared distance (1 if that is 0) of a signal, and γ |x_i - x_j|² is clipped to
    0.01..100 for i ≠ j: even equal rows are not quite equal. No matrix of all pairs is made: where
    two rows have no column in common, their entry follows from their lengths alone.

    >>> from scipy.sparse import csr_array
    >>> gram = Gram(Signals.of_rows(csr_array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])))
    >>> gram.entries(np.array([0, 0]), np.array([1, 2])).round(2).tolist()
    [0.99, 0.37]
    """

    def __init__(self, signals: Signals) -> None:
        scores, self.sizes, self.counts = signals
        self.runs = len(self.sizes)
        self.end = self.counts.cumsum()
        self.first = self.end - self.counts
        self.signal = np.repeat(np.arange(len(self.counts)), self.counts)
        self.at = np.append(0, self.sizes.cumsum())
        """How many rows there are before each run."""
        # The matrix is symmetric: its columns are its rows, and sorted.
        inner = (scores @ scores.T).tocsc()
        self.squares = inner.diagonal()
        row = np.repeat(np.arange(self.runs), np.diff(inner.indptr))
        above = inner.indices > row
        row, column = row[above], inner.indices[above].astype(np.int64)
        self.key = np.append(row * self.runs + column, self.runs**2)
        """The row and the column of entries above the diagonal that have an inner product; behind
        them comes one that is no entry."""
        self.distance = self.squares[row] + self.squares[column] - 2 * inner.data[above]
        self.distance[self.distance < _EQUAL] = 0
        medians = self._medians(row, column)
        self.gamma = np.divide(1, medians, out=np.ones(len(medians)), where=medians > 0)

        # Near costs come from sums of integers, K in units of 2^-bits: as many bits as the sum over
        # all rows of a signal leaves in 63. Sums of floats would lose digits that depend on where
        # the segment lies; sums over many signals may overflow, their differences do not.
        rows = self.at[self.end] - self.at[self.first]
        self.scale = np.exp2(62 - 2 * np.ceil(np.log2(rows + 1)))
        # Rounding to units moves the cost of n rows by at most n / 2 units, a gain by twice that;
        # the second term bounds the rounding in the sums of floats that `exact` makes.
        self.slack = rows * (1 / self.scale + 2 * (rows + 64) * np.finfo(float).eps)
        self.apart = [
            np.rint(_kernel(np.full(len(rows), far), self.gamma) * self.scale).astype(np.int64)
            for far in (0.0, 1.0, 2.0)
        ]
        """The entry of two rows without a common column, by how many of them are not empty."""
        self.empty = np.append(0, np.cumsum(self.sizes * (self.squares == 0)))
        """How many rows without any column there are before each run."""
        mine = self.signal[row]
        more = np.rint(_kernel(self.distance, self.gamma[mine]) * self.scale[mine])
        more = (more.astype(np.int64) - self.apart[2][mine]) * self.sizes[row] * self.sizes[column]
        self.more = np.append(0, more.cumsum())
        self.first_entry = np.searchsorted(row, np.arange(self.runs))
        equal, unit = self.apart[0][self.signal], self.scale.astype(np.int64)[self.signal]
        other = np.where(self.squares == 0, equal, self.apart[2][self.signal])
        own = self.sizes**2 * (equal - other) + self.sizes * (unit - equal)
        self.own = np.append(0, own.cumsum())
        """What entries within runs and those in `key` add to entries without a common column."""

    def _medians(self, row: Ints, column: Ints) -> Floats:
        """The median squared distance over all pairs of rows of each signal; 0 for one row."""
        # Rows have few different lengths: 1 and 0, give or take rounding. So there are few kinds of
        # pairs without a common column. Pairs are counted in both orders.
        sizes, signals = self.sizes, len(self.first)
        number, kind = grouped([self.signal, self.squares.view(np.int64)])
        owner, rows = self.signal[kind], np.bincount(number, sizes)
        kinds = np.bincount(owner)
        first = (kinds.cumsum() - kinds)[owner]
        left, right = expand(first, kinds[owner])
        pair = kinds[owner].cumsum() - kinds[owner] - first
        weight = rows[left] * (rows[right] - (left == right))
        weight -= np.bincount(pair[number] + number, sizes * (sizes - 1), len(weight))
        there = sizes[row] * sizes[column]
        for one, other in ((row, column), (column, row)):
            weight -= np.bincount(pair[number[one]] + number[other], there, len(weight))
        apart = self.squares[kind[left]] + self.squares[kind[right]]
        apart[apart < _EQUAL] = 0
        equal = np.bincount(self.signal, sizes * (sizes - 1))
        equal[np.bincount(self.signal, sizes) == 1] = 2  # one row alone, as if it were two
        whose = np.concatenate([self.signal[row], owner[left], np.arange(signals)])
        distance = np.concatenate([self.distance, apart, np.zeros(signals)])
        weight = np.concatenate([2 * there, weight, equal])
        order = np.lexsort((distance, whose))
        distance, upto = distance[order], weight[order].cumsum()
        pairs = np.bincount(whose, weight)
        half, before = pairs // 2, pairs.cumsum() - pairs
        medians = np.zeros(signals)
        for rank in ((half - 1) // 2 * 2, half // 2 * 2):
            medians += distance[np.searchsorted(upto, before + rank, side="right")] / 2
        return medians

    def near(self, start: Ints, end: Ints) -> Floats:
        """The costs of segments, right to within the slack."""
        mine = self.signal[start]
        none, one, two = (units[mine] for units in self.apart)
        rows, empty = self.at[end] - self.at[start], self.empty[end] - self.empty[start]
        full = rows - empty
        units = full**2 * two + 2 * full * empty * one + empty**2 * none
        units += self.own[end] - self.own[start]
        if len(start):
            whose, run = expand(start, end - start)
            last = np.searchsorted(self.key, run * self.runs + end[whose])
            more = self.more[last] - self.more[self.first_entry[run]]
            units += 2 * np.add.reduceat(more, (end - start).cumsum() - (end - start))
        costs: Floats = rows - units / self.scale[mine] / rows
        return costs

    def entries(self, left: Ints, right: Ints) -> Floats:
        """K between rows of two runs."""
        key = np.minimum(left, right) * self.runs + np.maximum(left, right)
        at = np.searchsorted(self.key, key)
        known = self.key[at] == key
        distances = self.squares[left] + self.squares[right]
        distances[known] = self.distance[at[known]]
        distances[(left == right) | (distances < _EQUAL)] = 0
        return _kernel(distances, self.gamma[self.signal[left]])

    def exact(self, start: Ints, end: Ints) -> Floats:
        """The costs of segments, with the rounding that ruptures has."""
        rows = self.at[end] - self.at[start]
        order = np.argsort(rows, kind="stable")
        costs = np.empty(len(rows))
        for same in np.split(order, np.flatnonzero(np.diff(rows[order])) + 1):
            for batch in batches(rows[same] ** 2, _ENTRIES):
                costs[same[batch]] = self._exact(start[same[batch]], end[same[batch]])
        return costs

    def _exact(self, start: Ints, end: Ints) -> Floats:
        """The costs of segments of as many rows."""
        count = end - start
        whose, run = expand(start, count)
        left, right = expand(start[whose], count[whose])
        entries = self.entries(run[left], right)
        # The place of each row's run among the runs of all segments, and of that run's entries.
        place = np.repeat(np.arange(len(run)), self.sizes[run]).reshape(len(start), -1)
        entry = (count[whose].cumsum() - count[whose])[place]
        within = place - place[:, :1]
        blocks = entries[entry[:, :, None] + within[:, None, :]]
        whole = (start == self.first[self.signal[start]]) & (end == self.end[self.signal[start]])
        return _summed(blocks, whole)
