"""Times as text, taken apart: the calendar fields of what people write.

The lower half of `splime.times`, which turns the fields into ticks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Granularity: TypeAlias = Literal["step", "year", "month", "day", "hour", "minute", "second"]
Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]

# The position in this tuple is the precision of a time; a bare number has precision 0.
GRANULARITIES: tuple[Granularity, ...] = get_args(Granularity)
STEP, YEAR, MONTH, DAY, HOUR, MINUTE, SECOND = range(7)

# Dates beyond this year would overflow seconds; bare numbers have no such limit.
LAST_YEAR = 999_999

# States of a parsed time. Everything above UNKNOWN is a reason to drop the fact.
KNOWN, UNKNOWN, NOT_A_TIME, PARTLY_MASKED, IMPOSSIBLE, TOO_COARSE, ZONE_MIXED = range(7)
REASONS = {
    NOT_A_TIME: "not a time",
    PARTLY_MASKED: "year partly masked",
    IMPOSSIBLE: "impossible date",
    TOO_COARSE: "coarser than the granularity",
    ZONE_MIXED: "with a time zone among times without, or the reverse",
}

_DATE = r"^(?P<year>[+-]?[0-9]{1,18})"
_ISO = (
    _DATE + r"(?P<rest>-(?P<month>[0-9]{2}|##)(?:-(?P<day>[0-9]{2}|##)"
    r"(?:[T ](?P<hour>[0-9]{2})(?::(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})"
    r"(?:[.,](?P<fraction>[0-9]+))?)?)?"
    r" ?(?P<zone>[Zz]|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)?)?)?)?$"
)
# With a forced granularity only the front of a time is read: what follows is not looked at.
_FRONT = {
    "year": _DATE + "-",
    "month": _DATE + r"-(?P<month>[0-9]{2})-",
    "day": _DATE + r"-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})[T ]",
}


@dataclass
class Fields:
    """The calendar fields of a column of times, as written (but shifted to UTC)."""

    precision: npt.NDArray[np.int64]
    state: npt.NDArray[np.uint8]
    truncated: Bools
    year: Ints
    month: Ints
    day: Ints
    second: Ints  # of the day
    zoned: Bools


def read_fields(values: pa.Array, forced: Granularity | None) -> Fields:
    """Match every text against the grammar of times and take it apart."""
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(values.cast(pa.string())).fill_null("")
    match = pc.extract_regex(text, _ISO)
    state = np.where(match.is_valid().to_numpy(zero_copy_only=False), KNOWN, NOT_A_TIME)
    state = state.astype(np.uint8)
    state[_mask(pc.match_substring_regex(text, r"^(-?#+(-#+)*)?$"))] = UNKNOWN
    state[_mask(pc.match_substring_regex(text, r"^-?[0-9]+#+-"))] = PARTLY_MASKED

    present: dict[str, Bools] = {}
    numbers: dict[str, Ints] = {}
    for name in ("year", "month", "day", "hour", "minute", "second"):
        numbers[name], present[name] = _numbers(match.field(name))
    offset, zoned, zone_wrong = _offsets(match.field("zone"))
    fraction, _ = _numbers(pc.utf8_slice_codeunits(match.field("fraction"), 0, 18))

    precision = np.select(
        [present[name] for name in ("second", "minute", "hour", "day", "month")],
        [SECOND, MINUTE, HOUR, DAY, MONTH],
        YEAR,
    )
    bare = (state == KNOWN) & _mask(pc.equal(match.field("rest"), ""))
    precision[bare] = STEP
    # "2012-##-05": a day of an unknown month.
    state[(state == KNOWN) & present["day"] & ~present["month"]] = PARTLY_MASKED
    # "2012-##-## 10:00"
    state[(state == KNOWN) & present["hour"] & ~present["day"]] = PARTLY_MASKED

    fields = Fields(
        precision,
        state,
        fraction > 0,
        numbers["year"],
        np.where(present["month"], numbers["month"], 1),
        np.where(present["day"], numbers["day"], 1),
        numbers["hour"] * 3_600 + numbers["minute"] * 60 + numbers["second"],
        zoned,
    )
    clock_wrong = (numbers["hour"] > 23) | (numbers["minute"] > 59) | (numbers["second"] > 59)
    _mark_impossible(fields, (clock_wrong | zone_wrong) & (precision >= HOUR))
    if forced in _FRONT:
        _read_fronts(fields, text, forced)
    _shift_to_utc(fields, offset)
    return fields


def _read_fronts(fields: Fields, text: pa.Array, forced: Granularity) -> None:
    """Give the times that are no dates as a whole a second chance, down to the forced unit."""
    import pyarrow.compute as pc

    rows = np.flatnonzero((fields.state == NOT_A_TIME) | (fields.state >= PARTLY_MASKED))
    match = pc.extract_regex(text.take(pa.array(rows)), _FRONT[forced])
    found = _mask(match.is_valid())
    rows, match = rows[found], match.filter(pa.array(found))
    if not len(rows):
        return
    fields.year[rows] = _numbers(match.field("year"))[0]
    for name in ("month", "day"):
        if f"?P<{name}>" in _FRONT[forced]:
            getattr(fields, name)[rows] = _numbers(match.field(name))[0]
        else:
            getattr(fields, name)[rows] = 1
    fields.second[rows] = 0
    fields.zoned[rows] = False
    fields.precision[rows] = GRANULARITIES.index(forced)
    fields.truncated[rows] = True
    fields.state[rows] = KNOWN
    _mark_impossible(fields, np.zeros(len(fields.state), bool))


def _mark_impossible(fields: Fields, also: Bools) -> None:
    """Set the state of dates that no calendar has, and make their fields harmless."""
    dated = fields.precision != STEP
    wrong = also | (dated & ((fields.month < 1) | (fields.month > 12)))
    wrong |= dated & (np.abs(fields.year) > LAST_YEAR)
    safe = np.where(wrong | ~dated, 0, (fields.year - 1970) * 12 + fields.month - 1).astype("M8[M]")
    length = ((safe + 1).astype("M8[D]") - safe.astype("M8[D]")).astype(np.int64)
    wrong |= dated & ((fields.day < 1) | (fields.day > length))
    wrong &= fields.state == KNOWN
    fields.state[wrong] = IMPOSSIBLE
    bad = fields.state != KNOWN
    fields.year[bad], fields.month[bad], fields.day[bad], fields.second[bad] = 1970, 1, 1, 0


def _shift_to_utc(fields: Fields, offset: Ints) -> None:
    rows = np.flatnonzero((offset != 0) & fields.zoned & (fields.state == KNOWN))
    if not len(rows):
        return
    seconds = days_of(fields)[rows] * 86_400 + fields.second[rows] - offset[rows]
    day = (seconds // 86_400).astype("M8[D]")
    month = day.astype("M8[M]")
    fields.second[rows] = seconds % 86_400
    fields.day[rows] = (day - month.astype("M8[D]")).astype(np.int64) + 1
    fields.month[rows] = month.astype(np.int64) % 12 + 1
    fields.year[rows] = month.astype(np.int64) // 12 + 1970


def days_of(fields: Fields) -> Ints:
    """The day, since 1970-01-01, of every time."""
    # Bare numbers may be beyond any calendar; their days are never looked at.
    year = np.clip(fields.year, -LAST_YEAR, LAST_YEAR)
    months = ((year - 1970) * 12 + fields.month - 1).astype("M8[M]")
    return months.astype("M8[D]").astype(np.int64) + fields.day - 1


def _mask(values: pa.Array) -> Bools:
    mask: Bools = values.fill_null(False).to_numpy(zero_copy_only=False).astype(bool)
    return mask


def _numbers(text: pa.Array) -> tuple[Ints, Bools]:
    """Digits as integers (0 where there are none or they are masked), and where there are some."""
    import pyarrow.compute as pc

    # Arrow's cast takes no plus sign.
    text = pc.replace_substring_regex(text, r"^\+", "")
    there = pc.match_substring_regex(text, "[0-9]").fill_null(False)
    numbers = pc.if_else(there, text, "0").fill_null("0").cast(pa.int64())
    return numbers.to_numpy(zero_copy_only=False).copy(), _mask(there)


def _offsets(zone: pa.Array) -> tuple[Ints, Bools, Bools]:
    """Seconds east of UTC, where a zone was given at all, and where it is none on Earth."""
    import pyarrow.compute as pc

    zoned = _mask(pc.not_equal(zone, ""))
    digits = pc.extract_regex(zone, r"^(?P<sign>[+-])(?P<hours>[0-9]{2}):?(?P<minutes>[0-9]{2})?$")
    hours, _ = _numbers(digits.field("hours"))
    minutes, _ = _numbers(digits.field("minutes"))
    sign = np.where(_mask(pc.equal(digits.field("sign"), "-")), -1, 1)
    return sign * (hours * 3_600 + minutes * 60), zoned, (hours > 14) | (minutes > 59)
