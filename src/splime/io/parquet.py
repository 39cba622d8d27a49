"""Facts in Parquet files, of other people or saved by splime: all at once, or batch by batch."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from splime.arrays import batches
from splime.errors import DataError, SplimeError
from splime.graph import Ids, SplitName, TemporalGraph
from splime.io.columns import EncodedColumn, RawFacts
from splime.io.contents import SAMPLE, Contents
from splime.io.files import check_plain
from splime.io.inference import find_layout
from splime.io.inputs import InputFile
from splime.io.layout import NAMES, TIMES
from splime.io.notations import kinds_of_numbers, may_be_no_time, unit_of_numbers
from splime.io.options import ReadOptions
from splime.io.parts import check_whole
from splime.io.recognition import Recognition
from splime.io.saved import damages, read_description, read_metadata, restore_graph
from splime.io.tables import cells_of, label_column, raw_from_columns, time_column, value_type
from splime.progress import Progress, silent
from splime.times import (
    KNOWN,
    UNKNOWN,
    Bools,
    Granularity,
    Ints,
    Kinds,
    count_kinds,
    dated,
    parse_times,
    plain_text,
)
from splime.workers import available_memory

_T = TypeVar("_T", bound=np.generic)
NOT_STREAMED = (
    "Streaming reads only plain times; read all facts into memory, without streaming (--no-stream)"
)
ROLES = ("split", *NAMES, "begin", "end")
"""What the columns of facts can be."""
# Integers and dates that span fewer ticks than this are read without parsing; not where they lie so
# far from 0 that they may be no times: "20140513" among dates is no year.
_DENSE = 1 << 16
_CELL = 16
"""Bytes that a value takes, from the file to the graph: some names are in many rows."""
_MOST: Mapping[Granularity, int] = {"step": 10**18 - 1, "year": 9_999, "day": 10_000_000}


def read_parquet(
    file: InputFile, split: SplitName | None, options: ReadOptions
) -> RawFacts | TemporalGraph:
    """The facts of a Parquet file; a graph, if splime saved one there and no split is chosen."""
    if file.content is not None:
        raise DataError(f"{file.path}: Parquet cannot be read from a pipe; give its path")
    check_whole(file.path)
    facts = FactFile(file.path, options)
    if facts.graph is not None and split is None:
        return restore_graph(file.path, facts.table(facts.schema.names), facts.graph)
    table = facts.table([*facts.layout.values()])
    raw = raw_from_columns(table, facts.layout, options, name=file.path.name, split=split)
    return replace(raw, remarks=(*facts.remarks, *raw.remarks))


def read_parquets(paths: Sequence[Path], name: str, options: ReadOptions) -> RawFacts:
    """The facts of several Parquet files, one after the other, as those of one of this name."""
    tables: list[pa.Table] = []
    for path in paths:
        check_whole(path)
        facts = FactFile(path, options)
        if facts.graph is not None:
            raise DataError(f"{path}: holds a whole graph, expected facts among those of others")
        table = facts.table([*facts.layout.values()])
        if tables and len(table.column_names) != len(tables[0].column_names):
            raise DataError(f"{path}: has other columns than {paths[0]}")
        tables.append(table.rename_columns(tables[0].column_names) if tables else table)
    try:
        together = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise DataError(f"{name}: the columns of the files differ: {error}") from None
    raw = raw_from_columns(together, facts.layout, options, name=name)
    return replace(raw, remarks=(*facts.remarks, *raw.remarks))


def read_table(path: Path) -> pa.Table:
    """All columns of a Parquet file, whatever they hold."""
    import pyarrow.parquet as pq

    check_whole(path)
    with _opened(path):
        table = pq.read_table(path)
        table.validate(full=True)
    return table


@contextmanager
def _opened(path: Path) -> Iterator[None]:
    """What Arrow says of a file as one message."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise DataError(f"{path}: cannot be read as Parquet: {error}") from None


@dataclass(frozen=True)
class Part:
    """Neighbouring row groups of a Parquet file: what one worker takes at a time.

    It says where the facts are and holds none of them, so it can be sent to another process.
    """

    path: Path
    groups: range
    row: int
    """The number of its first row in the file."""
    fact: int
    """The number of its first row among all rows of the source, which may be many files."""
    rows: int
    batch_rows: int
    """How many rows to hold at once."""
    columns: Sequence[str] | None
    """Those to use, as in `splime.read`."""
    version: tuple[int, int]
    """The size of the file and when it was written: it must not change between two passes."""
    duplicates: Ints = field(default_factory=lambda: np.empty(0, np.int64), compare=False)
    """The numbers of facts that repeat an earlier one, in order."""
    forced: Granularity | None = None
    """The granularity, where it is not inferred."""
    among: Kinds | None = None
    """The kinds of all times of the source; None where every time stands for itself."""
    number: int = 0
    """Its number among the parts of the source."""
    before: Ints = field(default_factory=lambda: np.zeros(3, np.int64), compare=False)
    """How many facts of each split come before it."""

    def __str__(self) -> str:
        return f"{self.path}, rows {self.row + 1:,} to {self.row + self.rows:,}"

    def batches(self, *roles: str, progress: Progress = silent) -> Iterator[Batch]:
        """Some columns of the facts, by their role."""
        import pyarrow.parquet as pq

        file, row = FactFile(self.path, ReadOptions(columns=self.columns)), self.row
        if file.version != self.version:
            raise DataError(f"{self.path}: was changed while it was read; start again")
        names = {role: file.names[role] for role in roles if role in file.names}
        graph = file.graph if "begin" in names else None
        wanted = [*names.values(), *(file.filled if graph else ())]
        # Pre-buffering would keep all that was ever read in memory; and without a small buffer a
        # whole row group would be in memory, however large it is.
        opened = partial(pq.ParquetFile, pre_buffer=False, buffer_size=1 << 18)
        with _opened(self.path), opened(self.path, read_dictionary=file.texts) as reader:
            for batch in reader.iter_batches(self.batch_rows, [*self.groups], wanted):
                batch.validate(full=True)
                columns = {role: batch.column(name) for role, name in names.items()}
                if graph is not None:
                    with damages(self.path):
                        begin, end, _ = graph.times(batch)
                    columns["begin"] = dated(begin, graph.granularity)
                    columns["end"] = dated(end, graph.granularity)
                yield Batch(self, row, columns, names)
                row += batch.num_rows
                progress("reading", self.fact - self.row + row)


class FactFile:
    """What a Parquet file of facts says about itself."""

    def __init__(self, path: Path, options: ReadOptions | None = None) -> None:
        import pyarrow.parquet as pq

        self.path, self.options = path, options or ReadOptions()
        if not path.exists():
            raise DataError(f"{path}: there is no such Parquet file")
        check_plain(path)
        with _opened(path):
            about, self._metadata = path.stat(), pq.read_metadata(path)
            self.schema = schema = self._metadata.schema.to_arrow_schema()
        self.version = about.st_size, about.st_mtime_ns
        self.rows: int = self._metadata.num_rows
        self.graph = read_description(path, schema.metadata)
        if not self.rows and self.graph is None:
            raise DataError(f"{path}: the table is empty")
        self.granularity = read_metadata(path, schema.metadata).get("granularity")
        # What can be read as a dictionary of text.
        kinds = (pa.string(), pa.large_string())
        self.texts = [column.name for column in schema if value_type(column.type) in kinds]
        # What unknown times of a saved graph became, where its description does not say it.
        self.filled = {"begin_filled", "end_filled"}.intersection(schema.names)

    @cached_property
    def _found(self) -> tuple[dict[str, str], tuple[str, ...]]:
        names = self.schema.names
        if len(set(names)) < len(names):
            raise DataError(f"{self.path}: several columns have the same name")
        layout, remarks = find_layout(
            Contents(names, lambda: cells_of(self._start())), self.options, str(self.path)
        )
        return {role: names[at] for role, at in layout.items()}, remarks

    def _start(self) -> pa.Table:
        """The first rows."""
        import pyarrow.parquet as pq

        with _opened(self.path):
            batches = pq.ParquetFile(self.path).iter_batches(SAMPLE)
            return pa.Table.from_batches([*itertools.islice(batches, 1)], self.schema)

    @property
    def layout(self) -> dict[str, str]:
        """The names of columns by their role."""
        return self._found[0]

    @property
    def remarks(self) -> tuple[str, ...]:
        """How the columns were understood."""
        return self._found[1]

    @property
    def is_open(self) -> bool:
        """Whether facts have a begin and no known end."""
        return "begin" in self.layout and "end" not in self.layout

    @property
    def names(self) -> dict[str, str]:
        """The same for a stream of facts; the time of an event is its begin."""
        if {*self.layout} - {*NAMES, *TIMES, "split"} or not {*NAMES} <= self.layout.keys():
            raise DataError(
                f"{self.path}: only facts with a column each for subject, predicate and object can"
                " be streamed; stream=False (--no-stream) loads these"
            )
        return {"begin" if role == "time" else role: name for role, name in self.layout.items()}

    def table(self, names: list[str]) -> pa.Table:
        """Some columns of all facts."""
        import pyarrow.parquet as pq

        texts = [name for name in self.texts if name in names]
        needed, free = _CELL * self.rows * len(names), available_memory()
        if free is not None and needed > free:
            raise SplimeError(
                f"{self.path}: to read its {self.rows:,} rows takes about {needed / 1e9:,.1f} GB of"
                f" memory, and {free / 1e9:,.1f} GB are free; take fewer facts"
            )
        with _opened(self.path):
            columns = [*dict.fromkeys(names)]
            table = pq.read_table(self.path, columns=columns, read_dictionary=texts)
            table.validate(full=True)
            return table.select(names)

    def parts(self, most_rows: int, batch_rows: int, fact: int = 0) -> list[Part]:
        """Parts of at most `most_rows` rows, but of at least one row group."""
        groups = range(self._metadata.num_row_groups)
        sizes = np.array([self._metadata.row_group(group).num_rows for group in groups])
        parts, row = [], 0
        for chunk in batches(sizes, most_rows):
            rows = int(sizes[chunk].sum())
            place = groups[chunk], row, fact + row, rows
            parts.append(Part(self.path, *place, batch_rows, self.options.columns, self.version))
            row += rows
        return parts


@dataclass(frozen=True)
class Batch:
    """Some columns of a few facts, by their role."""

    part: Part
    row: int
    """The number of the first row in the file."""
    columns: Mapping[str, pa.Array]
    names: Mapping[str, str]
    """What the columns are called in the file."""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def duplicates(self) -> Ints:
        """Rows that repeat an earlier fact, counted from the first one of the batch."""
        fact = self.part.fact - self.part.row + self.row
        low, high = np.searchsorted(self.part.duplicates, [fact, fact + len(self)])
        return self.part.duplicates[low:high] - fact

    def locate(self, rows: Sequence[int]) -> list[str]:
        """Where rows stand, for messages."""
        return [f"{self.part.path}, row {self.row + row + 1}" for row in rows]

    def labels(self, role: str) -> pa.DictionaryArray:
        """A column of names, dictionary-encoded."""
        column = pa.chunked_array([self.columns[role]])
        EncodedColumn(column).check_names(self.locate)
        text = label_column(column, self.names[role], str(self.part.path)).chunk(0)
        return text if pa.types.is_dictionary(text.type) else text.dictionary_encode()

    def splits(self) -> Ids:
        """The split of every fact, by its position in SPLITS; train where there is no column."""
        if "split" not in self.columns:
            return np.zeros(len(self), np.int32)
        return EncodedColumn(self.columns["split"]).splits(self.locate)

    def times(self, granularity: Granularity) -> list[TimeColumn]:
        """The times of facts: of begin and end, or of events only the one they have."""
        return [
            _dense(self.columns[role], granularity) or self._parsed(role)
            for role in ("begin", "end")
            if role in self.columns
        ]

    def encoded(self, role: str) -> EncodedColumn:
        """A column of times as text, dictionary-encoded."""
        column = pa.chunked_array([self.columns[role]])
        return time_column(column, self.names[role], str(self.part.path))

    def _parsed(self, role: str) -> TimeColumn:
        column, part = self.encoded(role), self.part
        weights = column.counts()
        parsed = parse_times(
            column.strings, weights=weights, granularity=part.forced, among=part.among
        )
        return TimeColumn(column, parsed.ticks, parsed.state)


def kinds_of_times(
    part: Part, granularity: Granularity | None = None, progress: Progress = silent
) -> Kinds:
    """The kinds of the times of a part; an error if only all of them say how they are written."""
    kinds, options = Kinds(), ReadOptions(granularity=granularity)
    for batch in part.batches("begin", "end", progress=progress):
        columns = [batch.encoded(role) for role in batch.columns]
        for column in columns:
            kinds += count_kinds(column.strings, column.counts(), granularity)
            if granularity != "step":
                kinds += kinds_of_numbers(plain_text(column.values), column.counts())
        if granularity != "step":
            plain = RawFacts(str(part.path), (), columns, batch.locate)
            for remark in Recognition([plain], options).iso(numbers=False)[0].remarks:
                raise DataError(f"{part.path}: {remark}. {NOT_STREAMED}")
    return kinds


def check_numbers(kinds: Kinds, where: str) -> None:
    """An error if numbers among times of these kinds would be read as something else."""
    unit = unit_of_numbers(kinds)
    if unit or may_be_no_time(kinds):
        what = f"numbers are {unit}" if unit else "0, -1 or 9999 may stand for an unknown time"
        raise DataError(f"{where}: {what}. {NOT_STREAMED}")


@dataclass(frozen=True)
class TimeColumn:
    """A column of times: the different ones as ticks, and which of them each row has."""

    column: EncodedColumn
    ticks: Ints
    state: npt.NDArray[np.uint8]

    def known(self) -> Ints:
        """The ticks that occur."""
        occurs: Bools = (self.state == KNOWN) & (self.column.counts() > 0)
        return self.ticks[occurs]

    def lookup(
        self, table: npt.NDArray[_T], *, unknown: int, unreadable: int = 0
    ) -> npt.NDArray[_T]:
        """For every row the entry of its tick in a table; or `unknown`, or `unreadable`."""
        table = table.copy()
        table[self.state == UNKNOWN] = unknown
        table[self.state > UNKNOWN] = unreadable
        return self.column.lookup(table, missing=unknown)


def _dense(column: pa.Array, granularity: Granularity) -> TimeColumn | None:
    """Times that are ticks already, and close to each other: several times faster than parsing."""
    kind = column.type
    if pa.types.is_signed_integer(kind) and granularity in ("step", "year"):
        ticks = column.cast(pa.int64())
    elif pa.types.is_date32(kind) and granularity == "day":
        ticks = column.cast(pa.int32()).cast(pa.int64())
    else:
        return None
    low, high = pc.min_max(ticks).as_py().values()
    most = _MOST[granularity]
    if low is None or high - low >= _DENSE or low < -most or high > most:
        return None
    values = np.arange(low, high + 1)
    codes = pc.subtract(ticks, low).cast(pa.int32())
    encoded = pa.DictionaryArray.from_arrays(codes, pa.array(values), safe=False)
    return TimeColumn(EncodedColumn(encoded), values, np.full(len(values), KNOWN, np.uint8))
