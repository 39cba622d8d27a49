"""Count facts by predicate and time: a tally is a value, and the tallies of parts add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias

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

OfSplits: TypeAlias = tuple[bool, bool, bool]
"""Something that is so or not for the facts of train, valid and test."""

# What a fact is counted as, and by: the ends of longer facts are counted beside their begins.
_LONGER, _INSTANT, _NO_BEGIN, _NO_END, _ENDS, _NO_TIME = range(6)
_KINDS = 6


@dataclass(frozen=True)
class Clock:
    """All ticks that occur, and their timestamps."""

    ticks: Ints
    first: int
    last: int
    """The positions among the ticks that unknown begins and ends take."""
    timeline: Timeline

    @cached_property
    def stamps(self) -> Ids:
        """The timestamps of the ticks."""
        return self.timeline.index(self.ticks)


class Placed(NamedTuple):
    """The facts of a batch that stay, by when they begin and end."""

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
    decide: OfSplits
    """Whose facts decide about cuts."""
    graph: Description | None = None
    """That of a saved graph."""
    first: int | None = None
    last: int | None = None
    """The ticks that unknown begins and ends become; by default the first and last of all facts."""
    clock: Clock | None = None
    """Where it is known, facts are counted by timestamp."""
    split_at: tuple[int, int] | None = None
    """For a split by time: the positions in the clock where valid and test begin."""

    @property
    def settled(self) -> Clock:
        """The clock, once it is known."""
        assert self.clock is not None
        return self.clock

    def place(self, part: Part, batch: Batch, times: Sequence[Times], ticks: Ints) -> Placed:
        """The facts of a batch by timestamp; without a clock by position among given ticks."""
        stop, clock = len(ticks), self.clock
        # Unknown times outside of all others leave such facts in order.
        filled = (-1, stop) if clock is None or self.graph else (clock.first, clock.last)
        begin, end = _positions(times, ticks, unknown=filled)
        if clock is not None and self.graph is not None:
            # What is filled in gives way to the known time.
            begin, end = (
                np.where(begin == -1, np.clip(end, 0, clock.first), begin),
                np.where(end == stop, np.clip(begin, clock.last, stop), end),
            )
        in_order = begin <= end
        dropped = _reasons(begin, end, stop)
        repeated = part.repeated(batch)
        if repeats := int(in_order[repeated].sum()):
            dropped[DUPLICATE] = repeats
            in_order[repeated] = False
        kept: Bools | slice = slice(None) if in_order.all() else in_order
        begin, end = begin[kept], end[kept]
        if self.split_at is None:
            splits = batch.splits()[kept]
        else:
            splits = np.searchsorted(self.split_at, begin, side="right").astype(np.int32)
        if clock is not None:
            begin, end = clock.stamps[begin], clock.stamps[end]
        return Placed(splits, begin, end, kept, dropped)


@dataclass(frozen=True, eq=False)
class Tally:
    """How many facts there are: by kind, by whether they decide, by predicate and by tick.

    A value without facts or files: the tallies of parts add up in any order.
    """

    predicates: Vocabulary
    ticks: Ints
    table: Ints
    """Kinds x decide x predicates x ticks, and behind them a place for facts without any time."""
    outside: int = 0
    """How many facts reach beyond the timeline of their saved graph."""

    @classmethod
    def of(cls, frame: Frame) -> Tally:
        """The tally of no facts."""
        ticks = frame.clock.timeline.starts if frame.clock else np.empty(0, np.int64)
        table = np.zeros((_KINDS, 2, 0, len(ticks) + 1), np.int64)
        return cls(Vocabulary([], kind="predicate"), ticks, table)

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
        table[:, :, predicates.ids(self.predicates.labels)[:, None], places] = self.table
        return replace(self, predicates=predicates, ticks=ticks, table=table)

    def __add__(self, other: Tally) -> Tally:
        mine = self.over(other.predicates.labels, other.ticks)
        table = mine.table + other.over(self.predicates.labels, self.ticks).table
        return replace(mine, table=table, outside=self.outside + other.outside)


def count(part: Part, frame: Frame, progress: Progress = silent) -> Tally:
    """Count the facts of a part."""
    tally, outside = Tally.of(frame), 0
    with FactFile(part.path, part.columns) as file:
        for batch in file.batches(part, "split", "predicate", "begin", "end"):
            labels, times = batch.labels("predicate"), batch.times(frame.granularity)
            if frame.graph is not None:
                outside += _outside(times, frame.graph, part)
            new = [] if frame.clock else [column.known() for column in times]
            tally = tally.over(labels.dictionary, np.concatenate([tally.ticks, *new]))
            ticks = frame.clock.ticks if frame.clock else tally.ticks
            splits, begin, end, kept, _ = frame.place(part, batch, times, ticks)
            names = tally.predicates.ids(labels.dictionary)[labels.indices.to_numpy()][kept]
            key = np.array(frame.decide, np.int32)[splits] * np.int32(len(tally.predicates))
            _count(tally.table, key + names, begin, end)
            progress("counting", part.fact_of(batch) + len(batch))
    return replace(tally, outside=outside)


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
    never = np.iinfo(np.int64)
    begin = times[0].lookup(times[0].ticks, unknown=never.min)
    end = times[-1].lookup(times[-1].ticks, unknown=never.max)
    with damages(part.path):
        if (begin > end).any():
            raise ValueError("a fact ends before it begins")
    # What is filled in gives way to the known time.
    low = np.where(begin > never.min, begin, np.minimum(graph.limits.get("first", 0), end))
    high = np.where(end < never.max, end, np.maximum(graph.limits.get("last", 0), begin))
    return int(((low < graph.timestamps.first) | (high > graph.timestamps.last)).sum())


class Counted(NamedTuple):
    """What a tally says once all facts are counted."""

    frame: Frame
    """With a clock."""
    predicates: Vocabulary
    counts: Counts
    """Of the facts that decide about cuts."""
    begins: Ints
    """How many of all facts begin at each tick."""


def settle(tally: Tally, frame: Frame, path: Path) -> Counted:
    """Give facts with unknown times the first or last tick, and count them with the others."""
    if frame.graph is not None:
        with damages(path):
            frame.graph.check_outside(tally.outside)
    table, clock = tally.table, frame.clock
    if clock is None:
        ticks, first, last = _limits(tally, frame, path)
        tally = tally.over(tally.predicates.labels, ticks)
        table = _folded(tally.table, first, last, give_way=frame.graph is not None)
    begins, instants, ends = (table[kind, ..., :-1] for kind in (_LONGER, _INSTANT, _ENDS))
    facts = begins + instants
    if not facts.any():
        raise DataError(
            f"{path}: no facts are left; with unknown times filled in, all end before they begin"
        )
    if not facts[1].any():
        raise UsageError(f"{path}: there are no facts to fit on")
    occur = (facts + ends).any(axis=(0, 1))
    if clock is None:
        timeline = Timeline.of(ticks[occur], frame.granularity)
        clock = Clock(ticks, first, last, timeline)
    used = facts.any(axis=(0, 2))
    names = tally.predicates.labels.filter(pa.array(used))
    unused = [] if frame.graph is None else frame.graph.unused.predicates
    predicates = Vocabulary([*names.to_pylist(), *unused], kind="predicate")
    at = np.ix_(predicates.ids(names), clock.timeline.index(tally.ticks[occur]))

    def by_timestamp(counted: Ints) -> Ints:
        counts = np.zeros((len(predicates), len(clock.timeline)), np.int64)
        counts[at] = counted[1][np.ix_(used, occur)]
        return counts

    counts = Counts(by_timestamp(instants), by_timestamp(begins), by_timestamp(ends))
    return Counted(replace(frame, clock=clock), predicates, counts, facts.sum(axis=(0, 1)))


def _limits(tally: Tally, frame: Frame, path: Path) -> tuple[Ints, int, int]:
    """All ticks that occur, and the positions among them that unknown times take."""
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
    return ticks, int(np.searchsorted(ticks, first)), int(np.searchsorted(ticks, last))


def _folded(table: Ints, first: int, last: int, *, give_way: bool) -> Ints:
    """Counts in which facts with an unknown time are among those with a known one."""
    table = table.copy()
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
    frame, ticks = counted.frame, counted.frame.settled.ticks
    limits = time_limits(ticks, counted.begins, frame.granularity, valid, test)
    valid_at, test_at = np.searchsorted(ticks, limits).tolist()
    return replace(frame, split_at=(valid_at, test_at))


def spans(part: Part, frame: Frame, of: OfSplits, progress: Progress = silent) -> Ints:
    """The begins and ends (as ticks) that facts of some splits have, and how many have each."""
    counted, starts = [], frame.settled.timeline.starts
    with FactFile(part.path, part.columns) as file:
        for batch in file.batches(part, "split", "begin", "end"):
            times = batch.times(frame.granularity)
            splits, begin, end, _, _ = frame.place(part, batch, times, frame.settled.ticks)
            chosen = np.array(of)[splits]
            cells = begin[chosen].astype(np.int64) * len(starts) + end[chosen]
            cells, facts = np.unique(cells, return_counts=True)
            counted.append(np.stack([*np.divmod(cells, len(starts)), facts]))
            progress("counting", part.fact_of(batch) + len(batch))
    begin, end, facts = summed(counted)
    return np.stack([starts[begin], starts[end], facts])


def summed(counted: Iterable[Ints]) -> Ints:
    """Spans that were counted several times, once, with all of their facts."""
    begin, end, facts = np.concatenate([np.empty((3, 0), np.int64), *counted], axis=1)
    order = np.lexsort((end, begin))
    begin, end, facts = begin[order], end[order], facts[order]
    changes = (begin[1:] != begin[:-1]) | (end[1:] != end[:-1])
    new = np.flatnonzero(np.append(len(begin) > 0, changes))
    return np.stack([begin[new], end[new], np.add.reduceat(facts, new)])


def bucket(frame: Frame, spans: Ints, min_facts: int) -> Frame:
    """The frame whose timestamps are merged until each holds so many facts."""
    begin, end, facts = spans
    if not len(facts):
        raise UsageError("there are no facts to make buckets from")
    ticks = Timeline.of(np.concatenate([begin, end]), frame.granularity)
    timeline = ticks.bucket(begin, end, min_facts=min_facts, facts=facts)
    return replace(frame, clock=replace(frame.settled, timeline=timeline))


def choose(method: Method, counted: Counted, progress: Progress = silent) -> Segmentation:
    """The cuts that a method chooses from counts."""
    timeline, none = counted.frame.settled.timeline, np.empty(0, np.int32)
    known = Known(counted.counts, none, none, none, none, none)
    cuts = method.choose(known, progress=progress)
    scopes = Scopes.of(counted.predicates, timeline, cuts, counted.counts)
    return Segmentation(scopes, None, method.parameters())
