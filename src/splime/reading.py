"""What happened while facts were read: rows read, kept, dropped and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

# Reasons to drop a fact that are not about one unreadable time.
UNREADABLE_TIME = "unreadable time"
EVENT_WITHOUT_TIME = "event without a time"
END_BEFORE_BEGIN = "end before begin"
DUPLICATE = "duplicate"
UNSEEN_IN_TRAIN = "entity or predicate unseen in train"


@dataclass(frozen=True)
class Example:
    """One of the first facts that something happened to."""

    where: str
    """`train.txt, line 216`, or `row 12` of a table."""
    fact: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {' | '.join(self.fact)}  ({self.why})"


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


@dataclass(frozen=True)
class Reading:
    """The summary of reading a graph.

    >>> train = Source("train.txt", "train", rows=10, kept=9, dropped={"end before begin": 1})
    >>> reading = Reading((train,))
    >>> reading.rows, reading.kept, dict(reading.dropped)
    (10, 9, {'end before begin': 1})
    """

    sources: tuple[Source, ...] = ()
    examples: tuple[Example, ...] = ()
    remarks: tuple[str, ...] = ()
    """What was decided for the whole graph, such as how it was split."""

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

    def to_json(self) -> dict[str, Any]:
        """The same as plain lists and dictionaries."""
        return dict(msgspec.to_builtins(self))
