"""Facts in Parquet files, of other people or saved by splime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from splime.errors import DataError
from splime.graph import SplitName, TemporalGraph
from splime.io.columns import RawFacts
from splime.io.layout import Layout, by_name
from splime.io.saved import read_description, restore_graph
from splime.io.tables import raw_from_columns


def read_parquet(
    path: Path, *, split: SplitName | None = None, columns: Sequence[str] | None = None
) -> RawFacts | TemporalGraph:
    """The facts of a Parquet file; a graph, if splime saved one there and no split is asked for."""
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    described = read_description(path, schema.metadata)
    if "timeline" in described and split is None:
        table = _read(path, schema, schema.names)
        return restore_graph(path, table, described)
    layout = by_name(schema.names, columns, str(path))
    positions = [*layout.facts, *([] if layout.split is None else [layout.split])]
    names = [schema.names[position] for position in positions]
    if len(set(schema.names)) < len(schema.names):
        table = _read(path, schema, schema.names)
    else:
        table = _read(path, schema, names)
        count = len(layout.facts)
        layout = Layout(tuple(range(count)), None if layout.split is None else count)
        table = table.select(names)
    if table.num_rows == 0:
        raise DataError(f"{path}: the table is empty")
    return raw_from_columns(table, layout, name=path.name, split=split)


def _read(path: Path, schema: pa.Schema, names: Sequence[str]) -> pa.Table:
    import pyarrow.parquet as pq

    texts = [field.name for field in schema if field.name in names and holds_text(field.type)]
    wanted = None if len(names) == len(schema.names) else list(names)
    try:
        table = pq.read_table(path, columns=wanted, read_dictionary=texts)
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise _unreadable(path, error) from None
    return table


def _unreadable(path: Path, error: Exception) -> DataError:
    return DataError(f"{path}: cannot be read as Parquet: {error}")


def holds_text(kind: pa.DataType) -> bool:
    """Whether a column can be read as a dictionary of text."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
