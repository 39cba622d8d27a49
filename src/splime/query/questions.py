"""Questions as people ask them, one by one or many from a file or table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from splime.errors import DataError, UsageError, check_name, counted, nearest
from splime.graph import Facts, TemporalGraph
from splime.io.columns import EncodedColumn, Locate, RowCollector
from splime.io.formulas import is_csv, without_apostrophes
from splime.io.inputs import InputFile
from splime.io.parquet import read_table
from splime.io.tables import as_table, is_table, label_column, time_column
from splime.scoring.scoping import KINDS, NAMES
from splime.scoring.scorer import Ids
from splime.timeline import Timeline
from splime.times import KNOWN, Bools, Ints, When, format_ticks, parse_times, tick_range
from splime.vocabulary import Vocabulary

ASKED = "?"
"""Stands where the answer belongs."""
_MARK_AS_NAME = re.compile(r"\\*\?")
_WORDS = {"object": "What", "subject": "Who", "predicate": "Which predicate", "time": "When"}
_ONE = (
    "a question has one '?': ('Ada', 'livesIn', '?') asks what, ('?', 'livesIn', 'Norport') who,"
    " ('Ada', '?', 'Norport') which predicate, ('Ada', 'livesIn', 'Norport', '?') when"
)
_TIMES = (("at",), ("begin", "end"), ())
_EXPECTED = "questions have the columns subject, predicate, object, and at, or begin and end"
_DELIMITERS = {".tsv": "\t", ".csv": ","}
# What a cell holds if not the id of a name.
_UNKNOWN, _ASKED, _EMPTY = -1, -2, -3


@dataclass(frozen=True)
class Question:
    """What was asked, with its time as dates of the graph."""

    kind: str
    """object, subject, predicate or time; near, where names like another one are looked for."""
    subject: str | None
    predicate: str | None
    object: str | None
    begin: str | None = None
    end: str | None = None
    whole: bool = False
    """Whether no time was given, so that it is the whole time of the graph."""

    @property
    def text(self) -> str:
        """The question in words.

        >>> Question("object", "Ada", "livesIn", "?", "1985", "1985").text
        'What: Ada livesIn ? at 1985'
        """
        if self.kind == "near":
            return f"Near {self.subject or self.predicate}{self._when()}"
        names = f"{self.subject} {self.predicate} {self.object}"
        return f"{_WORDS[self.kind]}: {names}{self._when()}"

    def _when(self) -> str:
        if self.begin is None:
            return ""
        if self.whole:
            return f", over the whole time of the graph, {self.begin} to {self.end}"
        return (
            f" at {self.begin}" if self.begin == self.end else f" from {self.begin} to {self.end}"
        )


def quoted(name: str) -> str:
    r"""A name as it stands in a question: with a backslash if it would be the mark.

    >>> print(quoted("Ada"), quoted("?"))
    Ada \?
    """
    return f"\\{name}" if _MARK_AS_NAME.fullmatch(name) else name


def _unquoted(name: str) -> str:
    return name[1:] if _MARK_AS_NAME.fullmatch(name) and name != ASKED else name


def read_question(
    graph: TemporalGraph,
    names: tuple[str, str, str],
    time: str | None,
    at: When | None,
    during: tuple[When, When] | None,
    *,
    ahead: bool = False,
) -> tuple[Question, Facts]:
    """A question, and the fact that it asks about, with zeros for what is not known of it.

    `ahead` as in `read_time`.
    """
    if time is None and at is None and during is None and ASKED not in names:
        time = ASKED  # three names without a time ask when
    parts = (*names, *([] if time is None else [time]))
    for part in parts:
        if not isinstance(part, str):
            raise UsageError(f"names are text, not {part!r}; {_ONE}")
    if time not in (None, ASKED):
        raise UsageError(
            f"time is '?' to ask when, not {time!r}; a time is given as at= or during="
        )
    if (count := parts.count(ASKED)) != 1:
        hint = r"; what is called ? itself is written \?" if ASKED in graph.entities else ""
        raise UsageError(
            f"{'nothing is' if not count else f'{count} things are'} asked for; {_ONE}{hint}"
        )
    kind = ("subject", "predicate", "object", "time")[parts.index(ASKED)]
    if kind == "time" and (at is not None or during is not None):
        raise UsageError("a question about the time has no time; leave out at and during")
    ids = [
        0 if name == ASKED else vocabulary.id(_unquoted(name))
        for name, vocabulary in zip(names, _vocabularies(graph), strict=True)
    ]
    ticks = read_time(graph.timeline, at, during, ahead=ahead)
    question = Question(kind, *names, whole=at is None and during is None and not ahead)
    if kind != "time":
        begin, end = format_ticks(np.array(ticks), graph.timeline.granularity)
        question = replace(question, begin=begin, end=end)
    return question, question_facts(*(np.array([number]) for number in (*ids, *ticks)))


def _vocabularies(graph: TemporalGraph) -> tuple[Vocabulary, Vocabulary, Vocabulary]:
    """Those of subjects, predicates and objects."""
    return graph.entities, graph.predicates, graph.entities


def question_facts(subject: Ids, predicate: Ids, object: Ids, begin: Ints, end: Ints) -> Facts:
    """Questions as facts, to be cut and scored like any others."""
    one, which, other = (column.astype(np.int32) for column in (subject, predicate, object))
    return Facts.owning(one, which, other, begin, end, np.zeros(len(begin), np.uint8))


def read_time(
    timeline: Timeline,
    at: When | None,
    during: tuple[When, When] | None,
    *,
    ahead: bool = False,
) -> tuple[int, int]:
    """The first and last tick of a time; of the graph, if none is given.

    With `ahead`, for runs that forecast, it may lie after the graph's time, and if none is given it
    is the first tick after it.
    """
    if at is not None and during is not None:
        raise UsageError("give at or during, not both")
    if at is not None:
        return timeline.interval(at, at, ahead=ahead)
    if during is None:
        return _all_time(timeline, ahead)
    if not isinstance(during, tuple | list) or len(during) != 2:
        raise UsageError(f"during is a pair of times, such as (1980, 1989), not {during!r}")
    return timeline.interval(*during, ahead=ahead)


def _all_time(timeline: Timeline, ahead: bool) -> tuple[int, int]:
    """The time of a question without one."""
    return (timeline.last + 1,) * 2 if ahead else (timeline.first, timeline.last)


def read_during(text: str) -> tuple[str, str]:
    """Begin and end, as they are written on the command line.

    >>> read_during("2009..2017")
    ('2009', '2017')
    """
    begin, dots, end = text.partition("..")
    if not (begin.strip() and dots and end.strip()):
        raise UsageError(f"during is written 2009..2017, begin and end, not {text!r}")
    return begin.strip(), end.strip()


def find_name(graph: TemporalGraph, name: str, kind: str | None) -> Vocabulary:
    """Whether a name is that of an entity or of a predicate."""
    kinds = {"entity": graph.entities, "predicate": graph.predicates}
    if kind is not None:
        check_name("kind of name", kind, kinds)
        kinds = {kind: kinds[kind]}
    having = [vocabulary for vocabulary in kinds.values() if name in vocabulary]
    if len(having) == 2:
        raise UsageError(
            f"{name!r} is an entity and a predicate; say which with kind='entity' or"
            " kind='predicate' (--kind)"
        )
    if not having:
        raise UsageError(" ".join(_refusal(names.id, name) for names in kinds.values()))
    return having[0]


def _refusal(function: Callable[..., object], *arguments: object) -> str:
    """The message of the error that a function raises for arguments."""
    try:
        function(*arguments)
    except UsageError as error:
        return str(error)
    return ""


class Asked(NamedTuple):
    """Questions as columns: positions in `KINDS`, and the facts that they ask about."""

    kind: Ints
    facts: Facts


def read_questions(source: Any, graph: TemporalGraph, *, ahead: bool = False) -> Asked:
    """The questions of a file or table; the first wrong one is an error that names its place.

    `ahead` as in `read_time`.
    """
    table = _read(source)
    ids = [table.ids(name, names) for name, names in zip(NAMES, _vocabularies(graph), strict=True)]
    begin, end, state = table.times(graph.timeline, ahead)
    asked = np.stack([*(column == _ASKED for column in ids), state == _ASKED])
    of_names = asked[:3].any(axis=0)
    # Three names without a time ask when, also where no `?` says so.
    when = ~of_names & (state != 0)
    table.note(asked.sum(axis=0) > 1, ": a question has one '?', and this one has several")
    table.note(
        ~of_names & ~when,
        ": nothing is asked for: write ? for one of the names, or leave the time empty to ask when",
    )
    if table.problems:
        row, what = min(table.problems)
        raise DataError(f"{table.locate([row])[0]}{what}")
    positions = np.array([KINDS.index(name) for name in (*NAMES, "time")])
    kind = positions[np.where(when, 3, asked[:3].argmax(axis=0))]
    subject, predicate, object_ = (np.maximum(column, 0) for column in ids)
    return Asked(kind, question_facts(subject, predicate, object_, begin, end))


@dataclass
class _Table:
    """Questions as columns of text, where their rows stand, and which rows are wrong."""

    columns: Mapping[str, EncodedColumn]
    rows: int
    locate: Locate
    problems: list[tuple[int, str]] = field(default_factory=list)

    def note(self, wrong: Bools, what: str, why: Callable[[int], str] = lambda _: "") -> None:
        """Remember the first row that is wrong."""
        if wrong.any():
            row = int(np.argmax(wrong))
            self.problems.append((row, what + why(row)))

    def ids(self, column: str, names: Vocabulary) -> Ints:
        """The ids of a column of names."""
        encoded = self.columns[column]
        texts = encoded.values.to_pylist()
        plain = pa.array([_unquoted(text) for text in texts], encoded.values.type)
        of_values = names.ids(plain).astype(np.int64)
        for place, text in enumerate(texts):
            of_values[place] = {ASKED: _ASKED, "": _EMPTY}.get(text, of_values[place])
        ids: Ints = encoded.lookup(of_values, _EMPTY)
        where = f", column {column}: "
        self.note(ids == _EMPTY, f"{where}there is no name; write ? for the answer")
        self.note(ids == _UNKNOWN, where, lambda row: _refusal(names.id, *encoded.texts([row])))
        return ids

    def times(self, timeline: Timeline, ahead: bool) -> tuple[Ints, Ints, Ints]:
        """First and last tick of every question, and whether it has a time (0), or a state."""
        columns = next(names for names in _TIMES if {*names} <= {*self.columns})
        ends = np.tile(np.reshape(_all_time(timeline, ahead), (2, 1)), self.rows)
        state = np.full(self.rows, _EMPTY)
        if not columns:
            return *ends, state
        for number, column in enumerate((columns[0], columns[-1])):
            ticks, states = self._ticks(column, timeline)
            found = self.columns[column].lookup(states, _EMPTY)
            of_rows = self.columns[column].lookup(ticks[number])
            ends[number] = np.where(found == 0, of_rows, ends[number])
            state = np.where(found == 0, 0, np.maximum(found, state))
        begin, end = ends

        def why(row: int) -> str:
            whole = format_ticks(np.array([timeline.first, timeline.last]), timeline.granularity)
            given = (self.columns[each].texts([row])[0] for each in (columns[0], columns[-1]))
            dates = (date or default for date, default in zip(given, whole, strict=True))
            return _refusal(timeline.interval, *dates)

        outside = (begin > end) | (end < timeline.first)
        if not ahead:
            outside |= begin > timeline.last
        self.note(outside & (state == 0), f", column {columns[0]}: ", why)
        return begin, end, state

    def _ticks(self, column: str, timeline: Timeline) -> tuple[Ints, Ints]:
        """First and last tick of every distinct time, and whether it is one."""
        encoded = self.columns[column]
        size = len(encoded.values)
        ticks, states = np.zeros((2, size), np.int64), np.zeros(size, int)
        # One time after the other takes a millisecond each, so only those that need it: coarser
        # ones cover several ticks, and what is not a time is a separate error.
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
                self.problems.append((encoded.first_row(place), f", column {column}: {error}"))
        return ticks, states


def _read(source: Any) -> _Table:
    name = "table"
    if is_table(source):
        table = _of_table(as_table(source, name), name)
    elif isinstance(source, str | Path):
        name = str(source)
        table = _read_file(Path(source))
    else:
        raise UsageError(
            f"questions are a file or an Arrow-compatible table, not {type(source).__name__}"
        )
    if not table.rows:
        raise DataError(f"{name}: there are no questions")
    return table


def _read_file(path: Path) -> _Table:
    suffix, known = path.suffix.lower(), (*_DELIMITERS, ".parquet")
    if suffix not in known:
        raise UsageError(
            f"{path}: questions are read from {', '.join(known)}.{nearest(path.suffix, known)}"
        )
    if suffix == ".parquet":
        return _of_table(read_table(path), str(path))
    return _read_text(path, _DELIMITERS[suffix])


def _of_table(table: pa.Table, name: str) -> _Table:
    """A table whose columns are those of questions; an index of pandas is left out."""
    indexes = [n for n in table.column_names if re.fullmatch("__index_level_[0-9]+__", n)]
    table = table.drop_columns(indexes)
    columns = {}
    names = _column_names(table.column_names, name)
    for column, values in zip(names, table.columns, strict=True):
        if column in NAMES:
            columns[column] = EncodedColumn(label_column(values, column, name))
        else:
            columns[column] = time_column(values, column, name)
    return _Table(columns, table.num_rows, lambda rows: [f"{name}, row {rows[0] + 1}"])


def _read_text(path: Path, delimiter: str) -> _Table:
    """Text with a header, or with columns in the usual order."""
    rows = RowCollector(str(path), "line")
    columns: list[str] = []
    for number, cells in InputFile(path).rows(delimiter):
        where = f"{path}, line {number}"
        if not columns:
            if set(NAMES) <= {cell.strip().lower() for cell in cells}:
                columns = _column_names(cells, where)
                continue
            usual = {3 + len(times): [*NAMES, *times] for times in _TIMES}
            columns = usual.get(len(cells), [])
            if not columns:
                raise DataError(f"{where}: {_EXPECTED}; found {counted(len(cells), 'column')}")
        if len(cells) != len(columns):
            raise DataError(
                f"{where}: expected {counted(len(columns), 'column')} as in the first line, found"
                f" {len(cells)}"
            )
        rows.add(number, zip(columns, cells, strict=True))
    made = {name: rows.column(name) for name in columns}
    if is_csv(path):
        made |= {name: made[name].changed(without_apostrophes) for name in NAMES}
    return _Table(made, len(rows.numbers), rows.locate)


def _column_names(names: Sequence[str], where: str) -> list[str]:
    """The names of the columns; others than the expected ones are likely misspelt."""
    columns = [name.strip().lower() for name in names]
    if sorted(columns) not in [sorted((*NAMES, *times)) for times in _TIMES]:
        raise DataError(f"{where}: {_EXPECTED}; found {', '.join(names)}")
    return columns
