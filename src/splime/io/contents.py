"""What the columns of a table hold."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Literal, TypeAlias

from splime.errors import option
from splime.io.columns import whole_text
from splime.io.layout import NAMES, TIMES, TOGETHER, Layout
from splime.io.notations import MARK, NOTATIONS, OPEN_END, Notation, holds_times
from splime.times import UNKNOWN_WORDS

Kind: TypeAlias = Literal["time", "name", "number", "row number", "flag", "text", "empty"]
SAMPLE = 1000
"""So many rows are looked at."""
_MOST = 0.8  # of the cells of a column are of its kind
_ALIKE = 0.2  # of the values of a column also stand in another of the same kind
COUNTED = re.compile(
    r"\b(id|ids|no|nr|number|code|key|hash|zip|price|amount|count|total|qty|score|points|rating)\b"
)
_MONTH = r"0?[1-9]|1[0-2]|[^\W\d_]{3,}\.?"
_DAY = "0?[1-9]|[12][0-9]|3[01]"
_CLOCK = r"(?i)[0-2]?[0-9]:[0-5][0-9](?::[0-5][0-9])?(?: ?[ap]m)?"
# Words in the names of columns that are one, and what the cells of all but the first are.
_WHOLES: Sequence[tuple[tuple[str, ...], tuple[str, ...]]] = [
    (("year", "month", "day"), (_MONTH, _DAY)),
    (("jahr", "monat", "tag"), (_MONTH, _DAY)),
    (("date", "time"), (_CLOCK,)),
    (("datum", "uhrzeit"), (_CLOCK,)),
    (("first name", "last name"), (r"\D+",)),
    (("first name", "surname"), (r"\D+",)),
    (("forename", "surname"), (r"\D+",)),
    (("given name", "family name"), (r"\D+",)),
    (("given name", "surname"), (r"\D+",)),
    (("firstname", "lastname"), (r"\D+",)),
    (("vorname", "nachname"), (r"\D+",)),
    (("vorname", "name"), (r"\D+",)),
    (("prénom", "nom"), (r"\D+",)),
]
_NO_TIME = re.compile(f"{OPEN_END.pattern}|{UNKNOWN_WORDS}")
_HOURS = re.compile(_CLOCK)
_MARK = re.compile(MARK)
_FLAGS = {"yes", "no", "true", "false", "y", "n", "m", "f", "male", "female"}
_NOTES = re.compile(r"(?i).*\b(?:notes?|remarks?|comments?|descriptions?|details|text|url)")
_SHOWN = 2  # so many rows below the first show the order of columns
_WORDY = 8  # so many words or more, on average, are no name
_CODE = re.compile("0[0-9]{2,}(?:[.-]?[0-9]+)*")  # as 00017: one of them, and no cell is an amount
_SENTENCE = re.compile(r"[.!?:;]\s*\n")
_NUMBER = re.compile(
    r"[^\w\s]?\s?[+-]?[0-9]+(?:[.,' ] ?-?[0-9]+)*\s?[%€$£]?|[0-9]{1,3} ?[-–:] ?[0-9]{1,3}"
)


def kind_of(cells: Sequence[str], ways: Sequence[Notation] = NOTATIONS) -> Kind:
    """What the cells of a column are.

    >>> kind_of(["2012", "present", ""]), kind_of(["18-0213", "18-0501"]), kind_of(["3,5", "12"])
    ('time', 'name', 'number')
    >>> kind_of(["1", "2", "3"]), kind_of(["Mar 2019", "May 2020"]), kind_of(["", " "])
    ('row number', 'time', 'empty')
    >>> kind_of(["yes", "no"]), kind_of(["08:15", "9:00"]), kind_of(["Signed.\\nNever kept."])
    ('flag', 'number', 'text')
    """
    given = [text for cell in cells if (text := _MARK.sub("", cell.strip()))]
    if not given:
        return "empty"
    timed = [text for text in given if not _NO_TIME.fullmatch(text)]
    times = {text for text in {*timed} if holds_times(text, ways)}
    if timed and sum(text in times for text in timed) >= _MOST * len(timed):
        return "time"
    amounts = sum(map(_is_amount, given)) >= _MOST * len(given)
    if amounts and not any(map(_CODE.fullmatch, given)):
        first = int(given[0]) if given[0].isascii() and given[0].isdigit() else -1
        counted = [str(number) for number in range(first, first + len(cells))]
        return "row number" if first in (0, 1) and given == counted else "number"
    if {text.lower() for text in given} <= _FLAGS:
        return "flag"
    wordy = sum(len(text.split()) for text in given) >= _WORDY * len(given)
    return "text" if wordy or any(map(_SENTENCE.search, given)) else "name"


def _is_amount(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text) or _HOURS.fullmatch(text))


def words_of(name: str) -> str:
    """The words in the name of a column."""
    return re.sub(r"([a-z])([A-Z])|_", r"\1 \2", name).lower()


def _is_number(name: str, cells: Sequence[str]) -> bool:
    return bool(COUNTED.search(words_of(name))) and all(
        cell.strip().isdecimal() for cell in cells if cell.strip()
    )


def is_header(cells: Sequence[str], below: Contents, times: Sequence[int]) -> bool:
    """Whether a first line holds names: then words stand where the rows below it have times.

    `times` are the columns that should have them; without any, those that do.

    >>> rows = Contents.of_rows(["", "", "", ""], [["Ada", "owns", "Ajax", "Mar 2019"]])
    >>> is_header(["who", "does", "what", "when"], rows, [])
    True
    >>> is_header(["Ada", "owns", "Ajax", "May 2018"], rows, [3])
    False
    """
    chosen = [cells[at].strip() for at in times or below.of_kind("time")]
    words = [text[:1].isalpha() and kind_of([text]) in ("name", "time") for text in chosen]
    # "Signed, In force": one of two may be a word for an open end.
    told = any(not _NO_TIME.fullmatch(text.lower()) for text in chosen)
    return told and all(words) and not any(map(is_date, cells))


def is_date(text: str) -> bool:
    """Whether a text is a time and no mere number, as ids are."""
    return not text.strip().isdecimal() and kind_of([text]) == "time"


@dataclass(frozen=True)
class Contents:
    """The first rows of a table, by column."""

    names: Sequence[str]
    read: Callable[[], Sequence[Sequence[str]]]
    """Reads the cells of each column, where the names are not enough."""
    ways: Sequence[Notation] = NOTATIONS
    """How times are written."""
    parts: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Columns that are one with another, by the position of this one."""

    @cached_property
    def cells(self) -> Sequence[Sequence[str]]:
        """The cells of each column."""
        return self.read()

    @classmethod
    def of_rows(cls, names: Sequence[str], rows: Iterable[Sequence[str]]) -> Contents:
        """From rows, which may be shorter than the names."""

        @cache
        def cells() -> list[list[str]]:
            width = len(names)
            full = [[*row, *[""] * (width - len(row))][:width] for row in rows]
            return list(map(list, zip(*full, strict=True))) or [[] for _ in names]

        return cls(names, cells)

    @cached_property
    def kinds(self) -> list[Kind]:
        """What each column holds; a number from 1000 to 2999 is no year below "Employee ID"."""
        return [
            "number" if kind == "time" and _is_number(name, cells) else kind
            for name, cells in zip(self.names, self.cells, strict=True)
            for kind in ["text" if _NOTES.fullmatch(name) else kind_of(cells, self.ways)]
        ]

    def with_first(self) -> Contents:
        """The same with the names as the first row, where they are none; the names are numbers."""
        cells = [[name, *cells] for name, cells in zip(self.names, self.cells, strict=True)]
        return replace(self, names=[str(at + 1) for at in range(len(cells))], read=lambda: cells)

    def together(self) -> Contents:
        """The same, where columns that are one stand in the place of the first of them."""
        names, parts = [words_of(name) for name in self.names], dict[int, list[int]]()
        for (first, *rest), patterns in _WHOLES:
            for at, name in enumerate(names):
                if at in parts or not re.search(rf"\b{first}\b", name):
                    continue
                for word, pattern in zip(rest, patterns, strict=True):
                    called = re.sub(rf"\b{first}\b", word, name)
                    other = names.index(called) if called in names else at
                    if other == at or not (self._are(at, "[^:]+") and self._are(other, pattern)):
                        break
                    parts.setdefault(at, []).append(other)
        if not parts:
            return self
        cells = [[*column] for column in self.cells]
        for at, others in parts.items():
            is_time = kind_of(cells[at], self.ways) == "time"
            for other in others:
                pairs = [*zip(cells[at], cells[other], strict=True)]
                cells[at] = [whole_text(*pair, is_time=is_time) for pair in pairs]
                cells[other] = [""] * len(pairs)
        return replace(self, read=lambda: cells, parts=parts)

    def _are(self, at: int, pattern: str) -> bool:
        given = [text for cell in self.cells[at] if (text := cell.strip())]
        return bool(given) and all(re.fullmatch(pattern, text) for text in given)

    def is_misplaced(self, layout: Layout) -> bool:
        """Whether columns without names cannot be in the usual order: rows are counted first,
        or what should be a time is none, and a name is one.
        """
        kinds = self.with_first().kinds
        names = [kinds[layout[role]] for role in NAMES if role in layout]
        times = [kinds[layout[role]] for role in TIMES if role in layout]
        counted = names[0] == "row number" and {*names[1:]} == {"name"}
        shifted = "time" in names and "name" in times and not {"time", "number"} & {*times}
        return len(self.cells[0]) >= _SHOWN and (counted or shifted)

    def of_kind(self, *kinds: Kind) -> list[int]:
        """The columns of some kinds."""
        return [at for at, kind in enumerate(self.kinds) if kind in kinds]

    def values(self, at: int) -> set[str]:
        """The different values of a column."""
        return {cell.strip() for cell in self.cells[at]} - {""}

    def are_alike(self, one: int, other: int) -> bool:
        """Whether two columns name things of the same kind, so neither is the predicate."""
        first, second = self.values(one), self.values(other)
        return len(first & second) > _ALIKE * min(len(first), len(second))

    def filled(self, at: int) -> float:
        """The share of rows that have a value in a column."""
        return sum(bool(cell.strip()) for cell in self.cells[at]) / max(1, len(self.cells[at]))

    def called(self, at: int) -> str:
        """The name of a column, or the names of those that are one with it."""
        return TOGETHER.join(self.names[one] for one in (at, *self.parts.get(at, ())))

    def line(self, columns: Sequence[int | str]) -> str:
        """The option that chooses columns, to be copied; a text stands for itself."""
        wholes = [(at, *self.parts.get(at, ())) if isinstance(at, int) else () for at in columns]
        plain = all(
            (name := self.names[at]).isprintable()
            and "," not in name
            and name.strip()
            and self.names.count(name) == 1
            for at in itertools.chain(*wholes)
        )

        def called(at: int | str, whole: Sequence[int]) -> int | str:
            if plain or isinstance(at, str):
                return at if isinstance(at, str) else self.called(at)
            return at + 1 if len(whole) == 1 else TOGETHER.join(str(one + 1) for one in whole)

        return option("columns", [*map(called, columns, wholes)])
