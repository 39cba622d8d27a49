"""Facts whose begin and end stand in rows of their own, `occursSince 2005`, `occursUntil 2009`.

In the files that have such rows, others have no time at all, and fewer columns.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splime.arrays import changes
from splime.errors import DataError
from splime.graph import SplitName
from splime.io.columns import SINCE, UNTIL, EncodedColumn, Encoder, Halves, RawFacts, encoded
from splime.io.delimited import Dialect, rows_of
from splime.io.layout import by_position, looks_like_header
from splime.times import Bools, Ints

_WORD = r"<?(?:occurs?_?)?(?P<word>since|until)>?"
_MARKER = rf"(?i)^{_WORD}(?P<rest>)$"  # in a column of its own
_PREFIX = rf"(?i)^{_WORD}[\s:=_]+(?P<rest>.+)$"  # in front of the time
# Behind the predicate, whose own last word may be "since": so only the long form counts.
_SUFFIX = r"(?i)^(?P<rest>.*?\w.*?)[\s_./:|#,-]*<?occurs?_?(?P<word>since|until)>?$"


def qualify(raw: RawFacts) -> RawFacts:
    """Make begins and ends of `since` and `until`, if rows of facts say only one of them.

    The words stand in a column before the time, in front of the time, or behind the predicate.
    """
    first, last = raw.times[0], raw.times[-1]
    if raw.halves is not None:
        return raw
    if first is not last:
        halves, rest = _halves(first, _MARKER)
        if halves is None:
            return raw
        # A row without such a word has its begin and end in the two columns.
        own, shared = first.all_codes(), last.all_codes()
        moved = np.where(shared < 0, -1, shared + len(first.values))
        values = pa.concat_arrays([pa.array(rest, pa.string()), _texts(last)])
        begin = encoded(np.select([halves == SINCE, halves == UNTIL], [moved, -1], own), values)
        end = encoded(np.where(halves == SINCE, -1, shared), _texts(last))
        if (_blank(first) & (halves == 0) & ~_blank(last)).any():
            guess = "a time with neither since nor until before it is the end of a fact"
            raw = replace(raw, guesses=[*raw.guesses, guess])
        return _qualified(raw, halves, (begin, end), written=raw.times)
    halves, rest = _halves(first, _PREFIX)
    written: tuple[EncodedColumn, ...] = (first,)
    if halves is None:
        predicate = raw.names[1]
        halves, rest = _halves(predicate, _SUFFIX)
        if halves is None:
            return raw
        texts = _texts(predicate).to_pylist()
        suffixes = [text.removeprefix(name) for text, name in zip(texts, rest, strict=True)]
        written = (encoded(predicate.all_codes(), pa.array(suffixes, pa.string())), first)
        # `<playsFor_occursSince>` has its brackets around both.
        closed = [
            f"{name}>" if suffix and name[0] == "<" and name[-1] != ">" else name
            for name, suffix in zip(rest, suffixes, strict=True)
        ]
        names = pa.array(closed, pa.string()).dictionary_encode()
        table = names.indices.to_numpy()
        base = encoded(predicate.lookup(table, -1), names.dictionary)
        raw = replace(raw, names=(raw.names[0], base, raw.names[2]))
        rest = _texts(first).to_pylist()
    codes, values = first.all_codes(), pa.array(rest, pa.string())
    begin, end = (encoded(np.where(halves == other, -1, codes), values) for other in (UNTIL, SINCE))
    return _qualified(raw, halves, (begin, end), written)


def without_times(raw: RawFacts, unknown: str) -> RawFacts:
    """The same facts, where one text is no time: whoever wrote it did not know the time."""
    times = []
    for column in raw.times:
        texts = _texts(column)
        same = pc.equal(pc.utf8_trim(texts, ' \t"'), unknown.strip())
        times.append(encoded(column.all_codes(), pc.if_else(same, "", texts)))
    return replace(raw, times=times, written=raw.written or raw.times)


def read_mixed(
    path: Path,
    error: DataError,
    *,
    split: SplitName | None,
    columns: Sequence[str] | None,
    asked: bool,
) -> RawFacts:
    """A text file in which rows of three columns, without a time, stand among longer ones.

    Such a row may also have lost its time, so other rows have to say `since` or `until`, or the
    user has to ask for it; else what the file was refused with is raised.
    """
    dialect, widths = next(
        ((Dialect(one), widths) for one in "\t,;| " if (widths := _widths(path, Dialect(one)))),
        (None, set()),
    )
    if dialect is None or (len(widths) == 1 and not asked):
        raise error
    width = max(widths) if len(widths) > 1 else 5
    layout = by_position(width, columns, str(path))
    cells = [Encoder() for _ in layout.facts]
    lines = array("q")
    header = None
    for number, row in _rows(path, dialect):
        if len(row) == 3 and any(map(is_marker, row)):
            raise error  # what is left of a longer one
        if not lines and header is None and len(row) == width and looks_like_header(row, layout):
            header = " ".join(row)
            continue
        for column, position in zip(cells, layout.facts, strict=True):
            if position < len(row):
                column.put(len(lines), row[position])
        lines.append(number)

    def locate(rows: Sequence[int]) -> list[str]:
        return [f"{path.name}, line {lines[row]}" for row in rows]

    names, times = cells[:3], cells[3:]
    raw = RawFacts(
        path.name,
        [column.encoded(len(lines), locate) for column in names],
        [column.encoded(len(lines), locate) for column in times],
        locate,
        split,
        header=header,
        is_text=True,
    )
    raw.guesses.append("rows of three columns are facts without a time")
    if dialect.delimiter != "\t":
        raw.guesses.append(f"fields are separated by {dialect.delimiter!r}")
    qualified = qualify(raw)
    if not asked and qualified is raw:
        raise DataError(
            f"{error}; if rows of three columns are facts without a time, choose what becomes of"
            " them with without_time (--without-time)"
        )
    return qualified


def _rows(path: Path, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """The rows of a file; a line of nothing but delimiters is none."""
    return ((number, row) for number, row in rows_of(path, dialect) if any(map(str.strip, row)))


def _widths(path: Path, dialect: Dialect) -> set[int]:
    """How many columns the rows have: 3, and perhaps 4 or 5; empty if it is anything else."""
    widths: set[int] = set()
    for _, row in _rows(path, dialect):
        widths.add(len(row))
        if not (widths <= {3, 4} or widths <= {3, 5}):
            return set()
    return widths if 3 in widths else set()


def is_marker(text: str) -> bool:
    """Whether a text says only that a time is a begin or an end."""
    return re.search(_MARKER, text) is not None


def _halves(column: EncodedColumn, pattern: str) -> tuple[Halves | None, list[str]]:
    """What each row says, None if no row has such a word; and the values without the words."""
    texts = _texts(column)
    match = pc.extract_regex(texts, pattern)
    if match.null_count == len(match):
        return None, []
    words = [word and word.lower() for word in match.field("word").to_pylist()]
    table = [{"since": SINCE, "until": UNTIL}.get(word, 0) for word in words]
    rest = pc.if_else(match.is_valid(), match.field("rest"), texts)
    return column.lookup(np.array(table, np.uint8)), rest.to_pylist()


def _qualified(
    raw: RawFacts,
    halves: Halves,
    times: Sequence[EncodedColumn],
    written: Sequence[EncodedColumn],
) -> RawFacts:
    guess = "since and until are the begin and end of facts; two rows that belong together are one"
    guesses = [*raw.guesses, guess]
    return replace(raw, times=times, halves=halves, written=written, guesses=guesses)


def _blank(column: EncodedColumn) -> Bools:
    """Which rows say no time."""
    empty = pc.equal(pc.utf8_trim(pc.utf8_trim_whitespace(_texts(column)), "-#"), "")
    return column.lookup(empty.to_numpy(zero_copy_only=False), missing=True)


def _texts(column: EncodedColumn) -> pa.Array:
    return column.values.cast(pa.string())


def pair(triples: Ints, ends: Bools, ticks: Ints) -> tuple[Ints, Ints]:
    """The rows that say when facts begin, and those that say when the same facts end.

    `triples` numbers the triples, `ends` tells untils from sinces. In the order of time, an until
    ends the since right before it. At the same time, it ends what began before; if nothing did,
    the two are an instant. No triple has the same row twice.

    >>> years = np.array([1990, 1995, 1995, 1999, 2003, 2007, 2007])
    >>> since, until = pair(np.zeros(7, int), np.array([0, 1, 0, 1, 1, 0, 1], bool), years)
    >>> [(int(begin), int(end)) for begin, end in zip(years[since], years[until])]
    [(1990, 1995), (1995, 1999), (2007, 2007)]
    """
    order = np.lexsort((~ends, ticks, triples))  # at the same time, the until first
    triples, ends, ticks = triples[order], ends[order], ticks[order]
    new = changes(triples)
    meets = np.zeros(len(order) + 1, bool)  # an until that has a since at the same time behind it
    meets[1:-1] = ends[:-1] & ~ends[1:] & ~changes(triples, ticks)[1:]
    since_meets, until_meets = meets[:-1], meets[1:]
    # What the last row before that is not of such a pair says decides whether something is open.
    place = np.arange(len(order))
    alone = np.maximum.accumulate(np.where(since_meets | until_meets, -1, place))
    starts = np.maximum.accumulate(np.where(new, place, 0))
    is_open = (alone >= starts) & ~ends[alone]
    instant = until_meets & ~is_open  # the until, whose since comes right after it
    taken = instant.copy()
    taken[1:] |= instant[:-1]
    follows = np.zeros(len(order), bool)
    follows[1:] = ~ends[:-1] & ends[1:] & ~new[1:] & ~taken[:-1] & ~taken[1:]
    until = np.flatnonzero(instant | follows)
    since = np.where(instant[until], until + 1, until - 1)
    return order[since], order[until]
