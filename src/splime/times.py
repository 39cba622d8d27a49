"""Times as people write them, and the integers ("ticks") that stand for them.

A tick counts units of one granularity: the calendar year itself for `year`, units since
1970-01-01 for `month` to `second` (UTC), the number itself for `step`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splime.errors import UsageError, nearest
from splime.fields import (
    DAY,
    GRANULARITIES,
    HOUR,
    IMPOSSIBLE,
    KNOWN,
    LAST_YEAR,
    NOT_A_TIME,
    PARTLY_MASKED,
    REASONS,
    SECOND,
    STEP,
    TOO_COARSE,
    UNKNOWN,
    YEAR,
    ZONE_MIXED,
    Bools,
    Fields,
    Granularity,
    Ints,
    days_of,
    read_fields,
)

__all__ = [
    "GRANULARITIES",
    "IMPOSSIBLE",
    "KNOWN",
    "NOT_A_TIME",
    "PARTLY_MASKED",
    "REASONS",
    "TOO_COARSE",
    "UNKNOWN",
    "ZONE_MIXED",
    "Bools",
    "Granularity",
    "Ints",
    "ParsedTimes",
    "When",
    "check_granularity",
    "format_ticks",
    "parse_times",
    "raw_time",
    "tick_range",
]

When: TypeAlias = str | int | date | datetime

_UNIT = {"month": "M", "day": "D", "hour": "h", "minute": "m", "second": "s"}
_SECONDS = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}

# A precision that fewer than this share of the times have is a stray among the others, not the
# granularity of the data.
STRAY_SHARE = 0.01


@dataclass(frozen=True)
class ParsedTimes:
    """What became of a column of raw times: a tick and a state for each."""

    granularity: Granularity
    ticks: Ints
    state: npt.NDArray[np.uint8]
    truncated: Bools
    """Finer than the granularity; kept, at the granularity's precision."""


def parse_times(
    values: pa.Array, *, weights: Ints | None = None, granularity: Granularity | None = None
) -> ParsedTimes:
    """Read times of one kind from text; `weights` says how often each one occurs.

    The granularity is the coarsest precision that at least 1 % of the readable times have, unless
    it is forced. Finer times are truncated to it, coarser ones are not guessed.

    >>> parsed = parse_times(pa.array(["2012-##-##", "-431-##-##", "####-##-##", "195#-##-##"]))
    >>> parsed.granularity, parsed.ticks.tolist(), parsed.state.tolist()
    ('year', [2012, -431, 0, 0], [0, 0, 1, 3])
    """
    if granularity is not None:
        check_granularity(granularity)
    fields = read_fields(values, granularity)
    if weights is None:
        weights = np.ones(len(values), np.int64)
    if granularity is None:
        granularity = _infer(fields, weights)
    return _resolve(fields, granularity, weights)


def check_granularity(name: str) -> None:
    """Raise UsageError unless `name` is a granularity."""
    if name not in GRANULARITIES:
        known = ", ".join(GRANULARITIES)
        raise UsageError(
            f"unknown granularity {name!r}; it is one of {known}.{nearest(name, GRANULARITIES)}"
        )


def tick_range(when: When, granularity: Granularity) -> tuple[int, int]:
    """The first and last tick of a time; a coarser time covers all the ticks in it.

    >>> tick_range("2012", "month")
    (504, 515)
    >>> tick_range("2012-05-03", "year")
    (2012, 2012)
    """
    text = raw_time(when)
    # A tick of the other granularities is no number that people write, so a number is a year.
    fields = read_fields(pa.array([text], pa.string()), granularity)
    state, precision = int(fields.state[0]), int(fields.precision[0])
    if state != KNOWN:
        reason = REASONS.get(state, "an unknown time")
        raise UsageError(f"cannot read {text!r} as a time of granularity {granularity}: {reason}")
    if granularity == "step" and precision != STEP:
        raise UsageError(f"the times of this graph are plain integers, not dates like {text!r}")
    if granularity in ("step", "year"):
        return int(fields.year[0]), int(fields.year[0])
    own = GRANULARITIES[min(max(precision, YEAR), GRANULARITIES.index(granularity))]
    tick = int(_ticks(fields, own)[0])
    if own == granularity:
        return tick, tick
    own_unit = _UNIT.get(own, "Y")
    start = np.datetime64(tick - 1970 if own == "year" else tick, own_unit)  # type: ignore[call-overload]
    unit = f"M8[{_UNIT[granularity]}]"
    first, following = (int((start + step).astype(unit).astype(np.int64)) for step in (0, 1))
    return first, following - 1


def raw_time(when: object) -> str:
    """A Python time as text that `parse_times` reads; None, NaN and NaT are unknown times.

    >>> raw_time(date(2012, 5, 3)), raw_time(2012), raw_time(None)
    ('2012-05-03', '2012', '')
    """
    if when is None or type(when).__name__ in ("NaTType", "NAType"):  # those of pandas
        return ""
    if isinstance(when, str):
        return when
    if isinstance(when, float) and when != when:
        return ""
    if isinstance(when, date):  # a datetime is a date too
        return when.isoformat()
    if isinstance(when, int | np.integer) and not isinstance(when, bool):
        try:
            return str(int(when))
        except ValueError as error:
            raise UsageError(f"a time is a number that is too long: {error}") from None
    if isinstance(when, np.datetime64):
        return "" if np.isnat(when) else str(when)
    raise UsageError(
        f"{when!r} is no time; expected text, an integer, a date, a datetime or None (unknown)"
    )


def format_ticks(ticks: Ints, granularity: Granularity) -> list[str]:
    """Ticks as text that reads back to the same ticks.

    >>> format_ticks(np.array([-431, 2012]), "year"), format_ticks(np.array([504]), "month")
    (['-431', '2012'], ['2012-01'])
    """
    if granularity in ("step", "year"):
        return [str(tick) for tick in ticks.tolist()]
    dates = ticks.astype(f"M8[{_UNIT[granularity]}]")
    return [str(text) for text in np.datetime_as_string(dates).tolist()]


def _infer(fields: Fields, weights: Ints) -> Granularity:
    known = fields.state == KNOWN
    precision, weight, number = fields.precision[known], weights[known], np.abs(fields.year[known])
    if not len(precision) or weight.sum() == 0:
        return "year"
    if (precision == STEP).all():
        # Numbered steps begin at 0, and no calendar has a year 0.
        like_years = weight[(number >= 1000) & (number <= 2999)].sum() * 10 >= weight.sum()
        return "year" if like_years and number.min() > 0 and number.max() <= 9999 else "step"
    readable = (precision != STEP) | (number <= 9999)
    share = np.bincount(np.maximum(precision, YEAR)[readable], weight[readable], minlength=7)
    common = np.flatnonzero(share >= STRAY_SHARE * share.sum())
    granularity = GRANULARITIES[int(common[0])]
    # Date-times that all stand at midnight are days, those at full hours are hours, and so on.
    second = fields.second[known][precision >= HOUR]
    for coarser in GRANULARITIES[DAY:SECOND]:
        if common[0] > GRANULARITIES.index(coarser) and (second % _SECONDS[coarser] == 0).all():
            return coarser
    return granularity


def _resolve(fields: Fields, granularity: Granularity, weights: Ints) -> ParsedTimes:
    """Turn the fields into ticks of one granularity."""
    level = GRANULARITIES.index(granularity)
    state = fields.state.copy()
    known = state == KNOWN
    bare = fields.precision == STEP
    if granularity == "step":
        state[known & ~bare] = NOT_A_TIME
        truncated = np.zeros(len(state), bool)
    else:
        precision = np.maximum(fields.precision, YEAR)
        state[known & (precision < level)] = TOO_COARSE
        # Midnight written out is not finer than the day.
        left_over = fields.second % _SECONDS.get(granularity, 86_400) != 0
        truncated = fields.truncated | left_over
        truncated |= (precision > level) & (min(level, DAY) < np.minimum(precision, DAY))
        if not bare[known].all():
            # "20140513" among dates is no year.
            state[known & bare & (np.abs(fields.year) > 9999)] = NOT_A_TIME
        clocked = known & (fields.precision >= HOUR)
        zoned, all_clocked = weights[clocked & fields.zoned].sum(), weights[clocked].sum()
        if level >= DAY and 0 < zoned < all_clocked:
            minority = fields.zoned if 2 * zoned < all_clocked else ~fields.zoned
            state[clocked & minority] = ZONE_MIXED
    ticks = np.where(state == KNOWN, _ticks(fields, granularity), 0)
    return ParsedTimes(granularity, ticks, state, truncated & (state == KNOWN))


def _ticks(fields: Fields, granularity: Granularity) -> Ints:
    if granularity in ("step", "year"):
        return fields.year
    if granularity == "month":
        return (np.clip(fields.year, -LAST_YEAR, LAST_YEAR) - 1970) * 12 + fields.month - 1
    return (days_of(fields) * 86_400 + fields.second) // _SECONDS[granularity]
