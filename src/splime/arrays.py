"""Two array operations that numpy lacks, or does slowly."""

from __future__ import annotations

import numpy as np

from splime.times import Ints


def expand(first: Ints, count: Ints) -> tuple[Ints, Ints]:
    """The numbers first, first + 1, … of every item, `count` of them, and whose they are.

    >>> whose, number = expand(np.array([5, 9]), np.array([2, 1]))
    >>> whose.tolist(), number.tolist()
    ([0, 0, 1], [5, 6, 9])
    """
    whose = np.repeat(np.arange(len(first)), count)
    before = count.cumsum() - count
    return whose, np.arange(len(whose)) + (first - before)[whose]


def distinct(numbers: Ints) -> Ints:
    """The distinct numbers in ascending order.

    numpy 2.4's own `unique` hashes integers, which takes 15 times longer for millions of them.

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(numbers)
    new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]
