"""Which column of a table is what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from splime.errors import DataError, UsageError, nearest

_EVENT = ("subject", "predicate", "object", "time")
_INTERVAL = ("subject", "predicate", "object", "begin", "end")
EXPECTED = (
    "expected 4 columns (subject, predicate, object, time) or 5 (subject, predicate, object, begin,"
    " end)"
)


@dataclass(frozen=True)
class Layout:
    """The positions of subject, predicate, object, begin and perhaps end and split."""

    facts: tuple[int, ...]
    split: int | None = None

    @property
    def has_end(self) -> bool:
        """Whether facts have an end of their own (valid time), or are events."""
        return len(self.facts) == 5


def check_columns(columns: Sequence[str] | None) -> None:
    """Raise UsageError unless the user named 4 or 5 different columns, or none."""
    if columns is None:
        return
    if isinstance(columns, str) or len(columns) not in (4, 5):
        raise UsageError(
            f"columns must name 4 columns (subject, predicate, object, time) or 5 (subject,"
            f" predicate, object, begin, end), in this order; got {columns!r}"
        )
    if len(set(columns)) != len(columns):
        raise UsageError(f"columns names the same column twice: {', '.join(columns)}")


def looks_like_header(cells: Sequence[str], layout: Layout) -> bool:
    """Whether a first line holds names: then words stand where the times should be.

    >>> looks_like_header(["s", "p", "o", "since", "until"], Layout((0, 1, 2, 3, 4)))
    True
    >>> looks_like_header(["s", "p", "o", "195#-##-##", ""], Layout((0, 1, 2, 3, 4)))
    False
    """
    times = [cells[position] for position in layout.facts[3:]]
    return all(time[:1].isalpha() for time in times)


def by_position(count: int, columns: Sequence[str] | None, where: str) -> Layout:
    """The layout of columns without names; `columns` may give their numbers, from 1."""
    if columns is None:
        if count not in (4, 5):
            raise DataError(
                f"{where}: {EXPECTED}, found {count}; name the ones to use with `columns`"
            )
        return Layout(tuple(range(count)))
    positions = tuple(int(column) - 1 for column in columns)
    if min(positions) < 0 or max(positions) >= count:
        raise DataError(f"{where}: there are {count} columns, so none has the number asked for")
    return Layout(positions)


def by_name(names: Sequence[str], columns: Sequence[str] | None, where: str) -> Layout:
    """The layout of named columns: those asked for, else the usual names, else their order."""
    folded = [name.strip().lower() for name in names]
    split = folded.index("split") if folded.count("split") == 1 else None
    if columns is not None:
        return Layout(tuple(_position(names, column, where) for column in columns), split)
    for usual in (_INTERVAL, _EVENT):
        if all(folded.count(name) == 1 for name in usual):
            return Layout(tuple(folded.index(name) for name in usual), split)
    rest = [position for position in range(len(names)) if position != split]
    if len(rest) not in (4, 5):
        raise DataError(
            f"{where}: {EXPECTED}, found {len(rest)} ({', '.join(names)}); name the ones to use"
            " with `columns`"
        )
    return Layout(tuple(rest), split)


def _position(names: Sequence[str], column: str, where: str) -> int:
    if names.count(column) > 1 if isinstance(names, list) else False:
        raise DataError(f"{where}: several columns are called {column!r}")
    if column in names:
        return list(names).index(column)
    if column.isdigit() and 1 <= int(column) <= len(names):
        return int(column) - 1
    raise DataError(
        f"{where}: there is no column {column!r} among {', '.join(names)}.{nearest(column, names)}"
    )


def are_numbers(columns: Sequence[str] | None) -> bool:
    """Whether columns are given by their numbers (or not at all), so that no header is needed."""
    return columns is None or all(column.isdigit() for column in columns)
