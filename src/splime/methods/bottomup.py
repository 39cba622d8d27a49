"""Change points by bottom-up search with the kernelised mean change: what ruptures'
`BottomUp(model="rbf", jump=1)` does, from sparse signals and with cheap costs of segments.

The cost of a segment of n rows with Gram matrix K is  n - (sum of K over the segment) / n.

Given the same Gram matrix, the change points are exactly those of ruptures. Its own Gram matrix
differs from the one here by rounding, which can decide between unions that cost the same, just as
the order of the signal's columns does in ruptures.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from splime.arrays import expand
from splime.times import Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array  # type: ignore[import-untyped, unused-ignore]

Floats: TypeAlias = npt.NDArray[np.float64]

# Squared distances of unit vectors below this are rounding: those rows are equal. Without it
# the median could be noise, and the kernel's width with it.
_EQUAL = 1e-12
# ruptures clips γ·d² to these before the exponential.
_LEAST, _MOST = 1e-2, 1e2
# Costs that differ by this differ in truth: it is far above any rounding.
_CLEAR = 1e-6
# Up to so many equal rows the order of their unions is worked out.
_LONGEST = 1_000
# The sums over segments of fewer rows than this are made beforehand.
_NARROW = 6
# Entries of small Gram matrices that are computed at once.
_AT_ONCE = 1 << 17


def rbf_gram(signal: csr_array) -> Floats:
    """K[i, j] = exp(-γ |x_i - x_j|²) between the rows of a sparse signal, as ruptures takes it.

    γ is 1 / median squared distance (1 if that is 0), and γ |x_i - x_j|² is clipped to 0.01..100
    for i ≠ j: even equal rows are not quite equal.

    >>> from scipy.sparse import csr_array
    >>> rbf_gram(csr_array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])).round(2).tolist()
    [[1.0, 0.99, 0.37], [0.99, 1.0, 0.37], [0.37, 0.37, 1.0]]
    """
    inner = (signal @ signal.T).toarray()
    gram: Floats = np.add.outer(inner.diagonal(), inner.diagonal())
    gram -= np.multiply(inner, 2, out=inner)
    gram[gram < _EQUAL] = 0
    if len(gram) > 1:
        median = np.median(gram[np.triu(np.ones(gram.shape, bool), 1)])
        gram *= 1 / median if median else 1.0
    np.clip(gram, _LEAST, _MOST, out=gram)
    np.exp(np.negative(gram, out=gram), out=gram)
    np.fill_diagonal(gram, 1)
    return gram


class SparseGram:
    """What `rbf_gram` gives, of many rows of which few are alike: no matrix of all pairs is made.

    Where the inner product of two rows is 0, their entry follows from their lengths alone, and
    rows have few different lengths: 1 and 0, give or take rounding.
    """

    def __init__(self, signal: csr_array) -> None:
        # The matrix is symmetric: its columns are its rows, and sorted.
        inner = (signal @ signal.T).tocsc()
        squares, self.kind = np.unique(inner.diagonal(), return_inverse=True)
        self.rows = len(self.kind)
        row = np.repeat(np.arange(self.rows), np.diff(inner.indptr))
        above = inner.indices > row
        row, column = row[above], inner.indices[above].astype(np.int64)
        self.first = np.searchsorted(row, np.arange(self.rows + 1))
        self.key = row * self.rows + column
        """The row and the column of entries above the diagonal that have an inner product."""
        apart = np.add.outer(squares, squares)
        self._pair = self.kind[row], self.kind[column]
        near = apart[self._pair] - 2 * inner.data[above]
        for distances in (apart, near):
            distances[distances < _EQUAL] = 0
        median = self._median(apart, near) if self.rows > 1 else 0.0
        self.others, self.entries = (_kernel(each, median) for each in (apart, near))
        """The Gram matrix by the kinds of rows without an inner product, and where there is one."""
        self.each_kind = np.eye(len(squares), dtype=np.int64)[self.kind]
        """A row for each row of the signal, with a 1 for its kind."""

    def __len__(self) -> int:
        return self.rows

    def _median(self, apart: Floats, near: Floats) -> float:
        """The median squared distance over all pairs of rows."""
        count = np.bincount(self.kind)
        pairs = np.multiply.outer(count, count)
        np.fill_diagonal(pairs, count * (count - 1))
        left, right = self._pair
        there = np.bincount(left * len(count) + right, minlength=pairs.size).reshape(pairs.shape)
        pairs -= there + there.T
        values, number = np.unique(apart, return_inverse=True)
        # Each pair is there twice, in both orders.
        upto = np.bincount(number.ravel(), pairs.ravel()).astype(np.int64).cumsum() // 2
        total = self.rows * (self.rows - 1) // 2

        def ranked(place: int) -> float:
            """The distance with so many before it in ascending order."""
            before = 0
            for value, until in zip(values, upto.tolist(), strict=True):
                if place < before + np.count_nonzero(near < value):
                    break
                if place < until + np.count_nonzero(near <= value):
                    return float(value)
                before = until
            return float(np.partition(near, place - before)[place - before])

        return (ranked((total - 1) // 2) + ranked(total // 2)) / 2

    def block(self, start: int, end: int) -> Floats:
        """The entries between some rows, as a part of a larger matrix: sums depend on it."""
        size = end - start
        block: Floats = np.empty((size, size + (size < self.rows)))[:, :size]
        kind = self.kind[start:end]
        block[:] = self.others[kind[:, None], kind]
        low, high = self.first[start], self.first[end]
        row, column = np.divmod(self.key[low:high], self.rows)
        inside = column < end
        row, column = row[inside] - start, column[inside] - start
        block[row, column] = block[column, row] = self.entries[low:high][inside]
        np.fill_diagonal(block, 1)
        return block

    def beside(self, steps: int = 1) -> Floats:
        """The entries of each row and the next, or one some steps ahead."""
        row = np.arange(self.rows - steps)
        values: Floats = self.others[self.kind[:-steps], self.kind[steps:]]
        at = np.searchsorted(self.key, row * self.rows + row + steps)
        is_entry = np.append(self.key, -1)[at] == row * self.rows + row + steps
        values[is_entry] = self.entries[at[is_entry]]
        return values


def _kernel(distances: Floats, median: float) -> Floats:
    """exp(-γ d²), clipped as ruptures does."""
    distances = distances * (1 / median if median else 1.0)
    np.clip(distances, _LEAST, _MOST, out=distances)
    return np.exp(-distances)


class Repeated:
    """The Gram matrix of rows that stand there several times in succession: runs of equal rows.

    Its indices are those of the runs; on the diagonal is the entry of two equal rows.
    """

    def __init__(self, entries: Floats, sizes: Ints, upto: Ints, costs: Floats, gains: Floats):
        self.entries, self.sizes = entries, sizes
        self.upto = upto
        """Sums over the rows of all runs before, in units."""
        self.costs: list[float] = costs.tolist()
        self.gains: list[float] = gains.tolist()
        """The near cost of each run, and what it costs to join it with the next."""
        self.at = [0, *sizes.cumsum().tolist()]
        """The first row of each run, and the number of all rows."""

    def __len__(self) -> int:
        return len(self.sizes)

    def block(self, start: int, end: int) -> Floats:
        """The entries between the rows of some runs, as a part of a larger matrix."""
        run = np.repeat(np.arange(start, end), self.sizes[start:end])
        block: Floats = np.empty((len(run), len(run) + (end - start < len(self))))[:, : len(run)]
        block[:] = self.entries[run[:, None], run]
        np.fill_diagonal(block, 1)
        return block


def repeated_grams(inner: csr_array, sizes: Ints, counts: Ints) -> Iterator[tuple[int, Repeated]]:
    """The Gram matrices of several signals, each with its number, from the products of their runs.

    Run i has `sizes[i]` rows, and the first `counts[0]` runs are those of the first signal. Signals
    with as many runs are computed together: most are small.
    """
    first = counts.cumsum() - counts
    order = np.argsort(counts, kind="stable")
    for same in np.split(order, np.flatnonzero(np.diff(counts[order])) + 1):
        count = int(counts[same[0]]) if len(same) else 0
        step = max(1, _AT_ONCE // max(count, 1) ** 2)
        for start in range(0, len(same) if count else 0, step):
            some = same[start : start + step]
            run = (first[some, None] + np.arange(count)).ravel()
            whose, place = expand(inner.indptr[run].astype(np.int64), np.diff(inner.indptr)[run])
            dense = np.zeros((len(some), count, count))
            column = inner.indices[place] - first[some[whose // count]]
            dense.reshape(-1, count)[whose, column] = inner.data[place]
            size = sizes[run].reshape(-1, count)
            for number, *made in zip(some.tolist(), *_repeated(dense, size), strict=True):
                yield number, Repeated(*made)


def _repeated(inner: Floats, sizes: Ints) -> tuple[Floats, Ints, Ints, Floats, Floats]:
    """What `Repeated` holds, of signals with as many runs."""
    squares = np.diagonal(inner, axis1=1, axis2=2)
    entries = squares[:, :, None] + squares[:, None, :]
    entries -= np.multiply(inner, 2, out=inner)
    entries[entries < _EQUAL] = 0
    medians = _medians(entries, sizes)
    entries *= np.divide(1, medians, out=np.ones(len(medians)), where=medians > 0)[:, None, None]
    np.clip(entries, _LEAST, _MOST, out=entries)
    np.exp(np.negative(entries, out=entries), out=entries)

    rows = sizes.sum(axis=1)
    scale = np.array([2.0 ** _bits(count) for count in rows.tolist()])
    upto = np.zeros((len(inner), *(np.array(inner.shape[1:]) + 1)), np.int64)
    inside = upto[:, 1:, 1:]
    inside[:] = np.rint(entries * scale[:, None, None])
    run = np.arange(sizes.shape[1])
    more = sizes * (scale.astype(np.int64)[:, None] - inside[:, run, run])  # each row with itself
    inside *= sizes[:, :, None] * sizes[:, None, :]
    inside[:, run, run] += more
    np.cumsum(inside, axis=1, out=inside)
    np.cumsum(inside, axis=2, out=inside)

    whole = np.diagonal(upto, axis1=1, axis2=2)
    costs = []
    for count in (1, 2):
        units = whole[:, count:] - 2 * np.diagonal(upto, count, axis1=1, axis2=2)
        units += whole[:, :-count]
        size = sizes if count == 1 else sizes[:, 1:] + sizes[:, :-1]
        costs.append(size - units / scale[:, None] / size)
    one, two = costs
    return entries, sizes, upto, one, two - (one[:, 1:] + one[:, :-1])


def _medians(distances: Floats, sizes: Ints) -> Floats:
    """The median squared distance over all pairs of rows of each signal, 0 for one row."""
    rows = sizes.sum(axis=1)
    pairs = rows * (rows - 1)  # each is there twice, in both orders
    weights = sizes[:, :, None] * sizes[:, None, :]
    run = np.arange(sizes.shape[1])
    weights[:, run, run] -= sizes
    medians = np.zeros(len(sizes))
    for signal in np.flatnonzero(pairs):
        half, own = int(pairs[signal]) // 2, (distances[signal].ravel(), weights[signal].ravel())
        low = _ranked(*own, (half - 1) // 2 * 2)
        medians[signal] = low if half % 2 else (low + _ranked(*own, half)) / 2
    return medians


def _ranked(values: Floats, weights: Ints, rank: int) -> float:
    """The value with so much weight before it in ascending order."""
    while True:
        value = values[len(values) // 2]
        less = values < value
        before = int(weights[less].sum())
        if rank < before:
            values, weights = values[less], weights[less]
            continue
        upto = int(weights[values <= value].sum())
        if rank < upto:
            return float(value)
        more = values > value
        values, weights, rank = values[more], weights[more], rank - upto


def join_equal(
    gram: Repeated,
    *,
    epsilon: float | None = None,
    penalty: float | None = None,
    changes: int | None = None,
) -> list[int] | None:
    """Where segments begin if the search ends while it joins equal rows; all runs if it goes on.

    Joining equal rows costs less than anything else, whatever their number, so that a search
    begins with that. Where rounding would decide whether that is so, the answer is None.
    """
    rows, runs = gram.at[-1], len(gram)
    least = 1 - float(gram.entries[0, 0])
    beside = np.diagonal(gram.entries, 1)
    if len(beside) and beside.max() > 1 - least - _CLEAR:
        return None
    if changes is not None:
        unions = rows - 1 - changes
    elif penalty is not None:
        if penalty < least + _CLEAR:
            return None
        unions = rows
    else:
        assert epsilon is not None
        unions = math.ceil(epsilon / least)
        if min(unions * least - epsilon, epsilon - (unions - 1) * least) < _CLEAR:
            return None
    if unions >= rows - runs:
        return gram.at[:-1]
    if gram.sizes.max() > _LONGEST:
        return None
    # Unions of equal rows cost the same but for rounding, which follows from their numbers alone.
    # So the order is known in each run, and of several runs the cheapest union comes first, the
    # earliest on ties: what follows a dearer union in its run comes right after it.
    inside = [equal_unions(size) for size in gram.sizes.tolist()]
    reached = np.concatenate([reached for reached, _ in inside])
    middle = np.concatenate(
        [start + middle for start, (_, middle) in zip(gram.at[:-1], inside, strict=True)]
    )
    joined = middle[np.argsort(reached, kind="stable")[: max(unions, 0)]]
    starts: list[int] = np.delete(np.arange(rows), joined).tolist()
    return starts


@cache
def equal_unions(rows: int) -> tuple[Floats, Ints]:
    """The unions in a run of equal rows, in order: the highest gain so far, and the middle."""
    end_of = {start: start + 1 for start in range(rows)}
    start_of = {end: start for start, end in end_of.items()}

    def candidate(start: int, middle: int, end: int) -> tuple[float, int, int, int]:
        parts = _equal_cost(middle - start) + _equal_cost(end - middle)
        return _equal_cost(end - start) - parts, start, middle, end

    heap = [candidate(start, start + 1, start + 2) for start in range(rows - 1)]
    heapify(heap)
    gains, middles = [], []
    while heap:
        gain, start, middle, end = heappop(heap)
        if end_of.get(start) != middle or end_of.get(middle) != end:
            continue
        gains.append(gain)
        middles.append(middle)
        del end_of[middle], start_of[middle]
        end_of[start], start_of[end] = end, start
        if start in start_of:
            heappush(heap, candidate(start_of[start], start, end))
        if end in end_of:
            heappush(heap, candidate(start, end, end_of[end]))
    return np.maximum.accumulate(np.array(gains, float)), np.array(middles, np.int64)


@cache
def _equal_cost(rows: int) -> float:
    """The exact cost of equal rows that are not all rows."""
    return _exact_cost(_part(np.full((rows, rows), np.exp(-_LEAST))))


@lru_cache(1 << 16)
def _pair_cost(left: int, right: int, entry: float) -> float:
    """The exact cost of two runs that are not all rows."""
    block = np.full((left + right, left + right), np.exp(-_LEAST))
    block[:left, left:] = block[left:, :left] = entry
    return _exact_cost(_part(block))


@lru_cache(1 << 16)
def _narrow_cost(*sides: tuple[float, ...]) -> float:
    """The exact cost of some rows that are not all, from the diagonals of their entries."""
    block = np.zeros((len(sides) + 1, len(sides) + 1))
    for steps, side in enumerate(sides, start=1):
        block += np.diag(side, steps) + np.diag(side, -steps)
    return _exact_cost(_part(block))


def _part(block: Floats) -> Floats:
    """The entries of some rows as a part of a larger matrix, as sums depend on it."""
    part: Floats = np.empty((len(block), len(block) + 1))[:, :-1]
    part[:] = block
    np.fill_diagonal(part, 1)
    return part


def _exact_cost(block: Floats) -> float:
    return float(len(block) - block.sum() / len(block))


def bottom_up(
    gram: Floats | SparseGram | Repeated,
    *,
    epsilon: float | None = None,
    penalty: float | None = None,
    changes: int | None = None,
    min_size: int = 1,
    joined: Callable[[int, float], None] | None = None,
) -> list[int]:
    """The rows at which a new segment begins, the first segment apart.

    Rows are halved again and again into segments of at least `min_size`. Then the two neighbours
    whose union raises the total cost least are joined, the earlier ones on ties, while the total
    is below `epsilon`, or while it rises by less than `penalty`, or while there are more than
    `changes` change points: give one of the three. The total is compared *before* joining, so that
    it may end above `epsilon`. Fewer than 2 · `min_size` rows have no change points. `joined` gets
    the number of change points and the total cost, at first and after each union.

    >>> gram = np.exp(-np.abs(np.subtract.outer([0, 0, 5, 5, 9], [0, 0, 5, 5, 9])))
    >>> bottom_up(gram, changes=2), bottom_up(gram, epsilon=0.5), bottom_up(gram, penalty=2)
    ([2, 4], [2], [])
    """
    starts = list(range(len(gram))) if min_size == 1 else _halve(0, len(gram), min_size)
    if not starts:
        return []
    cost = _costs(gram)
    end_of = dict(zip(starts, [*starts[1:], len(gram)], strict=True))
    start_of = {end: start for start, end in end_of.items()}
    single = len(starts) == len(gram)  # segments of one row cost nothing
    if isinstance(gram, Repeated):
        total = sum(gram.costs)
    else:
        total = 0.0 if single else sum(cost.near(*segment) for segment in end_of.items())
    if joined is not None:
        joined(len(end_of) - 1, total)

    # A candidate is (at least this gain, whether the gain is exact, start, middle, end). Gains from
    # prefix sums are right to within cost.slack, so that only candidates that close to the best
    # need the exact one: real signals are full of ties, and rounding must not decide them in
    # another way than it does in ruptures.
    def candidate(start: int, middle: int, end: int) -> tuple[float, bool, int, int, int]:
        return (cost.gain(start, middle, end) - cost.slack, False, start, middle, end)

    def gone(start: int, middle: int, end: int) -> bool:
        return end_of.get(start) != middle or end_of.get(middle) != end

    heap: list[tuple[float, bool, int, int, int]]
    if isinstance(gram, Repeated):
        gains = enumerate(gram.gains)
        heap = [(gain - cost.slack, False, at, at + 1, at + 2) for at, gain in gains]
    elif single:
        heap = [(gain, True, at, at + 1, at + 2) for at, gain in enumerate(cost.first_gains())]
    else:
        heap = [candidate(*part, end_of[part[1]]) for part in end_of.items() if part[1] in end_of]
    heapify(heap)
    while heap:
        gain, exact, start, middle, end = heappop(heap)
        if gone(start, middle, end):
            continue
        while heap and gone(*heap[0][2:]):
            heappop(heap)
        if not exact:
            most = gain + 2 * cost.slack
            rival = heap[0][0] if heap else math.inf
            if rival <= most or (penalty is not None and gain < penalty <= most):
                heappush(heap, (cost.exact_gain(start, middle, end), True, start, middle, end))
                continue
        if changes is not None:
            join = len(end_of) > changes + 1
        elif penalty is not None:
            join = gain < penalty
        else:
            assert epsilon is not None
            if abs(total - epsilon) <= len(gram) * cost.slack:
                total = sum(cost.exact(*segment) for segment in sorted(end_of.items()))
            join = total < epsilon
        if not join:
            break
        total += cost.gain(start, middle, end)
        del end_of[middle], start_of[middle]
        end_of[start], start_of[end] = end, start
        if start in start_of:
            heappush(heap, candidate(start_of[start], start, end))
        if end in end_of:
            heappush(heap, candidate(start, end, end_of[end]))
        if joined is not None:
            joined(len(end_of) - 1, total)
    return sorted(end_of)[1:]


def _costs(gram: Floats | SparseGram | Repeated) -> _Cost:
    if isinstance(gram, Repeated):
        return _RepeatedCost(gram)
    return _SparseCost(gram) if isinstance(gram, SparseGram) else _SegmentCost(gram)


def _halve(start: int, end: int, min_size: int) -> list[int]:
    """Where the segments begin that come from halving again and again."""
    if end - start < 2 * min_size:
        return [start] if start < end else []
    middle = (start + end) // 2
    return _halve(start, middle, min_size) + _halve(middle, end, min_size)


def _bits(rows: int) -> int:
    """The bits of an entry that leave room for the sum over all rows."""
    return 62 - 2 * rows.bit_length()


class _Cost(ABC):
    """The costs of segments: `near` is right to within `slack`; `exact` sums the Gram matrix.

    Near costs come from sums of integers, K in units of 2^-bits: as many bits as the sum over all
    rows leaves in 63. Sums of floats would lose digits that depend on where the segment lies.
    """

    def __init__(self, rows: int) -> None:
        self.bits = _bits(rows)
        self.unit = 2.0**-self.bits
        # Rounding the entries to units moves the cost of n rows by at most n / 2 units, a gain by
        # twice that; the second term bounds the rounding in the float sums that `exact` makes.
        self.slack = rows * (self.unit + 2 * (rows + 32) * np.finfo(float).eps)
        self.nears: dict[tuple[int, int], float] = {}
        self.summed: dict[tuple[int, int], float] = {}

    @abstractmethod
    def units(self, start: int, end: int) -> int:
        """The sum of K over a segment, in units."""

    @abstractmethod
    def block(self, start: int, end: int) -> Floats:
        """K of a segment."""

    @abstractmethod
    def beside(self) -> Floats:
        """K of each row and the next."""

    def near(self, start: int, end: int) -> float:
        length = end - start
        if length == 1:
            return 0.0
        if (start, end) not in self.nears:
            self.nears[start, end] = length - self.units(start, end) * self.unit / length
        return self.nears[start, end]

    def gain(self, start: int, middle: int, end: int) -> float:
        return self.near(start, end) - (self.near(start, middle) + self.near(middle, end))

    def exact(self, start: int, end: int) -> float:
        if (start, end) not in self.summed:
            self.summed[start, end] = _exact_cost(self.block(start, end))
        return self.summed[start, end]

    def exact_gain(self, start: int, middle: int, end: int) -> float:
        return self.exact(start, end) - (self.exact(start, middle) + self.exact(middle, end))

    def first_gains(self) -> list[float]:
        """The exact gains of joining each row with the next, which follow from their entry."""
        values, number = np.unique(self.beside(), return_inverse=True)
        gains = []
        for value in values:
            block = np.ones((2, 3))[:, :2]  # a part of a larger matrix, as all blocks are
            block[0, 1] = block[1, 0] = value
            gains.append(2 - block.sum() / 2)
        return [float(gain) for gain in np.array(gains)[number]]


class _SegmentCost(_Cost):
    """Costs in O(1), from prefix sums over a dense Gram matrix."""

    def __init__(self, gram: Floats) -> None:
        super().__init__(len(gram))
        self.gram = gram
        self.upto = np.zeros((len(gram) + 1, len(gram) + 1), np.int64)
        inside = self.upto[1:, 1:]
        inside[:] = np.rint(gram * 2.0**self.bits)
        np.cumsum(inside, axis=0, out=inside)
        np.cumsum(inside, axis=1, out=inside)

    def units(self, start: int, end: int) -> int:
        upto = self.upto
        return int(upto[end, end]) - 2 * int(upto[start, end]) + int(upto[start, start])

    def block(self, start: int, end: int) -> Floats:
        return self.gram[start:end, start:end]

    def beside(self) -> Floats:
        beside: Floats = np.diagonal(self.gram, 1)
        return beside


class _SparseCost(_Cost):
    """Costs from the numbers of rows of each kind, and from the entries that differ from that."""

    def __init__(self, gram: SparseGram) -> None:
        super().__init__(len(gram))
        self.gram = gram
        self.others = np.rint(gram.others * 2.0**self.bits).astype(np.int64)
        self.kinds = np.zeros((len(gram) + 1, len(self.others)), np.int64)
        np.cumsum(gram.each_kind, axis=0, out=self.kinds[1:])
        more = np.rint(gram.entries * 2.0**self.bits).astype(np.int64) - self.others[gram._pair]
        self.more = np.append(0, np.cumsum(more))
        # Most segments that a search looks at are narrow.
        sides = [gram.beside(steps) for steps in range(1, min(_NARROW, len(gram)))]
        self.sides: list[list[float]] = [side.tolist() for side in sides]
        """The entries of each row and one some steps ahead, by the steps less 1."""
        widths = [np.zeros(len(gram) + 1, np.int64), np.full(len(gram), 1 << self.bits)]
        for side in sides:
            twice, once = widths[-1], widths[-2][1:-1]  # what two narrower segments share
            corners = 2 * np.rint(side * 2.0**self.bits).astype(np.int64)
            widths.append(twice[:-1] + twice[1:] - once + corners)
        self.widths: list[list[int]] = [units.tolist() for units in widths]
        """The units of each segment of 0, 1, 2, ... rows."""

    def exact(self, start: int, end: int) -> float:
        width = end - start
        if not 1 < width < len(self.widths) or width == len(self.gram):
            return super().exact(start, end)
        sides = self.sides[: width - 1]
        return _narrow_cost(*(tuple(side[start : end - 1 - at]) for at, side in enumerate(sides)))

    def units(self, start: int, end: int) -> int:
        if end - start < len(self.widths):
            return self.widths[end - start][start]
        count = self.kinds[end] - self.kinds[start]
        others = int(count @ self.others @ count) - int(count @ self.others.diagonal())
        key = np.arange(start, end) * self.gram.rows + end
        inside = np.searchsorted(self.gram.key, key)
        more = int((self.more[inside] - self.more[self.gram.first[start:end]]).sum())
        return others + 2 * more + ((end - start) << self.bits)

    def block(self, start: int, end: int) -> Floats:
        return self.gram.block(start, end)

    def beside(self) -> Floats:
        return self.gram.beside()


class _RepeatedCost(_Cost):
    """Costs in O(1) of segments of whole runs."""

    def __init__(self, gram: Repeated) -> None:
        super().__init__(gram.at[-1])
        self.gram = gram

    def near(self, start: int, end: int) -> float:
        if end - start == 1:
            return self.gram.costs[start]
        if (start, end) not in self.nears:
            length = self.gram.at[end] - self.gram.at[start]
            self.nears[start, end] = length - self.units(start, end) * self.unit / length
        return self.nears[start, end]

    def units(self, start: int, end: int) -> int:
        upto = self.gram.upto
        return int(upto[end, end]) - 2 * int(upto[start, end]) + int(upto[start, start])

    def block(self, start: int, end: int) -> Floats:
        return self.gram.block(start, end)

    def beside(self) -> Floats:
        beside: Floats = np.diagonal(self.gram.entries, 1)
        return beside

    def exact(self, start: int, end: int) -> float:
        if end - start > 2 or end - start == len(self.gram):
            return super().exact(start, end)
        # The same few are asked for again and again.
        sizes, entries = self.gram.sizes, self.gram.entries
        if end - start == 1:
            return _equal_cost(int(sizes[start]))
        entry = float(entries[start, start + 1])
        return _pair_cost(int(sizes[start]), int(sizes[start + 1]), entry)
