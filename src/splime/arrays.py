"""Array operations that numpy lacks, or does slowly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from splime.times import Bools, Ints


def expand(first: Ints, count: Ints) -> tuple[Ints, Ints]:
    """The numbers first, first + 1, … of every item, `count` of them, and whose they are.

    >>> whose, number = expand(np.array([5, 9]), np.array([2, 1]))
    >>> whose.tolist(), number.tolist()
    ([0, 0, 1], [5, 6, 9])
    """
    whose = np.repeat(np.arange(len(first)), count)
    before = count.cumsum() - count
    return whose, np.arange(len(whose)) + (first - before)[whose]


def changes(*columns: npt.NDArray[np.integer]) -> Bools:
    """Whether each row differs from the one before it; the first one does.

    >>> changes(np.array([4, 4, 4, 5]), np.array([0, 1, 1, 1])).tolist()
    [True, True, False, True]
    """
    new = np.zeros(len(columns[0]), bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def distinct(numbers: Ints) -> Ints:
    """The distinct numbers in ascending order.

    numpy 2.4's own `unique` hashes integers, which takes 15 times longer for millions of them.

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(numbers)
    return ordered[changes(ordered)]


def batches(costs: Ints, most: int) -> Iterator[slice]:
    """Neighbouring items that cost at most so much together, or one that alone costs more.

    >>> [(some.start, some.stop) for some in batches(np.array([2, 2, 9, 1]), 4)]
    [(0, 2), (2, 3), (3, 4)]
    """
    upto, start = costs.cumsum(), 0
    while start < len(costs):
        most_upto = most + (upto[start - 1] if start else 0)
        stop = max(start + 1, int(np.searchsorted(upto, most_upto, side="right")))
        yield slice(start, stop)
        start = stop


def grouped(columns: Sequence[npt.NDArray[np.integer]]) -> tuple[Ints, Ints]:
    """The number of each row's group of equal rows, and one row of every group, the first.

    Groups are in the order of the first column, then of the second, and so on.

    >>> number, row = grouped([np.array([2, 1, 2, 2]), np.array([0, 5, 0, 4])])
    >>> number.tolist(), row.tolist()
    ([1, 0, 1, 2], [1, 0, 3])
    """
    order = np.lexsort(tuple(reversed(columns)))
    new = changes(*(column[order] for column in columns))
    number = np.empty(len(order), np.int64)
    number[order] = new.cumsum() - 1
    return number, order[new]
