"""Facts in text files: .tsv, .csv and .txt, plain or compressed (.gz, .zst); read and written."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splime.errors import DataError, SplimeError, UsageError, checked
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, SplitName, TemporalGraph
from splime.io.columns import EncodedColumn, RawFacts
from splime.io.files import check_one_line, split_files, written_beside
from splime.io.layout import (
    EXPECTED,
    Layout,
    are_numbers,
    by_name,
    by_position,
    looks_like_header,
    named_otherwise,
    roles_of,
)
from splime.times import format_ticks

# Large blocks repeat fewer names in their dictionaries (measured in benchmarks/reading.py: 8 MiB
# reads a third faster, and in less memory, than Arrow's default of 1 MiB; 32 MiB needs more).
_BLOCK = 8 << 20
_LARGEST_BLOCK = 1 << 30
_ROWS = 1 << 18  # written at a time, so that the text of a large graph is never in memory
_BOM = "\ufeff"
_PACKED = {".gz": "gzip", ".zst": "zstd"}
# The lines that the delimiter is found from. A quoted name may run over several of them, but a
# quote may also never be closed.
_MOST_LINES = 1000
_DELIMITERS = {
    "\t": "tabs",
    ",": "commas",
    ";": "semicolons",
    "|": "vertical bars",
    " ": "spaces",
}


@dataclass(frozen=True)
class Dialect:
    """How a text file separates its values; a space stands for runs of spaces and tabs."""

    delimiter: str

    @property
    def quoted(self) -> bool:
        """Whether values may stand in double quotes, with line breaks and delimiters inside."""
        return self.delimiter not in "\t "


def read_delimited(
    path: Path,
    *,
    split: SplitName | None = None,
    columns: Sequence[str] | None = None,
    header: bool | None = None,
) -> RawFacts:
    """Read a text file of facts; every value stays the text it is."""
    dialect, guesses = _sniff(path)
    rows = rows_of(path, dialect)
    skip, (line_number, cells) = 0, next(rows)
    count = _count_line(cells)
    if count is not None and (second := next(rows, None)):
        skip, (line_number, cells) = line_number, second
    else:
        count = None
    try:
        has_header, layout = _layout(cells, columns, header, f"{path}, line {line_number}")
    except DataError as error:
        raise DataError(f"{error}\n{_first_lines(path, dialect)}") from None
    if has_header:
        skip = line_number + sum(cell.count("\n") for cell in cells)  # names may run over lines
        if columns is None:
            guesses += named_otherwise(cells, layout)
    table = _read(path, dialect, len(cells), layout.positions, skip=skip)
    if table.num_rows == 0:
        raise DataError(f"{path}: no facts below the header; {EXPECTED}")

    encoded = []
    for name in table.column_names:
        encoded.append(EncodedColumn(table[name]))
        table = table.drop_columns([name])  # its dictionaries, one for each block, are memory
    pa.default_memory_pool().release_unused()

    def locate(rows: Sequence[int]) -> list[str]:
        lines = _line_numbers(path, dialect, rows, skip + 1)
        return [f"{path.name}, line {number}" for number in lines]

    if count is not None:
        told = f"the first line is a count ({count:,}) and was skipped"
        differs = count != encoded[0].rows
        guesses.append(f"{told}; but {encoded[0].rows:,} rows follow" if differs else told)
    if [column for column in encoded[:3] if _unpad(column)]:
        guesses.append("spaces around ids were left out")
    times = encoded[3 : len(layout.facts)]
    splits = None if layout.split is None else encoded[-1]
    head = " ".join(cells) if has_header else None
    return RawFacts(
        path.name, encoded[:3], times, locate, split, splits, head, is_text=True, guesses=guesses
    )


def _layout(
    cells: list[str], columns: Sequence[str] | None, header: bool | None, where: str
) -> tuple[bool, Layout]:
    """Whether the first line is a header, and which columns are what."""
    if header is None:
        try:
            words = looks_like_header(cells, by_position(len(cells), columns, where))
            header = words or len(roles_of(cells)) > 3
        except DataError:
            # Columns asked for by name, or more columns than facts have: fine if they have names.
            header = len(roles_of(cells)) > 2 or not are_numbers(columns)
            if not header:
                raise
    if header:
        return True, by_name(cells, columns, where)
    return False, by_position(len(cells), columns, where)


def _count_line(cells: list[str]) -> int | None:
    """The number of facts, which some write into the first line."""
    text = cells[0].strip()
    is_count = len(cells) == 1 and re.fullmatch("[0-9]{1,15}", text)
    return int(text) if is_count else None


def _unpad(column: EncodedColumn) -> bool:
    """Take the spaces from around ids: `563  ` is `563`. Names stay as they are."""
    padded = pc.match_substring_regex(column.values, "^(?: +[0-9]+ *|[0-9]+ +)$")
    if not pc.any(padded).as_py():
        return False
    column.values = pc.if_else(padded, pc.utf8_trim_whitespace(column.values), column.values)
    return True


def _first_lines(path: Path, dialect: Dialect) -> str:
    """The beginning of a file that was not understood, as it was read, and what was tried."""
    shown = []
    for number, cells in itertools.islice(rows_of(path, dialect), 3):
        texts = [cell if len(cell) <= 30 else f"{cell[:29]}…" for cell in cells]
        listed = "  ".join(f"[{at}] {text!r}" for at, text in enumerate(texts[:8], start=1))
        shown.append(f"  line {number}: {listed}{'  …' if len(cells) > 8 else ''}")
    lines = _start_of(path)
    counts = {name: _count(lines, each) for each, name in _DELIMITERS.items()}
    listed = ", ".join(f"{count} by {name}" for name, count in counts.items() if count)
    if max(counts.values()) < 4:
        advice = "Facts are lines of 4 or 5 columns, with one of these between them."
    else:
        advice = (
            "--columns chooses columns by number from 1, or by name below a header; --header and"
            " --no-header say whether the first line holds names."
        )
    begins = f"Read with {_DELIMITERS[dialect.delimiter]} between columns, it begins:"
    return "\n".join([begins, *shown, f"Columns in the first line: {listed}.", advice])


def _read(
    path: Path,
    dialect: Dialect,
    count: int,
    positions: list[int],
    skip: int,
    block_size: int = _BLOCK,
) -> pa.Table:
    from pyarrow import csv as arrow_csv

    names = [f"c{position}" for position in range(count)]
    wanted = [names[position] for position in positions]
    text = pa.dictionary(pa.int32(), pa.string())
    read = arrow_csv.ReadOptions(column_names=names, block_size=block_size, skip_rows=skip)
    parse = arrow_csv.ParseOptions(
        delimiter=dialect.delimiter,
        quote_char='"' if dialect.quoted else False,
        newlines_in_values=dialect.quoted,
    )
    convert = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(wanted, text), include_columns=wanted, strings_can_be_null=False
    )
    try:
        if dialect.delimiter == " ":
            tables = []
            for block in _single_spaced(path):
                read.block_size = len(block) + 1
                tables.append(arrow_csv.read_csv(pa.BufferReader(block), read, parse, convert))
                read.skip_rows = 0
            return pa.concat_tables(tables)
        with _stream(path) as stream:
            return arrow_csv.read_csv(stream, read, parse, convert)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if "straddling" in str(error) and block_size < _LARGEST_BLOCK:
            # A line longer than a block.
            larger = min(8 * block_size, _LARGEST_BLOCK)
            return _read(path, dialect, count, positions, skip, larger)
        raise _diagnose(path, dialect, count, skip, error) from None


def _single_spaced(path: Path) -> Iterator[bytes]:
    """The blocks of a file, of whole lines, with one space for runs of spaces and tabs.

    Replacing bytes is much faster than taking lines apart.
    """
    with _open(path) as stream:
        block = stream.readline().removeprefix(_BOM.encode())
        while block := block + stream.read(_BLOCK) + stream.readline():
            block = block.replace(b"\t", b" ")
            while b"  " in block:
                block = block.replace(b"  ", b" ")
            for end in (b"\n", b"\r"):
                block = block.replace(b" " + end, end).replace(end + b" ", end)
            if block := block.strip(b" "):
                yield block
            block = b""


def _stream(path: Path) -> pa.NativeFile:
    return pa.input_stream(str(path), compression=_PACKED.get(path.suffix.lower()))


def _open(path: Path) -> IO[bytes]:
    try:
        stream = _stream(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: cannot be opened: {error}") from None
    return io.BufferedReader(stream)


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file; a broken encoding is an error with its line."""
    with _open(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", errors="surrogateescape", newline=None)
        for number in itertools.count(1):
            try:
                line = text.readline().removeprefix(_BOM if number == 1 else "")
            except (pa.ArrowException, OSError) as error:
                raise DataError(f"{path}: the file is damaged: {error}") from None
            if not line:
                return
            try:
                line.encode("utf-8")
            except UnicodeEncodeError as error:
                byte = ord(line[error.start]) - 0xDC00
                raise DataError(
                    f"{path}, line {number}, character {error.start + 1}: the byte 0x{byte:02x} is"
                    " not UTF-8; convert the file to UTF-8"
                ) from None
            yield line


def _start_of(path: Path) -> list[str]:
    """The first lines that are not empty, without one that only counts the others."""
    lines: list[str] = []
    length = 0
    for line in itertools.islice(_lines(path), _MOST_LINES):
        length += len(line)
        if line.strip(" \n"):
            lines.append(line)
        if len(lines) > 1 and length > _BLOCK:
            break
    if not lines:
        raise DataError(f"{path}: the file is empty; {EXPECTED}")
    return lines[1:] if _count_line([lines[0]]) is not None and len(lines) > 1 else lines


def _sniff(path: Path) -> tuple[Dialect, list[str]]:
    """The dialect, from the name of the file and its first lines; and what of it is a guess."""
    is_csv = ".csv" in (suffix.lower() for suffix in path.suffixes)
    usual, lines = "," if is_csv else "\t", _start_of(path)
    counts = {delimiter: _count(lines, delimiter) for delimiter in _DELIMITERS}
    many = range(4, max(counts.values()) + 1)
    # Facts have 4 or 5 columns; perhaps there are others too.
    for delimiters, wanted in (
        ("" if is_csv else "\t", many),
        (",;|", range(4, 6)),
        (",;|", many),
        ("\t ", many),
        (_DELIMITERS, range(2, 4)),  # too few, but this is how to show them
    ):
        for delimiter in delimiters:
            if counts[delimiter] in wanted:
                guess = f"fields are separated by {_DELIMITERS[delimiter]}"
                return Dialect(delimiter), [] if delimiter == usual else [guess]
    return Dialect(usual), []


def _count(lines: list[str], delimiter: str) -> int:
    """How many columns the first row has, if this is the delimiter."""
    if delimiter == " ":  # names have spaces too, so nearly all rows have to agree
        (count, rows), *_ = Counter(len(_fields(line)) for line in lines).most_common(1)
        return count if rows >= 0.9 * len(lines) else 0
    if delimiter == "\t":
        return lines[0].count("\t") + 1
    with _long_values():
        try:
            return next((len(row) for row in csv.reader(lines, delimiter=delimiter) if row), 0)
        except csv.Error:
            return 0


def _fields(line: str) -> list[str]:
    """What stands between runs of spaces and tabs."""
    return [cell for cell in re.split("[ \t]+", line.strip("\n")) if cell]


@contextmanager
def _long_values() -> Iterator[None]:
    """Let Python's CSV reader take values of any length."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def rows_of(path: Path, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Line number and values of every row, slowly: to find the line of an error or an example."""
    if not dialect.quoted:
        for number, line in enumerate(_lines(path), start=1):
            if dialect.delimiter == " ":
                if cells := _fields(line):
                    yield number, cells
            elif line != "\n":
                yield number, line.rstrip("\n").split(dialect.delimiter)
        return
    reader = csv.reader(_lines(path), delimiter=dialect.delimiter)
    start = 1
    try:
        with _long_values():
            for cells in reader:
                if cells:
                    yield start, cells
                start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}, line {start}: {error}") from None


def _line_numbers(path: Path, dialect: Dialect, rows: Sequence[int], first: int) -> list[int]:
    """The line numbers of some data rows; the data begin at or after line `first`."""
    wanted = set(rows)
    if dialect.delimiter != "\t":
        numbers = (number for number, _ in rows_of(path, dialect) if number >= first)
        counted = zip(range(max(rows) + 1), numbers, strict=False)
        lines = {row: number for row, number in counted if row in wanted}
    else:
        lines = _count_lines(path, wanted, first)
    return [lines[row] for row in rows]


def _count_lines(path: Path, wanted: set[int], first: int) -> dict[int, int]:
    """The line numbers of rows that are one line each, counted in blocks: files can be large."""
    lines: dict[int, int] = {}
    row, line = 0, 1
    with _open(path) as stream:
        while len(lines) < len(wanted) and (block := stream.read(_BLOCK) + stream.readline()):
            count = block.count(b"\n") + (not block.endswith(b"\n"))
            plain = not (block.startswith(b"\n") or b"\n\n" in block or b"\r" in block)
            if plain and line >= first and wanted.isdisjoint(range(row, row + count)):
                row, line = row + count, line + count
                continue
            for text in block.splitlines():
                if text and line >= first:
                    if row in wanted:
                        lines[row] = line
                    row += 1
                line += 1
    return lines


def _diagnose(path: Path, dialect: Dialect, count: int, skip: int, error: Exception) -> DataError:
    """An error with the line that Arrow could not read, which reading again slowly finds."""
    try:
        for number, cells in rows_of(path, dialect):
            if len(cells) != count and number > skip:
                shown = dialect.delimiter.join(cells)[:80]
                return DataError(
                    f"{path}, line {number}: expected {count} columns as in the first line, found"
                    f" {len(cells)}: {shown!r}"
                )
    except DataError as located:
        return located
    return DataError(f"{path}: cannot be read: {error}")


@checked
def write_text(
    graph: TemporalGraph, folder: str | Path, *, format: Literal["tsv", "csv"] = "tsv"
) -> list[Path]:
    """Write train, valid and test as text files without header into a folder.

    A tab or a line break in a name is an error in tab-separated files; `csv` can hold it. Other
    files of splits in the folder, which would be read together with these, are an error too.
    """
    if format not in ("tsv", "csv"):
        raise UsageError(f"text files are tsv or csv, not {format!r}")
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SplimeError(f"{folder}: cannot be made: {error}") from None
    if format == "tsv":
        for names in (graph.entities, graph.predicates):
            check_one_line(names.labels, "a .tsv file", "write csv or Parquet", kind=names.kind)
        for _, facts in graph.splits():
            if len(facts) and graph.entities[facts.subject[0]].startswith(_BOM):
                raise UsageError(
                    f"the entity {graph.entities[facts.subject[0]]!r} begins with a byte order"
                    " mark, which a .tsv file cannot at its start; write csv or Parquet"
                )
    paths = {split: folder / f"{split}.{format}" for split, facts in graph.splits() if len(facts)}
    there = [
        path
        for split, files in split_files(folder).items()
        for rank, path in files
        if rank == 0 or split not in paths  # others give way to train.tsv
    ]
    if others := [path.name for path in there if path not in paths.values()]:
        raise UsageError(
            f"{folder}: {', '.join(others)} would be read together with the files to be written;"
            " remove what is there, or write to another folder"
        )
    for split, path in paths.items():
        own = graph.where(split=split)
        with written_beside(path) as beside, beside.open("wb") as file:
            for start in range(0, len(own), _ROWS):
                file.write(_text(own, slice(start, start + _ROWS), path.suffix))
    return [*paths.values()]


def _text(graph: TemporalGraph, rows: slice, suffix: str) -> bytes:
    """Some facts as lines of text."""
    from pyarrow import csv as arrow_csv

    facts = graph.facts().take(np.arange(len(graph))[rows])
    entities, predicates = graph.entities.labels, graph.predicates.labels
    columns = [
        labels.take(pa.array(ids))
        for labels, ids in zip((entities, predicates, entities), facts.columns()[:3], strict=True)
    ]
    for ticks, bit in ((facts.begin, BEGIN_UNKNOWN), (facts.end, END_UNKNOWN)):
        dates = pa.array(format_ticks(ticks, graph.timeline.granularity), pa.large_string())
        columns.append(pc.if_else(pa.array((facts.unknown & bit) != 0), "", dates))
    if suffix == ".tsv":
        # Arrow's own writer refuses quotes in a file without quoting.
        tab = pa.scalar("\t", pa.large_string())
        lines = pc.binary_join_element_wise(*columns, tab).to_pylist()
        return "".join(f"{line}\n" for line in lines).encode()
    sink = pa.BufferOutputStream()
    table = pa.table(columns, names=list("spobe"))
    arrow_csv.write_csv(table, sink, arrow_csv.WriteOptions(include_header=False))
    return bytes(sink.getvalue())
