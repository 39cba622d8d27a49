"""Count facts by predicate and time: a tally is a value, and tallies of parts add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from splime.counts import Counts
from splime.errors import DataError, UsageError
from splime.graph import Ids
from splime.io.parquet import Batch, FactFile, Part, Times
from splime.io.saved import Description, damages
from splime.methods.base import Known, Method
from splime.progress import Progress, silent
from splime.reading import DUPLICATE, END_BEFORE_BEGIN, EVENT_WITHOUT_TIME, UNREADABLE_TIME
from splime.segmentation import Scopes, Segmentation
from splime.splitting import time_limits
from splime.timeline import Timeline
from splime.times import Bools, Granularity, Ints
from splime.vocabulary import Vocabulary

RowsDone: TypeAlias = Callable[[int], None]
"""Takes how many rows of the source are done."""

# What a fact is counted as, and by: the ends of longer facts are counted beside their begins.
_LONGER, _INSTANT, _NO_BEGIN, _NO_END, _ENDS, _NO_TIME = range(6)
_KINDS = 6
_NEVER = np.iinfo(np.int64)
"""An unknown begin is before all ticks (`min`), an unknown end behind them (`max`)."""


def ignore(rows: int) -> None:
    """Tell nobody of rows that are done."""


@dataclass(frozen=True)
class Clock:
    """All ticks that occur, and the positions among them that unknown times take."""

    ticks: Ints
    first: int
    last: int

    def spans(self, times: Sequence[Times], *, give_way: bool) -> tuple[Ids, Ids]:
        """The begin and end of every fact as positions, filled in where they are unknown.

        If what is filled in gives way, it does so to the known time. There is no fact where the
        begin comes after the end.
        """
        if not give_way:
            return _positions(times, self.ticks, unknown=(self.first, self.last))
        stop = len(self.ticks)
        begin, end = _positions(times, self.ticks, unknown=(-1, stop))
        return (
            np.where(begin == -1, np.clip(end, 0, self.first), begin),
            np.where(end == stop, np.clip(begin, self.last, stop), end),
        )


class Placed(NamedTuple):
    """The facts of a batch that stay, by the timestamps they begin and end at."""

    splits: Ids
    begin: Ids
    end: Ids
    kept: Bools | slice
    """Which rows of the batch they are."""
    dropped: Counter[str]
    """Why the others are no facts."""


@dataclass(frozen=True)
class Frame:
    """What is known of the time of facts before they are counted."""

    granularity: Granularity
    decides: tuple[bool, ...]
    """Whether the facts of train, valid and test decide about cuts."""
    graph: Description | None = None
    """That of a saved graph."""
    first: int | None = None
    last: int | None = None
    """The ticks that unknown begins and ends become; those of all facts by default."""
    buckets_from: tuple[bool, ...] | None = None
    """Whether the spans of train, valid and test are counted, to make buckets from them."""
    clock: Clock | None = None
    timeline: Timeline | None = None
    """Where these two are known, facts are counted by timestamp."""
    split_at: tuple[int, int] | None = None
    """Where facts are split by time: the positions in the clock from which on they are of valid and
    of test."""

    @cached_property
    def _stamps(self) -> Ids:
        assert self.clock is not None
        assert self.timeline is not None
        return self.timeline.index(self.clock.ticks)

    def place(self, part: Part, batch: Batch, times: Sequence[Times]) -> Placed:
        """The facts of a batch as timestamps; clock and timeline must be known."""
        assert self.clock is not None
        begin, end = self.clock.spans(times, give_way=self.graph is not None)
        in_order = begin <= end
        dropped = _reasons(begin, end, len(self.clock.ticks))
        repeated = part.repeated(batch)
        if repeats := int(in_order[repeated].sum()):
            dropped[DUPLICATE] = repeats
            in_order[repeated] = False
        kept: Bools | slice = slice(None) if in_order.all() else in_order
        if self.split_at is None:
            splits = batch.splits()
        else:
            splits = np.searchsorted(self.split_at, begin, side="right").astype(np.int32)
        stamps = self._stamps
        return Placed(splits[kept], stamps[begin[kept]], stamps[end[kept]], kept, dropped)


@dataclass(frozen=True, eq=False)
class Tally:
    """How many facts there are: by kind, by whether they decide, by predicate and by tick.

    A value without facts or files: tallies of the parts of a source add up in any order.
    """

    predicates: Vocabulary
    ticks: Ints
    table: Ints
    """Kinds x decides x predicates x ticks, and behind them a place for facts without any time."""
    spans: Ints
    """Where buckets are made: rows of begin, end and how many facts have both, sorted."""
    outside: int = 0
    """How many facts reach beyond the timeline of their saved graph."""

    @classmethod
    def of(cls, frame: Frame) -> Tally:
        """The tally of no facts."""
        ticks = np.empty(0, np.int64) if frame.timeline is None else frame.timeline.starts
        table = np.zeros((_KINDS, 2, 0, len(ticks) + 1), np.int64)
        return cls(Vocabulary([], kind="predicate"), ticks, table, np.empty((0, 3), np.int64))

    def over(self, names: pa.Array, ticks: Ints) -> Tally:
        """The same counts, with room for more predicates and ticks."""
        predicates = self.predicates
        if (predicates.ids(names) < 0).any():
            names = pa.concat_arrays([predicates.labels, names.cast(pa.large_string())])
            predicates = Vocabulary(names, kind="predicate")
        ticks = np.union1d(self.ticks, ticks)
        if len(predicates) == len(self.predicates) and len(ticks) == len(self.ticks):
            return self
        table = np.zeros((_KINDS, 2, len(predicates), len(ticks) + 1), np.int64)
        places = np.append(np.searchsorted(ticks, self.ticks), len(ticks))
        rows = predicates.ids(self.predicates.labels)
        table[:, :, rows[:, None], places] = self.table
        return replace(self, predicates=predicates, ticks=ticks, table=table)

    def __add__(self, other: Tally) -> Tally:
        mine = self.over(other.predicates.labels, other.ticks)
        theirs = other.over(self.predicates.labels, self.ticks)
        return replace(
            mine,
            table=mine.table + theirs.table,
            spans=_summed(np.concatenate([self.spans, other.spans])),
            outside=self.outside + other.outside,
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Tally)
            and self.predicates == other.predicates
            and np.array_equal(self.ticks, other.ticks)
            and np.array_equal(self.table, other.table)
            and np.array_equal(self.spans, other.spans)
            and self.outside == other.outside
        )

    def __hash__(self) -> int:
        return hash((self.predicates, len(self.ticks)))


def count(part: Part, frame: Frame, done: RowsDone = ignore) -> Tally:
    """Count the facts of a part."""
    tally, spans, outside = Tally.of(frame), [], 0
    with FactFile(part.path, part.columns) as file:
        for batch in file.batches(part, "split", "predicate", "begin", "end"):
            labels = batch.labels("predicate")
            times = batch.times(frame.granularity)
            if frame.graph is not None:
                outside += _outside(times, frame.graph, part)
            if frame.clock is None:
                ticks = np.concatenate([column.known() for column in times])
                tally = tally.over(labels.dictionary, ticks)
                # Unknown times lie outside of all others, so that such facts are in order.
                begin, end = _positions(times, tally.ticks, unknown=(-1, len(tally.ticks)))
                in_order = begin <= end
                in_order[part.repeated(batch)] = False
                kept: Bools | slice = slice(None) if in_order.all() else in_order
                splits, begin, end = batch.splits()[kept], begin[kept], end[kept]
            else:
                tally = tally.over(labels.dictionary, tally.ticks)
                splits, begin, end, kept, _ = frame.place(part, batch, times)
            if frame.buckets_from is not None:
                chosen = np.array(frame.buckets_from)[splits]
                spans.append(_spans(begin[chosen], end[chosen], tally.ticks))
            names = tally.predicates.ids(labels.dictionary)[labels.indices.to_numpy()][kept]
            key = np.array(frame.decides, np.int32)[splits] * np.int32(len(tally.predicates))
            _count(tally.table, key + names, begin, end)
            done(part.fact_of(batch) + len(batch))
    return replace(tally, spans=_summed(np.concatenate([tally.spans, *spans])), outside=outside)


def _count(table: Ints, key: Ids, begin: Ids, end: Ids) -> None:
    """Count facts in a table that is not shared yet."""
    _, _, names, places = table.shape
    no_begin, no_end = begin < 0, end == places - 1
    kind = (begin == end) + 2 * no_begin.astype(np.int8) + 3 * no_end.astype(np.int8)
    longer = np.flatnonzero(kind == _LONGER)
    flat = table.reshape(-1)
    for kinds, keys, at in (
        (kind, key, np.where(no_begin, end, begin)),
        (np.array([_ENDS]), key[longer], end[longer]),
    ):
        cells = (kinds.astype(np.int64) * (2 * names) + keys) * places + at
        if len(flat) <= 4 * len(cells):
            flat += np.bincount(cells, minlength=len(flat))
        else:
            np.add.at(flat, cells, 1)


def _positions(times: Sequence[Times], clock: Ints, unknown: tuple[int, int]) -> tuple[Ids, Ids]:
    """The begin and end of every fact as positions among sorted ticks.

    A tick between two of them has the position of the earlier one. `unknown` says what unknown
    begins and ends become. Times that cannot be read are put such that the begin comes after every
    end: then, as where facts end before they begin, there is no fact.
    """
    after = len(clock) + 1
    if len(times) == 1:  # events of an unknown time are no facts
        unknown = (after + 1, -3)
    begin, end = (
        column.lookup(
            np.maximum(np.searchsorted(clock, column.ticks, side="right") - 1, 0).astype(np.int32),
            unknown=filled,
            unreadable=unreadable,
        )
        for column, filled, unreadable in zip(
            (times[0], times[-1]), unknown, (after, -2), strict=True
        )
    )
    return begin, end


def _reasons(begin: Ids, end: Ids, ticks: int) -> Counter[str]:
    """Why rows that `_positions` put out of order are no facts."""
    timeless = int((begin == ticks + 2).sum())
    unreadable = int(((begin == ticks + 1) | (end == -2)).sum())
    reasons = {
        EVENT_WITHOUT_TIME: timeless,
        UNREADABLE_TIME: unreadable,
        END_BEFORE_BEGIN: int((begin > end).sum()) - timeless - unreadable,
    }
    return Counter({reason: rows for reason, rows in reasons.items() if rows})


def _outside(times: Sequence[Times], graph: Description, part: Part) -> int:
    """How many facts of a saved graph reach beyond its timeline; an error for impossible ones."""

    def raw(column: Times, unknown: int) -> Any:
        return column.lookup(column.ticks, unknown=unknown, unreadable=0)

    begin, end = raw(times[0], _NEVER.min), raw(times[-1], _NEVER.max)
    with damages(part.path):
        if (begin > end).any():
            raise ValueError("a fact ends before it begins")
    # What is filled in gives way to the known time.
    low = np.minimum(raw(times[0], graph.limits.get("first", 0)), end)
    high = np.maximum(raw(times[-1], graph.limits.get("last", 0)), begin)
    timeline = graph.timestamps
    return int(((low < timeline.first) | (high > timeline.last)).sum())


def _spans(begin: Ids, end: Ids, ticks: Ints) -> Ints:
    """The spans of facts as ticks, with how many facts have each."""
    places = len(ticks) + 2
    cells, facts = np.unique((begin.astype(np.int64) + 1) * places + end, return_counts=True)
    known = np.concatenate([[_NEVER.min], ticks, [_NEVER.max]])
    return np.stack([known[cells // places], known[cells % places + 1], facts], axis=1)


def _summed(spans: Ints) -> Ints:
    """Spans that stand there several times, once, with all of their facts; sorted."""
    if not len(spans):
        return spans
    spans = spans[np.lexsort((spans[:, 1], spans[:, 0]))]
    new = np.append(True, (spans[1:, :2] != spans[:-1, :2]).any(axis=1))
    facts = np.add.reduceat(spans[:, 2], np.flatnonzero(new))
    return np.concatenate([spans[new, :2], facts[:, None]], axis=1)


@dataclass(frozen=True)
class Counted:
    """What a tally says once all facts are counted."""

    frame: Frame
    """With clock and timeline."""
    predicates: Vocabulary
    counts: Counts
    """Of the facts that decide about cuts."""
    begins: Ints
    """How many of all facts begin at each tick of the clock."""


def settle(tally: Tally, frame: Frame, path: Path) -> Counted:
    """Give facts with unknown times the first or last tick, and count them with the others."""
    if frame.graph is not None:
        with damages(path):
            frame.graph.check_outside(tally.outside)
    clock = frame.clock
    if clock is None:
        clock = _clock(tally, frame, path)
        tally = tally.over(tally.predicates.labels, clock.ticks)
        table = _folded(tally.table, clock, give_way=frame.graph is not None)
    else:
        table = tally.table
    begins, instants, ends = (table[kind, ..., :-1] for kind in (_LONGER, _INSTANT, _ENDS))
    facts = begins + instants
    if not facts.any():
        raise DataError(
            f"{path}: no facts are left; with unknown times filled in, all end before they begin"
        )
    if not facts[1].any():
        raise UsageError(f"{path}: there are no facts to fit on")
    occur = (facts + ends).any(axis=(0, 1))
    timeline = frame.timeline or Timeline.of(tally.ticks[occur], frame.granularity)
    used = facts.any(axis=(0, 2))
    names = tally.predicates.labels.filter(pa.array(used))
    unused = [] if frame.graph is None else frame.graph.unused.predicates
    predicates = Vocabulary([*names.to_pylist(), *unused], kind="predicate")
    at = np.ix_(predicates.ids(names), timeline.index(tally.ticks[occur]))

    def by_timestamp(counted: Ints) -> Ints:
        counts = np.zeros((len(predicates), len(timeline)), np.int64)
        counts[at] = counted[1][np.ix_(used, occur)]
        return counts

    counts = Counts(by_timestamp(instants), by_timestamp(begins), by_timestamp(ends))
    frame = replace(frame, clock=clock, timeline=timeline)
    return Counted(frame, predicates, counts, facts.sum(axis=(0, 1)))


def _clock(tally: Tally, frame: Frame, path: Path) -> Clock:
    known = tally.ticks[tally.table[..., :-1].any(axis=(0, 1, 2))]
    # In a saved graph the unknown times are known to be something, even if all of them are.
    if not len(known) and (frame.graph is None or None in (frame.first, frame.last)):
        raise DataError(
            f"{path}: no fact has a usable time, all are unknown, unreadable or end before they"
            " begin"
        )
    first = known[0] if frame.first is None else frame.first
    last = known[-1] if frame.last is None else frame.last
    ticks = np.union1d(tally.ticks, [first, last])
    return Clock(ticks, int(np.searchsorted(ticks, first)), int(np.searchsorted(ticks, last)))


def _folded(table: Ints, clock: Clock, *, give_way: bool) -> Ints:
    """Counts in which facts with an unknown time are among those with a known one."""
    table, first, last = table.copy(), clock.first, clock.last
    begins, instants, no_begin, no_end, ends, _ = table[..., :-1]
    instants[..., first] += no_begin[..., first]
    begins[..., first] += no_begin[..., first + 1 :].sum(axis=-1)
    ends[..., first + 1 :] += no_begin[..., first + 1 :]
    instants[..., last] += no_end[..., last]
    begins[..., :last] += no_end[..., :last]
    ends[..., last] += no_end[..., :last].sum(axis=-1)
    if give_way:
        instants[..., :first] += no_begin[..., :first]
        instants[..., last + 1 :] += no_end[..., last + 1 :]
    no_time = table[_NO_TIME, ..., -1]
    if first < last:
        begins[..., first] += no_time
        ends[..., last] += no_time
    elif first == last:
        instants[..., first] += no_time
    return table


def split_by_time(counted: Counted, valid: float, test: float) -> Frame:
    """The frame in which the facts that begin last are of test, and those before them of valid."""
    clock = counted.frame.clock
    assert clock is not None
    limits = time_limits(clock.ticks, counted.begins, counted.frame.granularity, valid, test)
    return replace(counted.frame, split_at=tuple(np.searchsorted(clock.ticks, limits).tolist()))


def bucket(spans: Ints, frame: Frame, min_facts: int, *, train_only: bool) -> Frame:
    """The frame whose timestamps are merged until each holds so many facts."""
    clock = frame.clock
    assert clock is not None
    begin, end, facts = spans.T
    first, last = clock.ticks[[clock.first, clock.last]]
    no_begin, no_end = begin == _NEVER.min, end == _NEVER.max
    begin, end = np.where(no_begin, first, begin), np.where(no_end, last, end)
    if frame.graph is not None:  # what is filled in gives way to the known time
        begin = np.where(no_begin & ~no_end, np.minimum(begin, end), begin)
        end = np.where(no_end & ~no_begin, np.maximum(begin, end), end)
    kept = begin <= end
    if train_only and frame.split_at is not None:
        kept &= np.searchsorted(clock.ticks, begin) < frame.split_at[0]
    begin, end, facts = begin[kept], end[kept], facts[kept]
    if not len(begin):
        raise UsageError("there are no facts to make buckets from")
    every = Timeline.of(np.concatenate([begin, end]), frame.granularity)
    timeline = every.bucket(begin, end, min_facts=min_facts, facts=facts)
    return replace(frame, timeline=timeline, buckets_from=None)


def choose(method: Method, counted: Counted, progress: Progress = silent) -> Segmentation:
    """The cuts that a method chooses from counts."""
    timeline, none = counted.frame.timeline, np.empty(0, np.int32)
    assert timeline is not None
    known = Known(counted.counts, none, none, none, none, none)
    cuts = method.choose(known, advance=lambda done, of: progress("choosing cuts", done, of))
    scopes = Scopes.of(counted.predicates, timeline, cuts, counted.counts)
    return Segmentation(scopes, None, method.parameters())
