"""Facts in memory: Arrow-compatible tables (pandas, polars, DuckDB, …) and Python iterables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splime.errors import DataError, UsageError
from splime.graph import SplitName
from splime.io.columns import EncodedColumn, RawFacts, RowCollector, raw_facts
from splime.io.contents import SAMPLE, Contents
from splime.io.inference import find_layout
from splime.io.layout import EXPECTED, PART, TIMES
from splime.io.options import ReadOptions
from splime.times import raw_time


def is_table(source: object) -> bool:
    """Whether something can be read as an Arrow table."""
    return hasattr(source, "__arrow_c_stream__") or isinstance(source, pa.Table) or _is_lazy(source)


def _is_lazy(source: object) -> bool:
    """Whether it is a LazyFrame of polars, which is a table once it is collected."""
    kind = type(source)
    return kind.__name__ == "LazyFrame" and kind.__module__.startswith("polars")


def as_table(source: Any, name: str) -> pa.Table:
    """The Arrow table that something can be read as."""
    if _is_lazy(source):
        try:
            source = source.collect()
        except Exception as error:  # polars' errors have no class in common but this
            why = str(error).partition("\n")[0]
            raise DataError(f"{name}: cannot be collected: {why}") from None
    try:
        return source if isinstance(source, pa.Table) else pa.table(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"{name}: cannot be read as an Arrow table: {error}") from None


def raw_from_table(
    source: Any, name: str, split: SplitName | None, options: ReadOptions
) -> RawFacts:
    """Facts from any Arrow-compatible table."""
    table = as_table(source, name)
    if table.num_rows == 0:
        raise DataError(f"{name}: the table is empty")
    layout, remarks = find_layout(
        Contents(table.column_names, lambda: cells_of(table)), options, name
    )
    facts = table.select([*layout.values()])
    raw = raw_from_columns(facts, layout, options, name=name, split=split)
    return replace(raw, remarks=(*remarks, *raw.remarks))


def cells_of(table: pa.Table) -> list[list[str]]:
    """The first rows of a table, as text, by column."""
    cells: list[list[str]] = []
    for name, column in zip(table.column_names, table.slice(0, SAMPLE).columns, strict=True):
        cells.append([])
        with suppress(DataError):  # else it is neither a name nor a time
            cells[-1] = time_column(column, name, "").texts(range(len(column)))
    return cells


def raw_from_columns(
    table: pa.Table,
    roles: Iterable[str],
    options: ReadOptions,
    *,
    name: str,
    split: SplitName | None = None,
) -> RawFacts:
    """Facts from the columns of an Arrow table, which have these roles."""

    def locate(rows: Sequence[int]) -> list[str]:
        return [f"{name}, row {row + 1}" for row in rows]

    roles, made = list(roles), {}
    for role, called, column in zip(roles, table.column_names, table.columns, strict=True):
        if role.removeprefix(PART).partition(" ")[0] in TIMES:
            made[role] = time_column(column, called, name)
        else:
            made[role] = EncodedColumn(label_column(column, called, name))
    header = dict(zip(roles, table.column_names, strict=True))
    return raw_facts(name, made, locate, split, options.predicate_name, header)


def raw_from_rows(
    source: Iterable[Sequence[object]], *, name: str, split: SplitName | None
) -> RawFacts:
    """Facts from tuples of 4 (event) or 5 (valid time) values."""
    rows, width = RowCollector(name, "row"), 0
    for number, row in enumerate(source, start=1):
        where = f"{name}, row {number}"
        if not isinstance(row, list | tuple) or len(row) not in (4, 5):
            raise DataError(f"{where}: {EXPECTED}, got {row!r}")
        width = width or len(row)
        if len(row) != width:
            raise DataError(f"{where}: {len(row)} values, but {width} in the rows before")
        rows.add(number, ((at, _text(value, where, at > 2)) for at, value in enumerate(row)))
    if not width:
        raise DataError(f"{name}: there are no facts")
    columns = [rows.column(at) for at in range(width)]
    return RawFacts(name, columns[:3], columns[3:], rows.locate, split)


def label_column(column: pa.ChunkedArray, name: str, where: str) -> pa.ChunkedArray:
    """A column of names as text; integers are names too, other types are a mistake."""
    kind = value_type(column.type)
    if pa.types.is_integer(kind):
        return column.cast(kind).cast(pa.string())
    if not (_is_text(kind) or pa.types.is_null(kind)):
        raise DataError(f"{where}: column {name!r} has type {kind}; names are text or integers")
    return _plain_text(column)


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type of values, whether they are in a dictionary or not."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _plain_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        return column.cast(pa.dictionary(pa.int32(), pa.string()))
    return column.cast(pa.string())


def time_column(column: pa.ChunkedArray, name: str, where: str) -> EncodedColumn:
    """A column of times as text, converted once for every distinct value."""
    kind = value_type(column.type)
    if getattr(kind, "extension_name", "") == "pandas.period":
        return _periods(column)
    if _is_text(kind) or pa.types.is_null(kind):
        return EncodedColumn(_plain_text(column))
    if pa.types.is_floating(kind):  # pandas turns integers with gaps into floats
        column = column.cast(kind)
        column = pc.if_else(pc.is_nan(column), None, column)
        try:
            column, kind = column.cast(pa.int64()), pa.int64()
        except pa.ArrowInvalid:
            raise DataError(f"{where}: column {name!r} has times like 1999.5") from None
    is_date = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    if not (pa.types.is_integer(kind) or is_date):
        raise DataError(
            f"{where}: column {name!r} has type {kind}; times are text, integers, dates or"
            " timestamps"
        )
    encoded = EncodedColumn(column)
    if pa.types.is_integer(kind):
        encoded.values = encoded.values.cast(pa.string())
    else:
        # numpy writes years before Christ in a way that reads back; Arrow's cast does not.
        dates = encoded.values.to_numpy(zero_copy_only=False)
        if pa.types.is_date(kind) or not len(dates):
            dates = dates.astype("M8[D]")
        zone = "Z" if getattr(kind, "tz", None) else ""
        texts = [f"{date}{zone}" for date in np.datetime_as_string(dates).tolist()]
        encoded.values = pa.array(texts, pa.string())
    return encoded


def _periods(column: pa.ChunkedArray) -> EncodedColumn:
    """Periods of pandas as text: those that no date has the precision of, by their first one."""
    import pandas

    frequency = column.type.freq
    numbers = [chunk.storage for chunk in column.chunks]
    encoded = EncodedColumn(pa.chunked_array(numbers, column.type.storage_type))
    ordinals = encoded.values.to_numpy(zero_copy_only=False)
    periods = pandas.PeriodIndex.from_ordinals(ordinals, freq=frequency)
    finer = {"Q": "M", "W": "D", "B": "D"}.get(frequency.partition("-")[0])
    if finer is not None:
        periods = periods.asfreq(finer, "start")
    elif frequency[0] not in "YAMDhHTminsS":
        raise DataError(f"periods of {frequency!r} are not read; expected years to seconds")
    encoded.values = pa.array(periods.astype(str).tolist(), pa.string())
    return encoded


def _text(value: object, where: str, is_time: bool) -> str | None:
    if value is None:
        return None
    is_name = isinstance(value, str | int | np.integer) and not isinstance(value, bool)
    if not is_time and not is_name:
        raise DataError(f"{where}: {value!r} is not a name; names are text or integers")
    try:
        return raw_time(value)
    except UsageError as error:
        raise DataError(f"{where}: {error}") from None
