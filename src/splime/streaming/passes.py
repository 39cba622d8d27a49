"""What is done with the facts of a part: count them, and write their triples to a file."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splime.arrays import batches, grouped
from splime.counts import Counts
from splime.errors import DataError, UsageError
from splime.graph import SPLITS, Ids
from splime.io.files import written_beside
from splime.io.parquet import ROLES, Batch, Part, Times
from splime.io.saved import Description, damages
from splime.progress import Progress, silent
from splime.reading import DUPLICATE, END_BEFORE_BEGIN, EVENT_WITHOUT_TIME, UNREADABLE_TIME
from splime.segmentation import Scopes
from splime.timeline import Timeline
from splime.times import Bools, Granularity, Ints, dated
from splime.vocabulary import Vocabulary

_KINDS = 6
# What a fact is counted as; the ends of longer facts are counted beside their begins.
_LONGER, _INSTANT, _NO_BEGIN, _NO_END, _ENDS, _NO_TIME = range(_KINDS)
_NAMES = ["split", "subject", "predicate", "object", "source"]
PARQUET = {
    "compression": "zstd",
    "use_dictionary": [*_NAMES, "overlap", "begin", "end"],
    "column_encoding": {"fact": "DELTA_BINARY_PACKED"},
    # Names stay a dictionary however many there are, and their minimum and maximum help nobody.
    "dictionary_pagesize_limit": 2**26,
    "write_statistics": ["split", "fact"],
}
"""How Arrow writes the triples."""
# A fact can have many triples, so this many are made and written at a time.
_TRIPLES = 1 << 20


@dataclass(frozen=True)
class Frame:
    """What is known about the facts before they are counted."""

    granularity: Granularity
    fit_on_all: bool
    """Whether all facts decide about cuts, or those of train."""
    graph: Description | None = None
    """That of a saved graph."""
    first: int | None = None
    last: int | None = None
    """The ticks that unknown begins and ends become; by default the first and last of all facts."""


@dataclass(frozen=True)
class Clock:
    """All ticks that occur, and their timestamps: known once the facts are counted."""

    ticks: Ints
    timeline: Timeline
    first: int = 0
    last: int = 0
    """The positions among the ticks that unknown begins and ends take."""
    split_at: tuple[int, int] | None = None
    """For a split by time: the positions among the ticks where valid and test begin."""

    @cached_property
    def timestamps(self) -> Ids:
        """The timestamps of the ticks."""
        return self.timeline.index(self.ticks)


def place(
    batch: Batch, times: Sequence[Times], ticks: Ints, clock: Clock | None
) -> tuple[Ids, Ids, Ids, Bools | slice, Counter[str]]:
    """The splits, begins and ends of the facts of a batch, their rows, and why others are dropped.

    Begins and ends are timestamps; or, without a clock, positions among the ticks, with unknown
    times outside of them.
    """
    stop = len(ticks)
    unknown = (-1, stop) if clock is None else (clock.first, clock.last)
    # Rows that are no facts get a begin after their end.
    unreadable, no_event = (stop + 1, -2), (stop + 2, -3)
    if len(times) == 1:
        unknown = no_event
    begin, end = (
        column.lookup(
            # A tick between two of them has the position of the earlier one.
            np.maximum(np.searchsorted(ticks, column.ticks, side="right") - 1, 0).astype(np.int32),
            unknown=unknown[side],
            unreadable=unreadable[side],
        )
        for side, column in ((0, times[0]), (1, times[-1]))
    )
    in_order = begin <= end
    dropped: Counter[str] = Counter()
    if not in_order.all():
        dropped[EVENT_WITHOUT_TIME] = int((begin == no_event[0]).sum())
        dropped[UNREADABLE_TIME] = int(((begin == unreadable[0]) | (end == unreadable[1])).sum())
        dropped[END_BEFORE_BEGIN] = int((~in_order).sum()) - dropped.total()
    if len(batch.duplicates):
        dropped[DUPLICATE] = int(in_order[batch.duplicates].sum())
        in_order[batch.duplicates] = False
    kept: Bools | slice = slice(None) if in_order.all() else in_order
    begin, end = begin[kept], end[kept]
    if clock is None or clock.split_at is None:
        splits = batch.splits()[kept]
    else:
        splits = np.searchsorted(clock.split_at, begin, side="right").astype(np.int32)
    if clock is not None:
        begin, end = clock.timestamps[begin], clock.timestamps[end]
    return splits, begin, end, kept, dropped


@dataclass(frozen=True, eq=False)
class Tally:
    """How many facts there are: by kind, by whether they decide, by predicate and by tick.

    A value without facts or files: the tallies of parts add up in any order.
    """

    predicates: Vocabulary = field(default_factory=lambda: Vocabulary([], kind="predicate"))
    ticks: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    table: Ints = field(default_factory=lambda: np.zeros((_KINDS, 2, 0, 1), np.int64))
    """Kinds x decide x predicates x ticks, and behind them a place for facts without any time."""
    outside: int = 0
    """How many facts reach beyond the timeline of their saved graph."""

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


def count(
    part: Part, frame: Frame, clock: Clock | None = None, progress: Progress = silent
) -> Tally:
    """Count the facts of a part: by timestamp, or by tick where the clock is not known yet."""
    tally, outside = Tally(), 0
    for batch in part.batches("split", "predicate", "begin", "end", progress=progress):
        labels, times = batch.labels("predicate"), batch.times(frame.granularity)
        outside += batch.outside
        new = [clock.timeline.starts] if clock else [column.known() for column in times]
        tally = tally.over(labels.dictionary, np.concatenate(new))
        ticks = clock.ticks if clock else tally.ticks
        splits, begin, end, kept, _ = place(batch, times, ticks, clock)
        names = tally.predicates.ids(labels.dictionary)[labels.indices.to_numpy()][kept]
        decide = (splits == 0) | frame.fit_on_all
        key = decide * np.int32(len(tally.predicates))
        _count(tally.table, key + names, begin, end)
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


def settle(
    tallies: Iterable[Tally], frame: Frame, clock: Clock | None, path: Path
) -> tuple[Clock, Vocabulary, Counts, Ints]:
    """The clock, the predicates, the counts of facts that decide, and all facts by their begin.

    Facts with unknown times get the first or last tick, and are counted with the others.
    """
    tally = reduce(operator.add, tallies)
    if frame.graph is not None:
        with damages(path):
            frame.graph.check_outside(tally.outside)
    first = last = 0
    if clock is None:
        known = tally.ticks[tally.table[..., :-1].any(axis=(0, 1, 2))]
        if not len(known):
            raise DataError(
                f"{path}: no fact has a usable time, all are unknown, unreadable or end before they"
                " begin"
            )
        limits = (
            known[0] if frame.first is None else frame.first,
            known[-1] if frame.last is None else frame.last,
        )
        tally = tally.over(tally.predicates.labels, np.array(limits))
        first, last = np.searchsorted(tally.ticks, limits).tolist()
        tally = replace(tally, table=_filled(tally.table, first, last))
    begins, instants, ends = (tally.table[kind, ..., :-1] for kind in (_LONGER, _INSTANT, _ENDS))
    facts = begins + instants
    if not facts.any():
        raise DataError(
            f"{path}: no facts are left; with unknown times filled in, all end before they begin"
        )
    if not facts[1].any():
        raise UsageError(f"{path}: there are no facts to fit on")
    occur = (facts + ends).any(axis=(0, 1))
    if clock is None:
        timeline = Timeline.of(tally.ticks[occur], frame.granularity)
        clock = Clock(tally.ticks, timeline, first, last)
    used = facts.any(axis=(0, 2))
    names = tally.predicates.labels.filter(pa.array(used))
    unused = [] if frame.graph is None else frame.graph.unused.predicates
    predicates = Vocabulary([*names.to_pylist(), *unused], kind="predicate")
    tables = np.zeros((3, len(predicates), len(clock.timeline)), np.int64)
    at = np.ix_(predicates.ids(names), clock.timeline.index(tally.ticks[occur]))
    for table, counted in zip(tables, (instants, begins, ends), strict=True):
        table[at] = counted[1][np.ix_(used, occur)]
    return clock, predicates, Counts.of_tables(*tables), facts.sum(axis=(0, 1))


def _filled(table: Ints, first: int, last: int) -> Ints:
    """Counts in which facts with an unknown time are among those with a known one."""
    table = table.copy()
    begins, instants, no_begin, no_end, ends, _ = table[..., :-1]
    instants[..., first] += no_begin[..., first]
    begins[..., first] += no_begin[..., first + 1 :].sum(axis=-1)
    ends[..., first + 1 :] += no_begin[..., first + 1 :]
    instants[..., last] += no_end[..., last]
    begins[..., :last] += no_end[..., :last]
    ends[..., last] += no_end[..., :last].sum(axis=-1)
    no_time = table[_NO_TIME, ..., -1]
    if first < last:
        begins[..., first] += no_time
        ends[..., last] += no_time
    elif first == last:
        instants[..., first] += no_time
    return table


def spans(part: Part, clock: Clock, on_all: bool, progress: Progress = silent) -> Ints:
    """The begins and ends (as ticks) of facts, of train or of all, and how many have each."""
    counted, starts = [], clock.timeline.starts
    for batch in part.batches("split", "begin", "end", progress=progress):
        times = batch.times(clock.timeline.granularity)
        splits, begin, end, _, _ = place(batch, times, clock.ticks, clock)
        chosen = (splits == 0) | on_all
        cells = begin[chosen].astype(np.int64) * len(starts) + end[chosen]
        cells, facts = np.unique(cells, return_counts=True)
        begin, end = np.divmod(cells, len(starts))
        counted.append(np.stack([starts[begin], starts[end], facts]))
    return summed(counted)


def summed(counted: Iterable[Ints]) -> Ints:
    """Spans that were counted several times, once, with all of their facts."""
    begin, end, facts = np.concatenate([np.empty((3, 0), np.int64), *counted], axis=1)
    number, row = grouped([begin, end])
    return np.stack([begin[row], end[row], np.bincount(number, facts, len(row)).astype(np.int64)])


def cut(
    part: Part, clock: Clock, scopes: Scopes, target: Path, progress: Progress = silent
) -> tuple[Ints, Counter[str]]:
    """Write the triples of the facts of a part to a file, which appears when it is complete.

    Returns how many facts, triples and rows each split has (3 x splits), and how many rows were
    dropped for each reason.
    """
    totals, reasons = np.zeros((3, len(SPLITS)), np.int64), Counter[str]()
    sources, labels = scopes.names.labels, scopes.labels
    timeline = clock.timeline
    begins = dated(timeline.starts[scopes.first], timeline.granularity)
    ends = dated(timeline.ends[scopes.last], timeline.granularity)
    schema = _schema(begins.type)

    def triples() -> Iterator[tuple[int, pa.RecordBatch]]:
        for batch in part.batches(*ROLES, progress=progress):
            times = batch.times(timeline.granularity)
            splits, begin, end, kept, dropped = place(batch, times, clock.ticks, clock)
            totals[2] += np.bincount(batch.splits(), minlength=len(SPLITS))
            reasons.update(dropped)
            subject, predicate, object_ = map(batch.labels, ("subject", "predicate", "object"))
            named = scopes.names.ids(predicate.dictionary)[predicate.indices.to_numpy()][kept]
            low, high = scopes.find(named, begin, end)
            counts = high - low + 1
            subjects, objects = (column.indices.to_numpy()[kept] for column in (subject, object_))
            subject_names, object_names = (
                column.dictionary.cast(pa.large_string()) for column in (subject, object_)
            )
            for split in range(len(SPLITS)):
                own = np.flatnonzero(splits == split)
                facts = np.arange(len(own)) + totals[0, split]
                totals[:2, split] += len(own), counts[own].sum()
                for some in batches(counts[own], _TRIPLES):
                    rows = own[some]
                    count, scope, overlap = scopes.cut(
                        named[rows], begin[rows], end[rows], low[rows], high[rows]
                    )
                    subject_of, object_of, source_of, fact = (
                        np.repeat(column, count)
                        for column in (subjects[rows], objects[rows], named[rows], facts[some])
                    )
                    at = pa.array(scope)
                    arrays = [
                        _encoded(np.full(len(scope), split, np.int32), pa.array(SPLITS)),
                        _encoded(subject_of, subject_names),
                        _encoded(scope, labels),
                        _encoded(object_of, object_names),
                        pa.array(fact),
                        pa.array(overlap),
                        _encoded(source_of, sources),
                        begins.take(at),
                        ends.take(at),
                    ]
                    yield split, pa.RecordBatch.from_arrays(arrays, schema=schema)

    _write(_by_split(triples(), target.absolute().parent), schema, target)
    return totals, reasons


def _schema(time: pa.DataType) -> pa.Schema:
    """The columns of triples, as `splime transform` writes them from memory too."""
    name = pa.dictionary(pa.int32(), pa.large_string())
    return pa.schema(
        {
            "split": pa.dictionary(pa.int32(), pa.string()),
            **dict.fromkeys(("subject", "predicate", "object"), name),
            "fact": pa.int64(),
            "overlap": pa.int32(),
            "source": name,
            "begin": time,
            "end": time,
        }
    )


def _by_split(
    triples: Iterator[tuple[int, pa.RecordBatch]], folder: Path
) -> Iterator[pa.RecordBatch]:
    """Those of train first, then those of valid and of test, which wait in files without a name."""
    waiting: dict[int, Any] = {}
    with ExitStack() as stack:
        for split, batch in triples:
            if split == 0:
                yield batch
                continue
            if split not in waiting:
                file = stack.enter_context(TemporaryFile(dir=folder))
                waiting[split] = file, pa.ipc.new_stream(file, batch.schema)
            waiting[split][1].write_batch(batch)
        for _, (file, writer) in sorted(waiting.items(), key=itemgetter(0)):
            writer.close()
            file.seek(0)
            yield from pa.ipc.open_stream(file)


def join(sources: Sequence[Path], totals: Sequence[Ints], target: Path) -> None:
    """Write the triples of several files into one; `totals` counts the facts of each by split."""
    import pyarrow.parquet as pq

    before = np.cumsum([np.zeros_like(totals[0]), *totals[:-1]], axis=0)

    def triples() -> Iterator[pa.RecordBatch]:
        for split, name in enumerate(SPLITS):
            for source, facts in zip(sources, before[:, split].tolist(), strict=True):
                with pq.ParquetFile(source, read_dictionary=_NAMES, pre_buffer=False) as file:
                    for group in range(file.metadata.num_row_groups):
                        # A row group has triples of one split.
                        if file.metadata.row_group(group).column(0).statistics.min != name:
                            continue
                        table = file.read_row_group(group)
                        at = table.schema.get_field_index("fact")
                        fact = pc.add(table.column(at), facts)
                        yield from table.set_column(at, "fact", fact).to_batches()

    with pq.ParquetFile(sources[0]) as first:
        schema = first.schema_arrow
    _write(triples(), schema, target)


def _write(triples: Iterator[pa.RecordBatch], schema: pa.Schema, target: Path) -> None:
    """Write triples to a file, which appears when it is complete.

    Writing takes longest, so a thread does it while the next triples are made.
    """
    import pyarrow.parquet as pq

    with (
        written_beside(target) as beside,
        pq.ParquetWriter(beside, schema, **PARQUET) as writer,
        ThreadPoolExecutor(1) as thread,
    ):
        writing = thread.submit(int)  # nothing yet
        for batch in triples:
            writing.result()
            writing = thread.submit(writer.write_batch, batch)
        writing.result()


def _encoded(codes: Ids, labels: pa.Array) -> pa.DictionaryArray:
    if 4 * len(labels) > len(codes):
        # Every row group would hold the labels that it does not use, too.
        used = np.zeros(len(labels), bool)
        used[codes] = True
        labels = labels.filter(pa.array(used))
        codes = (np.cumsum(used, dtype=np.int32) - 1)[codes]
    return pa.DictionaryArray.from_arrays(pa.array(codes), labels, safe=False)
