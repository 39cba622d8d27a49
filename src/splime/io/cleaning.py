"""Choices that are made for text files where their columns leave a doubt; each is remarked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splime.errors import DataError, UsageError, option
from splime.io.columns import EncodedColumn, RawFacts, encoded
from splime.io.ids import is_id
from splime.times import (
    DATES,
    GRANULARITIES,
    KNOWN,
    Bools,
    Granularity,
    Ints,
    When,
    format_ticks,
    is_unknown,
    parse_times,
    plain_text,
    tick_range,
)

_NEARLY_ALL = 0.9
_LENGTHS: Mapping[str, tuple[Granularity, int]] = {
    "year": ("month", 12),
    "month": ("month", 1),
    "week": ("day", 7),
    "day": ("day", 1),
    "hour": ("hour", 1),
    "minute": ("minute", 1),
    "second": ("second", 1),
}
"""The unit in which a length is added, and how many of it."""


def without_constant_end(raws: Sequence[RawFacts]) -> list[RawFacts]:
    """Leave a fifth column out that is the same number everywhere, and before the begins.

    Many benchmarks write quadruples as `s r o t 0`. A number that nearly all rows have is only
    mentioned.
    """
    suspects = [raw for raw in raws if raw.is_text and raw.header is None and len(raw.times) == 2]
    suspects = [raw for raw in suspects if raw.halves is None and len(raw.times[1].values)]
    rows, empty = sum(raw.rows for raw in suspects), 0
    common = Counter[str]()
    for raw in suspects:
        values, counts = raw.times[1].values, raw.times[1].counts()
        most = int(counts.argmax())
        common[values[most].as_py().strip()] += int(counts[most])
        empty += int(counts[pc.equal(values, "").to_numpy(zero_copy_only=False)].sum())
    end, count = common.most_common(1)[0] if common else ("", 0)
    if count < max(2, _NEARLY_ALL * rows) or not re.fullmatch("[+-]?[0-9]{1,18}", end):
        return list(raws)
    later = 0  # how many more begins lie after the number than before it
    for raw in suspects:
        begin = raw.times[0]
        # Years are enough to compare dates, and numbers stay themselves.
        parsed = parse_times(begin.values, granularity="year")
        counts = begin.counts() * (parsed.state == KNOWN)
        later += int((counts * np.sign(parsed.ticks - int(end))).sum())
    if later <= 0:
        return list(raws)

    def checked(raw: RawFacts) -> RawFacts:
        if count + empty == rows:
            or_empty = " or empty" if empty else ""
            remark = f"the fifth column is always {end}{or_empty} and was left out"
            return replace(raw, times=raw.times[:1]).remarked(remark)
        return raw.remarked(
            f"the fifth column is {end} in {count:,} of {rows:,} rows, and was read as the end;"
            f" {option('columns', [1, 2, 3, 4])} leaves it out"
        )

    return [checked(raw) if any(raw is other for other in suspects) else raw for raw in raws]


def doubt_columns(raws: Sequence[RawFacts]) -> list[RawFacts]:
    """Remark where files have other columns than the first, or the third may be the predicate."""
    plain = [raw for raw in raws if raw.is_text and raw.header is None]
    if not plain:
        return list(raws)
    first = plain[0]
    columns = [(raw.names[1], raw.names[2]) for raw in plain]
    swapped = []
    # Else as usual; the sets would be large.
    if any(len(predicates.values) > 2 * len(objects.values) for predicates, objects in columns):
        second, third = ({id for pair in columns for id in pair[at].used()} for at in (0, 1))
        if len(second) > 2 * len(third) and all(map(is_id, second | third)):
            swapped.append(
                f"the second column, with {len(second):,} different ids, was taken for the"
                f" predicate, and the third, with {len(third):,}, for the object; if it is the"
                f" other way around: {option('columns', [1, 3, 2, 4])}"
            )

    def remarks(raw: RawFacts) -> list[str]:
        if not raw.is_text or raw.header is not None:
            return []
        if len(raw.times) == len(first.times):
            return swapped
        here, there = 3 + len(raw.times), 3 + len(first.times)
        return [f"it has {here} columns of facts, but {first.name} has {there}", *swapped]

    return [raw.remarked(*remarks(raw)) for raw in raws]


def date_numbers(raws: Sequence[RawFacts], unit: Granularity, origin: When) -> list[RawFacts]:
    """Turn numbers of units since the origin into dates."""
    first = tick_range(origin, unit)[0]

    def dated(raw: RawFacts, column: EncodedColumn) -> EncodedColumn:
        texts = [value.strip() for value in column.strings.to_pylist()]
        ticks = np.full(len(texts), first, np.int64)
        for code, text in enumerate(texts):
            if re.fullmatch("[+-]?[0-9]{1,12}", text):
                ticks[code] += int(text)
            elif text.strip("-#"):
                where = raw.locate([column.first_row(code)])[0]
                raise DataError(
                    f"{where}: {text!r} is not a number of {unit}s since {origin}; leave"
                    " `origin` out where times are dates"
                )
        dates = zip(format_ticks(ticks, unit), texts, strict=True)
        known = [date if text.strip("-#") else "" for date, text in dates]
        return column.with_values(pa.array(known, pa.string()))

    return [replace(raw, times=[dated(raw, column) for column in raw.times]) for raw in raws]


def with_ends(raws: Sequence[RawFacts], duration: str) -> list[RawFacts]:
    """The same facts, where the end is the begin and a length that stands in its place."""
    for raw in raws:
        if len(raw.times) == 1:
            raise UsageError(
                f"{raw.name}: duration is the unit of lengths in the place of ends, but there is"
                " one column of times; name 5 columns with `columns`: subject, predicate, object,"
                " begin, length"
            )
    begins = [raw.times[0] for raw in raws]
    weights = np.concatenate([column.counts() for column in begins])
    parsed = parse_times(pa.concat_arrays([one.strings for one in begins]), weights=weights)
    if parsed.granularity == "step":
        raise UsageError(
            f"{raws[0].name}: begins are numbers of an unknown unit, to which no {duration} can be"
            " added; make dates of them with `granularity` and `origin`"
        )
    stops = np.cumsum([len(column.values) for column in begins])[:-1]
    known = parsed.state == KNOWN
    parts = zip(np.split(parsed.ticks, stops), np.split(known, stops), strict=True)
    unit = duration.removesuffix("s")
    return [
        _with_end(raw, ticks, known, parsed.granularity, unit)
        for raw, (ticks, known) in zip(raws, parts, strict=True)
    ]


def _with_end(
    raw: RawFacts, ticks: Ints, known: Bools, granularity: Granularity, unit: str
) -> RawFacts:
    """The end of each pair of begin and length; it is unknown if one of them is."""
    begin, length = raw.times
    texts = plain_text(length.values)
    whole = pc.match_substring_regex(texts, r"^[0-9]{1,9}(\.0+)?$")
    numbers = pc.if_else(whole, pc.replace_substring_regex(texts, r"\..*", ""), "0")
    none = is_unknown(texts)
    of_rows = begin.all_codes().astype(np.int64) * (len(texts) + 1) + length.all_codes()
    of_rows[(begin.all_codes() < 0) | (length.all_codes() < 0)] = -1
    pairs, codes = np.unique(of_rows, return_inverse=True)
    begins, lengths = np.divmod(np.maximum(pairs, 0), len(texts) + 1)
    count = numbers.cast(pa.int64()).to_numpy(zero_copy_only=False)
    ends = _later(ticks[begins], granularity, count[lengths], unit)
    wrong = ~np.asarray(whole, bool) & ~none
    made = [
        f"not a length: {text}" if bad else "" if unknown else end
        for end, text, bad, unknown in zip(
            ends,
            texts.take(pa.array(lengths)).to_pylist(),
            wrong[lengths].tolist(),
            (none[lengths] | ~known[begins] | (pairs < 0)).tolist(),
            strict=True,
        )
    ]
    end = encoded(codes, pa.array(made, pa.string()))
    return replace(raw, times=[begin, end], written=raw.written or raw.times)


def _later(ticks: Ints, granularity: Granularity, counts: Ints, unit: str) -> list[str]:
    """Ticks and so many years, days, … as text; the 31st and a month is the last of the next."""
    step, times = _LENGTHS[unit]
    counts = counts * times
    starts = (ticks - 1970 if granularity == "year" else ticks).astype(DATES[granularity])
    finest: Granularity = max(granularity, step, key=GRANULARITIES.index)
    if unit == "year" and granularity == "year":
        finest = "year"
    if step != "month":
        ends = starts.astype(DATES[finest]) + counts.astype(DATES[step].replace("M8", "m8"))
    else:
        months, days = starts.astype("M8[M]") + counts, starts.astype("M8[D]")
        day = days - starts.astype("M8[M]").astype("M8[D]")
        first = months.astype("M8[D]")
        last = (months + 1).astype("M8[D]") - first - 1
        ends = (first + np.minimum(day, last)).astype(DATES[finest])
        if finest in ("hour", "minute", "second"):
            ends += starts - days
    if finest == "year":
        return [str(year) for year in (ends.astype(np.int64) + 1970).tolist()]
    return [str(text) for text in np.datetime_as_string(ends).tolist()]


def without_times(raw: RawFacts, unknown: Collection[str]) -> RawFacts:
    """The same facts, where some texts stand for an unknown time."""
    times = [
        column.mapped(lambda text: "" if text.strip(' \t"') in unknown else text)
        for column in raw.times
    ]
    return replace(raw, times=times, written=raw.written or raw.times)
