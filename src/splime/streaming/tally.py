"""Count the facts of a file by predicate and timestamp."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from splime.counts import Counts
from splime.errors import DataError, UsageError
from splime.graph import Ids
from splime.io.batches import Columns, FactFile, positions
from splime.methods.base import Known
from splime.progress import Update
from splime.streaming.frame import Frame
from splime.timeline import Timeline
from splime.times import Ints
from splime.vocabulary import Vocabulary


@dataclass(frozen=True)
class Counted:
    """What counting gives."""

    predicates: Vocabulary
    timeline: Timeline
    counts: Counts
    clock: Ints
    """All ticks that occur, sorted, also those of facts that are dropped in the end."""
    first: int
    last: int
    """The positions in the clock of what unknown begins and ends become."""

    def known(self) -> Known:
        """What a method may look at; not the facts."""
        none = np.empty(0, np.int32)
        return Known(self.counts, none, none, none, none, none)


# What a fact is counted as, and by: the ends of longer facts are counted beside their begins.
_LONGER, _INSTANT, _NO_BEGIN, _NO_END, _ENDS, _NO_TIME = range(6)


class Tally:
    """Counts of facts by kind, by whether they decide about cuts, by predicate and by tick."""

    def __init__(self, file: FactFile, frame: Frame, *, everything_decides: bool) -> None:
        self._file = file
        self._frame = frame
        self._decides = np.array([1, everything_decides, everything_decides], np.int32)
        self._predicates: dict[str, int] = {}
        self._ticks = np.empty(0, np.int64)
        # There is one place more than ticks, for facts of which no time is known.
        self._table = np.zeros((6, 2, 0, 1), np.int64)

    def count(self, update: Update) -> Counted:
        """Count all facts."""
        for row, columns in self._file.batches("split", "predicate", "begin", "end"):
            self._add(row, columns)
            update("counting", row + len(columns["predicate"]), self._file.rows)
        return self._settle()

    def _add(self, row: int, columns: Columns) -> None:
        labels = self._file.labels(columns, "predicate", row)
        times = self._file.times(columns, self._frame.granularity, self._frame.timeline)
        ids = [
            self._predicates.setdefault(name, len(self._predicates))
            for name in labels.dictionary.to_pylist()
        ]
        self._grow(np.unique(np.concatenate([self._ticks, *(part.known() for part in times)])))
        _, _, names, places = self._table.shape
        # Unknown times lie outside of all others, so that such facts are in order.
        begin, end = positions(times, self._ticks, unknown=(-1, places - 1))
        key = self._decides[self._file.splits(columns, row)]
        key *= names
        key += np.array(ids, np.int32)[labels.indices.to_numpy()]
        kept = begin <= end
        if not kept.all():
            key, begin, end = key[kept], begin[kept], end[kept]
        no_begin, no_end = begin < 0, end == places - 1
        kind = (begin == end) + 2 * no_begin.astype(np.int8) + 3 * no_end.astype(np.int8)
        at = np.where(no_begin, end, begin)
        longer = np.flatnonzero(kind == _LONGER)
        self._count(kind, key, at)
        self._count(np.array([_ENDS]), key[longer], end[longer])

    def _count(self, kind: Ints, key: Ids, at: Ids) -> None:
        _, _, names, places = self._table.shape
        cells = (kind.astype(np.int64) * (2 * names) + key) * places + at
        flat = self._table.reshape(-1)
        if len(flat) <= 4 * len(cells):
            flat += np.bincount(cells, minlength=len(flat))
        else:
            np.add.at(flat, cells, 1)

    def _grow(self, ticks: Ints) -> None:
        """Make room for the predicates there are now, and for ticks."""
        old = self._table
        kinds, decides, names, places = old.shape
        if len(self._predicates) == names and len(ticks) + 1 == places:
            return
        self._table = np.zeros((kinds, decides, len(self._predicates), len(ticks) + 1), np.int64)
        to = np.append(np.searchsorted(ticks, self._ticks), len(ticks))
        self._table[:, :, :names, to] = old
        self._ticks = ticks

    def _settle(self) -> Counted:
        """Give facts with unknown times the first or last tick, and count them with the others."""
        occur = self._table[..., :-1].any(axis=(0, 1, 2))
        frame = self._frame
        # In a saved graph the unknown times are known to be something, even if all of them are.
        settled = frame.timeline is not None and None not in (frame.first, frame.last)
        if not occur.any() and not settled:
            raise DataError(
                f"{self._file.path}: no fact has a usable time, all are unknown, unreadable or end"
                " before they begin"
            )
        known = self._ticks[occur]
        limits = np.array(
            [
                known[0] if frame.first is None else frame.first,
                known[-1] if frame.last is None else frame.last,
            ]
        )
        if frame.timeline is not None:
            limits = frame.timeline.starts[frame.timeline.index(limits)]
        self._grow(np.union1d(self._ticks, limits))
        first, last = np.searchsorted(self._ticks, limits).tolist()
        self._fold(first, last)
        return self._counted(first, last)

    def _fold(self, first: int, last: int) -> None:
        begins, instants, no_begin, no_end, ends, _ = self._table[..., :-1]
        instants[..., first] += no_begin[..., first]
        begins[..., first] += no_begin[..., first + 1 :].sum(axis=-1)
        ends[..., first + 1 :] += no_begin[..., first + 1 :]
        instants[..., last] += no_end[..., last]
        begins[..., :last] += no_end[..., :last]
        ends[..., last] += no_end[..., :last].sum(axis=-1)
        if self._frame.timeline is not None:  # what is filled in gives way to the known time
            instants[..., :first] += no_begin[..., :first]
            instants[..., last + 1 :] += no_end[..., last + 1 :]
        no_time = self._table[_NO_TIME, ..., -1]
        if first < last:
            begins[..., first] += no_time
            ends[..., last] += no_time
        elif first == last:
            instants[..., first] += no_time

    def _counted(self, first: int, last: int) -> Counted:
        begins, instants, ends = (
            self._table[kind, ..., :-1] for kind in (_LONGER, _INSTANT, _ENDS)
        )
        facts = begins + instants
        if not facts.any():
            raise DataError(
                f"{self._file.path}: no facts are left; with unknown times filled in, all end"
                " before they begin"
            )
        if not facts[1].any():
            raise UsageError(f"{self._file.path}: there are no facts to fit on")
        occur = (facts + ends).any(axis=(0, 1))
        timeline = self._frame.timeline or Timeline.of(self._ticks[occur], self._frame.granularity)
        stamps = timeline.index(self._ticks[occur])
        used = facts.any(axis=(0, 2))
        names = np.array([*self._predicates], object)[used]
        predicates = Vocabulary([*names, *self._frame.unused], kind="predicate")
        ids = predicates.ids(pa.array(names, pa.large_string()))

        def table(counted: Ints) -> Ints:
            found = np.zeros((len(predicates), len(timeline)), np.int64)
            found[np.ix_(ids, stamps)] = counted[1][np.ix_(used, occur)]
            return found

        counts = Counts(table(instants), table(begins), table(ends))
        return Counted(predicates, timeline, counts, self._ticks, first, last)
