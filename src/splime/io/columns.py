"""Facts as they were read, as dictionary-encoded text columns; and what became of their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splime.errors import DataError
from splime.graph import SplitName
from splime.reading import Example, Source
from splime.times import Bools

_T = TypeVar("_T", bound=np.generic)
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
        self.values: pa.Array = (
            column.chunk(0).dictionary if column.num_chunks else pa.array([], pa.string())
        )
        self._chunks: list[pa.Array] = [_signed(chunk.indices) for chunk in column.chunks]
        self.rows: int = len(column)

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
            codes = chunk.drop_null().to_numpy()
            total += np.bincount(codes, minlength=len(self.values))
        return total

    @property
    def missing(self) -> int:
        """How many rows have no value."""
        return sum(chunk.null_count for chunk in self._chunks)

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Some rows as text, for examples."""
        return ["" if code < 0 else str(self.values[code].as_py()) for code in self.codes(rows)]

    def codes(self, rows: Sequence[int]) -> list[int]:
        """The codes of a few rows."""
        starts = np.cumsum([0, *map(len, self._chunks)])
        found = []
        for row in rows:
            chunk = int(np.searchsorted(starts, row, side="right")) - 1
            code = self._chunks[chunk][row - int(starts[chunk])].as_py()
            found.append(-1 if code is None else code)
        return found

    def free(self) -> None:
        """Give the memory of the codes back."""
        self._chunks = []
        pa.default_memory_pool().release_unused()  # else Arrow keeps it for itself

    def first_row(self, code: int) -> int:
        """The first row that holds a value (-1: the first without one)."""
        codes = self.lookup(np.arange(len(self.values)), -1)
        return int(np.argmax(codes == code))


def _check_split(column: EncodedColumn, split: SplitName, locate: Locate) -> None:
    """Raise DataError where a column of splits contradicts the split that the facts are from."""
    names = column.values.to_pylist()
    agrees = column.lookup(np.array([name == split for name in names], bool))
    if not agrees.all():
        row = int(np.argmin(agrees))
        raise DataError(
            f"{locate([row])[0]}: the split is {column.texts([row])[0]!r}, but these are the facts"
            f" of {split}"
        )


def _signed(codes: pa.Array) -> pa.Array:
    """Codes that -1 can be among, as it stands for a missing value."""
    if pa.types.is_signed_integer(codes.type):
        return codes
    return codes.cast(pa.int32() if codes.type.bit_width <= 16 else pa.int64())


@dataclass
class RawFacts:
    """One file or table of facts as text; `end` is None for events."""

    name: str
    subject: EncodedColumn
    predicate: EncodedColumn
    object: EncodedColumn
    begin: EncodedColumn
    end: EncodedColumn | None
    locate: Locate
    """Where rows stand, for messages: `train.txt, line 216`."""
    split: SplitName | EncodedColumn | None = None
    header: str | None = None

    @classmethod
    def of(
        cls,
        name: str,
        columns: Sequence[EncodedColumn],
        locate: Locate,
        split: SplitName | None,
        in_table: EncodedColumn | None = None,
        header: str | None = None,
    ) -> RawFacts:
        """Facts from their 4 or 5 columns, and a column of splits if they have one."""
        if split is not None and in_table is not None:
            _check_split(in_table, split, locate)
        subject, predicate, object, begin = columns[:4]
        end = columns[4] if len(columns) == 5 else None
        own = in_table if split is None else split
        return cls(name, subject, predicate, object, begin, end, locate, own, header)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.subject.rows

    def texts(self, rows: Sequence[int]) -> list[tuple[str, ...]]:
        """Some rows as they were written."""
        columns = [self.subject, self.predicate, self.object, self.begin]
        if self.end is not None:
            columns.append(self.end)
        return list(zip(*(column.texts(rows) for column in columns), strict=True))


class Account:
    """What became of the rows of one source."""

    def __init__(self, raw: RawFacts) -> None:
        self.raw = raw
        self.kept: Bools = np.ones(raw.rows, bool)
        self._dropped: Counter[str] = Counter()
        self._notes: Counter[str] = Counter()
        self._shown: list[tuple[int, tuple[str, ...], str]] = []

    def drop(
        self,
        reason: str,
        rows: npt.NDArray[np.integer],
        *,
        whys: Sequence[str] = (),
        texts: Sequence[tuple[str, ...]] | None = None,
    ) -> None:
        """Put rows aside; `whys` and `texts` say more about the first of them."""
        if len(rows):
            self._dropped[reason] += len(rows)
            self.kept[rows] = False
            self._show(reason, rows, whys, texts)

    def note(self, what: str, rows: npt.NDArray[np.integer]) -> None:
        """Remember rows that are kept, but not quite as they were written."""
        if len(rows):
            self._notes[what] += len(rows)
            self._show(what, rows, (), None)

    def _show(
        self,
        what: str,
        rows: npt.NDArray[np.integer],
        whys: Sequence[str],
        texts: Sequence[tuple[str, ...]] | None,
    ) -> None:
        first = rows[:EXAMPLES].tolist()
        whys = [f"{what}: {why}" for why in whys] or [what] * len(first)
        texts = self.raw.texts(first) if texts is None else texts
        self._shown.extend(zip(first, texts, whys, strict=True))

    def source(self) -> Source:
        """The counts."""
        return Source(
            self.raw.name,
            self.raw.split if isinstance(self.raw.split, str) else None,
            self.raw.rows,
            int(self.kept.sum()),
            dict(self._dropped),
            dict(self._notes),
            self.raw.header,
        )

    def examples(self) -> list[Example]:
        """The first rows that something happened to, and where they stand."""
        if not self._shown:
            return []
        places = self.raw.locate([row for row, _, _ in self._shown])
        return [
            Example(place, text, why)
            for place, (_, text, why) in zip(places, self._shown, strict=True)
        ]
