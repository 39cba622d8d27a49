"""How many facts of each predicate (or entity) begin, end and hold at each timestamp.

All that choosing cuts needs, in `names x timestamps` numbers, whatever the number of facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from splime.graph import Ids
from splime.times import Bools, Ints


@dataclass(frozen=True, eq=False)
class Counts:
    """Three tables of names x timestamps: instants, and begins and ends of longer facts."""

    instants: Ints
    begins: Ints
    ends: Ints

    @classmethod
    def of(cls, source: Ids, begin: Ids, end: Ids, names: int, timestamps: int) -> Counts:
        """Count facts, given by the name they belong to and their first and last timestamp.

        >>> one = np.array([0, 0], np.int32)
        >>> counts = Counts.of(one, np.array([0, 1]), np.array([2, 1]), names=1, timestamps=3)
        >>> counts.holding.tolist(), counts.instants.tolist()
        ([[1, 2, 1]], [[0, 1, 0]])
        """

        def table(rows: Bools, times: Ids) -> Ints:
            cells = source[rows].astype(np.int64) * timestamps + times[rows]
            return np.bincount(cells, minlength=names * timestamps).reshape(names, timestamps)

        instant = begin == end
        return cls(table(instant, begin), table(~instant, begin), table(~instant, end))

    @cached_property
    def holding(self) -> Ints:
        """How many facts hold at each timestamp."""
        ended = np.zeros_like(self.ends)
        ended[:, 1:] = self.ends[:, :-1]
        return np.asarray(self.instants + (self.begins - ended).cumsum(axis=1))

    @cached_property
    def totals(self) -> Ints:
        """How many facts each name has."""
        return np.asarray((self.instants + self.begins).sum(axis=1))

    @cached_property
    def _upto(self) -> tuple[Ints, Ints, Ints]:
        """Instants, begins and ends up to and including a timestamp; with a 0 in front."""
        tables = (self.instants, self.begins, self.ends)
        instants, begins, ends = (np.pad(t.cumsum(axis=1), ((0, 0), (1, 0))) for t in tables)
        return instants, begins, ends

    def within(self, source: Ints, left: Ints, right: Ints) -> tuple[Ints, Ids, Ids]:
        """Facts in scopes between two doubled cuts, and their first and last timestamp.

        A scope without facts gets the timestamps between its cuts.
        """
        timestamps = self.instants.shape[1]
        instants, begins, ends = self._upto

        def upto(table: Ints, cut: Ints) -> Ints:
            """Of a cumulated table, how much lies at or before a doubled cut."""
            return table[source, np.clip(cut // 2 + 1, 0, timestamps)]

        # Longer facts are in the scope unless they begin at or after its right cut, or end at or
        # before its left one; instants on a cut are to the left of it.
        longer = upto(begins, right - 1) - upto(ends, left)
        facts = longer + upto(instants, right) - upto(instants, left)
        lowest = np.clip((left + 1) // 2, 0, timestamps - 1)
        highest = np.clip(right // 2, 0, timestamps - 1)
        # A fact that crosses a cut reaches the timestamp at the cut, or the one next to it.
        crosses_left = upto(begins, left) > upto(ends, left)
        crosses_right = upto(begins, right - 1) > upto(ends, right - 1)
        after = np.clip(left // 2 + 1, 0, timestamps)
        before = np.clip((right + 1) // 2 - 1, -1, timestamps - 1)
        on_right = (right % 2 == 0) & (right // 2 < timestamps)
        on_right[on_right] = self.instants[source[on_right], right[on_right] // 2] > 0
        first = np.where(crosses_left, lowest, self._next[source, after])
        last = np.where(crosses_right | on_right, highest, self._previous[source, before + 1])
        empty = facts == 0
        first[empty], last[empty] = lowest[empty], np.maximum(lowest, highest)[empty]
        return facts, first.astype(np.int32), last.astype(np.int32)

    @cached_property
    def _next(self) -> Ints:
        """The first timestamp from t on at which something begins, also for t beyond the last."""
        timestamps = self.instants.shape[1]
        at = np.where(self.instants + self.begins > 0, np.arange(timestamps), timestamps)
        at = np.pad(at, ((0, 0), (0, 1)), constant_values=timestamps)
        return np.asarray(np.minimum.accumulate(at[:, ::-1], axis=1)[:, ::-1])

    @cached_property
    def _previous(self) -> Ints:
        """The last timestamp up to t - 1 at which something ends."""
        at = np.where(self.instants + self.ends > 0, np.arange(self.instants.shape[1]), -1)
        at = np.pad(at, ((0, 0), (1, 0)), constant_values=-1)
        return np.asarray(np.maximum.accumulate(at, axis=1))
