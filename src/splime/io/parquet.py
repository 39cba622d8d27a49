"""Graphs in one Parquet file that any tool can open: names, dates, splits, one row per fact."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from splime.errors import DataError
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, Split, TemporalGraph
from splime.io.assemble import assemble
from splime.io.columns import RawFacts
from splime.io.files import written_beside
from splime.io.tables import raw_from_table, to_table
from splime.reading import Reading
from splime.timeline import Timeline
from splime.times import check_granularity, format_ticks
from splime.vocabulary import Vocabulary

_KEY = b"splime"
_FORMAT = 1


def save(graph: TemporalGraph, path: str | Path) -> Path:
    """Write a graph to one Parquet file; `splime.load` gives it back, equal.

    The file holds names and dates and opens in pandas, polars or DuckDB too. It is written beside
    and renamed over, so a killed save leaves what was there before.
    """
    import pyarrow.parquet as pq

    path = Path(path)
    table = to_table(graph)
    metadata = json.dumps(_metadata(graph), ensure_ascii=False, separators=(",", ":"))
    table = table.replace_schema_metadata({_KEY: metadata.encode()})
    with written_beside(path) as beside:
        pq.write_table(table, beside, compression="zstd", row_group_size=1 << 20)
    return path


def _metadata(graph: TemporalGraph) -> dict[str, Any]:
    """What the columns alone do not say."""
    facts = graph.facts()
    compact = graph.compact()
    granularity = graph.timeline.granularity
    filled = {}
    for limit, bit, ticks in (
        ("first", BEGIN_UNKNOWN, facts.begin),
        ("last", END_UNKNOWN, facts.end),
    ):
        unknown = ticks[(facts.unknown & bit) != 0]
        if len(unknown):
            tick = unknown.min() if limit == "first" else unknown.max()
            filled[limit] = format_ticks(np.array([tick]), granularity)[0]
    return {
        "format": _FORMAT,
        "name": graph.name,
        "granularity": granularity,
        "timeline": {
            "starts": graph.timeline.starts.tolist(),
            "ends": graph.timeline.ends.tolist(),
        },
        "filled": filled,
        "unused": {
            "entities": _unused(graph.entities, compact.entities),
            "predicates": _unused(graph.predicates, compact.predicates),
        },
        "reading": graph.reading.to_json(),
    }


def _unused(all_names: Vocabulary, used: Vocabulary) -> list[str]:
    if all_names is used:
        return []
    unused = used.ids(all_names.labels) < 0
    names: list[str] = all_names.labels.filter(pa.array(unused)).to_pylist()
    return names


def read_parquet(
    path: Path, *, split: Split | None = None, columns: Sequence[str] | None = None
) -> RawFacts | TemporalGraph:
    """The facts of a Parquet file; a graph, if splime saved one there."""
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(path)
        wanted = _wanted(schema, columns)
        texts = [name for name in wanted or schema.names if _is_text(schema.field(name).type)]
        table = pq.read_table(path, columns=wanted, read_dictionary=texts)
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise DataError(f"{path}: cannot be read as Parquet: {error}") from None
    described = _describe(path, schema.metadata)
    raw = raw_from_table(table, name=path.name, split=split, columns=columns)
    if "timeline" not in described or columns is not None or split is not None:
        return raw
    try:
        return _restore(raw, described)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(f"{path}: the description of the graph is damaged: {error!r}") from None


def _describe(path: Path, metadata: dict[bytes, bytes] | None) -> dict[str, Any]:
    """What splime wrote about the file, if it wrote it."""
    if not metadata or _KEY not in metadata:
        return {}
    try:
        described = json.loads(metadata[_KEY])
    except ValueError as error:
        raise DataError(f"{path}: the description of the graph is damaged: {error}") from None
    if not isinstance(described, dict) or described.get("format") != _FORMAT:
        raise DataError(f"{path}: not a format that this version of splime reads")
    return described


def _restore(raw: RawFacts, described: dict[str, Any]) -> TemporalGraph:
    check_granularity(described["granularity"])
    if raw.rows == 0:
        raise ValueError("no facts")
    graph = assemble(
        [raw],
        granularity=described["granularity"],
        **described["filled"],
        end_before_begin="swap",  # an unknown end may have given way to a begin after it
        keep_duplicates=True,
        name=described["name"],
    )
    unused = described["unused"]
    graph = _with_unused(graph, unused["entities"], unused["predicates"])
    starts, ends = (np.array(described["timeline"][key], np.int64) for key in ("starts", "ends"))
    return replace(
        graph,
        timeline=Timeline(graph.timeline.granularity, starts, ends),
        reading=Reading.from_json(described["reading"]),
    )


def _with_unused(graph: TemporalGraph, entities: list[str], predicates: list[str]) -> TemporalGraph:
    """The graph over vocabularies that also hold names which no fact uses."""
    if not entities and not predicates:
        return graph
    larger = [
        Vocabulary(pa.concat_arrays([old.labels, pa.array(more, pa.large_string())]), kind=old.kind)
        for old, more in ((graph.entities, entities), (graph.predicates, predicates))
    ]
    entities_now, predicates_now = (
        new.ids(old.labels)
        for new, old in zip(larger, (graph.entities, graph.predicates), strict=True)
    )
    train, valid, test = (
        facts.renumber(entities_now, predicates_now) for _, facts in graph.splits()
    )
    return replace(
        graph, train=train, valid=valid, test=test, entities=larger[0], predicates=larger[1]
    )


def _wanted(schema: pa.Schema, columns: Sequence[str] | None) -> list[str] | None:
    """Only the columns that are needed, where they can be told before reading."""
    usual = ("split", "subject", "predicate", "object", "begin", "end", "time")
    if columns is None and {"subject", "predicate", "object"} <= set(schema.names):
        return [name for name in schema.names if name in usual]
    return None


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
