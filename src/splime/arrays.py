"""Array operations that numpy lacks, or that are slow in numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from splime.times import Bools, Ints

_Array = TypeVar("_Array", bound=npt.NDArray[Any])
_T = TypeVar("_T", bound=np.integer)


def frozen(array: _Array) -> _Array:
    """Make an array read-only, and return it."""
    array.setflags(write=False)
    return array


class Immutable:
    """A base of frozen dataclasses with read-only arrays.

    Arrays are copied when an object is made, so the caller's array stays writable. Copies and
    unpickled objects are immutable too, and do not keep cached values. Objects are equal if all
    their values are.
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
        """Make an object from arrays without copying them; the caller must not write to them."""
        new = object.__new__(cls)
        names = (field.name for field in fields(cls))  # type: ignore[arg-type]
        new.__setstate__(dict(zip(names, values, strict=True)))
        new._check()
        return new

    def _check(self) -> None:
        """Raise an error if the values do not fit together."""

    def __eq__(self, other: Any) -> bool:  # `object` is a column of some
        return isinstance(other, type(self)) and all(
            np.array_equal(mine, theirs) if isinstance(mine, np.ndarray) else mine == theirs
            for name, mine in self.__getstate__().items()
            for theirs in [getattr(other, name)]
        )

    def __hash__(self) -> int:
        values = self.__getstate__().values()
        return hash(tuple(len(v) if isinstance(v, np.ndarray) else v for v in values))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(
                self, name, frozen(value) if isinstance(value, np.ndarray) else value
            )


def expand(first: Ints, count: Ints) -> tuple[Ints, Ints]:
    """For every item `count` numbers from `first` on; returns the item of each, and the numbers.

    >>> item, number = expand(np.array([5, 9]), np.array([2, 1]))
    >>> item.tolist(), number.tolist()
    ([0, 0, 1], [5, 6, 9])
    """
    item = np.repeat(np.arange(len(first)), count)
    before = count.cumsum() - count
    return item, np.arange(len(item)) + (first - before)[item]


def changes(*columns: npt.NDArray[np.integer]) -> Bools:
    """Whether each row differs from the previous one; true for the first.

    >>> changes(np.array([4, 4, 4, 5]), np.array([0, 1, 1, 1])).tolist()
    [True, True, False, True]
    """
    new = np.zeros(len(columns[0]), bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def distinct(numbers: npt.NDArray[_T]) -> npt.NDArray[_T]:
    """The distinct numbers in ascending order.

    `unique` of numpy 2.4 hashes integers, which takes 15 times longer for millions of them.

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(numbers)
    return ordered[changes(ordered)]


def batches(costs: Ints, most: int) -> Iterator[slice]:
    """Slices of neighbouring items that cost at most `most` together, or of one that costs more.

    >>> [(batch.start, batch.stop) for batch in batches(np.array([2, 2, 9, 1]), 4)]
    [(0, 2), (2, 3), (3, 4)]
    """
    upto, start = costs.cumsum(), 0
    while start < len(costs):
        most_upto = most + (upto[start - 1] if start else 0)
        stop = max(start + 1, int(np.searchsorted(upto, most_upto, side="right")))
        yield slice(start, stop)
        start = stop


def grouped(columns: Sequence[npt.NDArray[np.integer]]) -> tuple[Ints, Ints]:
    """Group equal rows: the number of each row's group, and the first row of every group.

    Groups are ordered by the first column, then by the second, and so on.

    >>> number, row = grouped([np.array([2, 1, 2, 2]), np.array([0, 5, 0, 4])])
    >>> number.tolist(), row.tolist()
    ([1, 0, 1, 2], [1, 0, 3])
    """
    order = np.lexsort(tuple(reversed(columns)))
    new = changes(*(column[order] for column in columns))
    number = np.empty(len(order), np.int64)
    number[order] = new.cumsum() - 1
    return number, order[new]


def in_sorted(keys: npt.NDArray[np.integer], ordered: npt.NDArray[np.integer]) -> Bools:
    """Which keys occur in a sorted array; several times faster than `np.isin` for many."""
    if not len(ordered):
        return np.zeros(len(keys), bool)
    return np.asarray(ordered[np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)] == keys)


def repeated(
    keys: Callable[[], npt.NDArray[np.integer]],
    columns: Callable[[Ints], Sequence[npt.NDArray[np.integer]]],
) -> Ints:
    """The rows that are equal to an earlier one.

    Keys are equal for equal rows, and nearly always different for others; sorting them is several
    times faster than sorting all columns. They are made twice rather than kept: memory is dearer,
    and repeats are rare. Rows of equal keys are compared by their columns.
    """
    ordered = keys()
    ordered.sort()
    twice = distinct(ordered[1:][ordered[1:] == ordered[:-1]])
    del ordered
    if not len(twice):
        return twice.astype(np.int64)
    suspects = np.flatnonzero(in_sorted(keys(), twice))
    compared = columns(suspects)
    # lexsort is stable: of equal rows the first one comes first.
    order = np.lexsort(compared)
    return suspects[order[~changes(*(column[order] for column in compared))]]
