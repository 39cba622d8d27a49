"""From text columns to a graph: names to ids, times to ticks, and an account of every row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from splime.arrays import distinct, grouped, repeated
from splime.errors import DataError, counted, option
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, SPLITS, Facts, SplitName, TemporalGraph
from splime.io.columns import EXAMPLES, UNTIL, Account, EncodedColumn, RawFacts, all_remarks
from splime.io.options import OWN_BEGIN, OWN_END, ReadOptions
from splime.io.placeholders import placeholders
from splime.io.recognition import keep
from splime.io.since_until import pair
from splime.reading import (
    DUPLICATE,
    END_BEFORE_BEGIN,
    EVENT_WITHOUT_TIME,
    FACT_WITHOUT_TIME,
    NAMELESS,
    UNREADABLE_TIME,
    Reading,
)
from splime.timeline import Timeline
from splime.times import (
    KNOWN,
    NOT_A_TIME,
    REASONS,
    UNKNOWN,
    Bools,
    Granularity,
    Ints,
    ParsedTimes,
    format_ticks,
    parse_times,
    tick_range,
)
from splime.vocabulary import Vocabulary

RowsBySplit: TypeAlias = Sequence[tuple[SplitName, Bools | None]]
"""The rows of each split that a source has; None stands for all of its rows."""

_BOTH_UNKNOWN = BEGIN_UNKNOWN | END_UNKNOWN
# What numbers with a common step often are: days in hours, quarters of an hour in minutes, …
_USUAL_STEPS = {24: "hour", 15: "minute", 60: "minute", 3_600: "second", 86_400: "second"}
_SERIAL = 20_000, 60_000  # the days of 1954 to 2064, as spreadsheets count them
_DAY_FIRST = "^(?:(?:0[1-9]|[12][0-9]|3[01])(?:0[1-9]|1[0-2])(?:19|20)[0-9]{2})?$"
_STEPS = 4  # so many of them, between different times, may show a common one
_TRIED = 1000
_NO_NAMES = {"n/a", "#n/a", "null", "none", "nan", "unknown", "-", "?", "(blank)", "(null)"}
_BLOCK = 1 << 20
_KEYS = 1 << 15  # rows whose keys fit into the cache
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, so that multiplying loses nothing


def assemble(raws: Sequence[RawFacts], options: ReadOptions, *, name: str = "") -> TemporalGraph:
    """Build a graph from facts as they were read, which are used up by it.

    An unknown begin or end becomes `first` or `last`, by default the first or last time of all
    facts; "end" and "begin" are the fact's own. Facts without a split are put into train.
    """
    if (name_for_missing := options.missing_name) is not None:
        raws = [
            replace(raw, names=[column.named(name_for_missing) for column in raw.names])
            for raw in raws
        ]
    entities = _vocabulary("entity", [raw.names[at] for raw in raws for at in (0, 2)])
    predicates = _vocabulary("predicate", [raw.names[1] for raw in raws])
    all_spans, unit, step, remarks = _parse_spans(raws, options)
    if options.missing_name is None:
        remarks += _odd_names(entities)
    raws = [raw.remarked(*remarks) for raw in raws]
    accounts = [_without_nameless(raw) for raw in raws]
    limits = _limits(accounts, all_spans, unit, step, options)

    facts: dict[SplitName, list[Facts]] = {split: [] for split in SPLITS}
    emptied = []
    for raw, spans, account in zip(raws, all_spans, accounts, strict=True):
        by_split = _rows_by_split(raw)
        spans.join(account)
        spans.settle(limits, account, options, by_split)
        of_source = _facts(raw, spans, entities, predicates)
        for split, rows in by_split:
            chosen = account.kept if rows is None else account.kept & rows
            if rows is not None and rows.any() and not chosen.any():
                emptied.append(split)
            kept = of_source if chosen.all() else of_source.take(chosen)
            again = np.zeros(len(kept), bool) if options.keep_duplicates else repeats(kept)
            if again.any():
                at = np.flatnonzero(chosen)[again]
                first = at[:EXAMPLES].tolist()
                # The columns of names are given up by now.
                ids = zip(*(column[first] for column in of_source.columns()[:3]), strict=True)
                texts = [
                    (entities[s], predicates[p], entities[o], *times)
                    for (s, p, o), times in zip(ids, raw.times_of(first), strict=True)
                ]
                account.record(DUPLICATE, at, texts=texts)
                kept = kept.take(~again)
            facts[split].append(kept)
        for column in (*raw.times, *raw.written):
            column.free()

    joined = train, valid, test = [Facts.concat(facts[split]) for split in SPLITS]
    reading = Reading(
        tuple(account.source() for account in accounts),
        tuple(example for account in accounts for example in account.examples()),
        all_remarks(raws),
        emptied=tuple(emptied),
    )
    ticks = np.concatenate([_distinct(of_split) for of_split in joined])
    if not len(ticks):
        reasons = ", ".join(f"{count:,} × {reason}" for reason, count in reading.dropped.items())
        raise DataError(f"no facts are left: {reasons}; first example: {reading.examples[0]}")
    timeline = Timeline.of(ticks, unit)
    graph = TemporalGraph(train, valid, test, entities, predicates, timeline, reading, name)
    return graph.compact()


def _vocabulary(kind: str, columns: list[EncodedColumn]) -> Vocabulary:
    labels = [column.values.cast(pa.large_string()).drop_null() for column in columns]
    return Vocabulary(pa.concat_arrays(labels), kind=kind)


def _without_nameless(raw: RawFacts) -> Account:
    """The account of a source, in which rows without a name are dropped."""
    account = Account(raw)
    for column in raw.names:
        if (absent := column.nameless()) is not None:
            account.record(NAMELESS, np.flatnonzero(absent & account.kept))
    return account


def _facts(raw: RawFacts, spans: RowSpans, entities: Vocabulary, predicates: Vocabulary) -> Facts:
    """The integer columns; those of names are given up one by one, to save memory."""
    ids = []
    for column, vocabulary in zip(raw.names, (entities, predicates, entities), strict=True):
        ids.append(column.lookup(vocabulary.ids(column.values)))
        column.free()
    subject, predicate, object = ids
    return Facts.owning(subject, predicate, object, spans.begin, spans.end, spans.unknown)


def _limits(
    accounts: Sequence[Account],
    all_spans: Sequence[RowSpans],
    granularity: Granularity,
    step: int,
    options: ReadOptions,
) -> tuple[int, int]:
    """The ticks that unknown begins and ends become."""
    ticks = [
        tick
        for spans, account in zip(all_spans, accounts, strict=True)
        for tick in spans.extremes(options, account.kept)
    ]
    if not ticks:
        raws = [account.raw for account in accounts]
        names = ", ".join(raw.name for raw in raws)
        if not any(account.kept.any() for account in accounts):
            raise DataError(
                f"{names}: {NAMELESS} in every row; every fact needs a subject, a predicate and an"
                f" object. Other columns can be chosen with {option('columns', 'A,B,…')}"
            )
        fact = " | ".join(raws[0].texts([0])[0])
        raise DataError(
            f"{names}: no fact has a usable time, all are unknown, unreadable or end before they"
            f" begin; the first one reads {fact!r}. Other columns can be chosen with"
            f" {option('columns', 'A,B,…')}, and {option('time_format', 'FORMAT')} says how times"
            " are written, such as '%d/%m/%Y'"
        )
    first, last = options.first, options.last
    return (
        min(ticks) if first in (None, OWN_END) else tick_range(first, granularity)[0] // step,
        max(ticks) if last in (None, OWN_BEGIN) else tick_range(last, granularity)[1] // step,
    )


class RowSpans:
    """The begin and end of every row of one source."""

    def __init__(self, raw: RawFacts, times: Sequence[ParsedTimes]) -> None:
        self.raw = raw
        self._columns = list(zip(raw.times, times, strict=True))
        ticks: list[Ints] = [column.lookup(parsed.ticks) for column, parsed in self._columns]
        self.begin, self.end = ticks[0], ticks[-1]
        self.unknown = np.zeros(raw.rows, np.uint8)
        self.readable: Bools | None = None  # None: all of them
        bits = (BEGIN_UNKNOWN, END_UNKNOWN) if len(self._columns) == 2 else (_BOTH_UNKNOWN,)
        for (column, parsed), bit in zip(self._columns, bits, strict=True):
            if column.missing or (parsed.state == UNKNOWN).any():
                table = np.where(parsed.state == UNKNOWN, bit, 0).astype(np.uint8)
                self.unknown |= column.lookup(table, missing=bit)
            if (parsed.state > UNKNOWN).any():
                fine: Bools = column.lookup(parsed.state <= UNKNOWN, missing=True)
                self.readable = fine if self.readable is None else self.readable & fine

    def extremes(self, options: ReadOptions, kept: Bools) -> list[int]:
        """The first and last known begin, and end, of the rows that can stay."""
        extremes = []
        for ticks, bit in ((self.begin, BEGIN_UNKNOWN), (self.end, END_UNKNOWN)):
            good = (self.unknown & bit == 0) & kept
            if self.readable is not None:
                good &= self.readable
            if options.end_before_begin in (None, "drop", "repair"):
                # A row whose end lies before its begin must not stretch the timeline; a repaired
                # one must not change what the unknown times of train become.
                good &= (self.unknown != 0) | (self.begin <= self.end)
            if good.any():
                start = ticks[good.argmax()]
                extremes += [
                    int(pick(where=good, initial=start)) for pick in (ticks.min, ticks.max)
                ]
        return extremes

    def join(self, account: Account) -> None:
        """Make one fact of the row that says when it begins and the one that says when it ends."""
        halves = self.raw.halves
        if halves is None:
            return
        usable = (halves != 0) & (self.unknown != _BOTH_UNKNOWN)
        if self.readable is not None:
            usable &= self.readable
        rows = np.flatnonzero(usable)
        ends: Bools = halves[rows] == UNTIL
        ticks = np.where(ends, self.end[rows], self.begin[rows])
        columns = [*self.raw.names, *([self.raw.splits] if self.raw.splits else [])]
        codes = [column.all_codes()[rows] for column in columns]
        new = np.isin(np.arange(len(rows)), grouped([*codes, halves[rows], ticks])[1])
        account.record(DUPLICATE, rows[~new])
        since, until = pair(grouped([column[new] for column in codes])[0], ends[new], ticks[new])
        since, until = rows[new][since], rows[new][until]
        self.end[since] = self.end[until]
        self.unknown[since] = 0
        account.join(since, until)

    def settle(
        self, limits: tuple[int, int], account: Account, options: ReadOptions, splits: RowsBySplit
    ) -> None:
        """Fill in unknown times and put aside the rows that cannot be kept."""
        if self.readable is not None:
            rows = np.flatnonzero(~self.readable & account.kept)
            whys = [self._why(row) for row in rows[:EXAMPLES].tolist()]
            account.record(UNREADABLE_TIME, rows, whys=whys)
            account.unit = self._unit_that_reads()
            account.unreadable = self._unreadable(rows[:1].tolist())
        finer = np.zeros(self.raw.rows, bool)
        for column, parsed in self._columns:
            if parsed.truncated.any():
                finer |= column.lookup(parsed.truncated)
        unit = self._columns[0][1].granularity
        rows = np.flatnonzero(finer & (account.kept | account.joined))
        account.record(f"time finer than a {unit}, cut to it", rows, keep=True)
        self._settle_timeless(limits, account, options)
        if self.unknown.any():
            self.begin[(self.unknown & BEGIN_UNKNOWN) != 0] = limits[0]
            self.end[(self.unknown & END_UNKNOWN) != 0] = limits[1]
            if options.first == OWN_END:
                np.copyto(self.begin, self.end, where=self.unknown == BEGIN_UNKNOWN)
            if options.last == OWN_BEGIN:
                np.copyto(self.end, self.begin, where=self.unknown == END_UNKNOWN)
        rows = np.flatnonzero((self.begin > self.end) & account.kept)
        if not len(rows):
            return
        order = options.end_before_begin or "drop"
        if order == "error":
            fact = " | ".join(self.raw.texts(rows[:1].tolist())[0])
            where = self.raw.locate(rows[:1].tolist())[0]
            raise DataError(f"{where}: the fact ends before it begins: {fact}")
        # Only a repair treats the splits differently.
        for split, members in splits if order == "repair" else [("train", None)]:
            wrong = rows if members is None else rows[members[rows]]
            if order == "swap" or (order == "repair" and split != "train"):
                self._swap(wrong, account)
            else:
                account.record(END_BEFORE_BEGIN, wrong)

    def _settle_timeless(
        self, limits: tuple[int, int], account: Account, options: ReadOptions
    ) -> None:
        """Drop the facts that have no time at all, or note what becomes of them."""
        events = len(self._columns) == 1
        rows = np.flatnonzero((self.unknown == _BOTH_UNKNOWN) & account.kept)
        how = options.without_time or ("drop" if events else "unknown")
        if not len(rows):
            return
        if how == "drop":
            # Only events are dropped by default.
            account.record(FACT_WITHOUT_TIME if options.without_time else EVENT_WITHOUT_TIME, rows)
            return
        if events:  # until now, one column is both
            self.end = self.end.copy()
        if how == "always":
            account.record("without a time, so it holds always", rows, keep=True)
            self.begin[rows], self.end[rows] = limits
            self.unknown[rows] = 0
        else:
            account.record("without a time, so begin and end are unknown", rows, keep=True)

    def _swap(self, rows: npt.NDArray[np.integer], account: Account) -> None:
        """Put begin and end in order; `unknown` stays true of both."""
        account.record(f"{END_BEFORE_BEGIN}, swapped", rows, keep=True)
        unknown = self.unknown[rows]
        alike = rows[(unknown == 0) | (unknown == _BOTH_UNKNOWN)]
        self.begin[alike], self.end[alike] = self.end[alike], self.begin[alike]
        # An unknown time that was filled in beyond the given one: nothing to swap, so it gives way.
        open_end = rows[unknown == END_UNKNOWN]
        self.end[open_end] = self.begin[open_end]
        open_begin = rows[unknown == BEGIN_UNKNOWN]
        self.begin[open_begin] = self.end[open_begin]

    def _unit_that_reads(self) -> Granularity | None:
        """The unit in which most of the unreadable times can be read; tried on the first ones."""
        texts = [
            column.strings.filter(pa.array(parsed.state > UNKNOWN)).slice(0, _TRIED)
            for column, parsed in self._columns
        ]
        tried = pa.concat_arrays(texts)
        units: tuple[Granularity, ...] = ("day", "month", "year")
        read = {
            unit: int((parse_times(tried, granularity=unit).state == KNOWN).sum()) for unit in units
        }
        best = max(units, key=lambda unit: read[unit])
        return best if 2 * read[best] > len(tried) else None

    def _unreadable(self, rows: Sequence[int]) -> str | None:
        """The time that cannot be read in the first of some rows, as it was written."""
        for texts in self.raw.times_of(rows):
            for (column, parsed), text in zip(self._columns, (*texts, texts[-1]), strict=False):
                (code,) = column.codes(rows)
                if code >= 0 and parsed.state[code] > UNKNOWN:
                    return text.strip()
        return None

    def _why(self, row: int) -> str:
        """Why a row is unreadable."""
        reasons = []
        for column, parsed in self._columns:
            code = column.codes([row])[0]
            if code >= 0 and int(parsed.state[code]) in REASONS:
                reasons.append(f"{REASONS[int(parsed.state[code])]}: {column.texts([row])[0]!r}")
        return ", ".join(reasons)


def _parse_spans(
    raws: Sequence[RawFacts], options: ReadOptions
) -> tuple[list[RowSpans], Granularity, int, list[str]]:
    """Parse the times of all sources together, so that they share one granularity.

    The third result is how many of the numbers that were written make a tick, the last is what to
    remark about it.
    """
    columns = [column for raw in raws for column in raw.times]
    values = pa.concat_arrays([column.strings for column in columns])
    weights = np.concatenate([column.counts() for column in columns])
    parsed = parse_times(values, weights=weights, granularity=options.granularity)
    inferred = options.granularity is None and all(raw.is_text for raw in raws)
    step, remarks = _number_unit(parsed, values) if inferred else (1, [])
    if options.unknown_time is None:
        remarks += _without_placeholders(parsed, weights)
    stops = np.cumsum([len(column.values) for column in columns])[:-1]
    arrays = (parsed.ticks // step, parsed.state, parsed.truncated)
    parts = iter(zip(*(np.split(array, stops) for array in arrays), strict=True))
    unit = parsed.granularity
    spans = [RowSpans(raw, [ParsedTimes(unit, *next(parts)) for _ in raw.times]) for raw in raws]
    return spans, unit, step, remarks


def _without_placeholders(parsed: ParsedTimes, weights: Ints) -> list[str]:
    """Take far times that stand for no time, such as 9999-12-31, for unknown; and remark it."""
    known = np.flatnonzero((parsed.state == KNOWN) & (weights > 0))
    ticks, at = np.unique(parsed.ticks[known], return_inverse=True)
    rows = np.bincount(at, weights[known], len(ticks)).astype(np.int64)
    far = placeholders(ticks, rows, parsed.granularity)
    if not far.any():
        return []
    parsed.state[known[far[at]]] = UNKNOWN
    parsed.truncated[known[far[at]]] = False
    texts = format_ticks(ticks[far], parsed.granularity)
    counts = [
        f"{text} ({counted(int(n), 'time')})" for text, n in zip(texts, rows[far], strict=True)
    ]
    return [
        f"far from all other times, {', '.join(counts[:4])} stands for an unknown time; {keep()}"
    ]


def _number_unit(parsed: ParsedTimes, values: pa.Array) -> tuple[int, list[str]]:
    """The common step of times that are numbers, and remarks about what they may be instead."""
    if parsed.granularity == "step":
        step = common_step(parsed.ticks[parsed.state == KNOWN])
        divided = (
            f"times are steps of {step}, divided by it to 0, 1, 2, …;"
            f" {option('granularity', 'step')} keeps the numbers"
        )
        known = parsed.ticks[parsed.state == KNOWN]
        days = len(known) and (known > _SERIAL[0]).all() and (known < _SERIAL[1]).all()
        unit, origin = ("day", "1899-12-30") if days else (_USUAL_STEPS.get(step, "UNIT"), "TIME")
        how = f"{option('granularity', unit)} {option('origin', origin)}"
        if pc.all(pc.match_substring_regex(values, _DAY_FIRST)).as_py():
            how = option("time_format", "%d%m%Y")
        unknown = f"times are numbers of an unknown unit; to make dates of them: {how}"
        return step, [divided, unknown] if step > 1 else [unknown]
    if parsed.granularity == "year":
        odd = (parsed.state == KNOWN) & ((parsed.ticks < 1000) | (parsed.ticks > 2999))
        odd |= parsed.state == NOT_A_TIME  # a number too long for a year
        bare = pc.match_substring_regex(values.filter(pa.array(odd)), "^ *[0-9]+ *$")
        dated = pc.match_substring_regex(values, "^[+-]?[0-9]+-##-##$")
        if pc.any(bare).as_py() and not pc.any(dated).as_py():
            steps = f"{option('granularity', 'step')} reads them as steps"
            return 1, [f"times are numbers, read as years; {steps}"]
    return 1, []


def common_step(ticks: Ints) -> int:
    """The greatest step that all ticks keep to; 1 if there are too few of them.

    >>> common_step(np.array([0, 24, 240, 72, 48]))
    24
    """
    steps = np.diff(distinct(ticks))
    return int(np.gcd.reduce(steps)) if len(steps) >= _STEPS else 1


def _odd_names(entities: Vocabulary) -> list[str]:
    """A remark about names that may stand for a missing one, as they are taken literally."""
    odd = [repr(name) for name in entities if name.lower() in _NO_NAMES]
    may = "may say that a name is missing; to drop such rows, leave the cells empty"
    return [f"{', '.join(odd[:4])} among the names of entities {may}"] if odd else []


def _rows_by_split(raw: RawFacts) -> RowsBySplit:
    splits = None if raw.splits is None else raw.splits.splits(raw.locate, raw.split)
    if raw.split or splits is None:
        return [(raw.split or "train", None)]
    return [(split, splits == number) for number, split in enumerate(SPLITS)]


def _distinct(facts: Facts) -> Ints:
    """The distinct ticks of facts."""
    if not len(facts):
        return np.empty(0, np.int64)
    low, high = int(facts.begin.min()), int(facts.end.max())
    if high - low >= 1 << 24:
        return np.union1d(facts.begin, facts.end)
    seen = np.zeros(high - low + 1, bool)  # much faster than sorting all facts
    for start in range(0, len(facts), _BLOCK):
        for ticks in (facts.begin, facts.end):
            seen[ticks[start : start + _BLOCK] - low] = True
    return np.flatnonzero(seen) + low


def repeats(facts: Facts) -> Bools:
    """Which facts stand already before them, with the same times as given."""
    repeats = np.zeros(len(facts), bool)
    repeats[repeated(lambda: _hash(facts), lambda rows: facts.take(rows).columns())] = True
    return repeats


def _hash(facts: Facts) -> npt.NDArray[np.uint64]:
    """One number for each fact: equal for equal facts, nearly always different for others."""
    keys = np.empty(len(facts), np.uint64)
    for start in range(0, len(facts), _KEYS):
        rows = slice(start, start + _KEYS)
        key = np.zeros(len(keys[rows]), np.uint64)
        for column in facts.columns():
            key ^= column[rows].astype(np.int64).view(np.uint64)
            key *= _FACTOR
            key ^= key >> np.uint64(29)
        keys[rows] = key
    return keys
