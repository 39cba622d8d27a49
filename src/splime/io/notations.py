"""How people write times: each way is turned into the ISO text that `splime.times` reads.

`NOTATIONS` lists the ways that a single text shows by itself. What only a whole column shows
(whether the day or the month comes first, what a number counts) is decided by all sources together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splime.errors import UsageError
from splime.times import GRANULARITIES, YEAR, Bools, Ints

OPEN_END = re.compile(
    r"(?i)(?:(?:un)?till? |to )?(?:the )?(?:present|now|today|current)|(?:to|till|until) date"
    r"|ongoing|on-going|currently|still(?: active| open| in force)?|active|in force|in progress"
    r"|open(?:-ended)?|continuing|incumbent|indefinite(?:ly)?|forever|infinity|∞|tbd|\.\.\.?|…"
    r"|(?:bis )?heute|laufend|aujourd['’]hui|en cours|actualidad|actualmente|presente|oggi|in corso"
    r"|hoje|atual|heden"
)
"""What stands in the place of an end that is not there yet."""
MARK = r"(?:\s*(?:\[(?:[0-9]{1,3}|[a-z]|note [0-9]+|citation needed)\]|[*†‡]))+$"
"""The marks of footnotes behind a time, as an encyclopedia has them."""
_CLOCK = (
    r"(?:(?:,? +|T)(?P<hour>[0-9]{1,2})(?P<rest>(?::[0-9]{2}){0,2}(?:[.,][0-9]+)?)"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?(?: ?(?P<zone>Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2}))?)?"
)
_DAY_MONTH = re.compile(
    r"([0-9]{1,2})(?:/|-|\. ?)([0-9]{1,2})(?:/|-|\. ?)([0-9]{4}|[0-9]{2})" + _CLOCK
)
_YEAR_FIRST = re.compile(r"([0-9]{4})[/.年-]([0-9]{1,2})[/.月-]([0-9]{1,2})日?" + _CLOCK)
_DASH = re.compile(r"\s*(?:[–—−‐‑‒―/-]|\b(?:to|until|till|bis|à|hasta|al)\b)\s*")
_DASHES = 8  # two dates and the offsets of their zones; each may stand between the begin and end
_SINCE = re.compile(
    r"(?i)(?:(?:since|from|after|seit|ab|depuis|desde|dal) |> ?)(.+)|(.+?)(?:\+| onwards?)"
)
_UNTIL = re.compile(r"(?i)(?:(?:until|till|up to|before|bis|hasta|fino al) |< ?)(.+)")
_IN_BRACKETS = re.compile(r"^\((.*)\)$")
_DECADE = re.compile("([0-9]{3}0)['’]?s")
_CENTURY = re.compile(r"(?i)([0-9]{1,2})(?:st|nd|rd|th) c(?:ent(?:ury|\.)|\.)")
SEVERAL = re.compile(r"\s*(?:[,;&\n]|\band\b)\s*")
"""What stands between several times in one cell."""
# As it is read without a notation: years, ISO dates, digits alone, (milli)seconds since 1970.
_DATE = re.compile(
    r"[+-]?[1-9][0-9]{3}|[+-]?(?:[0-9#]{4}|[0-9]{1,3}#+)(?:-[0-9#]{2}){1,2}"
    r"(?:[T ][0-9]{2}(?::.*)?)?|[0-9]{4}/[0-9]{2}"
    r"|(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])?|1[0-9]{9}(?:[0-9]{3})?"
)
_MONTH_YEAR = re.compile(r"(0?[1-9]|1[0-2])[/.-]([0-9]{4})|([0-9]{4})[/-](0?[1-9]|1[0-2])")
# In English, German, French, Spanish, Italian, Portuguese and Dutch.
_MONTHS = """
    january januar jänner janvier enero gennaio janeiro januari
    february februar février febrero febbraio fevereiro februari
    march märz mars marzo março maart mrt
    april avril abril aprile
    may mai mayo maggio maio mei
    june juni juin junio giugno junho
    july juli juillet julio luglio julho
    august août agosto augustus
    september septembre septiembre settembre setembro
    october oktober octobre octubre ottobre outubro
    november novembre noviembre novembro
    december dezember décembre diciembre dicembre dezembro
"""
_OF_MONTH = [
    {word[:end] for word in words.split() for end in range(3, len(word) + 1)} - {"jui"}
    for words in _MONTHS.strip().splitlines()
]
_MONTH = r"[^\W\d_]{3,10}\.?"
_SECONDS = re.compile(r"([0-9]{9,10})(\.[0-9]*[1-9][0-9]*)")
_WHOLE = re.compile(r"(-?[0-9]+)\.0+")
_BASIC = re.compile(
    r"([0-9]{4})([0-9]{2})([0-9]{2})T([0-9]{2})([0-9]{2})(?:([0-9]{2}(?:[.,][0-9]+)?))?(Z|[+-][0-9]{2}:?[0-9]{2})?"
)
_WEEKDAY = r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?"
_DAY = r"[0-9]{1,2}(?:st|nd|rd|th|er|º)?\.?"
_DAY_IN_WORDS = re.compile(
    rf"(?i)(?P<date>(?:{_WEEKDAY},? )?(?:{_DAY}[ /-]?(?:of |de )?{_MONTH},?[ /-]?(?:de )?[0-9]{{4}}"
    rf"|{_MONTH}[ /-]{_DAY},?[ /-][0-9]{{4}}|[0-9]{{4}}[ /-]{_MONTH}[ /-]{_DAY})){_CLOCK}"
)
_MONTH_IN_WORDS = re.compile(rf"(?i){_MONTH},?[ /-]?(?:de )?[0-9]{{4}}|[0-9]{{4}}[ /-]?{_MONTH}")
_SHORT_WORDS = re.compile(
    rf"(?i)(?P<date>{_DAY}[ /-]{_MONTH}[ /-]|{_MONTH}-)(?P<year>[0-9]{{2}})(?P<clock>{_CLOCK})"
)
_QUARTER = re.compile(
    r"(?i)([0-9]{4})[ /-]?([QH])([1-4])|([QH])([1-4])[ /-]?([0-9]{4})|([1-4])([QH])[ /-]?([0-9]{4})"
)
_WEEK = re.compile(r"(?i)([0-9]{4})[ -]?W([0-9]{1,2})(?:-?([1-7]))?")
_FISCAL = re.compile(r"(?i)(?:FY|fiscal year) ?'?([0-9]{4}|[0-9]{2})")
_BC, _AD = r"(?:BCE?|B\.\s?C\.(?:\s?E\.)?)", r"(?:AD|CE|A\.\s?D\.|C\.\s?E\.)"
_ERA = re.compile(rf"(?i)([0-9]{{1,5}}) ?(?:({_BC})|{_AD})|{_AD} ?([0-9]{{1,5}})")
_ABOUT = re.compile(
    r"(?i)(?:c\.?|ca\.?|circa|about|around|approx(?:imately|\.)?|~|≈|early|mid|late)[ -]?([0-9].*)"
    r"|([0-9].*?) ?(?:\?|\((?:\?|c\.?|ca\.?|circa|approx\.?)\))"
)
_COMPACT = (
    "^[0-9]{4}(0[1-9]|1[0-2])((0[1-9]|[12][0-9]|3[01])"
    "(([01][0-9]|2[0-3])([0-5][0-9]([0-5][0-9])?)?)?)?$"
)
_FIRST, _LAST = 1500, 2100  # the years of dates without separators
_EPOCH = ("1990", "2050")  # the years of numbers of seconds
_NEARLY_ALL = 0.9  # of the rows must be dates; the others are slips
_AS_DATES, _TELLING, _NO_TIME = "dates without separators", "telling number", "no time"
_UNITS = {"seconds since 1970": "s", "milliseconds since 1970": "ms"}
_TWO_DIGITS = 69  # years of two digits from this on are of the 20th century, as strptime has it


@dataclass(frozen=True)
class Notation:
    """One way to write times."""

    said: str
    """What it means and which option decides otherwise, behind "…, "."""
    iso: Callable[[str], str | None]
    """The ISO text of a text; None if it is not written like that."""


def _clock(match: re.Match[str]) -> str:
    """The time of day behind a date, as ISO text."""
    if match["hour"] is None:
        return ""
    hour, half = int(match["hour"]), (match["half"] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            return "T99"  # no time
        hour = hour % 12 + 12 * (half == "p")
    zone = (match["zone"] or "").replace("GMT", "Z")
    return f"T{hour:02}{match['rest']}{zone}" if half or match["rest"] else "T99"


def _dated(year: str, month: str, day: str, clock: str = "") -> str | None:
    """An ISO day, if there is one; years of two digits are 1969 to 2068."""
    try:
        return date(_full_year(year), int(month), int(day)).isoformat() + clock
    except ValueError:
        return None


def _full_year(year: str) -> int:
    short = len(year) <= 2
    return int(year) + (short and (1900 if int(year) >= _TWO_DIGITS else 2000))


def _year_first(text: str) -> str | None:
    match = _YEAR_FIRST.fullmatch(text)
    return match and _dated(match[1], match[2], match[3], _clock(match))


def _month_year(text: str) -> str | None:
    match = _MONTH_YEAR.fullmatch(text)
    return match and f"{match[2] or match[3]}-{int(match[1] or match[4]):02}"


def _words(text: str) -> str | None:
    """A date with the name of a month."""
    if match := _DAY_IN_WORDS.fullmatch(text):
        day = _parsed(match["date"])
        return day and day + _clock(match)
    month = _parsed(text) if _MONTH_IN_WORDS.fullmatch(text) else None
    return month and month[:7]


def _short_words(text: str) -> str | None:
    match = _SHORT_WORDS.fullmatch(text)
    return match and _words(f"{match['date']}{_full_year(match['year'])}{match['clock']}")


def _parsed(text: str) -> str | None:
    """A date in words as an ISO day, the 1st if it has none; None if there is no such date."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    if not any(word in month for word in words for month in _OF_MONTH):
        return None
    try:
        found: datetime = _parser().parse(text, default=datetime(1000, 1, 1))
    except (ValueError, OverflowError):
        return None
    # What is not written comes from the default: so the numbers must be those of the text.
    written = sorted(map(int, re.findall("[0-9]+", text)))
    right = written in ([found.year], sorted([found.day, found.year]))
    return found.date().isoformat() if right else None


@cache
def _parser() -> Any:
    """What reads months by their names."""
    from dateutil import parser

    class Words(parser.parserinfo):  # type: ignore[misc]
        MONTHS = [tuple(words) for words in _OF_MONTH]
        JUMP = [*parser.parserinfo.JUMP, "de", "er", "º"]

    return parser.parser(Words())


def _quarter(text: str) -> str | None:
    match = _QUARTER.fullmatch(text)
    if match is None:
        return None
    year, part, number = next(
        (match[y], match[p], int(match[n]))
        for y, p, n in ((1, 2, 3), (6, 4, 5), (9, 8, 7))
        if match[y]
    )
    months = 3 if part in "qQ" else 6
    return f"{year}-{months * (number - 1) + 1:02}" if months * number <= 12 else None


def _seconds(text: str) -> str | None:
    match = _SECONDS.fullmatch(text)
    return match and f"{datetime.fromtimestamp(int(match[1]), UTC):%Y-%m-%dT%H:%M:%S}{match[2]}Z"


def _week(text: str) -> str | None:
    match = _WEEK.fullmatch(text)
    try:
        return (
            match
            and date.fromisocalendar(int(match[1]), int(match[2]), int(match[3] or 1)).isoformat()
        )
    except ValueError:
        return None


def _fiscal(text: str) -> str | None:
    match = _FISCAL.fullmatch(text)
    return match and f"{_full_year(match[1])}-##-##"


def _era(text: str) -> str | None:
    match = _ERA.fullmatch(text)
    year = match and int(match[1] or match[3])
    return f"{'-' if match and match[2] else ''}{year}-##-##" if year else None


def _about(text: str) -> str | None:
    match = _ABOUT.fullmatch(text)
    if match is None:
        return None
    time = match[1] or match[2]
    return f"{time}-##-##" if re.fullmatch("[0-9]{1,4}", time) else _era(time) or _words(time)


def _basic(text: str) -> str | None:
    match = _BASIC.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, zone = match.groups()
    clock = f"{hour}:{minute}" if second is None else f"{hour}:{minute}:{second}"
    return f"{year}-{month}-{day}T{clock}{zone or ''}"


def _whole(text: str) -> str | None:
    match = _WHOLE.fullmatch(text)
    return match and match[1]


NOTATIONS = (
    Notation("seconds since 1970; {time_format} reads them otherwise", _seconds),
    Notation("a whole number, as it is written among gaps", _whole),
    Notation("without separators, as ISO 8601 has it", _basic),
    Notation("year first; {time_format} reads them otherwise", _year_first),
    Notation("month and year; {time_format} reads them otherwise", _month_year),
    Notation("by the name of the month; {time_format} reads them otherwise", _words),
    Notation(
        "years of two digits are 1969 to 2068; {time_format} reads them otherwise", _short_words
    ),
    Notation("the month in which the quarter or half begins; {year} keeps the year", _quarter),
    Notation("the day on which the week begins; {year} keeps the year", _week),
    Notation("the year a fiscal year is called by; {unknown_time} makes one unknown", _fiscal),
    Notation("years before Christ are negative; {unknown_time} makes one unknown", _era),
    Notation("as if it were exact; {unknown_time} makes one unknown", _about),
)


@dataclass(frozen=True)
class DayMonth:
    """The order of day, month and year in a date of three numbers."""

    name: str
    order: str
    """The places of year, month and day, and directives of strptime."""

    def iso(self, text: str) -> str | None:
        """The ISO text of a text; None if there is no such date."""
        match = _DAY_MONTH.fullmatch(text)
        if match is None or (self.order[0] == "y" and (len(match[3]) > 2 or "." in text)):
            return None
        part = dict(zip(self.order, match.groups(), strict=False))
        return _dated(part["y"], part["m"], part["d"], _clock(match))

    def other(self) -> DayMonth:
        """The other order of day and month."""
        return ORDERS[self.name == "day first"]

    def is_short(self, text: str) -> bool:
        """Whether the year has two digits."""
        match = _DAY_MONTH.fullmatch(text)
        return match is not None and len(match[3]) == 2

    def strptime(self, text: str) -> str:
        """The format of strptime for a text."""
        match = _DAY_MONTH.fullmatch(text)
        assert match is not None
        full = "Y" if len(match[3]) == 4 else "y"
        date = [f"%{full if part == 'y' else part}" for part in self.order]
        first, second = text[match.end(1) : match.start(2)], text[match.end(2) : match.start(3)]
        clock = text[match.end(3) :]
        for directive in ("%I" if match["half"] else "%H", "%M", "%S"):
            clock = re.sub(r"(?<![%0-9.,])[0-9]{1,2}", directive, clock, count=1)
        clock = re.sub("(?i)[ap]m", "%p", re.sub("[.,][0-9]+", ".%f", clock))
        return f"{date[0]}{first}{date[1]}{second}{date[2]}{clock}"


ORDERS = (
    DayMonth("day first", "dmy"),
    DayMonth("month first", "mdy"),
    DayMonth("year first", "ymd"),
)


def is_day_month(text: str) -> bool:
    """Whether a text is a date of which one has to know whether the day or the month is first."""
    return any(order.iso(text) for order in ORDERS)


def is_time(text: str, ways: Sequence[Notation]) -> bool:
    """Whether a text is written in one of some ways; or as three numbers, where none was chosen."""
    return any(way.iso(text) for way in ways) or (ways is NOTATIONS and is_day_month(text))


def holds_times(text: str, ways: Sequence[Notation]) -> bool:
    """Whether a text is a time, a begin and an end, or several of these."""
    if not any(map(str.isdigit, text)):
        return False
    if is_time(text, ways) or (ways is NOTATIONS and _DATE.fullmatch(text)):
        return True
    parts = SEVERAL.split(text)
    if len(parts) > 1 and all(part and holds_times(part, ways) for part in parts):
        return True
    pairs = (pair for pair in begins_and_ends(text) if any(pair))
    return any(all(not half or holds_times(half, ways) for half in pair) for pair in pairs)


def begins_and_ends(text: str) -> list[tuple[str, str]]:
    """The begins and ends that a text may hold; what is empty is unknown."""
    pairs, text = [], _IN_BRACKETS.sub(r"\1", text)
    if match := _DECADE.fullmatch(text):
        year = int(match[1])  # the 1800s are a century, the 2000s ten years
        pairs.append((match[1], str(year + (99 if year % 100 == 0 and year < 2000 else 9))))
    if match := _CENTURY.fullmatch(text):
        last = 100 * int(match[1])
        pairs.append((str(last - 99), str(last)))
    if match := _SINCE.fullmatch(text):
        text = match[1] or match[2]
        pairs.append((text, ""))
    if match := _UNTIL.fullmatch(text):
        pairs.append(("", match[1]))
    dashes = [*_DASH.finditer(text)]
    for dash in dashes if len(dashes) <= _DASHES else ():
        begin, end = text[: dash.start()], text[dash.end() :]
        # else a date
        if "/" not in dash[0] or min(map(len, (begin, end))) >= 4 or OPEN_END.fullmatch(end):
            pairs.append(full_pair(begin, end))
    return pairs


def full_pair(begin: str, end: str) -> tuple[str, str]:
    """A begin and an end, with what is written only once: 1998-99, 49-44 BC.

    >>> full_pair("1998", "03"), full_pair("49", "44 BC"), full_pair("1991", "present")
    (('1998', '2003'), ('49 BC', '44 BC'), ('1991', ''))
    """
    if OPEN_END.fullmatch(end):
        end = ""
    if (first := re.search("[0-9]{4}$", begin)) and re.fullmatch("[0-9]{2}", end):
        year = int(first[0][:2] + end)
        end = str(year + 100 * (year < int(first[0])))
    if re.fullmatch("[0-9]+", begin) and (era := re.fullmatch(r"([0-9]+)( ?B\.? ?C.*)", end)):
        begin += era[2] if int(begin) >= int(era[1]) else ""
    return begin, end


def strptime_notation(format: str) -> Notation:
    """The notation of a format as strptime has it; a UsageError if it gives no date.

    >>> strptime_notation("%d/%m/%Y").iso("03/04/2019")
    '2019-04-03'
    """
    finest = _finest(format)

    def iso(text: str) -> str | None:
        try:
            found = datetime.strptime(text, format)
        except ValueError:
            return None
        if finest == "year":
            return f"{found.year:04}-##-##"
        date, _, clock = found.isoformat().partition("T")
        whole = clock[: _LENGTHS[finest]] if finest in ("hour", "minute") else clock
        offset = clock[8:].lstrip(".0123456789") if whole != clock else ""
        if finest in ("month", "day"):
            return date[:7] if finest == "month" else date
        return f"{date}T{whole}{offset}"

    return Notation(f"by the format {format}", iso)


def ways_of(format: str | None) -> Sequence[Notation]:
    """How times are written: by a format that was chosen, or in any way that is known."""
    return NOTATIONS if format is None else (strptime_notation(format),)


_LENGTHS = {"hour": 2, "minute": 5}


def _finest(format: str) -> str:
    """The finest unit that a format of strptime gives."""
    base = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)
    units = GRANULARITIES[YEAR:]
    try:
        text = base.strftime(format)
        given = [
            base.replace(**{unit: getattr(base, unit) + 7}).strftime(format) != text
            for unit in units
        ]
        read = datetime.strptime(text, format).replace(tzinfo=UTC)
    except ValueError as error:
        raise UsageError(f"time_format {format!r} cannot be used: {error}") from None
    count = given.index(False) if False in given else len(units)
    start = datetime(2001, 1, 1, tzinfo=UTC).replace(
        **{unit: getattr(base, unit) for unit in units[:count]}
    )
    if not count or any(given[count:]) or read != start:
        raise UsageError(
            f"time_format {format!r} does not give a date; it needs a year (%Y), and all units down"
            " to the finest, such as '%d/%m/%Y' or '%Y-%m'"
        )
    return units[count - 1]


def kinds_of_numbers(texts: pa.Array, rows: Ints) -> Counter[str]:
    """The number of rows of each kind of number, which says what `unit_of_numbers` makes of them.

    `rows` has the number of rows of each text. The counts of several parts can be added.
    """
    numbers, bare = _numbers(texts)
    # What may stand for no time says nothing, nor does a year.
    telling = bare & (numbers > 0) & ~_mask(texts, "^(9999|2999|3000)")
    telling &= (numbers < _FIRST) | (numbers > _LAST)
    kinds = {_TELLING: telling, _AS_DATES: telling & _are_dates(texts, numbers)}
    for said, unit in _UNITS.items():
        low, high = np.array(_EPOCH).astype(f"M8[{unit}]").astype(np.int64)
        kinds[said] = telling & (numbers >= low) & (numbers < high)
        # Nine digits alone may be anything.
        kinds[f"{said}, long"] = kinds[said] & (_digits(numbers) % 3 == 1)
    kinds[_NO_TIME] = _mask(texts, "^(0+|-1|9999)$")
    return Counter({kind: int(rows[mask].sum()) for kind, mask in kinds.items()})


def unit_of_numbers(kinds: Mapping[str, int]) -> str | None:
    """What numbers of these kinds are, if they can only be times; None if they may be any."""
    most = _NEARLY_ALL * kinds[_TELLING]
    if not most:
        return None
    if kinds[_AS_DATES] >= most:
        return _AS_DATES
    for said in _UNITS:
        if kinds[said] >= most and 2 * kinds[f"{said}, long"] >= kinds[_TELLING]:
            return said
    return None


def may_be_no_time(kinds: Mapping[str, int]) -> bool:
    """Whether 0, -1 or 9999 may stand for an unknown time, in times of these kinds."""
    others = any(kinds[name] for name in ("like a year", *GRANULARITIES[YEAR:]))
    small = kinds["step"] - kinds["like a year"] - kinds[_NO_TIME]
    return bool(kinds[_NO_TIME]) and others and small <= 0


def numbers_as_dates(texts: pa.Array, unit: str) -> tuple[Bools, pa.Array]:
    """Which texts are numbers of a unit, and their ISO texts."""
    numbers, bare = _numbers(texts)
    if unit == _AS_DATES:
        lengths = np.unique(_digits(numbers[bare & _are_dates(texts, numbers)]))
        chosen = bare & np.isin(pc.utf8_length(texts).to_numpy(), lengths)
        return chosen, _without_separators(texts.filter(pa.array(chosen)))
    dates = f"M8[{_UNITS[unit]}]"
    first, last = np.array(["1970-04-26", "9999-12-31T23:59:59"], dates).astype(np.int64)
    chosen = bare & (numbers > 0)
    numbers = numbers[chosen]
    isos = np.datetime_as_string(np.minimum(numbers, last).astype(dates)).tolist()
    slips = ((numbers < first) | (numbers > last)).tolist()
    told = zip(isos, slips, numbers.tolist(), strict=True)
    read = [f"not {unit}: {number}" if slip else f"{iso}Z" for iso, slip, number in told]
    return chosen, pa.array(read, pa.string())


def _numbers(texts: pa.Array) -> tuple[Ints, Bools]:
    """The numbers without a sign, 0 for other texts; and which they are."""
    bare = _mask(texts, "^[0-9]{1,18}$")
    numbers = pc.if_else(pa.array(bare), texts, "0").cast(pa.int64())
    return numbers.to_numpy(zero_copy_only=False), bare


def _are_dates(texts: pa.Array, numbers: Ints) -> Bools:
    year = numbers // 10 ** np.maximum(_digits(numbers) - 4, 0)
    dates: Bools = _mask(texts, _COMPACT) & (year >= _FIRST) & (year <= _LAST)
    return dates


def _digits(numbers: Ints) -> Ints:
    """The number of digits of positive numbers."""
    return np.searchsorted(10 ** np.arange(1, 19), numbers, side="right") + 1


def _without_separators(texts: pa.Array) -> pa.Array:
    for pattern, iso in (
        ("([0-9]{4})([0-9]{2})", r"\1-\2"),
        ("([0-9]{4})([0-9]{2})([0-9]{2})", r"\1-\2-\3"),
        ("([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})", r"\1-\2-\3T\4"),
        ("([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})", r"\1-\2-\3T\4:\5"),
        ("([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})", r"\1-\2-\3T\4:\5:\6"),
    ):
        texts = pc.replace_substring_regex(texts, f"^{pattern}$", iso)
    return texts


def _mask(texts: pa.Array, pattern: str) -> Bools:
    return np.asarray(pc.match_substring_regex(texts, pattern), bool)
