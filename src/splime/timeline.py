"""The ordered timestamps of a graph, and the dates they stand for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from splime.arrays import Immutable, distinct
from splime.errors import UsageError, check_fields, counted
from splime.times import Granularity, Ints, When, format_ticks, tick_range


@dataclass(frozen=True, eq=False)
class Timeline(Immutable):
    """Timestamps 0..n-1; timestamp `i` stands for the ticks `starts[i]` to `ends[i]`.

    Without buckets the timestamps are the distinct ticks of the facts. A tick between two
    timestamps belongs to the earlier one.

    >>> years = Timeline.of(np.array([1990, 1985, 2001, 1990]), "year")
    >>> len(years), years.labels(), years.index(np.array([1985, 1995, 2020])).tolist()
    (3, ['1985', '1990', '2001'], [0, 1, 2])
    """

    granularity: Granularity
    starts: Ints
    ends: Ints

    def _check(self) -> None:
        check_fields(self)
        if not len(self.starts):
            raise UsageError("a timeline needs at least one timestamp")
        if (self.starts > self.ends).any() or (self.starts[1:] <= self.ends[:-1]).any():
            raise UsageError("timestamps must be ordered and must not overlap")

    @classmethod
    def of(cls, ticks: Ints, granularity: Granularity) -> Timeline:
        """One timestamp for every distinct tick."""
        starts = distinct(ticks.astype(np.int64))
        return cls(granularity, starts, starts.copy())

    def __len__(self) -> int:
        return len(self.starts)

    def __repr__(self) -> str:
        first, last = format_ticks(np.array([self.first, self.last]), self.granularity)
        return f"Timeline({counted(len(self), 'timestamp')} by {self.granularity}, {first}..{last})"

    @property
    def first(self) -> int:
        """The first tick."""
        return int(self.starts[0])

    @property
    def last(self) -> int:
        """The last tick."""
        return int(self.ends[-1])

    @property
    def bucketed(self) -> bool:
        """Whether any timestamp stands for more than one tick."""
        return bool((self.starts != self.ends).any())

    def index(self, ticks: Ints) -> npt.NDArray[np.int32]:
        """The timestamp of every tick; ticks outside take the first or the last."""
        span = self.last - self.first
        if span < 4 * len(ticks) and span < 1 << 24:
            # A table is several times faster than a binary search for each fact.
            every = np.arange(self.first, self.last + 1)
            table = (np.searchsorted(self.starts, every, side="right") - 1).astype(np.int32)
            return np.asarray(table[np.clip(ticks, self.first, self.last) - self.first])
        timestamps = (np.searchsorted(self.starts, ticks, side="right") - 1).astype(np.int32)
        return np.maximum(timestamps, 0)

    def labels(self) -> list[str]:
        """The date of each timestamp, or the first and last date of a bucket."""
        pairs = zip(
            format_ticks(self.starts, self.granularity),
            format_ticks(self.ends, self.granularity),
            strict=True,
        )
        return [first if first == last else f"{first}..{last}" for first, last in pairs]

    def label(self, index: int) -> str:
        """The date of one timestamp, or the dates of a bucket.

        >>> Timeline("year", np.array([1900, 1951]), np.array([1950, 1960])).label(1)
        '1951..1960'
        """
        if not -len(self) <= index < len(self):
            raise UsageError(f"timestamp {index} does not exist; there are {len(self):,}")
        return Timeline(self.granularity, self.starts[[index]], self.ends[[index]]).labels()[0]

    def interval(self, begin: When, end: When, *, ahead: bool = False) -> tuple[int, int]:
        """The first and last tick from one date to another, which must overlap the graph's time.

        With `ahead` it may also be later.

        >>> Timeline.of(np.array([1990, 2000]), "year").interval("1995-05", 2100)
        (1995, 2100)
        """
        first = tick_range(begin, self.granularity)[0]
        last = tick_range(end, self.granularity)[1]
        if first > last:
            raise UsageError(f"the time {begin} to {end} ends before it begins")
        if last < self.first or (first > self.last and not ahead):
            given = f"{begin}" if begin == end else f"{begin} to {end}"
            ours = format_ticks(np.array([self.first, self.last]), self.granularity)
            later = (
                f": ask about {ours[1]} for what holds today, at its end; a forecast needs a graph"
                " without training (splime ask FILE), or a model trained with past='all'"
                " (--past all)"
            )
            raise UsageError(
                f"{given} lies outside of the graph's time, {ours[0]} to {ours[1]}"
                f"{later if first > self.last else ''}"
            )
        return first, last

    def bucket(
        self, begin: Ints, end: Ints, *, min_facts: int = 300, facts: Ints | None = None
    ) -> Timeline:
        """Merge neighbouring timestamps until each bucket holds enough facts.

        `facts` has the number of facts with each begin and end; by default 1.

        The paper's rule: a bucket grows while fewer than `min_facts` facts have their begin or
        end inside it, or while fewer than `min_facts` facts end at or after its last timestamp.

        >>> years = Timeline.of(np.arange(1990, 2000), "year")
        >>> years.bucket(np.arange(1990, 2000), np.arange(1990, 2000), min_facts=4).labels()
        ['1990..1993', '1994..1999']
        """
        if min_facts < 1:
            raise UsageError(f"a bucket needs at least 1 fact, not {min_facts}")
        first, last = self.index(begin), self.index(end)
        facts = np.ones(len(first), np.int64) if facts is None else facts
        begins, ends = np.zeros((2, len(self)), np.int64)
        np.add.at(begins, first, facts)
        np.add.at(ends, last, facts)
        still_to_end = ends[::-1].cumsum()[::-1]
        by_begin = np.argsort(first, kind="stable")
        ended, ending = last[by_begin], facts[by_begin]
        upto = np.searchsorted(first[by_begin], np.arange(len(self) + 1))

        closing: list[int] = []
        # Ends, per timestamp, of the facts that begin before the bucket; facts that begin inside
        # are counted by their begin.
        ends_from_before = np.zeros(len(self), np.int64)
        start, inside = 0, 0
        for at in range(len(self)):
            inside += int(begins[at]) + int(ends_from_before[at])
            if inside >= min_facts and still_to_end[at] >= min_facts:
                new = slice(upto[start], upto[at + 1])
                np.add.at(ends_from_before, ended[new], ending[new])
                closing.append(at)
                start, inside = at + 1, 0
        if start < len(self):
            closing.append(len(self) - 1)
        last_ticks = self.ends[closing]
        # Ticks between two buckets belong to the later one, so that every date has a bucket.
        return Timeline(
            self.granularity, np.concatenate([self.starts[:1], last_ticks[:-1] + 1]), last_ticks
        )
