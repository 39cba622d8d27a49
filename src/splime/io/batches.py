"""Facts of a Parquet file batch by batch, for files larger than memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splime.errors import DataError
from splime.graph import SPLITS, Ids
from splime.io.columns import EncodedColumn
from splime.io.layout import by_name
from splime.io.parquet import holds_text
from splime.io.saved import read_description
from splime.io.tables import label_column, time_column
from splime.reading import END_BEFORE_BEGIN, EVENT_WITHOUT_TIME, UNREADABLE_TIME
from splime.timeline import Timeline
from splime.times import KNOWN, UNKNOWN, Bools, Granularity, Ints, parse_times

Columns: TypeAlias = Mapping[str, pa.Array]

_ROLES = ("subject", "predicate", "object", "begin", "end")
# The granularity is found out from at most so many different times.
_MOST_TIMES = 1 << 20
# Whole numbers and dates within so many ticks are read without parsing.
_DENSE = 1 << 16


class FactFile:
    """A Parquet file of facts. It stays open, so that every pass over it reads the same file."""

    def __init__(self, path: Path, batch_rows: int) -> None:
        import pyarrow.parquet as pq

        self.path = path
        self._batch_rows = batch_rows
        if not path.is_file():
            raise DataError(f"{path}: there is no such Parquet file")
        try:
            schema = pq.read_schema(path)
            texts = [field.name for field in schema if holds_text(field.type)]
            # Pre-buffering would keep all that was ever read in memory; and without a small buffer
            # all of a row group would be there, however large the writer made it.
            self._file = pq.ParquetFile(
                path, read_dictionary=texts, pre_buffer=False, buffer_size=1 << 18
            )
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._unreadable(error) from None
        self.rows: int = self._file.metadata.num_rows
        self.described: dict[str, Any] = read_description(path, schema.metadata)
        self.is_graph = "timeline" in self.described
        if not self.rows:
            raise DataError(f"{path}: the table is empty")
        layout = by_name(schema.names, None, str(path))
        self._names = {
            role: schema.names[at] for role, at in zip(_ROLES, layout.facts, strict=False)
        }
        if layout.split is not None:
            self._names["split"] = schema.names[layout.split]
        if len(set(self._names.values())) < len(self._names):
            raise DataError(f"{path}: several columns have the same name")
        # What unknown times of a saved graph became, where its description does not tell.
        self._filled = {
            role: f"{role}_filled"
            for role in ("begin", "end")
            if self.is_graph and f"{role}_filled" in schema.names
        }

    def __enter__(self) -> FactFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def batches(self, *roles: str) -> Iterator[tuple[int, Columns]]:
        """Some columns of all facts, by their role, with the number of the first row."""
        import pyarrow.compute as pc

        names = {role: self._names[role] for role in roles if role in self._names}
        filled = {role: name for role, name in self._filled.items() if role in names}
        wanted = [*names.values(), *filled.values()]
        row = 0
        try:
            for batch in self._file.iter_batches(self._batch_rows, columns=wanted):
                batch.validate(full=True)
                columns = {role: batch.column(name) for role, name in names.items()}
                for role, name in filled.items():
                    columns[role] = pc.coalesce(columns[role], batch.column(name))
                yield row, columns
                row += batch.num_rows
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> DataError:
        return DataError(f"{self.path}: cannot be read as Parquet: {error}")

    def labels(self, columns: Columns, role: str, row: int) -> pa.DictionaryArray:
        """A column of names, dictionary-encoded."""
        column = columns[role]
        if column.null_count:
            at = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise DataError(
                f"{self.path}, row {row + at + 1}: a name is missing (null); every fact needs all"
                " three names"
            )
        text = label_column(pa.chunked_array([column]), self._names[role], str(self.path)).chunk(0)
        return text if pa.types.is_dictionary(text.type) else text.dictionary_encode()

    def splits(self, columns: Columns, row: int) -> Ids:
        """The split of every fact, by its position in SPLITS; train where there is no column."""
        if "split" not in columns:
            return np.zeros(len(columns["predicate"]), np.int32)
        column = EncodedColumn(columns["split"])
        names = column.values.cast(pa.string()).to_pylist()
        table = [SPLITS.index(name) if name in SPLITS else -1 for name in names]
        found = column.lookup(np.array(table, np.int32), missing=-1)
        if found.min() < 0:
            at = int(np.argmin(found))
            name = columns["split"][at].as_py()
            where = f"{self.path}, row {row + at + 1}"
            raise DataError(f"{where}: the split is {name!r}; expected train, valid or test")
        return found

    def granularity(self) -> Granularity:
        """The granularity of the times, found out from all that differ (the first million)."""
        times: Counter[str] = Counter()
        for _, columns in self.batches("begin", "end"):
            for role, column in columns.items():
                encoded = self._encoded(column, role)
                used = encoded.counts()
                occur = np.flatnonzero(used)
                texts = encoded.values.take(pa.array(occur)).to_pylist()
                times.update(dict(zip(texts, used[occur].tolist(), strict=True)))
            if len(times) >= _MOST_TIMES:
                break
        texts = pa.array(list(times), pa.string())
        return parse_times(texts, weights=np.array([*times.values()], np.int64)).granularity

    def times(
        self, columns: Columns, granularity: Granularity, timeline: Timeline | None
    ) -> list[Times]:
        """The times of facts: of begin and end, or of events only the one they have.

        Given a timeline, they are the starts of its timestamps.
        """
        found = [
            _dense(columns[role], granularity)
            or Times.parsed(self._encoded(columns[role], role), granularity)
            for role in ("begin", "end")
            if role in columns
        ]
        if timeline is None:
            return found
        return [replace(t, ticks=timeline.starts[timeline.index(t.ticks)]) for t in found]

    def _encoded(self, column: pa.Array, role: str) -> EncodedColumn:
        return time_column(pa.chunked_array([column]), self._names[role], str(self.path))


@dataclass(frozen=True)
class Times:
    """A column of times: the different ones as ticks, and which of them each row has."""

    column: EncodedColumn
    ticks: Ints
    state: npt.NDArray[np.uint8]

    @classmethod
    def parsed(cls, column: EncodedColumn, granularity: Granularity) -> Times:
        """Parse the different times of a column."""
        texts = column.values.cast(pa.string())
        found = parse_times(texts, weights=column.counts(), granularity=granularity)
        return cls(column, found.ticks, found.state)

    def known(self) -> Ints:
        """The ticks that occur."""
        occurs: Bools = (self.state == KNOWN) & (self.column.counts() > 0)
        return self.ticks[occurs]

    def positions(self, clock: Ints, *, unknown: int, unreadable: int) -> Ids:
        """For every row the position of its tick among sorted ones."""
        table = np.searchsorted(clock, self.ticks).astype(np.int32)
        table[self.state == UNKNOWN] = unknown
        table[self.state > UNKNOWN] = unreadable
        return self.column.lookup(table, missing=unknown)


def positions(times: Sequence[Times], clock: Ints, unknown: tuple[int, int]) -> tuple[Ids, Ids]:
    """The begin and end of every fact as positions among sorted ticks.

    `unknown` says what unknown begins and ends become. Times that cannot be read are put such that
    the begin comes after every end: then, as where facts end before they begin, there is no fact.
    """
    after = len(clock) + 1
    if len(times) == 1:  # events of an unknown time are no facts
        unknown = (after + 1, -3)
    return (
        times[0].positions(clock, unknown=unknown[0], unreadable=after),
        times[-1].positions(clock, unknown=unknown[1], unreadable=-2),
    )


def reasons(begin: Ids, end: Ids, clock: Ints) -> Counter[str]:
    """Why rows that `positions` put out of order are no facts."""
    timeless = int((begin == len(clock) + 2).sum())
    unreadable = int(((begin == len(clock) + 1) | (end == -2)).sum())
    reversed_ = int((begin > end).sum()) - timeless - unreadable
    found = {
        EVENT_WITHOUT_TIME: timeless,
        UNREADABLE_TIME: unreadable,
        END_BEFORE_BEGIN: reversed_,
    }
    return Counter({reason: count for reason, count in found.items() if count})


def _dense(column: pa.Array, granularity: Granularity) -> Times | None:
    """Times that are ticks already, and close to each other: several times faster than parsing."""
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_signed_integer(kind) and granularity in ("year", "step"):
        ticks = column.cast(pa.int64())
    elif pa.types.is_date32(kind) and granularity == "day":
        ticks = column.cast(pa.int32()).cast(pa.int64())
    else:
        return None
    limits = pc.min_max(ticks).as_py()
    if limits["min"] is None or limits["max"] - limits["min"] >= _DENSE:
        return None
    values = np.arange(limits["min"], limits["max"] + 1)
    codes = pc.subtract(ticks, limits["min"]).cast(pa.int32())
    encoded = pa.DictionaryArray.from_arrays(codes, pa.array(values), safe=False)
    return Times(EncodedColumn(encoded), values, np.full(len(values), KNOWN, np.uint8))
