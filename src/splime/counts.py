"""How many facts of each predicate (or entity) begin, end and hold at each timestamp.

This is all that most methods need to choose cuts. Only timestamps at which facts of a name begin or
end take memory, not all names at all timestamps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from splime.arrays import changes, expand
from splime.graph import Ids
from splime.times import Ints

# Scopes looked up at once: bounds the memory.
_AT_ONCE = 1 << 20


class Held(NamedTuple):
    """The timestamps at which facts of each name hold, and their numbers; name after name."""

    offsets: Ints
    """Where the timestamps of each name begin; one more than there are names."""
    time: Ints
    facts: Ints

    def by_name(self) -> list[Ints]:
        """The timestamps of each name."""
        return np.split(self.time, self.offsets[1:-1])


@dataclass(frozen=True, eq=False)
class Counts:
    """Cells of a name and a timestamp: instants, and begins and ends of longer facts.

    Cells exist where facts begin or end. They are ordered by name, then by time.
    """

    timestamps: int
    """How many there are."""
    offsets: Ints
    """Where the cells of each name begin; one more than there are names."""
    time: Ints
    instants: Ints
    begins: Ints
    ends: Ints

    @classmethod
    def of(cls, source: Ids, begin: Ids, end: Ids, names: int, timestamps: int) -> Counts:
        """Count facts, given by the name they belong to and their first and last timestamp.

        >>> one = np.array([0, 0], np.int32)
        >>> counts = Counts.of(one, np.array([0, 1]), np.array([2, 1]), names=1, timestamps=3)
        >>> counts.time.tolist(), counts.instants.tolist(), counts.held.facts.tolist()
        ([0, 1, 2], [0, 1, 0], [1, 2, 1])
        """
        longer = begin != end
        first = source.astype(np.int64) * timestamps + begin
        last = source[longer].astype(np.int64) * timestamps + end[longer]
        # One number for the cell and what happens there: an instant, a begin, an end.
        happens = np.sort(np.concatenate([3 * first + longer, 3 * last + 2]))
        cell, kind = np.divmod(happens, 3)
        new = changes(cell)
        number, cells = new.cumsum() - 1, cell[new]
        tables = (np.bincount(number[kind == code], minlength=len(cells)) for code in range(3))
        name, time = np.divmod(cells, timestamps)
        return cls(timestamps, np.searchsorted(name, np.arange(names + 1)), time, *tables)

    @classmethod
    def of_tables(cls, instants: Ints, begins: Ints, ends: Ints) -> Counts:
        """The same from tables of names x timestamps."""
        name, time = np.nonzero(instants + begins + ends)
        offsets = np.searchsorted(name, np.arange(len(instants) + 1))
        tables = (table[name, time] for table in (instants, begins, ends))
        return cls(instants.shape[1], offsets, time, *tables)

    @cached_property
    def totals(self) -> Ints:
        """How many facts each name has."""
        return np.diff(_upto(self.instants + self.begins)[self.offsets])

    @property
    def held(self) -> Held:
        """How many facts hold at which timestamps; not cached, because it may be large."""
        level = self._level[1:]
        # Facts that continue after a cell hold until the next cell, which is of the same name.
        beyond = np.zeros(len(self.time), np.int64)
        beyond[:-1] = np.where(level[:-1] > 0, np.diff(self.time) - 1, 0)
        cell, time = expand(self.time, beyond + 1)
        facts = level[cell]
        before = _upto(beyond + 1)
        facts[before[:-1]] += self.instants + self.ends
        return Held(before[self.offsets], time, facts)

    @cached_property
    def _level(self) -> Ints:
        """How many longer facts began and did not end before each cell, and after the last.

        It is 0 at the first cell of a name: all facts of earlier names have ended.
        """
        return _upto(self.begins - self.ends)

    def within(self, source: Ints, left: Ints, right: Ints) -> tuple[Ints, Ids, Ids]:
        """Facts in scopes between two doubled cuts, and their first and last timestamp.

        A scope without facts gets the timestamps between its cuts.
        """
        facts, first, last = (np.empty(len(source), kind) for kind in (np.int64, *[np.int32] * 2))
        for start in range(0, len(source), _AT_ONCE):
            chunk = slice(start, start + _AT_ONCE)
            facts[chunk], first[chunk], last[chunk] = self._within(
                source[chunk], left[chunk], right[chunk]
            )
        return facts, first, last

    def _within(self, source: Ints, left: Ints, right: Ints) -> tuple[Ints, Ints, Ints]:
        at_left, before_right, at_right = (
            self._behind(source, cut) for cut in (left, right - 1, right)
        )
        # Longer facts are in the scope unless they begin at or after its right cut, or end at or
        # before its left one; instants on a cut are to the left of it.
        instants, begins, ends = self._cumulated
        on_right = instants[at_right] - instants[before_right]
        longer = begins[before_right] - ends[at_left]
        facts = longer + instants[at_right] - instants[at_left]
        lowest = np.clip((left + 1) // 2, 0, self.timestamps - 1)
        highest = np.clip(right // 2, 0, self.timestamps - 1)
        # A fact that crosses a cut reaches the timestamp at the cut, or the one next to it.
        first = np.where(self._level[at_left] > 0, lowest, self._next[at_left])
        crosses = (self._level[before_right] > 0) | (on_right > 0)
        last = np.where(crosses, highest, self._previous[before_right])
        empty = facts == 0
        first[empty], last[empty] = lowest[empty], np.maximum(lowest, highest)[empty]
        return facts, first, last

    def _behind(self, source: Ints, cut: Ints) -> Ints:
        """The first cell after a doubled cut of a name, which is the number of cells before it."""
        stride = self.timestamps + 1
        at = np.clip(cut // 2 + 1, 0, self.timestamps)
        return np.searchsorted(self._keys, source * stride + at)

    @cached_property
    def _keys(self) -> Ints:
        """The name and the time of each cell, as one ascending number."""
        names = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        return names * (self.timestamps + 1) + self.time

    @cached_property
    def _cumulated(self) -> tuple[Ints, Ints, Ints]:
        """Instants, begins and ends before each cell, and their totals."""
        return _upto(self.instants), _upto(self.begins), _upto(self.ends)

    @cached_property
    def _next(self) -> Ints:
        """The timestamp of the first cell, from each cell on, in which a fact begins."""
        index = np.where(self.instants + self.begins > 0, np.arange(len(self.time)), len(self.time))
        index = np.append(index, len(self.time))
        following: Ints = np.append(self.time, 0)[np.minimum.accumulate(index[::-1])[::-1]]
        return following

    @cached_property
    def _previous(self) -> Ints:
        """The timestamp of the last cell, before each cell, in which a fact ends."""
        index = np.where(self.instants + self.ends > 0, np.arange(len(self.time)) + 1, 0)
        previous: Ints = np.append(0, self.time)[np.append(0, np.maximum.accumulate(index))]
        return previous


def _upto(numbers: npt.NDArray[np.integer]) -> Ints:
    """The sum of the numbers before each position, and the total."""
    upto = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(numbers, out=upto[1:])
    return upto
