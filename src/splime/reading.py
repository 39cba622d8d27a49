"""What happened while facts were read: rows read, kept, dropped and why."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from splime.errors import DataError, counted, option

# Reasons to drop a fact that are not about one unreadable time.
UNREADABLE_TIME = "unreadable time"
NAMELESS = "a name is missing"
EVENT_WITHOUT_TIME = "event without a time"
FACT_WITHOUT_TIME = "fact without a time"  # dropped by an option
END_BEFORE_BEGIN = "end before begin"
DUPLICATE = "duplicate"
UNSEEN_IN_TRAIN = "entity or predicate unseen in train"
IN_TWO_ROWS = "begin and end stood in two rows, which are counted as one"
"""A note about a fact that is kept."""


def _kept_by(why: str, unit: str | None, few: str | None) -> str:
    """The option that keeps rows dropped for a reason; `unit` is what reads unreadable times, and
    `few` one of them, where most times were read, so that another format is none for them."""
    columns = f"{option('columns', 'A,B,…')} says which column holds the time"
    if why == UNREADABLE_TIME:
        if unit:
            return f"{option('granularity', unit)} reads these times"
        if few is not None:
            return (
                f"{option('unknown_time', few)} takes such a text for an unknown time, and"
                f" {option('without_time', 'unknown')} keeps facts without any"
            )
        return f"{option('time_format', 'FORMAT')} reads them as you write them, such as '%d/%m/%Y'"
    return {
        NAMELESS: f"{option('missing_name', 'unknown')} keeps such facts",
        EVENT_WITHOUT_TIME: f"{option('without_time', 'unknown')} keeps such events, and {columns}",
        FACT_WITHOUT_TIME: f"{option('without_time', 'unknown')} keeps such facts",
        END_BEFORE_BEGIN: f"{option('end_before_begin', 'swap')} keeps such facts",
        DUPLICATE: f"{option('keep_duplicates')} keeps repeated facts",
        UNSEEN_IN_TRAIN: f"{option('allow_unseen')} keeps such facts",
    }.get(why, "")


_MUCH, _TOO_MUCH = 0.1, 0.5
"""Shares of the rows of a file: from which on dropping them is a warning, and an error."""
LOG = logging.getLogger("splime")
"""Gets the account of every graph that is loaded (INFO), its remarks (DEBUG), and warnings."""


@dataclass(frozen=True)
class RowExample:
    """One of the first facts that something happened to."""

    where: str
    """`train.txt, line 216`, or `row 12` of a table."""
    fact: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        fact = " | ".join(text if text.isprintable() else repr(text) for text in self.fact)
        return f"{self.where}: {fact}  ({self.why})"


@dataclass(frozen=True)
class Source:
    """The counts of one file or table."""

    name: str
    split: str | None
    rows: int
    kept: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict)
    """Facts that were kept, but not quite as written, such as times finer than the granularity."""
    header: str | None = None
    """The first line, where it was taken as a header; it is not among the rows."""

    unit: str | None = None
    """The unit in which most of the times can be read that could not be read."""
    unreadable: str | None = None
    """The first of them, as it was written."""

    @property
    def lost(self) -> int:
        """Rows lost without an option for it; a repeated fact is still in the graph."""
        meant = self.dropped.get(DUPLICATE, 0) + self.dropped.get(FACT_WITHOUT_TIME, 0)
        return self.rows - self.kept - meant


@dataclass(frozen=True)
class Reading:
    """The summary of reading a graph.

    >>> train = Source("train.txt", "train", rows=10, kept=9, dropped={"end before begin": 1})
    >>> reading = Reading((train,))
    >>> reading.rows, reading.kept, dict(reading.dropped)
    (10, 9, {'end before begin': 1})
    >>> print(reading)
    read 10 rows, kept 9, dropped 1: 1 × end before begin
    """

    sources: tuple[Source, ...] = ()
    examples: tuple[RowExample, ...] = ()
    remarks: tuple[str, ...] = ()
    """What was guessed and decided for the whole graph, such as how it was split."""
    emptied: tuple[str, ...] = ()
    """Splits that had rows, all of which were dropped."""

    @property
    def rows(self) -> int:
        """Rows read."""
        return sum(source.rows for source in self.sources)

    @property
    def kept(self) -> int:
        """Rows that became facts."""
        return sum(source.kept for source in self.sources)

    @property
    def dropped(self) -> Counter[str]:
        """Rows dropped, by reason."""
        return sum((Counter(source.dropped) for source in self.sources), Counter())

    @property
    def notes(self) -> Counter[str]:
        """Facts kept, but not quite as written, by reason."""
        return sum((Counter(source.notes) for source in self.sources), Counter())

    def __str__(self) -> str:
        headers = sum(source.header is not None for source in self.sources)
        header = f" and {counted(headers, 'header line')}" if headers else ""
        if not self.dropped:
            return f"read {counted(self.kept, 'fact')}{header}"
        return (
            f"read {counted(self.rows, 'row')}{header}, kept {self.kept:,}, dropped"
            f" {self.rows - self.kept:,}: {reasons(self.dropped)}"
        )

    def check(self) -> None:
        """Say where much was dropped: an error, or a warning in the log.

        An error is a file that lost more than half of its rows, or a split that lost all of them.
        Repeated facts are no loss, but many of them can mean wrong columns, so they only warn.
        """
        allow = f"{option('allow_loss')} reads what is left"
        for source in self.sources:
            if source.lost > _TOO_MUCH * source.rows:
                raise DataError(
                    f"{source.name}: {source.rows - source.kept:,} of {source.rows:,} rows were"
                    f" dropped ({reasons(source.dropped)}){self._example(source)};"
                    f" {_remedies([source])}; {allow}"
                )
        if self.emptied:
            raise DataError(
                f"no facts are left in {' and '.join(self.emptied)}: {reasons(self.dropped)};"
                f" {_remedies(self.sources)}; {allow}"
            )
        much = [
            one
            for one in self.sources
            if one.lost + one.dropped.get(DUPLICATE, 0) > _MUCH * one.rows
        ]
        if much:
            shares = (f"{one.name}: {one.rows - one.kept:,} of {one.rows:,}" for one in much)
            dropped = sum((Counter(one.dropped) for one in much), Counter[str]())
            LOG.warning(
                "%s rows were dropped (%s); %s",
                ", ".join(shares),
                reasons(dropped),
                _remedies(much),
            )

    def _example(self, source: Source) -> str:
        """The first row of a file that was dropped, as the end of a sentence."""
        for one in self.examples:
            if one.where.startswith(source.name) and one.why.partition(":")[0] in source.dropped:
                return f", such as {one}"
        return ""

    def to_json(self) -> dict[str, Any]:
        """The same as plain lists and dictionaries."""
        return dict(msgspec.to_builtins(self))


def reasons(dropped: Mapping[str, int]) -> str:
    """Why rows were dropped, the commonest reason first.

    >>> reasons({"duplicate": 2, "end before begin": 1000})
    '1,000 × end before begin, 2 × duplicate'
    """
    return ", ".join(f"{count:,} × {why}" for why, count in Counter(dropped).most_common())


def _remedies(sources: Sequence[Source]) -> str:
    dropped = sum((Counter(source.dropped) for source in sources), Counter[str]())
    unit = next((source.unit for source in sources if source.unit), None)
    few = 2 * dropped[UNREADABLE_TIME] < sum(source.rows for source in sources)
    text = next((source.unreadable for source in sources if source.unreadable), None)
    kept_by = (_kept_by(why, unit, text if few else None) for why, _ in dropped.most_common())
    return "; ".join(filter(None, kept_by))
