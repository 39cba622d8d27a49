"""Array operations that numpy lacks, or does slowly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from splime.times import Bools, Ints

_Array = TypeVar("_Array", bound=npt.NDArray[Any])


def frozen(array: _Array) -> _Array:
    """An array that nobody else holds, read-only from now on."""
    array.setflags(write=False)
    return array


class Immutable:
    """A base of frozen dataclasses whose arrays are their own, and read-only to the last.

    What is given is copied: whoever gives an array can go on writing to it. Copies and unpickled
    objects are immutable too; what was cached stays behind.
    """

    def __post_init__(self) -> None:
        self.__setstate__(
            {
                name: np.array(value) if isinstance(value, np.ndarray) else value
                for name, value in self.__getstate__().items()
            }
        )
        self._check()

    @classmethod
    def owning(cls, *values: Any) -> Self:
        """Made from arrays that nobody else will write to, without copying them."""
        made = object.__new__(cls)
        names = (field.name for field in fields(cls))  # type: ignore[arg-type]
        made.__setstate__(dict(zip(names, values, strict=True)))
        made._check()
        return made

    def _check(self) -> None:
        """Raise an error if the values do not fit together."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(
                self, name, frozen(value) if isinstance(value, np.ndarray) else value
            )


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
