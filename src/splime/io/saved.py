"""Graphs in one Parquet file that any tool can open: names, dates, splits, one row per fact."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splime.errors import DataError, SplimeError, UsageError
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, SPLITS, Facts, TemporalGraph
from splime.io.columns import EncodedColumn
from splime.io.files import written_beside
from splime.io.tables import dated, label_column, to_table
from splime.reading import Reading
from splime.timeline import Timeline
from splime.times import DATES, Granularity, Ints, check_granularity, format_ticks, tick_range
from splime.vocabulary import Vocabulary

_KEY = b"splime"
_FORMAT = 1
_DAMAGES = (
    SplimeError,
    pa.ArrowException,
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
)


def save(graph: TemporalGraph, path: str | Path) -> Path:
    """Write a graph to one Parquet file; `splime.load` gives it back, equal.

    The file holds names and dates and opens in pandas, polars or DuckDB too. It is written beside
    and renamed over, so a killed save leaves what was there before.
    """
    import pyarrow.parquet as pq

    path = Path(path)
    if path.suffix.lower() != ".parquet":
        raise UsageError(f"{path}: a graph is saved as .parquet; splime.write_text writes text")
    table = to_table(graph)
    filled = _filled(graph)
    for name, column in _odd(graph, filled).items():
        table = table.append_column(name, column)
    metadata = json.dumps(_metadata(graph, filled), ensure_ascii=False, separators=(",", ":"))
    table = table.replace_schema_metadata({_KEY: metadata.encode()})
    with written_beside(path) as beside:
        pq.write_table(table, beside, compression="zstd", row_group_size=1 << 20)
    return path


def _filled(graph: TemporalGraph) -> dict[str, int]:
    """The ticks that unknown begins and ends became, except where they gave way."""
    facts = graph.facts()
    stayed = facts.begin < facts.end
    filled = {}
    for limit, bit, ticks in (
        ("first", BEGIN_UNKNOWN, facts.begin),
        ("last", END_UNKNOWN, facts.end),
    ):
        unknown = (facts.unknown & bit) != 0
        if unknown.any():
            among = ticks[unknown & stayed] if (unknown & stayed).any() else ticks[unknown]
            filled[limit] = int(among.max() if limit == "first" else among.min())
    return filled


def _fill(begin: Ints, end: Ints, unknown: npt.NDArray[np.uint8], filled: dict[str, int]) -> None:
    """Fill in unknown times as reading does: one beyond the known time gives way to it."""
    if "first" in filled:
        begin[(unknown & BEGIN_UNKNOWN) != 0] = filled["first"]
    if "last" in filled:
        end[(unknown & END_UNKNOWN) != 0] = filled["last"]
    late = (unknown == BEGIN_UNKNOWN) & (begin > end)
    begin[late] = end[late]
    early = (unknown == END_UNKNOWN) & (begin > end)
    end[early] = begin[early]


def _odd(graph: TemporalGraph, filled: dict[str, int]) -> dict[str, pa.Array]:
    """The unknown times of a graph as columns of their own, where `filled` does not give them."""
    facts, granularity = graph.facts(), graph.timeline.granularity
    begin, end = facts.begin.copy(), facts.end.copy()
    _fill(begin, end, facts.unknown, filled)
    if np.array_equal(begin, facts.begin) and np.array_equal(end, facts.end):
        return {}
    return {
        "begin_filled": dated(facts.begin, granularity, (facts.unknown & BEGIN_UNKNOWN) == 0),
        "end_filled": dated(facts.end, granularity, (facts.unknown & END_UNKNOWN) == 0),
    }


def _metadata(graph: TemporalGraph, filled: dict[str, int]) -> dict[str, Any]:
    """What the columns alone do not say."""
    compact = graph.compact()
    granularity = graph.timeline.granularity
    return {
        "format": _FORMAT,
        "name": graph.name,
        "granularity": granularity,
        "timeline": {
            "starts": graph.timeline.starts.tolist(),
            "ends": graph.timeline.ends.tolist(),
        },
        "outside": _outside(graph.facts(), graph.timeline),
        "filled": {
            limit: format_ticks(np.array([tick]), granularity)[0] for limit, tick in filled.items()
        },
        "unused": {
            "entities": _unused(graph.entities, compact.entities),
            "predicates": _unused(graph.predicates, compact.predicates),
        },
        "reading": graph.reading.to_json(),
    }


def _outside(facts: Facts, timeline: Timeline) -> int:
    """How many facts reach beyond a timeline, as one made for other facts lets them."""
    return int(((facts.begin < timeline.first) | (facts.end > timeline.last)).sum())


def _unused(all_names: Vocabulary, used: Vocabulary) -> list[str]:
    if all_names is used:
        return []
    unused = used.ids(all_names.labels) < 0
    names: list[str] = all_names.labels.filter(pa.array(unused)).to_pylist()
    return names


def read_description(path: Path, metadata: dict[bytes, bytes] | None) -> dict[str, Any]:
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


def restore_graph(path: Path, table: pa.Table, described: dict[str, Any]) -> TemporalGraph:
    """The graph of a saved table; a description that cannot be true is an error."""
    try:
        return _restore(table, described)
    except _DAMAGES as error:
        why = str(error) if isinstance(error, SplimeError) else repr(error)
        raise DataError(f"{path}: the description of the graph is damaged: {why}") from None


def _restore(table: pa.Table, described: dict[str, Any]) -> TemporalGraph:
    granularity, name, unused = described["granularity"], described["name"], described["unused"]
    check_granularity(granularity)
    if not isinstance(name, str):
        raise TypeError("the name must be text")
    starts, ends = (_whole(described["timeline"][key]) for key in ("starts", "ends"))
    if len(starts) != len(ends):
        raise ValueError("the timeline must have as many starts as ends")
    timeline = Timeline(granularity, starts, ends)
    reading = _reading(described["reading"])
    facts, splits, entities, predicates = _facts_of(table, granularity, described["filled"])
    if _outside(facts, timeline) > described.get("outside", len(table)):
        raise ValueError("the timeline is too short for the facts")
    train, valid, test = (facts.take(splits == number) for number in range(len(SPLITS)))
    graph = TemporalGraph(
        train, valid, test, entities, predicates, timeline, reading, name
    ).compact()
    return _with_unused(graph, _texts(unused["entities"]), _texts(unused["predicates"]))


def _facts_of(
    table: pa.Table, granularity: Granularity, described: dict[str, str]
) -> tuple[Facts, npt.NDArray[np.int8], Vocabulary, Vocabulary]:
    """The facts of a saved table, the split of each, and their names."""
    columns = [
        EncodedColumn(label_column(table.column(name), name, "table"))
        for name in ("subject", "predicate", "object", "split")
    ]
    if any(column.missing for column in columns):
        raise ValueError("a name or split is missing")
    subject, predicate, object_, split = columns
    in_split = split.lookup(np.array([SPLITS.index(s) for s in split.values.to_pylist()], np.int8))
    entities, predicates = (
        Vocabulary(pa.concat_arrays([c.values.cast(pa.large_string()) for c in own]), kind=kind)
        for own, kind in (((subject, object_), "entity"), ((predicate,), "predicate"))
    )
    filled = {limit: _tick(_text(when), granularity) for limit, when in described.items()}
    if not filled.keys() <= {"first", "last"}:
        raise ValueError(f"unknown times are first and last, not {', '.join(filled)}")
    unknown = np.zeros(len(table), np.uint8)
    times = []
    for name, limit, bit in (("begin", "first", BEGIN_UNKNOWN), ("end", "last", END_UNKNOWN)):
        ticks, missing = _ticks(table.column(name), granularity)
        unknown[missing] |= bit
        if missing.any() and limit not in filled:
            raise ValueError(f"what an unknown {name} became is missing")
        times.append(ticks)
    begin, end = times
    _fill(begin, end, unknown, filled)
    for ticks, name, bit in ((begin, "begin", BEGIN_UNKNOWN), (end, "end", END_UNKNOWN)):
        if f"{name}_filled" in table.column_names:
            own, missing = _ticks(table.column(f"{name}_filled"), granularity)
            at = (unknown & bit) != 0
            if (missing & at).any():
                raise ValueError(f"what an unknown {name} became is missing")
            ticks[at] = own[at]
    facts = Facts(
        subject.lookup(entities.ids(subject.values)),
        predicate.lookup(predicates.ids(predicate.values)),
        object_.lookup(entities.ids(object_.values)),
        begin,
        end,
        unknown,
    )
    return facts, in_split, entities, predicates


def _ticks(column: pa.ChunkedArray, granularity: Granularity) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """The ticks of a saved column of times (0 where it is null), and where it is null."""
    missing = column.is_null().to_numpy().astype(bool)
    if granularity in ("year", "step"):
        return column.cast(pa.int64()).fill_null(0).to_numpy().copy(), missing
    seconds = column.cast(pa.timestamp("s")).cast(pa.int64()).fill_null(0).to_numpy()
    return seconds.astype("M8[s]").astype(DATES[granularity]).astype(np.int64), missing


def _tick(text: str, granularity: Granularity) -> int:
    return int(text) if granularity in ("year", "step") else tick_range(text, granularity)[0]


def _reading(described: dict[str, Any]) -> Reading:
    """The account of reading, if all in it is of the kind it should be."""
    reading = Reading.from_json(described)
    for source in reading.sources:
        for text in (source.split, source.header):
            _text("" if text is None else text)
        _text(source.name)
        _whole([source.rows, source.kept, *source.dropped.values(), *source.notes.values()])
        _texts([*source.dropped, *source.notes])
    for example in reading.examples:
        _texts([example.where, example.why, *example.fact])
    _texts(described["remarks"])
    return reading


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {value!r}")
    return value


def _texts(values: object) -> list[str]:
    if not isinstance(values, list):
        raise TypeError(f"expected a list of texts, found {values!r}")
    return [_text(value) for value in values]


def _whole(values: object) -> Ints:
    """Whole numbers, and nothing that numpy would make into some."""
    if not isinstance(values, list) or any(type(value) is not int for value in values):
        raise TypeError("expected a list of whole numbers")
    return np.array(values, np.int64)


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
