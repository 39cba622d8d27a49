"""Graphs in one Parquet file that any tool can open: names, dates, splits, one row per fact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from splime.errors import DataError, SplimeError, UsageError
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, SPLITS, Facts, TemporalGraph
from splime.io.columns import EncodedColumn
from splime.io.files import atomic_write
from splime.io.sealed import sealed_writer
from splime.io.tables import label_column
from splime.reading import Reading
from splime.timeline import Timeline
from splime.times import DATES, Granularity, Ints, dated, format_ticks, tick_range
from splime.vocabulary import Vocabulary

_KEY = b"splime"
_FORMAT = 1
Limit: TypeAlias = Literal["first", "last"]
# msgspec's errors are ValueErrors, and so are those of Arrow that are no KeyErrors.
_DAMAGES = (SplimeError, pa.ArrowException, KeyError, TypeError, ValueError, OverflowError)


@dataclass(frozen=True)
class _Names:
    entities: list[str]
    predicates: list[str]


# What the description calls the tick that an unknown begin or end became.
_LIMITS: Mapping[str, Limit] = {"begin": "first", "end": "last"}
_BITS = {"begin": BEGIN_UNKNOWN, "end": END_UNKNOWN}
_Bits: TypeAlias = npt.NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class Description:
    """What the metadata of a file say about the graph that is saved in it."""

    format: int = _FORMAT
    name: str
    granularity: Granularity
    timeline: dict[Literal["starts", "ends"], list[int]]
    filled: dict[Limit, str]
    """What unknown begins and ends became."""
    unused: _Names
    reading: Reading

    @cached_property
    def timestamps(self) -> Timeline:
        """The timeline."""
        starts, ends = (np.array(self.timeline[key], np.int64) for key in ("starts", "ends"))
        if len(starts) != len(ends):
            raise ValueError("the timeline must have as many starts as ends")
        return Timeline(self.granularity, starts, ends)

    @cached_property
    def limits(self) -> dict[Limit, int]:
        """The ticks that unknown begins ("first") and ends ("last") became."""
        plain = self.granularity in ("year", "step")
        return {
            limit: int(when) if plain else tick_range(when, self.granularity)[0]
            for limit, when in self.filled.items()
        }

    def times(self, table: pa.Table | pa.RecordBatch) -> tuple[Ints, Ints, _Bits]:
        """The begins and ends of facts as ticks, unknown ones filled in; and which are unknown."""
        unknown = np.zeros(table.num_rows, np.uint8)
        in_columns = "begin_filled" in table.schema.names
        times = []
        for name, bit in _BITS.items():
            column = table.column(name)
            unknown[np.asarray(column.is_null(), bool)] |= bit
            if in_columns:
                column = pc.coalesce(column, table.column(f"{name}_filled"))
            if column.null_count and (in_columns or _LIMITS[name] not in self.limits):
                raise ValueError(f"what an unknown {name} became is missing")
            times.append(_ticks(column, self.granularity))
        begin, end = times
        if not in_columns:
            _fill(begin, end, unknown, self.limits)
        if (begin > end).any():
            raise ValueError("a fact ends before it begins")
        return begin, end, unknown


def save(graph: TemporalGraph, path: str | Path) -> Path:
    """Write a graph to one Parquet file; `splime.load` gives it back, equal.

    The file holds names and dates and opens in pandas, polars or DuckDB too. It is written beside
    and renamed over, so a killed save leaves what was there before.

    >>> import splime, tempfile
    >>> graph = splime.load("demo")
    >>> with tempfile.TemporaryDirectory() as here:
    ...     splime.load(save(graph, f"{here}/demo.parquet")) == graph
    True
    """
    path = Path(path)
    if path.suffix.lower() != ".parquet":
        raise UsageError(f"{path}: a graph is saved as .parquet; splime.write_text writes text")
    table = graph.to_table()
    filled = _filled(graph)
    for name, column in _odd(graph, filled).items():
        table = table.append_column(name, column)
    table = table.replace_schema_metadata({_KEY: msgspec.json.encode(_describe(graph, filled))})
    with (
        atomic_write(path) as beside,
        sealed_writer(beside, table.schema, compression="zstd") as writer,
    ):
        writer.write_table(table, row_group_size=1 << 20)
    return path


def _filled(graph: TemporalGraph) -> dict[Limit, int]:
    """The ticks that unknown begins and ends became, except where they gave way."""
    facts = graph.facts()
    filled: dict[Limit, int] = {}
    for name, limit in _LIMITS.items():
        ticks, unknown = getattr(facts, name), (facts.unknown & _BITS[name]) != 0
        if unknown.any():
            stayed = unknown & (facts.begin < facts.end)
            among = ticks[stayed] if stayed.any() else ticks[unknown]
            filled[limit] = int(among.max() if limit == "first" else among.min())
    return filled


def _fill(begin: Ints, end: Ints, unknown: _Bits, filled: dict[Limit, int]) -> None:
    """Fill in unknown times as reading does: one beyond the known time gives way to it."""
    if "first" in filled:
        begin[(unknown & BEGIN_UNKNOWN) != 0] = filled["first"]
    if "last" in filled:
        end[(unknown & END_UNKNOWN) != 0] = filled["last"]
    np.copyto(begin, end, where=(unknown == BEGIN_UNKNOWN) & (begin > end))
    np.copyto(end, begin, where=(unknown == END_UNKNOWN) & (begin > end))


def _odd(graph: TemporalGraph, filled: dict[Limit, int]) -> dict[str, pa.Array]:
    """The unknown times of a graph as separate columns, where `filled` does not give them."""
    facts, granularity = graph.facts(), graph.timeline.granularity
    begin, end = facts.begin.copy(), facts.end.copy()
    _fill(begin, end, facts.unknown, filled)
    if np.array_equal(begin, facts.begin) and np.array_equal(end, facts.end):
        return {}
    return {
        f"{name}_filled": dated(getattr(facts, name), granularity, (facts.unknown & bit) == 0)
        for name, bit in _BITS.items()
    }


def _describe(graph: TemporalGraph, filled: dict[Limit, int]) -> Description:
    """What the columns alone do not say."""
    compact, timeline = graph.compact(), graph.timeline
    return Description(
        name=graph.name,
        granularity=timeline.granularity,
        timeline={"starts": timeline.starts.tolist(), "ends": timeline.ends.tolist()},
        filled={
            limit: format_ticks(np.array([tick]), timeline.granularity)[0]
            for limit, tick in filled.items()
        },
        unused=_Names(
            _unused(graph.entities, compact.entities), _unused(graph.predicates, compact.predicates)
        ),
        reading=graph.reading,
    )


def _unused(all_names: Vocabulary, used: Vocabulary) -> list[str]:
    return [*all_names.labels.filter(pa.array(used.ids(all_names.labels) < 0)).to_pylist()]


@contextmanager
def damages(path: Path) -> Iterator[None]:
    """Turn what goes wrong with a description into one kind of error."""
    try:
        yield
    except _DAMAGES as error:
        raise DataError(f"{path}: the description of the graph is damaged: {error}") from None


def read_metadata(path: Path, metadata: dict[bytes, bytes] | None) -> dict[str, Any]:
    """What splime wrote about the file, if it wrote it."""
    if not metadata or _KEY not in metadata:
        return {}
    with damages(path):
        about = msgspec.json.decode(metadata[_KEY], type=dict[str, Any])
        msgspec.convert(about.get("granularity"), Granularity | None)
    if about.get("format") != _FORMAT:
        raise DataError(f"{path}: not a format that this version of splime reads")
    return about


def read_description(path: Path, metadata: dict[bytes, bytes] | None) -> Description | None:
    """The description of the graph that is saved in a file, if one is; checked."""
    about = read_metadata(path, metadata)
    if "timeline" not in about:
        return None
    with damages(path):
        description = msgspec.convert(about, Description)
        # Made now, so that one that cannot be made is an error now.
        _ = description.timestamps, description.limits
    return description


def restore_graph(path: Path, table: pa.Table, description: Description) -> TemporalGraph:
    """The graph of a saved table; a description that cannot be true is an error."""
    with damages(path):
        columns = [
            EncodedColumn(label_column(table.column(name), name, "table"))
            for name in ("subject", "predicate", "object", "split")
        ]
        if any(column.missing for column in columns):
            raise ValueError("a name or split is missing")
        *columns, split = columns
        unused = description.unused
        entities = _vocabulary("entity", columns[::2], unused.entities)
        predicates = _vocabulary("predicate", columns[1:2], unused.predicates)
        ids = (
            column.lookup(names.ids(column.values))
            for column, names in zip(columns, (entities, predicates, entities), strict=True)
        )
        facts = Facts.owning(*ids, *description.times(table))
        splits = split.splits(lambda rows: [f"row {row + 1}" for row in rows])
        train, valid, test = (facts.take(splits == number) for number in range(len(SPLITS)))
        graph = TemporalGraph(train, valid, test, entities, predicates, description.timestamps)
        return replace(graph, reading=description.reading, name=description.name)


def _vocabulary(kind: str, columns: Sequence[EncodedColumn], unused: list[str]) -> Vocabulary:
    """The names that occur in columns, and those that no fact uses."""
    names = [column.values.filter(pa.array(column.counts() > 0)) for column in columns]
    names = [part.cast(pa.large_string()) for part in (*names, pa.array(unused, pa.string()))]
    return Vocabulary(pa.concat_arrays(names), kind=kind)


def _ticks(column: pa.ChunkedArray | pa.Array, granularity: Granularity) -> Ints:
    """The ticks of a saved column of times; 0 where it is null."""
    if granularity in ("year", "step"):
        return np.asarray(column.cast(pa.int64()).fill_null(0).to_numpy().copy())
    if pa.types.is_integer(column.type):
        raise ValueError(f"times by {granularity} are dates")
    seconds = column.cast(pa.timestamp("s")).cast(pa.int64()).fill_null(0).to_numpy()
    return np.asarray(seconds.astype("M8[s]").astype(DATES[granularity]).astype(np.int64))
