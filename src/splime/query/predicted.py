"""Files of predicted or doubtful facts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa

from splime.errors import DataError, UsageError, nearest
from splime.io.files import atomic_write
from splime.io.formulas import with_apostrophes, without_apostrophes
from splime.scoring.scoping import NAMES

_TEXT, _NUMBER = pa.large_string(), pa.float64()
_TIMES = ("time", "begin", "end")
SCHEMA = pa.schema(
    [
        *((name, _TEXT) for name in (*NAMES, "time")),
        *((name, _NUMBER) for name in ("probability", "if_there_is_one", "there_is_one")),
        ("evidence", _TEXT),
    ]
)


def check_suffix(path: Path) -> None:
    """An error if facts cannot be written in the format of a file's ending."""
    if path.suffix.lower() not in _WRITERS:
        raise UsageError(
            f"{path}: facts are written as {', '.join(_WRITERS)}.{nearest(path.suffix, _WRITERS)}"
        )


def write_predictions(table: pa.Table, path: Path) -> None:
    """Write a table of facts to a file (.csv, .jsonl, .parquet)."""
    check_suffix(path)
    with atomic_write(path) as beside:
        _WRITERS[path.suffix.lower()](table, beside)


def _csv(table: pa.Table, path: Path) -> None:
    from pyarrow import csv

    for at, column in enumerate(table.schema):
        if column.type == _TEXT and column.name not in _TIMES:
            table = table.set_column(at, column, with_apostrophes(table.column(at)))
    csv.write_csv(table, path)


def _jsonl(table: pa.Table, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in table.to_pylist():
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _parquet(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, path, compression="zstd")


def read_facts(path: Path, schema: pa.Schema) -> pa.Table:
    """Read such a file back; an error where it has other columns."""
    import pyarrow.parquet as pq
    from pyarrow import csv, json as lines

    check_suffix(path)
    try:
        if path.suffix.lower() == ".parquet":
            return pq.read_table(path).cast(schema)
        if path.suffix.lower() == ".jsonl":
            asked = lines.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
            return lines.read_json(path, parse_options=asked).cast(schema)
        types = {field.name: field.type for field in schema}
        asked = csv.ConvertOptions(
            column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False
        )
        table = csv.read_csv(path, convert_options=asked).cast(schema)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{path}: not a file that splime doubts has written: {error}") from None
    for at, column in enumerate(schema):
        if column.type == _TEXT:
            table = table.set_column(at, column, without_apostrophes(table.column(at)))
    return table


_WRITERS: Mapping[str, Callable[[pa.Table, Path], None]] = {
    ".csv": _csv,
    ".parquet": _parquet,
    ".jsonl": _jsonl,
}
