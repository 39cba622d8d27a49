"""Rows that are equal, numbered; and the how-manieth of its kind each is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from splime.times import Ints


def grouped(columns: Sequence[npt.NDArray[np.integer]]) -> tuple[Ints, Ints]:
    """The number of each row's group of equal rows, and the first row of every group.

    Groups are in the order of the first column, then of the second, and so on.

    >>> number, first = grouped([np.array([2, 1, 2, 2]), np.array([0, 5, 0, 4])])
    >>> number.tolist(), first.tolist()
    ([1, 0, 1, 2], [1, 0, 3])
    """
    order = np.lexsort(tuple(reversed(columns)))
    new = np.zeros(len(order), bool)
    new[:1] = True
    for column in columns:
        ordered = column[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    number = np.empty(len(order), np.int64)
    number[order] = new.cumsum() - 1
    return number, order[new]


def occurrence(numbers: Ints) -> Ints:
    """How many equal numbers stand before each one.

    >>> occurrence(np.array([7, 3, 7, 7])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    found = np.empty(len(numbers), np.int64)
    found[order] = np.arange(len(numbers)) - np.searchsorted(ordered, ordered)
    return found
