"""Many questions from a file or table; whatever is wrong with one is told with its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from splime.errors import DataError, UsageError, nearest
from splime.graph import Facts, TemporalGraph
from splime.io.columns import EncodedColumn
from splime.io.delimited import Dialect, rows_of
from splime.io.tables import is_table, label_column, time_column
from splime.query.question import ASKED, KINDS, question_facts
from splime.timeline import Timeline
from splime.times import KNOWN, Ints, format_ticks, parse_times, tick_range
from splime.vocabulary import Vocabulary

NAMES = ("subject", "predicate", "object")
_TIMES = (("at",), ("begin", "end"), ())
_EXPECTED = "questions have the columns subject, predicate, object, and at, or begin and end"
_DELIMITERS = {".tsv": "\t", ".csv": ","}
# What a cell holds if not the id of a name.
_UNKNOWN, _ASKED, _EMPTY = -1, -2, -3

Locate: TypeAlias = Callable[[int], str]
"""Tells where a row stands: `questions.tsv, line 7`."""
Problem: TypeAlias = tuple[int, str]
"""The row of a wrong question, and what is wrong with it."""


class Asked(NamedTuple):
    """Questions as columns: positions in `KINDS`, and the facts that they ask about."""

    kind: Ints
    facts: Facts

    def __len__(self) -> int:
        return len(self.facts)


class _Table(NamedTuple):
    columns: dict[str, pa.ChunkedArray]
    where: str
    locate: Locate


def read_questions(source: Any, graph: TemporalGraph) -> Asked:
    """The questions of a file or table; the first wrong one is an error that names its place."""
    table = _read(source)
    problems: list[Problem] = []
    ids = [
        _ids(table, name, names, problems)
        for name, names in zip(
            NAMES, (graph.entities, graph.predicates, graph.entities), strict=True
        )
    ]
    begin, end, state = _times(table, graph.timeline, len(ids[0]), problems)
    asked = np.stack([*(column == _ASKED for column in ids), state == _ASKED])
    count, of_names = asked.sum(axis=0), asked[:3].any(axis=0)
    # Three names without a time ask when, also where no `?` says so.
    when = ~of_names & (state != 0)
    _first(problems, count > 1, "a question has one '?', and this one has several")
    _first(
        problems,
        ~of_names & ~when,
        "nothing is asked for: write ? for one of the names, or leave the time empty to ask when",
    )
    if problems:
        row, what = min(problems)
        raise DataError(f"{table.locate(row)}{what}")
    positions = np.array([KINDS.index(name) for name in (*NAMES, "time")])
    kind = positions[np.where(when, 3, asked[:3].argmax(axis=0))]
    subject, predicate, object_ = (np.maximum(column, 0) for column in ids)
    return Asked(kind, question_facts(subject, predicate, object_, begin, end))


def _first(problems: list[Problem], wrong: Any, what: str) -> None:
    """Remember the first row that is wrong."""
    if wrong.any():
        problems.append((int(np.argmax(wrong)), f": {what}"))


def _ids(table: _Table, column: str, names: Vocabulary, problems: list[Problem]) -> Ints:
    """The ids of a column of names."""
    encoded = EncodedColumn(label_column(table.columns[column], column, table.where))
    found = names.ids(encoded.values).astype(np.int64)
    texts = encoded.values.to_pylist()
    found[[place for place, text in enumerate(texts) if text == ASKED]] = _ASKED
    found[[place for place, text in enumerate(texts) if text == ""]] = _EMPTY
    ids: Ints = encoded.lookup(found, _EMPTY)
    empty = f", column {column}: there is no name; write ? for what is asked for"
    if (ids == _EMPTY).any():
        problems.append((int(np.argmax(ids == _EMPTY)), empty))
    if (ids == _UNKNOWN).any():
        row = int(np.argmax(ids == _UNKNOWN))
        try:
            names.id(encoded.texts([row])[0])
        except UsageError as error:
            problems.append((row, f", column {column}: {error}"))
    return ids


def _times(
    table: _Table, timeline: Timeline, rows: int, problems: list[Problem]
) -> tuple[Ints, Ints, Ints]:
    """First and last tick of every question, and whether it has a time (0), asks for it, or not."""
    columns = next(names for names in _TIMES if set(names) <= set(table.columns))
    begin, end = np.full(rows, timeline.first), np.full(rows, timeline.last)
    state = np.full(rows, _EMPTY)
    if not columns:
        return begin, end, state
    texts: list[EncodedColumn] = []
    for number, column in enumerate((columns[0], columns[-1])):
        encoded = time_column(table.columns[column], column, table.where)
        ticks, states = _ticks(encoded, column, timeline, problems)
        own = encoded.lookup(states, _EMPTY)
        tick = encoded.lookup(ticks[number])
        if number == 0:
            begin = np.where(own == 0, tick, begin)
        else:
            end = np.where(own == 0, tick, end)
        state = np.where(own == 0, 0, np.maximum(own, state))
        texts.append(encoded)
    outside = (begin > end) | (end < timeline.first) | (begin > timeline.last)
    if (outside & (state == 0)).any():
        row = int(np.argmax(outside & (state == 0)))
        ends = np.array([timeline.first, timeline.last])
        given = [encoded.texts([row])[0] for encoded in texts]
        dates = [
            a or b for a, b in zip(given, format_ticks(ends, timeline.granularity), strict=True)
        ]
        try:
            timeline.interval(*dates)
        except UsageError as error:
            problems.append((row, f", column {columns[0]}: {error}"))
    return begin, end, state


def _ticks(
    encoded: EncodedColumn, column: str, timeline: Timeline, problems: list[Problem]
) -> tuple[Ints, Ints]:
    """First and last tick of every distinct time, and whether it is one."""
    ticks, states = np.zeros((2, len(encoded.values)), np.int64), np.zeros(len(encoded.values), int)
    # One time after the other takes a millisecond each, so only those that need it: coarser ones
    # cover several ticks, and what is no time has an error of its own.
    parsed = parse_times(encoded.values, granularity=timeline.granularity)
    plain = parsed.state == KNOWN
    ticks[:, plain] = parsed.ticks[plain]
    for place in np.flatnonzero(~plain).tolist():
        text = encoded.values[place].as_py()
        if text.strip() in ("", ASKED):
            states[place] = _ASKED if text.strip() else _EMPTY
            continue
        try:
            ticks[:, place] = tick_range(text, timeline.granularity)
        except UsageError as error:
            problems.append((encoded.first_row(place), f", column {column}: {error}"))
    return ticks, states


def _read(source: Any) -> _Table:
    if isinstance(source, str | Path):
        path = Path(source)
        if path.suffix.lower() in _DELIMITERS:
            return _read_text(path)
        if path.suffix.lower() != ".parquet":
            known = (*_DELIMITERS, ".parquet")
            raise UsageError(
                f"{path}: questions are read from {', '.join(known)}.{nearest(path.suffix, known)}"
            )
        return _read_table(_parquet(path), str(path))
    if not is_table(source):
        raise UsageError(
            f"questions are a file or an Arrow-compatible table, not {type(source).__name__}"
        )
    try:
        table = source if isinstance(source, pa.Table) else pa.table(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"table: cannot be read as an Arrow table: {error}") from None
    return _read_table(table, "table")


def _parquet(path: Path) -> pa.Table:
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as Parquet: {error}") from None
    return table


def _read_table(table: pa.Table, where: str) -> _Table:
    kept = [n for n in table.column_names if not re.fullmatch("__index_level_[0-9]+__", n)]
    columns = _check(kept, where)
    if not table.num_rows:
        raise DataError(f"{where}: there are no questions")
    places = [table.column_names.index(name) for name in kept]
    found = {name: table.column(place) for name, place in zip(columns, places, strict=True)}
    return _Table(found, where, lambda row: f"{where}, row {row + 1}")


def _read_text(path: Path) -> _Table:
    """Text with a header, or with columns in the usual order."""
    lines: list[int] = []
    rows: list[list[str]] = []
    columns: list[str] = []
    for number, cells in rows_of(path, Dialect(_DELIMITERS[path.suffix.lower()])):
        if not columns:
            if set(NAMES) <= {cell.strip().lower() for cell in cells}:
                columns = _check(cells, f"{path}, line {number}")
                continue
            usual = {3 + len(times): [*NAMES, *times] for times in _TIMES}
            columns = usual.get(len(cells), [])
            if not columns:
                raise DataError(f"{path}, line {number}: {_EXPECTED}; found {len(cells)} columns")
        if len(cells) != len(columns):
            raise DataError(
                f"{path}, line {number}: expected {len(columns)} columns as in the first line,"
                f" found {len(cells)}"
            )
        lines.append(number)
        rows.append(cells)
    if not rows:
        raise DataError(f"{path}: there are no questions")
    texts = [pa.chunked_array([pa.array(text, pa.string())]) for text in zip(*rows, strict=True)]
    found = dict(zip(columns, texts, strict=True))
    return _Table(found, str(path), lambda row: f"{path}, line {lines[row]}")


def _check(names: Sequence[str], where: str) -> list[str]:
    """The names of the columns; others than the expected ones are likely misspelt."""
    columns = [name.strip().lower() for name in names]
    allowed = [{*NAMES, *times} for times in _TIMES]
    if set(columns) not in allowed or len(set(columns)) < len(columns):
        raise DataError(f"{where}: {_EXPECTED}; found {', '.join(names)}")
    return columns
