"""Which column of a table is what."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from textwrap import shorten
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
    " validfrom",
    "end": "end endtime enddate endyear until to validto validuntil",
    "time": "time date datetime timestamp ts year when t",
    "split": "split",
}
# Words for an unknown time.
_TIME_IN_WORDS = re.compile("null|none|nan|nat|n/?a|unknown", re.IGNORECASE)
EXPECTED = (
    "expected 4 columns (subject, predicate, object, time) or 5 (subject, predicate, object, begin,"
    " end)"
)


Layout: TypeAlias = Mapping[str, int]
"""Positions of columns: subject, predicate, object, begin and end or time, perhaps split.

A begin without an end is that of open facts.
"""


def layout_of(positions: Sequence[int]) -> dict[str, int]:
    """The layout of the columns of facts, in their order."""
    times = ("time",) if len(positions) == 4 else ("begin", "end")
    return dict(zip((*NAMES, *times), positions, strict=True))


def check_columns(columns: Sequence[str | int] | None) -> list[str] | None:
    """The 4 or 5 different columns that the user named or numbered, as text; None if none.

    >>> check_columns([1, 2, 3, "when"])
    ['1', '2', '3', 'when']
    """
    if columns is None:
        return None
    usable = isinstance(columns, Sequence) and not isinstance(columns, str)
    if not usable or len(columns) not in (4, 5) or not all(map(_is_column, columns)):
        raise UsageError(f"columns must name columns in order: {EXPECTED}; got {columns!r}")
    named = [str(column) for column in columns]
    if len(set(named)) != len(named):
        raise UsageError(f"columns names the same column twice: {', '.join(named)}")
    return named


def _is_column(column: object) -> bool:
    if isinstance(column, int) and not isinstance(column, bool):
        return abs(column) < 1 << 31
    return isinstance(column, str)


def looks_like_header(cells: Sequence[str], layout: Layout) -> bool:
    """Whether a first line holds names: then words stand where the times should be.

    >>> looks_like_header(["s", "p", "o", "since", "until"], layout_of(range(5)))
    True
    >>> looks_like_header(["s", "p", "o", "195#-##-##", ""], layout_of(range(5)))
    False
    """
    times = [cells[layout[role]].strip() for role in TIMES if role in layout]
    return all(time[:1].isalpha() and not _TIME_IN_WORDS.fullmatch(time) for time in times)


def by_position(count: int, columns: Sequence[str] | None, where: str) -> dict[str, int]:
    """The layout of columns without names; `columns` may give their numbers, from 1."""
    if columns is None:
        if count not in (4, 5):
            raise DataError(
                f"{where}: {EXPECTED}, found {count}; choose the ones to use with `columns`"
            )
        return layout_of(range(count))
    if not are_numbers(columns):
        raise DataError(f"{where}: columns can be named only where the file has a header")
    positions = [_number(column) - 1 for column in columns]
    if min(positions) < 0 or max(positions) >= count:
        raise DataError(f"{where}: there are {count} columns, so none has that number")
    return layout_of(positions)


def by_name(names: Sequence[str], columns: Sequence[str] | None, where: str) -> dict[str, int]:
    """The layout of named columns: those chosen, else those whose names say what they are.

    Their order says nothing: a club that stands where predicates usually do is no predicate.

    >>> by_name(["tail", "head", "relation", "note", "from", "to"], None, "table")
    {'subject': 1, 'predicate': 2, 'object': 0, 'begin': 4, 'end': 5}
    """
    roles = roles_of(names)
    split = {"split": roles["split"]} if "split" in roles else {}
    if columns is not None:
        chosen = layout_of([_position(names, column, where) for column in columns])
        if "time" in chosen and _folded(names[chosen["time"]]) == "since":
            chosen["begin"] = chosen.pop("time")
        return chosen | split
    spans = {"begin", "end"} & roles.keys()
    lasting = len(spans) == 2 or (spans and "time" not in roles)
    wanted: tuple[str, ...] = (*NAMES, "begin", "end") if lasting else (*NAMES, "time")
    if spans == {"begin"} and lasting and _folded(names[roles["begin"]]) == "since":
        wanted = wanted[:-1]  # a begin without an end
    if not {*wanted} <= roles.keys():
        raise unclear(names, roles, wanted[3:], where)
    return {role: roles[role] for role in wanted} | split


def unclear(
    names: Sequence[str], roles: Mapping[str, int], times: Sequence[str], where: str
) -> DataError:
    """What to say of names that do not say which columns are what; `times` are those expected."""
    wanted = (*NAMES, *times)
    missing = " and the ".join(role for role in wanted if role not in roles)
    # Numbers where a name would not survive the command line.
    plain = all(re.fullmatch(r"[\w .-]{1,40}", name) for name in names)
    known = {role: names[at] if plain else str(at + 1) for role, at in roles.items()}
    line = ",".join(known.get(role, role.upper()) for role in wanted)
    left = [
        name if name.isprintable() else repr(name)
        for at, name in enumerate(names)
        if at not in roles.values()
    ]
    among = f" among {shorten(', '.join(left[:10]), 300)}" if left else ""
    return DataError(
        f"{where}: the names of the columns do not say which is the {missing}{among}; choose with"
        f" --columns {line}, by name or number from 1"
    )


def roles_of(names: Sequence[str]) -> dict[str, int]:
    """The columns whose names say what they are; one of several with the same meaning does not.

    >>> roles_of(["h", "r", "t", "year"])
    {'subject': 0, 'predicate': 1, 'object': 2, 'time': 3}
    >>> roles_of(["s", "r", "o", "t"])["time"]
    3
    """
    folded = [_folded(name) for name in names]
    roles: dict[str, int] = {}
    for role, synonyms in _SYNONYMS.items():
        usual, *others = synonyms.split()
        matches = [at for at, name in enumerate(folded) if name == usual]
        if not matches:
            taken = roles.values()
            matches = [at for at, name in enumerate(folded) if name in others and at not in taken]
        if role == "object" and len(matches) > 1:
            # "t" is the tail, unless another column is the object: then it is the time.
            matches = [at for at in matches if folded[at] != "t"]
        if len(matches) == 1:
            roles[role] = matches[0]
    return roles


def _folded(name: str) -> str:
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


def _position(names: Sequence[str], column: str, where: str) -> int:
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
