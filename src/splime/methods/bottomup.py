"""Change points by bottom-up search with the kernelised mean change: what ruptures'
`BottomUp(model="rbf", jump=1)` does, from sparse signals and with segment costs in O(1).

The cost of a segment of n rows with Gram matrix K is  n - (sum of K over the segment) / n.

Given the same Gram matrix, the change points are exactly those of ruptures. Its own Gram matrix
differs from the one here by rounding, which can decide between unions that cost the same, just as
the order of the signal's columns does in ruptures.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.sparse import csr_array  # type: ignore[import-untyped, unused-ignore]

Floats: TypeAlias = npt.NDArray[np.float64]

# Squared distances of unit vectors below this are rounding: those rows are equal. Without it
# the median could be noise, and the kernel's width with it.
_EQUAL = 1e-12
# ruptures clips γ·d² to these before the exponential.
_LEAST, _MOST = 1e-2, 1e2


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


def bottom_up(
    gram: Floats,
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
    starts = _halve(0, len(gram), min_size)
    if not starts:
        return []
    cost = _SegmentCost(gram)
    end_of = dict(zip(starts, [*starts[1:], len(gram)], strict=True))
    start_of = {end: start for start, end in end_of.items()}
    total = sum(cost.near(*segment) for segment in end_of.items())
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

    heap = [candidate(start, end, end_of[end]) for start, end in end_of.items() if end in end_of]
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


def _halve(start: int, end: int, min_size: int) -> list[int]:
    """Where the segments begin that come from halving again and again."""
    if end - start < 2 * min_size:
        return [start] if start < end else []
    middle = (start + end) // 2
    return _halve(start, middle, min_size) + _halve(middle, end, min_size)


class _SegmentCost:
    """The costs of segments: `near` in O(1), right to within `slack`; `exact` by summing.

    The prefix sums are over integers, K in units of 2^-bits: as many bits as the sum over all rows
    leaves in 63. Sums of floats would lose digits that depend on where the segment lies.
    """

    def __init__(self, gram: Floats) -> None:
        rows = len(gram)
        bits = 62 - 2 * rows.bit_length()
        self.gram = gram
        self.unit = 2.0**-bits
        # Rounding the entries to units moves the cost of n rows by at most n / 2 units, a gain by
        # twice that; the second term bounds the rounding in the float sums that `exact` makes.
        self.slack = rows * (self.unit + 2 * (rows + 32) * np.finfo(float).eps)
        self.upto = np.zeros((rows + 1, rows + 1), np.int64)
        inside = self.upto[1:, 1:]
        inside[:] = np.rint(gram * 2.0**bits)
        np.cumsum(inside, axis=0, out=inside)
        np.cumsum(inside, axis=1, out=inside)
        self.summed: dict[tuple[int, int], float] = {}

    def near(self, start: int, end: int) -> float:
        upto = self.upto
        block = int(upto[end, end]) - 2 * int(upto[start, end]) + int(upto[start, start])
        return (end - start) - block * self.unit / (end - start)

    def gain(self, start: int, middle: int, end: int) -> float:
        return self.near(start, end) - (self.near(start, middle) + self.near(middle, end))

    def exact(self, start: int, end: int) -> float:
        if (start, end) not in self.summed:
            length = end - start
            self.summed[start, end] = length - self.gram[start:end, start:end].sum() / length
        return self.summed[start, end]

    def exact_gain(self, start: int, middle: int, end: int) -> float:
        return self.exact(start, end) - (self.exact(start, middle) + self.exact(middle, end))
