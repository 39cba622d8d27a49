"""The begin and end of facts: unknown ones filled in, impossible ones put aside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splime.errors import DataError
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, SplitName
from splime.io.columns import EXAMPLES, Account, RawFacts
from splime.io.options import ReadOptions
from splime.reading import END_BEFORE_BEGIN, EVENT_WITHOUT_TIME, UNREADABLE_TIME
from splime.times import REASONS, UNKNOWN, Bools, Granularity, Ints, ParsedTimes, parse_times

RowsBySplit: TypeAlias = Sequence[tuple[SplitName, Bools | None]]
"""The rows of each split that a source has; None stands for all of its rows."""


OWN_END, OWN_BEGIN = "end", "begin"
"""What `first` and `last` may be instead of a time: the other end of the fact itself."""


class Spans:
    """The begin and end of every row of one source."""

    def __init__(self, raw: RawFacts, parsed: Sequence[ParsedTimes]) -> None:
        self.raw = raw
        self._columns = list(zip(raw.times, parsed, strict=True))
        ticks: list[Ints] = [column.lookup(part.ticks) for column, part in self._columns]
        self.begin, self.end = ticks[0], ticks[-1]
        self.unknown = np.zeros(raw.rows, np.uint8)
        self.readable: Bools | None = None  # None: all of them
        bits = (BEGIN_UNKNOWN, END_UNKNOWN)
        for (column, part), bit in zip(self._columns, bits, strict=False):
            if column.missing or (part.state == UNKNOWN).any():
                table = np.where(part.state == UNKNOWN, bit, 0).astype(np.uint8)
                self.unknown |= column.lookup(table, missing=bit)
            if (part.state > UNKNOWN).any():
                fine: Bools = column.lookup(part.state <= UNKNOWN, missing=True)
                self.readable = fine if self.readable is None else self.readable & fine

    def extremes(self, options: ReadOptions) -> list[int]:
        """The first and last known begin, and end, of the rows that can stay."""
        extremes = []
        for ticks, bit in ((self.begin, BEGIN_UNKNOWN), (self.end, END_UNKNOWN)):
            good = self.unknown & bit == 0
            if self.readable is not None:
                good &= self.readable
            if options.end_before_begin in (None, "drop", "repair"):
                # A row whose end lies before its begin must not stretch the timeline; a repaired
                # one must not change what the unknown times of train become.
                good &= (self.unknown != 0) | (self.begin <= self.end)
            if good.any():
                some = ticks[good.argmax()]
                extremes += [int(ticks.min(where=good, initial=some))]
                extremes += [int(ticks.max(where=good, initial=some))]
        return extremes

    def settle(
        self,
        first: int,
        last: int,
        account: Account,
        options: ReadOptions,
        by_split: RowsBySplit,
    ) -> None:
        """Fill in unknown times and put aside the rows that cannot be kept."""
        if self.readable is not None:
            rows = np.flatnonzero(~self.readable)
            whys = [self._why(row) for row in rows[:EXAMPLES].tolist()]
            account.drop(UNREADABLE_TIME, rows, whys=whys)
        self._note_truncated(account)
        if len(self.raw.times) == 1:
            account.drop(EVENT_WITHOUT_TIME, np.flatnonzero((self.unknown != 0) & account.kept))
            return
        if self.unknown.any():
            self.begin[(self.unknown & BEGIN_UNKNOWN) != 0] = first
            self.end[(self.unknown & END_UNKNOWN) != 0] = last
            if options.first == OWN_END:
                rows = np.flatnonzero(self.unknown == BEGIN_UNKNOWN)
                self.begin[rows] = self.end[rows]
            if options.last == OWN_BEGIN:
                rows = np.flatnonzero(self.unknown == END_UNKNOWN)
                self.end[rows] = self.begin[rows]
        rows = np.flatnonzero((self.begin > self.end) & account.kept)
        if not len(rows):
            return
        order = options.end_before_begin or "drop"
        if order == "error":
            fact = " | ".join(self.raw.texts(rows[:1].tolist())[0])
            where = self.raw.locate(rows[:1].tolist())[0]
            raise DataError(f"{where}: the fact ends before it begins: {fact}")
        # Only a repair treats the splits differently.
        for split, members in by_split if order == "repair" else [("train", None)]:
            own = rows if members is None else rows[members[rows]]
            if order == "swap" or (order == "repair" and split != "train"):
                self._swap(own, account)
            else:
                account.drop(END_BEFORE_BEGIN, own)

    def _swap(self, rows: npt.NDArray[np.integer], account: Account) -> None:
        """Put begin and end in order; `unknown` stays true of both."""
        account.note(f"{END_BEFORE_BEGIN}, swapped", rows)
        unknown = self.unknown[rows]
        alike = rows[(unknown == 0) | (unknown == (BEGIN_UNKNOWN | END_UNKNOWN))]
        self.begin[alike], self.end[alike] = self.end[alike], self.begin[alike]
        # An unknown time that was filled in beyond the given one: nothing to swap, so it gives way.
        open_end = rows[unknown == END_UNKNOWN]
        self.end[open_end] = self.begin[open_end]
        open_begin = rows[unknown == BEGIN_UNKNOWN]
        self.begin[open_begin] = self.end[open_begin]

    def _why(self, row: int) -> str:
        """Why a row is unreadable."""
        reasons = []
        for column, part in self._columns:
            code = column.codes([row])[0]
            if code >= 0 and int(part.state[code]) in REASONS:
                reasons.append(f"{REASONS[int(part.state[code])]}: {column.texts([row])[0]!r}")
        return ", ".join(reasons)

    def _note_truncated(self, account: Account) -> None:
        cut = np.zeros(self.raw.rows, bool)
        for column, part in self._columns:
            if part.truncated.any():
                cut |= column.lookup(part.truncated)
        unit = self._columns[0][1].granularity
        account.note(f"time finer than a {unit}, cut to it", np.flatnonzero(cut & account.kept))


def parse_spans(
    raws: Sequence[RawFacts], granularity: Granularity | None
) -> tuple[list[Spans], Granularity]:
    """Parse the times of all sources together, so that they share one granularity."""
    columns = [column for raw in raws for column in raw.times]
    parsed = parse_times(
        pa.concat_arrays([column.values.cast(pa.string()) for column in columns]),
        weights=np.concatenate([column.counts() for column in columns]),
        granularity=granularity,
    )
    stops = np.cumsum([len(column.values) for column in columns])[:-1]
    arrays = (parsed.ticks, parsed.state, parsed.truncated)
    parts = iter(zip(*(np.split(array, stops) for array in arrays), strict=True))
    unit = parsed.granularity
    spans = [Spans(raw, [ParsedTimes(unit, *next(parts)) for _ in raw.times]) for raw in raws]
    return spans, unit
