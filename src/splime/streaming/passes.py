"""The passes over the facts of a part: count them, and write their triples to files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import pyarrow as pa

from splime.arrays import batches, grouped
from splime.counts import Counts
from splime.errors import DataError, UsageError
from splime.graph import SPLITS, Ids
from splime.io.files import atomic_write, checksum
from splime.io.parquet import NOT_STREAMED, ROLES, Batch, Part, TimeColumn
from splime.io.parts import TripleFile
from splime.io.placeholders import placeholders
from splime.io.saved import Description
from splime.progress import Progress, silent
from splime.reading import DUPLICATE, END_BEFORE_BEGIN, EVENT_WITHOUT_TIME, UNREADABLE_TIME
from splime.segmentation import Scopes
from splime.timeline import Timeline
from splime.times import Bools, Granularity, Ints, dated, format_ticks
from splime.vocabulary import Vocabulary

_KINDS = 6
# How a fact is counted; the ends of longer facts are counted beside their begins.
_LONGER, _INSTANT, _NO_BEGIN, _NO_END, _ENDS, _NO_TIME = range(_KINDS)
_NAMES = ("subject", "predicate", "object")
PARQUET = {
    "compression": "zstd",
    "use_dictionary": ["split", *_NAMES, "source", "overlap", "begin", "end"],
    "column_encoding": {"fact": "DELTA_BINARY_PACKED"},
    # Names stay a dictionary however many there are; their minimum and maximum are of no use.
    "dictionary_pagesize_limit": 2**26,
    "write_statistics": ["split", "fact"],
}
"""Arrow's options to write triples."""
# A fact can have many triples, so this many are made and written at a time.
_TRIPLES = 1 << 20


@dataclass(frozen=True)
class ReadPlan:
    """How to read the facts, fixed before they are counted."""

    granularity: Granularity
    fit_on_all: bool
    """Whether all facts decide the cuts, or only those of train."""
    graph: Description | None = None
    """The description of a saved graph."""
    first: int | None = None
    last: int | None = None
    """The ticks for unknown begins and ends; by default the first and last of all facts."""


@dataclass(frozen=True)
class TickIndex:
    """All ticks that occur and their timestamps, known once the facts are counted."""

    ticks: Ints
    timeline: Timeline
    first: int = 0
    last: int = 0
    """The positions among the ticks of unknown begins and ends."""
    split_at: tuple[int, int] | None = None
    """For a split by time: the positions among the ticks at which valid and test begin."""

    @cached_property
    def timestamps(self) -> Ids:
        """The timestamps of the ticks."""
        return self.timeline.index(self.ticks)


def locate(
    batch: Batch, times: Sequence[TimeColumn], ticks: Ints, index: TickIndex | None
) -> tuple[Ids, Ids, Ids, Bools | slice, Counter[str]]:
    """The splits, begins, ends and rows of the facts in a batch, and why other rows are dropped.

    Begins and ends are timestamps. Without an index they are positions among the ticks, with
    unknown times outside of them.
    """
    stop = len(ticks)
    unknown = (-1, stop) if index is None else (index.first, index.last)
    # Rows that are not facts get a begin after their end.
    unreadable, no_event = (stop + 1, -2), (stop + 2, -3)
    if len(times) == 1:
        unknown = no_event
    begin, end = (
        column.lookup(
            # A tick between two of the ticks has the position of the earlier one.
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
    if index is None or index.split_at is None:
        splits = batch.splits()[kept]
    else:
        splits = np.searchsorted(index.split_at, begin, side="right").astype(np.int32)
    if index is not None:
        begin, end = index.timestamps[begin], index.timestamps[end]
    return splits, begin, end, kept, dropped


@dataclass(frozen=True, eq=False)
class Tally:
    """The number of facts by kind, split, predicate and tick; tallies of parts can be added."""

    predicates: Vocabulary = field(default_factory=lambda: Vocabulary([], kind="predicate"))
    ticks: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    table: Ints = field(default_factory=lambda: np.zeros((_KINDS, 3, 0, 1), np.int64))
    """Kinds x splits x predicates x ticks; the last column is for facts without any time."""

    def over(self, names: pa.Array, ticks: Ints) -> Tally:
        """The same counts in a table that also has these predicates and ticks."""
        predicates = self.predicates
        if (predicates.ids(names) < 0).any():
            names = pa.concat_arrays([predicates.labels, names.cast(pa.large_string())])
            predicates = Vocabulary(names, kind="predicate")
        ticks = np.union1d(self.ticks, ticks)
        if len(predicates) == len(self.predicates) and len(ticks) == len(self.ticks):
            return self
        table = np.zeros((_KINDS, 3, len(predicates), len(ticks) + 1), np.int64)
        places = np.append(np.searchsorted(ticks, self.ticks), len(ticks))
        table[:, :, predicates.ids(self.predicates.labels)[:, None], places] = self.table
        return replace(self, predicates=predicates, ticks=ticks, table=table)

    def __add__(self, other: Tally) -> Tally:
        wider = self.over(other.predicates.labels, other.ticks)
        table = wider.table + other.over(self.predicates.labels, self.ticks).table
        return replace(wider, table=table)


def count(
    part: Part, plan: ReadPlan, index: TickIndex | None = None, progress: Progress = silent
) -> Tally:
    """Count the facts of a part by timestamp, or by tick while there is no index yet."""
    tally = Tally()
    for batch in part.batches("split", "predicate", "begin", "end", progress=progress):
        labels, times = batch.labels("predicate"), batch.times(plan.granularity)
        new = [index.timeline.starts] if index else [column.known() for column in times]
        tally = tally.over(labels.dictionary, np.concatenate(new))
        ticks = index.ticks if index else tally.ticks
        splits, begin, end, kept, _ = locate(batch, times, ticks, index)
        names = tally.predicates.ids(labels.dictionary)[labels.indices.to_numpy()][kept]
        _count(tally.table, splits * np.int32(len(tally.predicates)) + names, begin, end)
    return tally


def _count(table: Ints, key: Ids, begin: Ids, end: Ids) -> None:
    """Add facts to a table in place."""
    _, _, names, places = table.shape
    no_begin, no_end = begin < 0, end == places - 1
    kind = (begin == end) + 2 * no_begin.astype(np.int8) + 3 * no_end.astype(np.int8)
    longer = np.flatnonzero(kind == _LONGER)
    flat = table.reshape(-1)
    for kinds, keys, at in (
        (kind, key, np.where(no_begin, end, begin)),
        (np.array([_ENDS]), key[longer], end[longer]),
    ):
        cells = (kinds.astype(np.int64) * (3 * names) + keys) * places + at
        if len(flat) <= 4 * len(cells):
            flat += np.bincount(cells, minlength=len(flat))
        else:
            np.add.at(flat, cells, 1)


@dataclass(frozen=True)
class CountResult:
    """The counts over all parts."""

    index: TickIndex
    predicates: Vocabulary
    counts: Counts
    """Of the facts that decide the cuts."""
    begins: Ints
    """How many facts begin at each tick."""
    facts: Ints
    """The number of facts: parts x splits."""


def sum_tallies(
    tallies: Iterable[tuple[int, Tally]], plan: ReadPlan, index: TickIndex | None, where: str
) -> CountResult:
    """Add the tallies of all parts, given with the numbers of the parts in any order.

    Facts with unknown times are counted at the first or last tick.
    """
    tally, parts = Tally(), dict[int, tuple[Ints, Ints]]()
    for number, part in tallies:
        tally += part
        parts[number] = part.ticks, part.table.sum(axis=2)
    first = last = 0
    if index is None:
        if plan.graph is None:
            _check_placeholders(tally.ticks, plan.granularity, where)
        known = tally.ticks[tally.table[..., :-1].any(axis=(0, 1, 2))]
        if not len(known):
            raise DataError(
                f"{where}: no fact has a usable time, all are unknown, unreadable or end before"
                " they begin"
            )
        ends_of_time = (
            known[0] if plan.first is None else plan.first,
            known[-1] if plan.last is None else plan.last,
        )
        tally = tally.over(tally.predicates.labels, np.array(ends_of_time))
        first, last = np.searchsorted(tally.ticks, ends_of_time).tolist()
        tally = replace(tally, table=_filled(tally.table, first, last))
    begins, instants, ends = (tally.table[kind, ..., :-1] for kind in (_LONGER, _INSTANT, _ENDS))
    facts = begins + instants
    if not facts.any():
        raise DataError(
            f"{where}: no facts are left; with unknown times filled in, all end before they begin"
        )
    decide = slice(None) if plan.fit_on_all else slice(1)
    if not facts[decide].any():
        raise UsageError(f"{where}: there are no facts to fit on")
    occur = (facts + ends).any(axis=(0, 1))
    limits = None if index else (first, last)
    of_parts = [_split_sizes(*parts[number], tally.ticks, limits) for number in sorted(parts)]
    if index is None:
        timeline = Timeline.of(tally.ticks[occur], plan.granularity)
        index = TickIndex(tally.ticks, timeline, first, last)
    used = facts.any(axis=(0, 2))
    names = tally.predicates.labels.filter(pa.array(used))
    unused = [] if plan.graph is None else plan.graph.unused.predicates
    predicates = Vocabulary([*names.to_pylist(), *unused], kind="predicate")
    tables = np.zeros((3, len(predicates), len(index.timeline)), np.int64)
    at = np.ix_(predicates.ids(names), index.timeline.index(tally.ticks[occur]))
    for table, counted in zip(tables, (instants, begins, ends), strict=True):
        table[at] = counted[decide].sum(axis=0)[np.ix_(used, occur)]
    counts = Counts.of_tables(*tables)
    return CountResult(index, predicates, counts, facts.sum(axis=(0, 1)), np.stack(of_parts))


def _check_placeholders(ticks: Ints, granularity: Granularity, where: str) -> None:
    """An error if a time may stand for an unknown one, which all facts together decide."""
    far = placeholders(ticks, np.full(len(ticks), 2), granularity)
    if far.any():
        text = format_ticks(ticks[far][:1], granularity)[0]
        raise DataError(
            f"{where}: {text} lies far from all other times, and may stand for an unknown one."
            f" {NOT_STREAMED}"
        )


def _split_sizes(ticks: Ints, table: Ints, all_ticks: Ints, limits: tuple[int, int] | None) -> Ints:
    """The number of facts of a part in each split, from its counts by kind, split and tick."""
    if limits is not None:
        wide = np.zeros((*table.shape[:2], len(all_ticks) + 1), np.int64)
        wide[..., np.append(np.searchsorted(all_ticks, ticks), -1)] = table
        table = _filled(wide, *limits)
    sizes: Ints = table[[_LONGER, _INSTANT], :, :-1].sum(axis=(0, 2))
    return sizes


def _filled(table: Ints, first: int, last: int) -> Ints:
    """The counts, with facts of unknown time moved to the first and last tick."""
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


def count_spans(part: Part, index: TickIndex, on_all: bool, progress: Progress = silent) -> Ints:
    """Distinct begins and ends (as ticks) of the facts of train, or of all, and their numbers."""
    counted, starts = [], index.timeline.starts
    for batch in part.batches("split", "begin", "end", progress=progress):
        times = batch.times(index.timeline.granularity)
        splits, begin, end, _, _ = locate(batch, times, index.ticks, index)
        chosen = (splits == 0) | on_all
        cells = begin[chosen].astype(np.int64) * len(starts) + end[chosen]
        cells, facts = np.unique(cells, return_counts=True)
        begin, end = np.divmod(cells, len(starts))
        counted.append(np.stack([starts[begin], starts[end], facts]))
    return sum_spans(counted)


def sum_spans(counted: Iterable[Ints]) -> Ints:
    """Add the numbers of facts of equal spans."""
    begin, end, facts = np.concatenate([np.empty((3, 0), np.int64), *counted], axis=1)
    number, row = grouped([begin, end])
    return np.stack([begin[row], end[row], np.bincount(number, facts, len(row)).astype(np.int64)])


@dataclass(frozen=True)
class Cutting:
    """The cuts and timestamps that turn the facts of any part into triples."""

    index: TickIndex
    scopes: Scopes


@dataclass
class PartResult:
    """The numbers of facts, triples and dropped rows of parts."""

    totals: Ints = field(default_factory=lambda: np.zeros((3, len(SPLITS)), np.int64))
    """How many facts, triples and rows each split has."""
    dropped: Counter[str] = field(default_factory=Counter)
    """How many rows were dropped for each reason."""


def triples_of(
    part: Part, cutting: Cutting, result: PartResult, progress: Progress = silent
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The triples of a part in batches, each of one split; their numbers are added to `result`."""
    index, scopes, timeline = cutting.index, cutting.scopes, cutting.index.timeline
    sources, labels = scopes.names.labels, scopes.labels
    begins = dated(timeline.starts[scopes.first], timeline.granularity)
    ends = dated(timeline.ends[scopes.last], timeline.granularity)
    totals, numbers = result.totals, part.before.copy()
    for batch in part.batches(*ROLES, progress=progress):
        times = batch.times(timeline.granularity)
        splits, begin, end, kept, dropped = locate(batch, times, index.ticks, index)
        totals[2] += np.bincount(batch.splits(), minlength=len(SPLITS))
        result.dropped += dropped  # without those that are 0
        subject, predicate, object_ = map(batch.labels, _NAMES)
        named = scopes.names.ids(predicate.dictionary)[predicate.indices.to_numpy()][kept]
        low, high = scopes.find(named, begin, end)
        counts = high - low + 1
        subjects, objects = (column.indices.to_numpy()[kept] for column in (subject, object_))
        subject_names, object_names = (
            column.dictionary.cast(pa.large_string()) for column in (subject, object_)
        )
        for split in range(len(SPLITS)):
            of_split = np.flatnonzero(splits == split)
            facts = np.arange(len(of_split)) + numbers[split]
            numbers[split] += len(of_split)
            totals[:2, split] += len(of_split), counts[of_split].sum()
            for chunk in batches(counts[of_split], _TRIPLES):
                rows = of_split[chunk]
                count, scope, overlap = scopes.cut(
                    named[rows], begin[rows], end[rows], low[rows], high[rows]
                )
                subject_of, object_of, source_of, fact = (
                    np.repeat(column, count)
                    for column in (subjects[rows], objects[rows], named[rows], facts[chunk])
                )
                at = pa.array(scope)
                # The columns of triples that are exported from memory.
                columns = {
                    "split": _encoded(np.full(len(scope), split, np.int32), pa.array(SPLITS)),
                    "subject": _encoded(subject_of, subject_names),
                    "predicate": _encoded(scope, labels),
                    "object": _encoded(object_of, object_names),
                    "fact": pa.array(fact),
                    "overlap": pa.array(overlap),
                    "source": _encoded(source_of, sources),
                    "begin": begins.take(at),
                    "end": ends.take(at),
                }
                yield split, pa.RecordBatch.from_pydict(columns)


def write_all(triples: Iterator[tuple[int, pa.RecordBatch]], target: Path) -> None:
    """Write triples to one file, train first and test last; it appears when it is complete."""
    with atomic_write(target) as beside:
        _write(_by_split(triples, target.absolute().parent), lambda _: beside)


def write_splits(
    triples: Iterator[tuple[int, pa.RecordBatch]], targets: Sequence[Path]
) -> list[TripleFile]:
    """Write triples to a file for each split that has any; the files appear when all are complete.

    Until then their names contain the process, so that two attempts do not collide.
    """
    import pyarrow.parquet as pq

    with ExitStack() as places:
        besides: dict[int, Path] = {}

        def place_of(split: int) -> Path:
            if split not in besides:
                besides[split] = places.enter_context(atomic_write(targets[split]))
            return besides[split]

        _write(triples, place_of)
        return [
            TripleFile(
                targets[split].name,
                SPLITS[split],
                pq.read_metadata(beside).num_rows,
                beside.stat().st_size,
                checksum(beside),
            )
            for split, beside in sorted(besides.items())
        ]


def _by_split(
    triples: Iterator[tuple[int, pa.RecordBatch]], folder: Path
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The triples of train, then of valid and test, which are kept in temporary files so long."""
    waiting: dict[int, Any] = {}
    with ExitStack() as stack:
        for split, batch in triples:
            if split == 0:
                yield split, batch
                continue
            if split not in waiting:
                file = stack.enter_context(TemporaryFile(dir=folder))
                waiting[split] = file, pa.ipc.new_stream(file, batch.schema)
            waiting[split][1].write_batch(batch)
        for split, (file, writer) in sorted(waiting.items(), key=itemgetter(0)):
            writer.close()
            file.seek(0)
            for batch in pa.ipc.open_stream(file):
                yield split, batch


def _write(triples: Iterator[tuple[int, pa.RecordBatch]], place_of: Callable[[int], Path]) -> None:
    """Write batches of triples to the files of their splits.

    Writing takes longest, so a thread writes while the next triples are made.
    """
    import pyarrow.parquet as pq

    writers: dict[Path, Any] = {}
    with ExitStack() as files, ThreadPoolExecutor(1) as thread:
        writing = thread.submit(int)  # nothing to wait for yet
        for split, batch in triples:
            writing.result()
            if (path := place_of(split)) not in writers:
                writer = pq.ParquetWriter(path, batch.schema, **PARQUET)
                writers[path] = files.enter_context(writer)
            writing = thread.submit(writers[path].write_batch, batch)
        writing.result()


def _encoded(codes: Ids, labels: pa.Array) -> pa.DictionaryArray:
    if 4 * len(labels) > len(codes):
        # Otherwise every row group would also hold the labels that it does not use.
        used = np.zeros(len(labels), bool)
        used[codes] = True
        labels = labels.filter(pa.array(used))
        codes = (np.cumsum(used, dtype=np.int32) - 1)[codes]
    return pa.DictionaryArray.from_arrays(pa.array(codes), labels, safe=False)
