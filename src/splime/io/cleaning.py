"""Choices that are made for text files where their columns leave a doubt; each is remarked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splime.errors import DataError
from splime.io.columns import EncodedColumn, RawFacts
from splime.io.ids import is_id
from splime.times import KNOWN, Granularity, When, format_ticks, parse_times, tick_range

_NEARLY_ALL = 0.9


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
            " --columns 1,2,3,4 leaves it out"
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
                " other way around: --columns 1,3,2,4"
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


def without_times(raw: RawFacts, unknown: Collection[str]) -> RawFacts:
    """The same facts, where some texts stand for an unknown time."""
    times = [
        column.mapped(lambda text: "" if text.strip(' \t"') in unknown else text)
        for column in raw.times
    ]
    return replace(raw, times=times, written=raw.written or raw.times)
