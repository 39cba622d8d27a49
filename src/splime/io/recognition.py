"""How the times of all sources are written, decided together; then they are ISO text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splime.errors import DataError, UsageError, counted, option
from splime.io.cleaning import with_ends
from splime.io.columns import EncodedColumn, RawFacts, encoded
from splime.io.notations import (
    MARK,
    OPEN_END,
    ORDERS,
    SEVERAL,
    DayMonth,
    Notation,
    begins_and_ends,
    full_pair,
    holds_times,
    is_day_month,
    is_time,
    kinds_of_numbers,
    numbers_as_dates,
    unit_of_numbers,
    ways_of,
)
from splime.io.options import ReadOptions
from splime.times import STRAY_SHARE, Bools, Ints, is_iso, is_unknown, plain_text

_NO_DATE = r"^0{1,4}[-/.]0{1,2}[-/.]0{1,4}([T ][0:.]+Z?)?$"
_SHORT_DATE = r"^[0-9]{2}-[0-9]{2}-[0-9]{2}([T ].*)?$"
_LIKE_MONTH = "^([0-9]{1,4}-|[0-9]{4}/)[0-9]{2}$"
_NO_MONTH = "^([0-9]{1,4}-|[0-9]{4}/)(00|1[3-9]|[2-9][0-9])$"
_NEARLY_ALL = 0.9
_SPANS = 0.1  # of the rows must be intervals, where a cell may also be a month


def keep() -> str:
    """What keeps a time that was taken for an unknown one."""
    return f"{option('unknown_time', '')} keeps it as it is"


class _Times:
    """The different texts of a column of times, and what they are read as."""

    def __init__(self, column: EncodedColumn) -> None:
        self.column = column
        self.rows: Ints = column.counts()
        self.written = self.texts = plain_text(column.values)
        self._unread: dict[str, int] | None = None

    def replace(self, old: pa.Array, new: pa.Array) -> None:
        """Put other texts in the place of some."""
        at = pc.index_in(self.texts, value_set=old)
        if at.null_count < len(at):
            self.texts = pc.coalesce(new.take(at), self.texts)
            self._unread = None

    @property
    def unread(self) -> Mapping[str, int]:
        """The texts that are no ISO text, and the number of rows of each."""
        if self._unread is None:
            self._unread = self.where(~is_iso(self.texts))
        return self._unread

    def where(self, mask: Bools) -> dict[str, int]:
        """Some of the texts, and the number of rows of each."""
        total = Counter[str]()
        for text, rows in zip(
            self.texts.filter(pa.array(mask)).to_pylist(), self.rows[mask].tolist(), strict=True
        ):
            total[text] += rows
        return total

    def matching(self, pattern: str) -> dict[str, int]:
        """The texts that match, and the number of rows of each."""
        return self.where(np.asarray(pc.match_substring_regex(self.texts, pattern), bool))

    @property
    def known(self) -> dict[str, int]:
        """The texts that do not say that the time is unknown, and the number of rows of each."""
        return self.where(~is_unknown(self.texts))

    def encoded(self) -> EncodedColumn:
        """The column as it is read."""
        same = self.texts is self.written
        return self.column if same else self.column.with_values(self.texts)


class Recognition:
    """The columns of times of all sources while it is found out how they are written."""

    def __init__(self, raws: Sequence[RawFacts], options: ReadOptions) -> None:
        self.format, self.options = options.time_format, options
        self.ways = ways_of(self.format)
        self.raws = raws = [_one_time_a_row(raw, self.ways) for raw in raws]
        # A length in the place of the end is no time.
        stop = None if options.duration is None else 1
        self.columns = [[_Times(column) for column in raw.times[:stop]] for raw in raws]
        self.remarks: list[str] = []

    def iso(self, *, numbers: bool = True) -> list[RawFacts]:
        """The sources, whose times are ISO text as far as they can be read.

        Without `numbers`, bare numbers stay what they are.
        """
        self._without_marks()
        self._split_cells()
        self._open_ends()
        if self.options.unknown_time is None:
            self._no_dates()
        self._read_texts()
        if self.format is None:
            self._order_days()
            if numbers:
                self._read_numbers()
            self._check_lengths()
        return [
            self._changed(raw, columns).remarked(*self.remarks)
            for raw, columns in zip(self.raws, self.columns, strict=True)
        ]

    def _changed(self, raw: RawFacts, columns: list[_Times]) -> RawFacts:
        if all(times.texts is times.written for times in columns):
            return raw
        times = [*(times.encoded() for times in columns), *raw.times[len(columns) :]]
        return replace(raw, times=times, written=raw.written or raw.times)

    @property
    def _all(self) -> list[_Times]:
        return [times for columns in self.columns for times in columns]

    @property
    def _rows(self) -> int:
        return int(sum(times.rows.sum() for times in self._all))

    def _replace(self, readings: Mapping[str, str], among: Sequence[_Times] | None = None) -> None:
        if readings:
            old, new = pa.array(readings, pa.string()), pa.array(readings.values(), pa.string())
            for times in self._all if among is None else among:
                times.replace(old, new)

    def _told(self, example: str, iso: str, said: str) -> None:
        shown = iso.removesuffix("-##-##")
        said = said.format(
            time_format=option("time_format", "FORMAT"),
            unknown_time=option("unknown_time", example),
            year=option("granularity", "year"),
        )
        self.remarks.append(f"times such as {example!r:.60} are read as {shown}: {said}")

    def _unread(self, among: Sequence[_Times]) -> Counter[str]:
        """What is to be read: all texts if there is a format, else those that are no ISO text."""
        if self.format is None:
            return _sum(times.unread for times in among)
        return _sum(times.known for times in among)

    def _without_marks(self) -> None:
        """Leave the marks of footnotes out."""
        if marked := _sum(times.matching(MARK) for times in self._all):
            self.remarks.append(
                f"marks behind times are left out, as of {next(iter(marked))!r:.60}"
            )
            self._replace({text: re.sub(MARK, "", text) for text in marked})

    def _split_cells(self) -> None:
        """Make begin and end of cells that hold both; in a column of begins, the begin."""
        cells = [text for text in self._unread(self._all) if not is_time(text, self.ways)]
        pairs = {text: begins_and_ends(text) for text in cells}
        halves = {half for each in pairs.values() for pair in each for half in pair}
        usable = self._readable(halves)
        spans = {
            text: good[0]
            for text, each in pairs.items()
            if len(good := [pair for pair in {*each} if usable.issuperset(pair)]) == 1
        }
        singles = [
            columns
            for raw, columns in zip(self.raws, self.columns, strict=True)
            if len(raw.times) == 1
        ]
        if self.format is None:
            among = [times for (times,) in singles]
            spans |= self._short_spans(among, told=bool(spans))
        if not spans:
            return
        self.remarks.append(f"cells such as {next(iter(spans))!r:.60} hold a begin and an end")
        for columns in singles:
            columns.append(copy(columns[0]))
        for columns in self.columns:
            for times, side in zip(columns, (0, 1), strict=False):
                self._replace({text: span[side] for text, span in spans.items()}, [times])

    def _readable(self, texts: Collection[str]) -> set[str]:
        """Those of some texts that are times or stand for an unknown one."""
        listed = list(texts)
        array = pa.array(listed, pa.string())
        known = is_unknown(array) if self.format else is_iso(array)
        return {
            text
            for text, fine in zip(listed, known.tolist(), strict=True)
            if fine or OPEN_END.fullmatch(text) or is_time(text, self.ways)
        }

    def _short_spans(self, among: Sequence[_Times], *, told: bool) -> dict[str, tuple[str, str]]:
        """Cells like 1998-99, which are intervals if many of them cannot be months."""
        impossible = _sum(times.matching(_NO_MONTH) for times in among)
        if impossible.total() and impossible.total() >= _SPANS * self._rows:
            cells = _sum(times.matching(_LIKE_MONTH) for times in among)
            return {text: full_pair(*re.split("[-/]", text)) for text in cells}
        if told and (months := _sum(times.matching("^[0-9]{4}-[0-9]{2}$") for times in among)):
            month = next(iter(months))
            self.remarks.append(
                f"{month!r} is read as a month, not as {' to '.join(full_pair(*month.split('-')))}"
            )
        return {}

    def _open_ends(self) -> None:
        """Leave words such as `present` out where an end should be."""
        ends = [columns[1] for columns in self.columns if len(columns) == 2]
        words = [text for text in self._unread(ends) if OPEN_END.fullmatch(text)]
        if words:
            self.remarks.append(f"ends such as {', '.join(map(repr, words[:4]))} are open")
            self._replace(dict.fromkeys(words, ""), ends)

    def _no_dates(self) -> None:
        """Take 0000-00-00 for an unknown time."""
        texts = _sum(times.matching(_NO_DATE) for times in self._all)
        if texts:
            self._tell_unknown(texts)

    def _tell_unknown(self, texts: Mapping[str, int]) -> None:
        listed = [f"{text!r} ({counted(rows, 'time')})" for text, rows in texts.items()]
        self.remarks.append(f"{', '.join(listed[:4])} stands for an unknown time; {keep()}")
        self._replace(dict.fromkeys(texts, ""))

    def _read_texts(self) -> None:
        """Read what is written in one of the ways that a text shows by itself."""
        readings: dict[str, str] = {}
        left = list(self._unread(self._all))
        for way in self.ways:
            found = {text: iso for text in left if (iso := way.iso(text)) is not None}
            if found:
                self._told(*next(iter(found.items())), way.said)
                left = [text for text in left if text not in found]
                readings |= found
        if self.format is not None:
            readings |= {text: f"not {self.format}: {text}" for text in left}
        self._replace(readings)

    def _order_days(self) -> None:
        """Find out whether the day or the month is first in dates of three numbers."""
        rows = Counter(
            {text: n for text, n in self._unread(self._all).items() if is_day_month(text)}
        )
        short = _sum(times.matching(_SHORT_DATE) for times in self._all)
        if 2 * short.total() > self._rows:  # else a stray of the year 12
            rows += Counter({text: n for text, n in short.items() if is_day_month(text)})
        if not rows or rows.total() < STRAY_SHARE * self._rows:
            return
        readings = {
            order: {text: iso for text in rows if (iso := order.iso(text)) is not None}
            for order in ORDERS
        }
        most = (1 - STRAY_SHARE) * rows.total()
        fitting = [o for o in ORDERS if sum(rows[text] for text in readings[o]) >= most]
        if not fitting or any(readings[one] != readings[fitting[0]] for one in fitting):
            raise self._undecided(rows, fitting)
        order = fitting[0]
        example = next(iter(readings[order]))
        years = "; years of two digits are 1969 to 2068" if order.is_short(example) else ""
        other = order.other()
        how = option("time_format", other.strptime(example)).replace("{", "{{").replace("}", "}}")
        said = f"{order.name}{years}; {how} reads the {other.name}"
        self._told(example, readings[order][example], said)
        self._replace(readings[order])

    def _undecided(self, rows: Mapping[str, int], fitting: Sequence[DayMonth]) -> DataError:
        """What to say of dates that do not show whether the day or the month is first."""
        # One that can be read in several orders; where they contradict each other, any.
        orders = fitting or ORDERS[:2]
        example = max(rows, key=lambda text: sum(order.iso(text) is not None for order in orders))
        where = self._place(example, self._all)
        formats = [f"{option('time_format', one.strptime(example))} ({one.name})" for one in orders]
        does = "do not say" if fitting else "contradict each other about"
        return DataError(
            f"{where}: dates such as {example!r} {does} whether the day or the month comes first;"
            f" choose {' or '.join(formats)}"
        )

    def _place(self, text: str, among: Collection[_Times]) -> str:
        """Where a text stands first in some columns."""
        return next(
            raw.locate([times.column.first_row(times.texts.index(text).as_py())])[0]
            for raw, columns in zip(self.raws, self.columns, strict=True)
            for times in columns
            if times in among and times.texts.index(text).as_py() >= 0
        )

    def _read_numbers(self) -> None:
        """Read numbers as dates where they can be nothing else."""
        pool = pa.concat_arrays([times.texts for times in self._all]).dictionary_encode()
        rows = np.concatenate([times.rows for times in self._all])
        texts = pool.dictionary
        rows = np.bincount(pool.indices.to_numpy(), rows, len(texts)).astype(np.int64)
        unit = unit_of_numbers(kinds_of_numbers(texts, rows))
        if unit is not None:
            chosen, isos = numbers_as_dates(texts, unit)
            old = texts.filter(pa.array(chosen))
            at = int(rows[chosen].argmax())
            said = f"{unit}; {option('granularity', 'step')} reads them as numbers"
            self._told(old[at].as_py(), isos[at].as_py(), said)
            for times in self._all:
                times.replace(old, isos)
        if self.options.unknown_time is None:
            self._no_dates()  # 00000000 is one by now
            self._zeros()

    def _zeros(self) -> None:
        """Take 0 and -1 for an unknown time among dates and years, and 9999 among dates."""
        zeros = _sum(times.matching("^(0+|-1|9999)$") for times in self._all)
        if not zeros:
            return
        numbers = _sum(times.matching("^-?[0-9]{1,18}$") for times in self._all)
        years = sorted({int(text) for text in numbers} - {0, -1, 9999})
        if years and not 1000 <= years[0] <= years[-1] < 3000:
            return
        # Steps begin at 0, too, but not with a gap behind it that is longer than all others.
        steps = len(years) < 3 or years[0] <= years[-1] - years[0]
        if not steps or _sum(times.matching("^[+-]?[0-9]+-") for times in self._all):
            self._tell_unknown(zeros)

    def _check_lengths(self) -> None:
        """An error if small numbers stand in the place of ends, and dates in that of begins."""
        pairs = [columns for columns in self.columns if len(columns) == 2]
        begins, ends = [begin for begin, _ in pairs], [end for _, end in pairs]
        lengths = _sum(times.matching("^[0-9]{1,3}$") for times in ends)
        if not lengths or lengths.total() < _NEARLY_ALL * _sum(t.known for t in ends).total():
            return
        dates = _sum(times.matching("^[+-]?[0-9]+-[0-9]{2}") for times in begins)
        if dates and dates.total() >= _NEARLY_ALL * _sum(t.known for t in begins).total():
            text = next(iter(lengths))
            raise DataError(
                f"{self._place(text, ends)}: {text!r} stands where the end should be, and the begin"
                f" is a date such as {next(iter(dates))}; if it is a length, name its unit:"
                f" {option('duration', 'days')}"
            )


def _sum(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    total = Counter[str]()
    for each in counts:
        total.update(each)
    return total


def times_as_iso(raws: Sequence[RawFacts], options: ReadOptions) -> list[RawFacts]:
    """The same facts, whose times are ISO text wherever it can be told how they are written."""
    raws = [_opened(raw, options.since) for raw in raws]
    if options.origin is None and (options.granularity != "step" or options.time_format):
        raws = Recognition(raws, options).iso()
    return raws if options.duration is None else with_ends(raws, options.duration)


def _one_time_a_row(raw: RawFacts, ways: Sequence[Notation]) -> RawFacts:
    """Facts whose one column of times has several in a cell, as a row for each of them."""
    column, *others = raw.times
    texts = plain_text(column.values)
    may = pc.any(pc.match_substring_regex(texts, SEVERAL.pattern)).as_py()
    if not may or any(other.missing < other.rows for other in others):
        return raw
    listed = texts.to_pylist()
    parts = [
        SEVERAL.split(text) if not is_time(text, ways) and holds_times(text, ways) else [text]
        for text in listed
    ]
    counts = np.array([*map(len, parts), 1])  # the last is that of a missing value
    if counts.max() == 1:
        return raw
    codes = column.all_codes()
    rows = np.repeat(np.arange(column.rows), counts[codes])
    first, last = np.cumsum(counts) - counts, np.cumsum(counts[codes])
    within = np.arange(len(rows)) - (last - counts[codes])[rows]
    values = pa.array([part for each in parts for part in each], pa.string())
    made = encoded(np.where(codes < 0, -1, first[codes])[rows] + within, values)
    taken, several = raw.take(rows), listed[int(counts.argmax())]
    said = f"cells such as {several!r:.60} hold several times, each of which is a fact"
    times = [made.with_values(values), *taken.times[1:]]
    return replace(taken, times=times, written=taken.written or taken.times).remarked(said)


def _opened(raw: RawFacts, since: bool | None) -> RawFacts:
    """Facts whose one time is their begin, with an unknown end."""
    if since is not None and len(raw.times) == 2:
        raise UsageError(
            f"{raw.name}: since says whether the one column of times holds begins; there is a"
            " column of ends, too"
        )
    if not (raw.begins if since is None else since) or len(raw.times) == 2:
        return raw
    nothing = encoded(np.full(raw.rows, -1), pa.array([], pa.string()))
    called = raw.columns[-1] if raw.columns else "since"
    said = (
        f"facts have a begin and no known end, as the column is called {called};"
        f" {option('since', False)} makes instants of them"
    )
    remarks = [said] if since is None else []
    return replace(raw, times=[raw.times[0], nothing]).remarked(*remarks)
