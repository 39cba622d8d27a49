"""Stretches of time as people say them: day, 2 weeks, quarter, or a number in the graph's unit."""

from __future__ import annotations

import re

import numpy as np

from splime.errors import UsageError
from splime.times import DATES, GRANULARITIES, Granularity, Ints

_TEXT = re.compile(r"(?:(?P<count>[0-9]{1,6}) *)?(?P<unit>[a-z]+?)?s?")
_UNITS = {"week": (7, "day"), "quarter": (3, "month"), "decade": (10, "year")}


def _read(text: str | int, unit: Granularity) -> tuple[int, Granularity]:
    """How many of which unit; no finer one than the graph has."""
    match = _TEXT.fullmatch(str(text).strip().lower())
    count, name = (int(match["count"] or 1), match["unit"] or unit) if match else (0, "")
    times, name = _UNITS.get(name, (1, name))
    if name not in GRANULARITIES or not count or (name != unit and "step" in (name, unit)):
        raise UsageError(
            f"{text!r} is no stretch of time; expected a number of {unit}s, or day, week, month,"
            " quarter, year, 2 weeks, …"
        )
    if GRANULARITIES.index(name) > GRANULARITIES.index(unit):
        raise UsageError(f"{text!r} is too short for facts by {unit}")
    return count * times, name


def begins(first: int, last: int, every: str | int, unit: Granularity) -> Ints:
    """Ticks from `first` up to before `last`, at the begins of months and the like.

    >>> begins(0, 70, "month", "day").tolist()
    [0, 31, 59]
    """
    count, name = _read(every, unit)
    if name == unit:
        return np.arange(first, last, count, dtype=np.int64)
    own, whole = DATES[unit], DATES[name]
    spanned = np.array([first, last]).astype(own).astype(whole).astype(np.int64)
    units = np.arange(spanned[0], spanned[1] + 1, count)
    starts = units.astype(whole).astype(own).astype(np.int64)
    return np.append(first, starts[(starts > first) & (starts < last)])


def after(tick: int, length: str | int, unit: Granularity) -> int:
    """The tick so long after another one.

    >>> after(30, "month", "day")  # from 31 January to the end of February and 3 days
    61
    """
    count, name = _read(length, unit)
    if name == unit:
        return tick + count
    own, whole = DATES[unit], DATES[name]
    at = np.array(tick).astype(own)
    start = at.astype(whole)
    moved = (start + count).astype(own) + (at - start.astype(own))
    return int(moved.astype(np.int64))
