"""Facts as they were read, as dictionary-encoded text columns; and what became of their rows."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from splime.errors import DataError, counted
from splime.graph import SPLITS, Ids, SplitName
from splime.io.layout import NAMES, OTHER_OBJECT, PART, TIMES, TOGETHER
from splime.reading import IN_TWO_ROWS, RowExample, Source
from splime.times import Bools

_T = TypeVar("_T", bound=np.generic)
Halves: TypeAlias = npt.NDArray[np.uint8]
SINCE, UNTIL = 1, 2
"""What a row may say alone: when a fact begins, or when it ends."""
Locate = Callable[[Sequence[int]], list[str]]
EXAMPLES = 3


class EncodedColumn:
    """A column as its distinct values and one code per row; -1 is a missing value."""

    def __init__(self, column: pa.ChunkedArray | pa.Array) -> None:
        if isinstance(column, pa.Array):
            column = pa.chunked_array([column])
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        elif any(chunk.dictionary.null_count for chunk in column.chunks):
            column = column.cast(column.type.value_type).dictionary_encode()
        column = column.unify_dictionaries()
        empty = pa.array([], pa.string())
        self.values: pa.Array = column.chunk(0).dictionary if column.num_chunks else empty
        self._chunks: list[pa.Array] = [_signed(chunk.indices) for chunk in column.chunks]
        self.rows: int = len(column)

    def with_values(self, values: pa.Array) -> EncodedColumn:
        """The same rows with other values, one for each of these."""
        different = values.dictionary_encode()
        if len(different.dictionary) < len(values):
            return encoded(self.lookup(different.indices.to_numpy(), -1), different.dictionary)
        column = copy(self)  # the codes are shared: what frees one frees both
        column.values = values
        return column

    def mapped(self, change: Callable[[str], str]) -> EncodedColumn:
        """The same rows with every text changed, once for each different one."""
        texts = [change(text) for text in self.strings.to_pylist()]
        return self.with_values(pa.array(texts, pa.string()))

    def changed(self, change: Callable[[pa.Array], pa.Array]) -> EncodedColumn:
        """The same, at once for all different values; itself where they stay what they are."""
        values = change(self.values)
        return self if values.equals(self.values) else self.with_values(values)

    def lookup(self, table: npt.NDArray[_T], missing: int = 0) -> npt.NDArray[_T]:
        """`table[code]` for every row, and `missing` where there is no value."""
        table = np.append(table, np.array([missing], table.dtype))
        out = np.empty(self.rows, table.dtype)
        at = 0
        for chunk in self._chunks:
            # Chunk by chunk, so that no second copy of all codes is ever in memory.
            codes = (chunk.fill_null(-1) if chunk.null_count else chunk).to_numpy()
            np.take(table, codes, out=out[at : at + len(codes)], mode="wrap")
            at += len(codes)
        return out

    def counts(self) -> npt.NDArray[np.int64]:
        """How often each value occurs."""
        total = np.zeros(len(self.values), np.int64)
        for chunk in self._chunks:
            total += np.bincount(chunk.drop_null().to_numpy(), minlength=len(self.values))
        return total

    def splits(self, locate: Locate, only: SplitName | None = None) -> Ids:
        """The split of every row, by its position in SPLITS; an error where it is another one."""
        allowed = SPLITS if only is None else (only,)
        names = [*self.strings.to_pylist(), None]
        table = [SPLITS.index(name) if name in allowed else -1 for name in names]
        splits = self.lookup(np.array(table[:-1], np.int32), missing=-1)
        if (splits < 0).any():
            row = int(np.argmin(splits))
            name = names[self.codes([row])[0]]
            where = locate([row])[0]
            why = (
                f", but these are the facts of {only}"
                if only
                else "; expected train, valid or test"
            )
            raise DataError(f"{where}: the split is {name!r}{why}")
        return splits

    def check_names(self, locate: Locate) -> None:
        """An error if a row has no name."""
        if (absent := self.nameless()) is not None:
            where = locate([int(absent.argmax())])[0]
            raise DataError(f"{where}: a name is missing; every fact needs all three names")

    def nameless(self) -> Bools | None:
        """Which rows have no name; None if all have one."""
        empty = pc.equal(pc.utf8_trim_whitespace(self.strings), "")
        absent: Bools = self.lookup(np.asarray(empty, bool), missing=True)
        return absent if absent.any() else None

    def named(self, name: str) -> EncodedColumn:
        """The same rows with a name where one is missing."""
        absent = self.nameless()
        if absent is None:
            return self
        return merged(absent, encoded(np.zeros(self.rows, np.int32), pa.array([name])), self)

    @property
    def missing(self) -> int:
        """How many rows have no value."""
        return sum(chunk.null_count for chunk in self._chunks)

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Some rows as text, for examples."""
        return ["" if code < 0 else str(self.values[code].as_py()) for code in self.codes(rows)]

    def codes(self, rows: Sequence[int]) -> list[int]:
        """The codes of a few rows."""
        codes = pa.chunked_array(self._chunks)
        return [-1 if (code := codes[row].as_py()) is None else code for row in rows]

    @property
    def strings(self) -> pa.Array:
        """The different values as text."""
        return self.values.cast(pa.string())

    def used(self) -> dict[str, int]:
        """The values that occur, and their codes."""
        values = self.strings.to_pylist()
        return {values[code]: int(code) for code in np.flatnonzero(self.counts())}

    def blank(self) -> Bools:
        """Which rows say no time."""
        empty = pc.equal(pc.utf8_trim(pc.utf8_trim_whitespace(self.strings), "-#"), "")
        return self.lookup(empty.to_numpy(zero_copy_only=False), missing=True)

    def all_codes(self) -> npt.NDArray[np.int32]:
        """The codes of all rows."""
        return self.lookup(np.arange(len(self.values), dtype=np.int32), -1)

    def take(self, rows: npt.NDArray[np.integer]) -> EncodedColumn:
        """Some rows, in any order."""
        return encoded(self.all_codes()[rows], self.strings)

    def free(self) -> None:
        """Give the memory of the codes back."""
        self._chunks.clear()
        pa.default_memory_pool().release_unused()  # else Arrow keeps it for itself

    def first_row(self, code: int) -> int:
        """The first row that holds a value (-1: the first without one)."""
        return int(np.argmax(self.all_codes() == code))


def _signed(codes: pa.Array) -> pa.Array:
    """Codes that -1 can be among, as it stands for a missing value."""
    if pa.types.is_signed_integer(codes.type):
        return codes
    return codes.cast(pa.int32() if codes.type.bit_width <= 16 else pa.int64())


class RowCollector:
    """Columns of text that are collected row by row, and where the rows stand."""

    def __init__(self, name: str, unit: str) -> None:
        self.name, self.unit = name, unit
        self.numbers = array("q")
        self._columns: dict[Any, tuple[array[int], dict[str, int]]] = {}

    @property
    def keys(self) -> list[Any]:
        """The columns, in the order in which rows had them."""
        return list(self._columns)

    def add(self, number: int, cells: Iterable[tuple[Any, str | None]]) -> None:
        """A row of a number, as column and text; None is a missing value."""
        for key, text in cells:
            codes, table = self._padded(key)
            if text is not None:
                codes.append(table.setdefault(text, len(table)))
        self.numbers.append(number)

    def column(self, key: Any) -> EncodedColumn:
        """One of the columns."""
        codes, table = self._padded(key)
        try:
            values = pa.array(table, pa.string())
        except UnicodeEncodeError as error:
            where = self.locate([codes.index(table[error.object])])[0]
            raise DataError(f"{where}: {error.object!r} is not valid Unicode: {error}") from None
        return encoded(np.array(codes, np.int32), values)

    def locate(self, rows: Sequence[int]) -> list[str]:
        """Where rows stand."""
        return [f"{self.name}, {self.unit} {self.numbers[row]}" for row in rows]

    def _padded(self, key: Any) -> tuple[array[int], dict[str, int]]:
        codes, table = self._columns.setdefault(key, (array("i"), {}))
        if missing := len(self.numbers) - len(codes):
            codes.extend([-1] * missing)
        return codes, table


def encoded(codes: npt.NDArray[np.integer], values: pa.Array) -> EncodedColumn:
    """A column from its codes and values."""
    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    return EncodedColumn(pa.DictionaryArray.from_arrays(indices, values))


def merged(mask: Bools, column: EncodedColumn, other: EncodedColumn) -> EncodedColumn:
    """The values of one column where the mask is true, and those of another one elsewhere."""
    codes = other.all_codes()
    codes = np.where(codes < 0, -1, codes + len(column.values))
    values = pa.concat_arrays([column.strings, other.strings])
    return encoded(np.where(mask, column.all_codes(), codes), values)


@dataclass(frozen=True)
class RawFacts:
    """One file or table of facts as text."""

    name: str
    names: Sequence[EncodedColumn]
    """Subject, predicate and object."""
    times: Sequence[EncodedColumn]
    """Begin and end, or the one time of events."""
    locate: Locate
    """Where rows stand, for messages: `train.txt, line 216`."""
    split: SplitName | None = None
    """The split of all rows."""
    splits: EncodedColumn | None = None
    """The split of each row, where the table has a column for it."""
    header: str | None = None
    written: Sequence[EncodedColumn] = ()
    """The columns of the times as they were written, if `times` are made from them."""
    halves: Halves | None = None
    """Which rows say only when a fact begins or ends; 0 is a row that says all of it."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Names for people, by the names that identify."""
    is_text: bool = False
    """Whether the facts come from a text file, where a number may stand for anything."""
    begins: bool = False
    """Whether the one column of times is called `since`: it holds begins, and no end is known."""
    remarks: tuple[str, ...] = ()
    """Automatic choices, a sentence each."""
    columns: Sequence[str] = ()
    """The names of the columns that were used, where they have names."""

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.names[0].rows

    def take(self, rows: npt.NDArray[np.integer]) -> RawFacts:
        """The facts of some rows, in any order."""
        names, times, written = (
            [column.take(rows) for column in columns]
            for columns in (self.names, self.times, self.written)
        )
        return replace(
            self,
            names=names,
            times=times,
            written=written,
            splits=self.splits and self.splits.take(rows),
            halves=None if self.halves is None else self.halves[rows],
            locate=lambda chosen: self.locate(rows[list(chosen)].tolist()),
        )

    def remarked(self, *remarks: str) -> RawFacts:
        """The same facts with further remarks."""
        return replace(self, remarks=(*self.remarks, *remarks))

    def texts(self, rows: Sequence[int]) -> list[tuple[str, ...]]:
        """Some rows as they were written."""
        names = zip(*(column.texts(rows) for column in self.names), strict=True)
        return [(*fact, *t) for fact, t in zip(names, self.times_of(rows), strict=True)]

    def times_of(self, rows: Sequence[int]) -> list[tuple[str, ...]]:
        """The times of some rows as they were written."""
        columns = self.written or self.times
        return list(zip(*(column.texts(rows) for column in columns), strict=True))


def raw_facts(
    name: str,
    columns: Mapping[str, EncodedColumn],
    locate: Locate,
    split: SplitName | None = None,
    predicate_name: str | None = None,
    called: Mapping[str, str] | None = None,
) -> RawFacts:
    """Facts from columns by their role, and what these are called.

    A begin without an end is that of an open fact. Where several columns hold objects, each is a
    predicate: a row is a fact for each filled one.
    """
    made, header = dict(columns), dict(called or {})
    for role in [role for role in made if role.startswith(PART)]:
        first = role.removeprefix(PART).rpartition(" ")[0]
        made[first] = _joined(made[first], made.pop(role), is_time=first in TIMES)
        if header:
            header[first] += TOGETHER + header.pop(role)
    remarks: tuple[str, ...] = ()
    if objects := [role for role in made if role.startswith(OTHER_OBJECT)]:
        made, locate, remarks = _one_object(made, objects, locate)
    rows = made["subject"].rows
    if predicate_name is not None:
        made["predicate"] = encoded(np.zeros(rows, np.int32), pa.array([predicate_name]))
    times = [made[role] for role in TIMES if role in made]
    names = [made[role] for role in NAMES]
    begins, splits = "begin" in made and "end" not in made, made.get("split")
    raw = RawFacts(name, names, times, locate, split, splits, remarks=remarks, begins=begins)
    return replace(raw, columns=[header[role] for role in (*NAMES, *TIMES) if role in header])


def whole_text(first: str, second: str, *, is_time: bool) -> str:
    """What two columns say together.

    >>> whole_text("Ada", "Moreau", is_time=False), whole_text("2019-5", "3", is_time=True)
    ('Ada Moreau', '2019-5-3')
    >>> whole_text("2019-05-03", "8:15", is_time=True), whole_text("79", "8", is_time=True)
    ('2019-05-03 8:15', '0079-8')
    """
    first, second = first.strip(), second.strip()
    if not is_time or ":" in second:
        return f"{first} {second}".strip() if first or not is_time else ""
    return f"{first.zfill(4)}-{second}" if first and second else first


def _joined(column: EncodedColumn, other: EncodedColumn, *, is_time: bool) -> EncodedColumn:
    """What two columns say together, for each row."""
    size = len(other.values) + 1
    of_rows = (column.all_codes() + 1).astype(np.int64) * size + other.all_codes() + 1
    pairs, codes = np.unique(of_rows, return_inverse=True)
    firsts, seconds = ["", *column.strings.to_pylist()], ["", *other.strings.to_pylist()]
    values = [
        whole_text(firsts[first], seconds[second], is_time=is_time)
        for first, second in zip(*(at.tolist() for at in np.divmod(pairs, size)), strict=True)
    ]
    texts = pa.array(values, pa.string())
    return encoded(codes, texts).with_values(texts)


def _one_object(
    columns: Mapping[str, EncodedColumn], objects: Sequence[str], locate: Locate
) -> tuple[dict[str, EncodedColumn], Locate, tuple[str, ...]]:
    """Columns of objects one below the other; their names are the predicates."""
    filled = []
    for role in objects:
        absent = columns[role].nameless()
        filled.append(np.ones(columns[role].rows, bool) if absent is None else ~absent)
    rows, which = np.nonzero(np.array(filled).T)
    made = {role: column.take(rows) for role, column in columns.items() if role not in objects}
    first, codes = 0, np.empty(len(rows), np.int64)
    for at, role in enumerate(objects):
        codes[which == at] = columns[role].all_codes()[rows[which == at]] + first
        first += len(columns[role].values)
    values = pa.concat_arrays([columns[role].strings for role in objects])
    made["object"] = encoded(codes, values).with_values(values)
    names = pa.array([role.removeprefix(OTHER_OBJECT) for role in objects])
    made["predicate"] = encoded(which, names)
    empty = len(filled[0]) - len(np.unique(rows))
    remarks = (f"{counted(empty, 'row')} with nothing in any of these columns",) if empty else ()
    return made, lambda chosen: locate(rows[list(chosen)].tolist()), remarks


def all_remarks(raws: Sequence[RawFacts]) -> tuple[str, ...]:
    """The remarks of all files, each once, with the files that it is about unless it is all."""
    files: dict[str, list[str]] = {}
    for raw in raws:
        for remark in raw.remarks:
            files.setdefault(remark, []).append(raw.name)
    return tuple(
        remark if len(names) == len(raws) else f"{', '.join(names)}: {remark}"
        for remark, names in files.items()
    )


class Account:
    """What became of the rows of one source."""

    def __init__(self, raw: RawFacts) -> None:
        self.raw = raw
        self.kept: Bools = np.ones(raw.rows, bool)
        self.joined: Bools = np.zeros(raw.rows, bool)
        """Rows that became the end of the fact in another row."""
        self.unit: str | None = None
        """The unit that reads most of the times that cannot be read."""
        self.unreadable: str | None = None
        """The first of these times, as it was written."""
        self._dropped: Counter[str] = Counter()
        self._notes: Counter[str] = Counter()
        self._shown: list[tuple[int, tuple[str, ...], str]] = []

    def record(
        self,
        what: str,
        rows: npt.NDArray[np.integer],
        *,
        keep: bool = False,
        whys: Sequence[str] = (),
        texts: Sequence[tuple[str, ...]] | None = None,
    ) -> None:
        """Put rows aside, or note that they are kept, but not quite as they were written.

        `whys` and `texts` say more about the first of them.
        """
        if not len(rows):
            return
        (self._notes if keep else self._dropped)[what] += len(rows)
        self.kept[rows] &= keep
        first = rows[:EXAMPLES].tolist()
        whys = [f"{what}: {why}" for why in whys] or [what] * len(first)
        texts = self.raw.texts(first) if texts is None else texts
        self._shown.extend(zip(first, texts, whys, strict=True))

    def join(self, rows: npt.NDArray[np.integer], others: npt.NDArray[np.integer]) -> None:
        """Note that a fact was written in two rows, which count as one."""
        self.record(IN_TWO_ROWS, rows, keep=True)
        self.kept[others] = False
        self.joined[others] = True

    def source(self) -> Source:
        """The counts."""
        raw, kept = self.raw, int(self.kept.sum())
        dropped, notes = dict(self._dropped), dict(self._notes)
        rows = raw.rows - int(self.joined.sum())
        counts = rows, kept, dropped, notes
        return Source(raw.name, raw.split, *counts, raw.header, self.unit, self.unreadable)

    def examples(self) -> list[RowExample]:
        """The first rows that something happened to, and where they stand."""
        if not self._shown:
            return []
        places = self.raw.locate([row for row, _, _ in self._shown])
        return [
            RowExample(place, text, why)
            for place, (_, text, why) in zip(places, self._shown, strict=True)
        ]
