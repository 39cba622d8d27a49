"""Which column of a table is what."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from splime.errors import DataError, UsageError, nearest

NAMES = ("subject", "predicate", "object")
TIMES = ("begin", "end", "time")
# What columns are called. The first name of each is the usual one, and goes before the others.
_SYNONYMS = {
    "subject": "subject subj s head headentity h source sourceentity fromentity entity1",
    "predicate": "predicate pred p relation rel relationship r property",
    "object": "object obj o tail tailentity target targetentity toentity entity2 t",
    "begin": "begin begintime begindate beginyear start starttime startdate startyear since from"
    " validfrom seit depuis desde",
    "end": "end endtime enddate endyear until to validto validuntil bis hasta",
    "time": "time date datetime timestamp ts year when t",
    "split": "split",
}
EXPECTED = (
    "expected 4 columns (subject, predicate, object, time) or 5 (subject, predicate, object, begin,"
    " end)"
)
WILDCARD = "*"
"""Stands for all columns that are no subject and no time: each is a predicate."""
OTHER_OBJECT = "object "
"""The role of such a column, before its name."""

TOGETHER = "+"
"""Stands between columns that are one, such as `year+month+day` or `first_name+last_name`."""
PART = "part of "
"""The role of all of them but the first, before that of the first and their number."""


Layout: TypeAlias = Mapping[str, int]
"""Positions of columns: subject, predicate, object, begin and end or time, perhaps split.

A begin without an end is that of open facts.
"""


def layout_of(positions: Sequence[int], *, one_predicate: bool = False) -> dict[str, int]:
    """The layout of the columns of facts, in their order; with one predicate none is for it."""
    names = [name for name in NAMES if not (one_predicate and name == "predicate")]
    times = ("time",) if len(positions) == len(names) + 1 else ("begin", "end")
    return dict(zip((*names, *times), positions, strict=True))


def times_of(roles: Mapping[str, int]) -> tuple[str, ...]:
    """The roles of the times: begin and end, a begin alone, or the one time."""
    if {"begin", "end"} <= roles.keys() or ("end" in roles and "time" not in roles):
        return "begin", "end"
    return ("begin",) if "begin" in roles and "time" not in roles else ("time",)


def check_columns(
    columns: Sequence[str | int] | None, *, one_predicate: bool = False
) -> list[str] | None:
    """The different columns that the user named or numbered, as text; None if none.

    >>> check_columns([1, 2, 3, "when"])
    ['1', '2', '3', 'when']
    >>> check_columns(["person", "*", "from", "to"])
    ['person', '*', 'from', 'to']
    """
    if columns is None:
        return None
    usable = isinstance(columns, Sequence) and not isinstance(columns, str)
    usable = usable and all(map(_is_column, columns))
    expected, sizes = EXPECTED, [4, 5]
    if usable and WILDCARD in columns:
        expected = f"expected subject, {WILDCARD}, time or subject, {WILDCARD}, begin, end"
        sizes = [3, 4] if columns[1] == WILDCARD and not one_predicate else []
    elif one_predicate:
        expected = "with predicate_name, expected subject, object, time or begin, end"
        sizes = [3, 4]
    if not usable or len(columns) not in sizes:
        raise UsageError(f"columns must name columns in order: {expected}; got {columns!r}")
    named = [str(column) for column in columns]
    if len(set(named)) != len(named):
        raise UsageError(f"columns names the same column twice: {', '.join(named)}")
    return named


def _is_column(column: object) -> bool:
    if isinstance(column, int) and not isinstance(column, bool):
        return abs(column) < 1 << 31
    return isinstance(column, str)


def by_position(
    count: int, columns: Sequence[str] | None, where: str, *, one_predicate: bool = False
) -> dict[str, int]:
    """The layout of columns without names; `columns` may give their numbers, from 1."""
    if columns is None:
        if count + one_predicate not in (4, 5):
            raise DataError(
                f"{where}: {EXPECTED}, found {count}; choose the ones to use with `columns`"
            )
        return layout_of(range(count), one_predicate=one_predicate)
    if not are_numbers(columns):
        raise DataError(f"{where}: columns can be named only where the file has a header")
    positions = [_number(column) - 1 for column in columns]
    if min(positions) < 0 or max(positions) >= count:
        raise DataError(f"{where}: there are {count} columns, so none has that number")
    return layout_of(positions, one_predicate=one_predicate)


def by_name(
    names: Sequence[str], columns: Sequence[str], where: str, *, one_predicate: bool = False
) -> dict[str, int]:
    """The layout of named columns that were chosen; a column `split` is used, too."""
    roles = roles_of(names)
    split = {"split": roles["split"]} if "split" in roles else {}
    wholes = [positions_of(names, column, where) for column in columns if column != WILDCARD]
    positions = [first for first, *_ in wholes]
    if WILDCARD not in columns:
        layout = _since(names, layout_of(positions, one_predicate=one_predicate))
        return with_parts(layout, dict(zip(layout, wholes, strict=True))) | split
    subject, *times = positions
    used = {*itertools.chain(*wholes), *split.values()}
    others = [at for at in range(len(names)) if at not in used]
    if not others:
        raise DataError(f"{where}: there is no column that {WILDCARD} could stand for")
    objects = {f"{OTHER_OBJECT}{names[at]}": at for at in others}
    if len(objects) < len(others):
        raise DataError(f"{where}: several columns have the same name")
    of_times = dict(zip(("time",) if len(times) == 1 else ("begin", "end"), times, strict=True))
    layout = _since(names, {"subject": subject, **objects, **of_times})
    chosen = [role for role in layout if role not in objects]
    return with_parts(layout, dict(zip(chosen, wholes, strict=True))) | split


def with_parts(layout: Layout, wholes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """The same with the columns that are one with another, by the role of these."""
    more = {
        f"{PART}{role} {number}": at
        for role, whole in wholes.items()
        for number, at in enumerate(whole[1:], start=2)
    }
    return {**layout, **more}


def _since(names: Sequence[str], layout: dict[str, int]) -> dict[str, int]:
    """The same, where the one time is a begin if its column is called so."""
    if "time" in layout and folded(names[layout["time"]]) == "since":
        layout["begin"] = layout.pop("time")
    return layout


def roles_of(names: Sequence[str]) -> dict[str, int]:
    """The columns whose names say what they are; one of several with the same meaning does not.

    >>> roles_of(["h", "r", "t", "year"])
    {'subject': 0, 'predicate': 1, 'object': 2, 'time': 3}
    >>> roles_of(["s", "r", "o", "t"])["time"]
    3
    """
    plain = [folded(name) for name in names]
    roles: dict[str, int] = {}
    for role, synonyms in _SYNONYMS.items():
        usual, *others = synonyms.split()
        matches = [at for at, name in enumerate(plain) if name == usual]
        if not matches:
            taken = roles.values()
            matches = [at for at, name in enumerate(plain) if name in others and at not in taken]
        if role == "object" and len(matches) > 1:
            # "t" is the tail, unless another column is the object: then it is the time.
            matches = [at for at in matches if plain[at] != "t"]
        if len(matches) == 1:
            roles[role] = matches[0]
    return roles


def folded(name: str) -> str:
    """A name of a column without case and signs."""
    return re.sub("[^a-z0-9]", "", name.lower())


def named_otherwise(names: Sequence[str], layout: Layout) -> list[str]:
    """What was understood by names that are not the usual ones, as one sentence or none.

    >>> named_otherwise(["h", "predicate", "t", "time"], layout_of(range(4)))
    ["by their names: 'h' is the subject, 't' is the object"]
    """
    told = [
        f"{names[at]!r:.60} is the {role}"
        for role, at in layout.items()
        if names[at].strip().lower() != role
    ]
    return [f"by their names: {', '.join(told)}"] if told else []


def positions_of(names: Sequence[str], column: str, where: str) -> list[int]:
    """The positions of a chosen column, or of several that are one."""
    parts = [column] if column in names else column.split(TOGETHER)
    return [at_name(names, part, where) for part in parts]


def at_name(names: Sequence[str], column: str, where: str) -> int:
    """The position of a column that is given by its name or its number."""
    if names.count(column) > 1:
        raise DataError(f"{where}: several columns are called {column!r}")
    if column in names:
        return names.index(column)
    if 1 <= _number(column) <= len(names):
        return _number(column) - 1
    raise DataError(
        f"{where}: there is no column {column!r} among {', '.join(names)}.{nearest(column, names)}"
    )


def are_numbers(columns: Sequence[str] | None) -> bool:
    """Whether columns are given by their numbers (or not at all), so that no header is needed."""
    return columns is None or all(_number(column) >= 0 for column in columns)


def _number(column: str) -> int:
    """The number that a column is given by; -1 if it is given by its name."""
    return int(column) if re.fullmatch("[0-9]{1,9}", column) else -1
