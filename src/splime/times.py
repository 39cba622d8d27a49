"""Times as text, and the integers ("ticks") that stand for them.

A tick counts units of one granularity: the calendar year itself for `year`, units since
1970-01-01 for `month` to `second` (UTC), the number itself for `step`. The lower half of the file
parses text into calendar fields; the upper half turns these into ticks.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from splime.errors import UsageError, check_name

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

When: TypeAlias = str | int | date | datetime

_UNITS = "YMDhms"
DATES = {name: f"M8[{unit}]" for name, unit in zip(GRANULARITIES[YEAR:], _UNITS, strict=True)}
"""numpy's type of dates for each unit; its integers are ticks, except for years (from 1970)."""
_SECONDS = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}

_DATE = r"^(?P<year>[+-]?[0-9]{1,18})"
_ISO = (
    _DATE + r"(?P<rest>-(?P<month>[0-9]{2}|##)(?:-(?P<day>[0-9]{2}|##)"
    r"(?:[T ](?P<hour>[0-9]{2})(?::(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})"
    r"(?:[.,](?P<fraction>[0-9]+))?)?)?"
    r" ?(?P<zone>[Zz]|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)?)?)?)?$"
)
# Texts for an unknown time in tables, databases and YAGO.
UNKNOWN_WORDS = (
    r"-?#+(-#+)*|[-–—]+|\?|null|none|nan|nat|n/?a|n\.a\.|n\.d\.|s\.d\.|k\. ?A\.|\."
    r"|unknown|undated|unbekannt|inconnue?|desconocid[ao]|sconosciut[ao]|\\n"
)
_UNKNOWN = f"(?i)^({UNKNOWN_WORDS})?$"
# RDF's quotes and the type behind them: "1999-##-##", "1935-01-08"^^xsd:date.
_QUOTED = r'^"([^"]*)"(?:\^\^\S+)?$|^([^"^]*)\^\^\S+$'
# With a forced granularity only the front of a time is read; the rest is ignored.
_FRONT = {
    "year": _DATE + "-",
    "month": _DATE + r"-(?P<month>[0-9]{2})-",
    "day": _DATE + r"-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})[T ]",
}

# A precision that fewer than this share of the times have is a stray among the others, not the
# granularity of the data.
STRAY_SHARE = 0.01
_SLIPS = 10  # one number in so many may have a digit too many


@dataclass(frozen=True)
class ParsedTimes:
    """A column of parsed times: a tick and a state for each."""

    granularity: Granularity
    ticks: Ints
    state: npt.NDArray[np.uint8]
    truncated: Bools
    """Finer than the granularity; kept, at the granularity's precision."""


Kinds: TypeAlias = Counter[str]
"""The number of times of each kind, which decides how each time is read. Can be added."""


def count_kinds(values: pa.Array, weights: Ints, granularity: Granularity | None = None) -> Kinds:
    """The kinds of times; `weights` has the number of occurrences of each."""
    return _kinds(_read_fields(values, granularity), weights)


def parse_times(
    values: pa.Array,
    *,
    weights: Ints | None = None,
    granularity: Granularity | None = None,
    among: Kinds | None = None,
) -> ParsedTimes:
    """Parse times from text; `weights` has the number of occurrences of each.

    The granularity is the coarsest precision that at least 1 % of the readable times have, unless
    it is given. Finer times are truncated to it, coarser ones are not guessed. If these are only a
    part of the times, `among` has the kinds of all of them.

    >>> parsed = parse_times(pa.array(["2012-##-##", "-431-##-##", "####-##-##", "195#-##-##"]))
    >>> parsed.granularity, parsed.ticks.tolist(), parsed.state.tolist()
    ('year', [2012, -431, 0, 0], [0, 0, 1, 3])
    """
    if granularity is not None:
        check_name("granularity", granularity, GRANULARITIES)
    fields = _read_fields(values, granularity)
    if among is None:
        among = _kinds(fields, np.ones(len(values), np.int64) if weights is None else weights)
    inferred = granularity or infer_granularity(among)
    # "20140513" among dates is not a year, nor is "20088" among years.
    years_are_short = any(among[name] for name in GRANULARITIES[YEAR:]) or (
        granularity is None and inferred == "year"
    )
    return _resolve(fields, inferred, among, years_are_short)


def plain_text(values: pa.Array) -> pa.Array:
    """Times as text without the spaces, quotes and types around them; empty if missing."""
    text = pc.utf8_trim_whitespace(values.cast(pa.string())).fill_null("")
    return pc.utf8_trim_whitespace(pc.replace_substring_regex(text, _QUOTED, r"\1\2"))


def is_iso(text: pa.Array) -> Bools:
    """Which plain texts are written as `parse_times` reads them, be they possible times or not."""
    return _mask(pc.match_substring_regex(text, f"{_ISO}|{_UNKNOWN}"))


def is_unknown(text: pa.Array) -> Bools:
    """Which plain texts say that a time is unknown."""
    return _mask(pc.match_substring_regex(text, _UNKNOWN))


def tick_range(when: When, granularity: Granularity) -> tuple[int, int]:
    """The first and last tick of a time; a coarser time covers all the ticks in it.

    >>> tick_range("2012", "month")
    (504, 515)
    >>> tick_range("2012-05-03", "year")
    (2012, 2012)
    """
    return _ticks_of(raw_time(when), granularity)


@lru_cache(maxsize=4096)  # reading a time takes a millisecond, a third of an answer
def _ticks_of(text: str, granularity: Granularity) -> tuple[int, int]:
    # Ticks of the other granularities are not written as text, so a number is a year.
    fields = _read_fields(pa.array([text], pa.string()), granularity)
    state, precision = int(fields.state[0]), int(fields.precision[0])
    if state != KNOWN:
        reason = REASONS.get(state, "an unknown time")
        raise UsageError(f"cannot read {text!r} as a time of granularity {granularity}: {reason}")
    if granularity == "step" and precision != STEP:
        raise UsageError(f"the times of this graph are plain integers, not dates like {text!r}")
    if granularity in ("step", "year"):
        return int(fields.year[0]), int(fields.year[0])
    written = GRANULARITIES[min(max(precision, YEAR), GRANULARITIES.index(granularity))]
    tick = int(_ticks(fields, written)[0])
    if written == granularity:
        return tick, tick
    # This tick and the next, converted to dates and then to ticks of the finer unit.
    starts = np.array([tick, tick + 1]) - (1970 if written == "year" else 0)
    first, following = starts.astype(DATES[written]).astype(DATES[granularity]).astype(int).tolist()
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
            raise UsageError(f"a number is too long: {error}") from None
    if isinstance(when, np.datetime64):
        return "" if np.isnat(when) else str(when)
    raise UsageError(
        f"{when!r} is not a time; expected text, an integer, a date, a datetime or None (unknown)"
    )


def format_ticks(ticks: Ints, granularity: Granularity) -> list[str]:
    """Ticks as text that reads back to the same ticks.

    >>> format_ticks(np.array([-431, 2012]), "year"), format_ticks(np.array([504]), "month")
    (['-431', '2012'], ['2012-01'])
    """
    if granularity in ("step", "year"):
        return [str(tick) for tick in ticks.tolist()]
    return [str(text) for text in np.datetime_as_string(ticks.astype(DATES[granularity])).tolist()]


def dated(ticks: Ints, granularity: Granularity, unknown: Bools | None = None) -> pa.Array:
    """Years and steps as integers, months and days as dates, finer times as timestamps."""
    if granularity in ("year", "step"):
        return pa.array(ticks, pa.int64(), mask=unknown)
    dates = ticks.astype(DATES[granularity])
    if granularity in ("month", "day"):
        return pa.array(dates.astype("M8[D]"), pa.date32(), mask=unknown)
    return pa.array(dates.astype("M8[s]"), pa.timestamp("s"), mask=unknown)


def calendar(ticks: Ints, granularity: Granularity) -> Ints:
    """The year, month, day and so on of ticks, as far as the granularity goes, as columns.

    >>> calendar(np.array([16135]), "day").tolist(), calendar(np.array([-431]), "year").tolist()
    ([[2014, 3, 6]], [[-431]])
    """
    if granularity == "step":
        raise UsageError("the times of this graph are bare steps, which have no year, month or day")
    if granularity == "year":
        return ticks[:, None]
    dates = ticks.astype(DATES[granularity])
    units = [dates.astype(f"M8[{unit}]") for unit in _UNITS[: GRANULARITIES.index(granularity)]]
    rest = [(fine - coarse).astype(np.int64) for coarse, fine in itertools.pairwise(units)]
    year, months_and_days = units[0].astype(np.int64) + 1970, [unit + 1 for unit in rest[:2]]
    return np.stack([year, *months_and_days, *rest[2:]], axis=1)


def _kinds(fields: Fields, weights: Ints) -> Kinds:
    """The number of times of each precision, and of further kinds."""
    known = (fields.state == KNOWN) & (weights > 0)
    weights, precision, number = weights[known], fields.precision[known], np.abs(fields.year[known])
    bare, clocked = precision == STEP, precision >= HOUR
    levels = enumerate(GRANULARITIES)
    kinds = Kinds({name: int(weights[precision == level].sum()) for level, name in levels})
    for kind, chosen in (
        ("like a year", bare & (number >= 1000) & (number <= 2999)),
        ("zero", bare & (number == 0)),
        ("long", bare & (number > 9999)),
        ("clocked", clocked),
        ("zoned", clocked & fields.zoned[known]),
        *(
            (f"inside a {unit}", clocked & (fields.second[known] % _SECONDS[unit] != 0))
            for unit in GRANULARITIES[DAY:SECOND]
        ),
    ):
        kinds[kind] = int(weights[chosen].sum())
    return kinds


def infer_granularity(kinds: Kinds) -> Granularity:
    """The granularity of times of these kinds."""
    dated = sum(kinds[name] for name in GRANULARITIES[YEAR:])
    if not dated + kinds["step"]:
        return "year"
    if not dated:
        # Numbered steps begin at 0, and no calendar has a year 0.
        numbers, like_years, long = kinds["step"], kinds["like a year"], kinds["long"]
        # A few numbers with a digit too many, among years alone, are slips.
        slips = like_years + long == numbers and long <= max(1, numbers // _SLIPS) < like_years
        years = like_years * 10 >= numbers and not kinds["zero"] and (slips or not long)
        return "year" if years else "step"
    share = np.array([0, *(kinds[name] for name in GRANULARITIES[YEAR:])])
    share[YEAR] += kinds["step"] - kinds["long"]
    common = int(np.flatnonzero(share >= STRAY_SHARE * share.sum())[0])
    # Date-times that all stand at midnight are days, those at full hours are hours, and so on.
    for level in range(DAY, min(common, SECOND)):
        if not kinds[f"inside a {GRANULARITIES[level]}"]:
            return GRANULARITIES[level]
    return GRANULARITIES[common]


def _resolve(
    fields: Fields, granularity: Granularity, among: Kinds, years_are_short: bool
) -> ParsedTimes:
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
        if years_are_short:
            state[known & bare & (np.abs(fields.year) > 9999)] = NOT_A_TIME
        clocked = known & (fields.precision >= HOUR)
        if level >= DAY and 0 < among["zoned"] < among["clocked"]:
            minority = fields.zoned if 2 * among["zoned"] < among["clocked"] else ~fields.zoned
            state[clocked & minority] = ZONE_MIXED
    ticks = np.where(state == KNOWN, _ticks(fields, granularity), 0)
    return ParsedTimes(granularity, ticks, state, truncated & (state == KNOWN))


def _ticks(fields: Fields, granularity: Granularity) -> Ints:
    if granularity in ("step", "year"):
        return fields.year
    if granularity == "month":
        return (np.clip(fields.year, -LAST_YEAR, LAST_YEAR) - 1970) * 12 + fields.month - 1
    return (_days_of(fields) * 86_400 + fields.second) // _SECONDS[granularity]


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


def _read_fields(values: pa.Array, forced: Granularity | None) -> Fields:
    """Parse every text by the grammar of times."""
    text = plain_text(values)
    match = pc.extract_regex(text, _ISO)
    state = np.where(match.is_valid().to_numpy(zero_copy_only=False), KNOWN, NOT_A_TIME)
    state = state.astype(np.uint8)
    state[_mask(pc.match_substring_regex(text, _UNKNOWN))] = UNKNOWN
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
    # "2012-##-05", a day of an unknown month, and "2012-##-## 10:00".
    gap = (present["day"] & ~present["month"]) | (present["hour"] & ~present["day"])
    state[(state == KNOWN) & gap] = PARTLY_MASKED

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
    """Parse only the front, down to the forced unit, of times that are not dates as a whole."""
    rows = np.flatnonzero((fields.state == NOT_A_TIME) | (fields.state >= PARTLY_MASKED))
    match = pc.extract_regex(text.take(pa.array(rows)), _FRONT[forced])
    matches = _mask(match.is_valid())
    rows, match = rows[matches], match.filter(pa.array(matches))
    if not len(rows):
        return
    fields.year[rows] = _numbers(match.field("year"))[0]
    for name in ("month", "day"):
        given = f"?P<{name}>" in _FRONT[forced]
        getattr(fields, name)[rows] = _numbers(match.field(name))[0] if given else 1
    fields.second[rows] = 0
    fields.zoned[rows] = False
    fields.precision[rows] = GRANULARITIES.index(forced)
    fields.truncated[rows] = True
    fields.state[rows] = KNOWN
    _mark_impossible(fields, np.zeros(len(fields.state), bool))


def _mark_impossible(fields: Fields, also: Bools) -> None:
    """Set the state of impossible dates, and reset their fields."""
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
    seconds = _days_of(fields)[rows] * 86_400 + fields.second[rows] - offset[rows]
    day = (seconds // 86_400).astype("M8[D]")
    month = day.astype("M8[M]")
    fields.second[rows] = seconds % 86_400
    fields.day[rows] = (day - month.astype("M8[D]")).astype(np.int64) + 1
    fields.month[rows] = month.astype(np.int64) % 12 + 1
    fields.year[rows] = month.astype(np.int64) // 12 + 1970


def _days_of(fields: Fields) -> Ints:
    """The day, since 1970-01-01, of every time."""
    # Bare numbers may be beyond any calendar; their days are not used.
    year = np.clip(fields.year, -LAST_YEAR, LAST_YEAR)
    months = ((year - 1970) * 12 + fields.month - 1).astype("M8[M]")
    return months.astype("M8[D]").astype(np.int64) + fields.day - 1


def _mask(values: pa.Array) -> Bools:
    return np.asarray(values.fill_null(False).to_numpy(zero_copy_only=False), bool)


def _numbers(text: pa.Array) -> tuple[Ints, Bools]:
    """Digits as integers (0 where they are missing or masked), and where there are any."""
    # Arrow's cast does not accept a plus sign.
    text = pc.replace_substring_regex(text, r"^\+", "")
    there = pc.match_substring_regex(text, "[0-9]").fill_null(False)
    numbers = pc.if_else(there, text, "0").fill_null("0").cast(pa.int64())
    return numbers.to_numpy(zero_copy_only=False).copy(), _mask(there)


def _offsets(zone: pa.Array) -> tuple[Ints, Bools, Bools]:
    """Seconds east of UTC, where a zone was given, and where it is impossible."""
    zoned = _mask(pc.not_equal(zone, ""))
    digits = pc.extract_regex(zone, r"^(?P<sign>[+-])(?P<hours>[0-9]{2}):?(?P<minutes>[0-9]{2})?$")
    hours, _ = _numbers(digits.field("hours"))
    minutes, _ = _numbers(digits.field("minutes"))
    sign = np.where(_mask(pc.equal(digits.field("sign"), "-")), -1, 1)
    return sign * (hours * 3_600 + minutes * 60), zoned, (hours > 14) | (minutes > 59)
