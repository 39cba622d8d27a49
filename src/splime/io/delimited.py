"""Facts in text files: .tsv, .csv, .txt and any other text, plain or compressed."""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from splime.errors import DataError, counted, option
from splime.graph import SplitName
from splime.io.columns import EncodedColumn, RawFacts, RowCollector, raw_facts
from splime.io.contents import Contents, is_header, kind_of
from splime.io.formulas import is_csv, without_apostrophes
from splime.io.inference import find_layout
from splime.io.inputs import InputFile, is_quoted, long_values, spaced_cells
from splime.io.layout import (
    EXPECTED,
    NAMES,
    OTHER_OBJECT,
    TIMES,
    Layout,
    are_numbers,
    by_position,
    roles_of,
)
from splime.io.options import ReadOptions
from splime.io.since_until import is_marker, qualify
from splime.io.statements import is_statement, raw_from_fields, term_text

SUFFIXES = (".tsv", ".csv", ".txt", ".tab", ".dat", ".data", ".quad", ".quads")
# Large blocks repeat fewer names in their dictionaries (measured in benchmarks/reading.py: 8 MiB
# reads a third faster, and in less memory, than Arrow's default of 1 MiB; 32 MiB needs more).
_BLOCK = 8 << 20
_LARGEST_BLOCK = 1 << 30
FEWEST = 3
"""So many cells of a row are filled where a table begins; a title has one."""
_RULE = re.compile(r"(?=.*[|+])(?=.*--)[\s|:+-]+")
_FOOTER = re.compile(r"\([0-9]+ rows?\)|[0-9]+ rows? in set.*")
_DELIMITERS = {
    "\t": "tabs",
    ",": "commas",
    ";": "semicolons",
    "|": "vertical bars",
    " ": "spaces",
}


def read_text(file: InputFile, split: SplitName | None, options: ReadOptions) -> RawFacts:
    """Read a text file of facts; every value stays the text it is."""
    if any(map(_RULE.fullmatch, file.head[:3])):
        drawn = read_text(_undrawn(file), split, options)
        return drawn.remarked("bars and dashes that the table is drawn with were left out")
    try:
        raw = _read_text(file, split, options)
    except DataError as error:
        raw = _read_ragged(file, split, options, error)
    if not is_csv(file.path):
        return raw
    names = [column.changed(without_apostrophes) for column in raw.names]
    if all(one is column for one, column in zip(names, raw.names, strict=True)):
        return raw
    remark = "apostrophes that keep names from being formulas were left out"
    return replace(raw, names=names).remarked(remark)


def _undrawn(file: InputFile) -> InputFile:
    """A table as Markdown has it, or a database's terminal: with bars, and lines of dashes."""
    lines = []
    for line in file.lines():
        cells = [
            cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")
        ]
        rule = _RULE.fullmatch(line) or (len(cells) == 1 and _FOOTER.fullmatch(cells[0]))
        lines.append("" if rule else "|".join(cells))
    return InputFile(file.path, content="\n".join([*lines, ""]).encode())


def _read_text(
    file: InputFile, split: SplitName | None, options: ReadOptions, *, titled: bool = True
) -> RawFacts:
    delimiter, remarks = _sniff(file)
    lines = file.rows(delimiter, file.head)
    skip, (number, cells) = 0, next(lines)
    above = _above(row for _, row in file.rows(delimiter, file.head)) if titled else 0
    if above:
        remarks.append("rows above the table were left out")
    for title in itertools.islice(lines, above):
        skip, (number, cells) = number, title
    while _is_comment(cells) and (second := next(lines, None)):
        if len(second[1]) == len(cells):  # the names of the columns
            cells[0] = cells[0].lstrip("# ")
            lines = itertools.chain([second], lines)
            break
        skip, (number, cells) = number, second
    count = _count_line(cells)
    if count is not None and (second := next(lines, None)):
        skip, (number, cells) = number, second
    else:
        count = None
    where = f"{file.path}, line {number}"
    # The last line of a header, in which quoted values may run over several.
    last = number + sum(cell.count("\n") for cell in cells)
    if options.header is not False and is_statement(cells):
        rows = _Rows(file, delimiter, len(cells), last)
        return _read_statements(rows, cells, split, options)
    cells = [_bare(cell, delimiter) for cell in cells]
    bare = ([_bare(cell, delimiter) for cell in row] for _, row in lines if not _is_comment(row))
    below = Contents.of_rows(cells, bare)
    try:
        has_header, layout, said = _layout(cells, below, options, where)
    except _LayoutError as error:
        raise DataError(f"{error}\n{_first_lines(file, delimiter)}") from None
    if above and not has_header:  # without a header, what stands above may be a damaged fact
        return _read_text(file, split, options, titled=False)
    rows = _Rows(file, delimiter, len(cells), last if has_header else skip, has_header)
    times = [layout[role] for role in TIMES if role in layout]
    positions = [*dict.fromkeys(layout.values())]
    columns = dict(zip(positions, rows.columns(positions, times), strict=True))
    made = {role: columns[at] for role, at in layout.items()}
    remarks += [*said, *rows.remarks]
    if count is not None:
        found = made["subject"].rows
        follow = "" if count == found else f"; but {found:,} rows follow"
        remarks.append(f"the first line is a count ({count:,}) and was skipped{follow}")
    for role in [role for role in made if role in NAMES or role.startswith(OTHER_OBJECT)]:
        made[role], left_out = _unwrapped(made[role], delimiter)
        remarks += [f"{left_out} were left out"] * (left_out != "")
    remarks = list(dict.fromkeys(remarks))
    called = {role: cells[at] for role, at in layout.items()} if has_header else None
    raw = raw_facts(file.path.name, made, rows.places, split, options.predicate_name, called)
    header = " ".join(cells) if has_header else None
    return replace(raw, header=header, is_text=True, remarks=(*remarks, *raw.remarks))


def _read_statements(
    rows: _Rows, cells: list[str], split: SplitName | None, options: ReadOptions
) -> RawFacts:
    """Facts below a header that names more than the columns that facts have."""
    names = [cell.strip().strip('"').removeprefix("?") for cell in cells]
    columns = rows.columns(range(len(cells)))
    if all(cell.startswith("?") for cell in cells):  # the values are RDF terms
        columns = [column.mapped(term_text) for column in columns]
    column_of = dict(zip(names, columns, strict=True)).__getitem__
    path = rows.file.path
    raw = raw_from_fields(path, names, column_of, rows.places, split, options)
    return replace(raw, header=" ".join(cells), is_text=True)


class _LayoutError(DataError):
    """The columns of a file that does not name them were not understood."""


def _layout(
    cells: list[str], below: Contents, options: ReadOptions, where: str
) -> tuple[bool, Layout, tuple[str, ...]]:
    """Whether the first line is a header, which columns are what, and remarks about it."""
    columns, header = options.columns, options.header
    one_predicate = options.predicate_name is not None
    try:
        layout = by_position(len(cells), columns, where, one_predicate=one_predicate)
    except DataError as error:
        # Columns chosen by name, or more columns than facts have: fine if they have names.
        named = len(roles_of(cells)) > 2 or not are_numbers(columns)
        if header is None:
            header = named or is_header(cells, below, [])
        if not header:
            raise _LayoutError(str(error)) from None
    else:
        if header is None:
            times = [layout[role] for role in TIMES if role in layout]
            header = is_header(cells, below, times) or len(roles_of(cells)) > 3
            header = header or (columns is None and is_header(cells, below, []))
        if not header and columns is None and below.is_misplaced(layout):
            return False, *find_layout(below.with_first(), options, where)
        if not header:
            return False, layout, ()
    return True, *find_layout(below, options, where)


def _is_comment(cells: list[str]) -> bool:
    return cells[0].lstrip().startswith("#")


def _above(rows: Iterable[list[str]]) -> int:
    """How many rows stand above a table; titles have one or two cells."""
    for at, row in enumerate(rows):
        is_other = _is_comment(row) or _count_line(row) is not None
        if is_other or sum(map(bool, map(str.strip, row))) >= FEWEST:
            return at
    return 0


def _count_line(cells: list[str]) -> int | None:
    """The number of facts, which some write into the first line."""
    text = cells[0].strip()
    is_count = len(cells) == 1 and re.fullmatch("[0-9]{1,15}", text)
    return int(text) if is_count else None


def _bare(cell: str, delimiter: str) -> str:
    """A cell without spaces around it, and without quotes where they are characters like others."""
    cell = cell.strip()
    quoted = not is_quoted(delimiter) and re.fullmatch('"[^"]+"', cell)
    return cell[1:-1] if quoted else cell


def _unwrapped(column: EncodedColumn, delimiter: str) -> tuple[EncodedColumn, str]:
    """A column of names without what the file has around all of them, and what that was.

    `563  ` is the id `563`. Other names stay as they are, unless all of them have spaces or quotes.
    """
    values = column.values
    trimmed = pc.utf8_trim_whitespace(values)
    ids = pc.match_substring_regex(values, "^(?: +[0-9]+ *|[0-9]+ +)$")
    if pc.any(ids).as_py():
        return column.with_values(pc.if_else(ids, trimmed, values)), "spaces around ids"
    all_padded = pc.all(pc.match_substring_regex(values, "^ | $|^$")).as_py()
    if is_quoted(delimiter) and len(values) > 1 and all_padded:
        return column.with_values(trimmed), "spaces around names"
    quotes = '^"(.+)"$|^$'
    if not is_quoted(delimiter) and pc.all(pc.match_substring_regex(values, quotes)).as_py():
        bare = pc.replace_substring_regex(values, '^"(.+)"$', r"\1")
        return column.with_values(pc.replace_substring(bare, '""', '"')), "quotes around names"
    return column, ""


def _first_lines(file: InputFile, delimiter: str) -> str:
    """The beginning of a file that was not understood, as it was read, and what was tried."""
    shown = []
    for number, cells in itertools.islice(file.rows(delimiter, file.head), 3):
        texts = [cell if len(cell) <= 30 else f"{cell[:29]}…" for cell in cells]
        listed = "  ".join(f"[{at}] {text!r}" for at, text in enumerate(texts[:8], start=1))
        shown.append(f"  line {number}: {listed}{'  …' if len(cells) > 8 else ''}")
    lines = _start_of(file)
    counts = {name: _count(lines, delimiter) for delimiter, name in _DELIMITERS.items()}
    listed = ", ".join(f"{count} by {name}" for name, count in counts.items() if count)
    if max(counts.values()) < 4:
        advice = (
            "Facts are lines of 4 or 5 columns, with one of these between them; or of 3, with"
            f" {option('predicate_name', 'worksFor')}."
        )
    else:
        advice = (
            f"{option('columns', 'A,B,…')} chooses columns by number from 1, or by name below a"
            f" header; {option('header')} and {option('header', False)} say whether the first line"
            " holds names."
        )
    begins = f"Read with {_DELIMITERS[delimiter]} between columns, it begins:"
    return "\n".join([begins, *shown, f"Columns in the first line: {listed}.", advice])


@dataclass
class _Rows:
    """The rows of a text file below the lines to skip, all of the same width.

    Below a header they may also be shorter or longer, and comments may stand among them.
    """

    file: InputFile
    delimiter: str
    width: int
    skip: int
    named: bool = False
    remarks: list[str] = field(default_factory=list)

    def columns(self, positions: Sequence[int], times: Sequence[int] = ()) -> list[EncodedColumn]:
        """The columns at some positions, of which some hold times."""
        try:
            table = self._read(positions)
        except DataError as error:
            if not self.named:
                raise
            return self._collect(positions, times, error)
        if table.num_rows == 0:
            raise DataError(f"{self.file.path}: no facts below the header; {EXPECTED}")
        encoded = []
        for name in table.column_names:
            encoded.append(EncodedColumn(table[name]))
            table = table.drop_columns([name])  # its dictionaries, one for each block, are memory
        pa.default_memory_pool().release_unused()
        return encoded

    def _collect(
        self, positions: Sequence[int], times: Sequence[int], error: DataError
    ) -> list[EncodedColumn]:
        """The same where rows differ in length, one by one; what is beyond the header is left out.

        A row that is longer because of a delimiter in a name has no time where one should be, and
        is an error.
        """
        rows, differ = RowCollector(self.file.path.name, "line"), Counter[str]()
        for number, row in self.file.rows(self.delimiter):
            if number <= self.skip or not any(map(str.strip, row)):
                continue
            if len(row) < self.width and _is_comment(row):
                differ["comment left out"] += 1
                continue
            is_long = any(map(str.strip, row[self.width :]))
            shifted = is_long and any(kind_of([row[at]]) not in ("time", "empty") for at in times)
            if shifted or (is_long and not times) or any("\n" in cell for cell in row):
                raise error
            differ["row longer than the header; what is beyond it was left out"] += is_long
            differ["row shorter than the header; what is missing is empty"] += len(row) < self.width
            rows.add(number, ((at, row[at]) for at in positions if at < len(row)))
        if not rows.numbers:
            raise error
        self.places = rows.locate  # type: ignore[method-assign]
        for what, count in differ.items():
            noun, about = what.split(" ", 1)
            self.remarks += [f"{counted(count, noun)} {about}"] * bool(count)
        return [rows.column(at) for at in positions]

    def _read(self, positions: Sequence[int], block_size: int = _BLOCK) -> pa.Table:
        from pyarrow import csv as arrow_csv

        names = [f"c{position}" for position in range(self.width)]
        wanted = [names[position] for position in positions]
        text, quoted = pa.dictionary(pa.int32(), pa.string()), is_quoted(self.delimiter)
        read = arrow_csv.ReadOptions(column_names=names, block_size=block_size, skip_rows=self.skip)
        parse = arrow_csv.ParseOptions(
            delimiter=self.delimiter,
            quote_char='"' if quoted else False,
            newlines_in_values=quoted,
        )
        convert = arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, text),
            include_columns=wanted,
            strings_can_be_null=False,
        )
        try:
            if self.delimiter == " ":
                tables = []
                for block in _single_spaced(self.file):
                    read.block_size = len(block) + 1
                    tables.append(arrow_csv.read_csv(pa.BufferReader(block), read, parse, convert))
                    read.skip_rows = 0
                return pa.concat_tables(tables)
            with self.file.stream() as stream:
                return arrow_csv.read_csv(stream, read, parse, convert)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            if "straddling" in str(error) and block_size < _LARGEST_BLOCK:
                # A line longer than a block.
                return self._read(positions, min(8 * block_size, _LARGEST_BLOCK))
            raise self._diagnose(error) from None

    def places(self, rows: Sequence[int]) -> list[str]:
        """Where rows stand: for messages."""
        numbers = (number for number, _ in self.file.rows(self.delimiter) if number > self.skip)
        until, wanted = enumerate(itertools.islice(numbers, max(rows) + 1)), {*rows}
        lines = {row: number for row, number in until if row in wanted}
        return [f"{self.file.path.name}, line {lines[row]}" for row in rows]

    def _diagnose(self, error: Exception) -> DataError:
        """An error with the line that Arrow could not read, which reading again slowly finds."""
        try:
            for number, cells in self.file.rows(self.delimiter):
                if len(cells) != self.width and number > self.skip:
                    return DataError(
                        f"{self.file.path}, line {number}: expected {self.width} columns as in the"
                        f" first line, found {len(cells)}: {self.delimiter.join(cells)[:80]!r}"
                    )
        except DataError as located:
            return located
        return DataError(f"{self.file.path}: cannot be read: {error}")


def _single_spaced(file: InputFile) -> Iterator[bytes]:
    """The blocks of a file, of whole lines, with one space for runs of spaces and tabs.

    Replacing bytes is much faster than taking lines apart.
    """
    with file.open() as stream:
        block = stream.readline().removeprefix(b"\xef\xbb\xbf")
        while block := block + stream.read(_BLOCK) + stream.readline():
            block = block.replace(b"\t", b" ")
            while b"  " in block:
                block = block.replace(b"  ", b" ")
            for end in (b"\n", b"\r"):
                block = block.replace(b" " + end, end).replace(end + b" ", end)
            if block := block.strip(b" "):
                yield block
            block = b""


def _start_of(file: InputFile) -> list[str]:
    """The first lines that are not empty, without one that only counts the others."""
    lines = [line for line in file.head if line.strip(" \n")]
    if not lines:
        raise DataError(f"{file.path}: the file is empty; {EXPECTED}")
    lines = [line for line in lines if not line.lstrip().startswith("#")] or lines
    lines = lines[_above(re.split("[\t,;|]", line) for line in lines) :]
    return lines[1:] if _count_line([lines[0]]) is not None and len(lines) > 1 else lines


def _sniff(file: InputFile) -> tuple[str, list[str]]:
    """The delimiter, from the name of the file and its first lines; and what to remark about it."""
    comma = is_csv(file.path)
    usual, lines = "," if comma else "\t", _start_of(file)
    counts = {delimiter: _count(lines, delimiter) for delimiter in _DELIMITERS}
    many = range(4, max(counts.values()) + 1)
    # Facts have 4 or 5 columns; perhaps there are others too.
    for delimiters, wanted in (
        ("" if comma else "\t", many),
        (",;|", range(4, 6)),
        (",;|", many),
        ("\t ", many),
        (_DELIMITERS, range(2, 4)),  # too few, but this is how to show them
    ):
        for delimiter in delimiters:
            if counts[delimiter] in wanted:
                remark = f"fields are separated by {_DELIMITERS[delimiter]}"
                return delimiter, [] if delimiter == usual else [remark]
    return usual, []


def _count(lines: list[str], delimiter: str) -> int:
    """How many columns the first row has, if this is the delimiter."""
    if delimiter == " ":  # names have spaces too, so nearly all rows have to agree
        (count, rows), *_ = Counter(len(spaced_cells(line)) for line in lines).most_common(1)
        return count if rows >= 0.9 * len(lines) else 0
    if delimiter == "\t":
        return lines[0].count("\t") + 1
    with long_values():
        try:
            return next((len(row) for row in csv.reader(lines, delimiter=delimiter) if row), 0)
        except csv.Error:
            return 0


def _read_ragged(
    file: InputFile, split: SplitName | None, options: ReadOptions, error: DataError
) -> RawFacts:
    """A text file in which rows of three columns, without a time, stand among longer ones.

    Such a row may also have lost its time, so other rows have to say `since` or `until`, or the
    option `without_time` has to be given; else the file is refused with the error that it had.
    """
    delimiter, remarks = _sniff(file)
    widths, wanted = _widths(file, delimiter), options.without_time is not None
    if not widths or (len(widths) == 1 and not wanted):
        raise error
    width = max(widths) if len(widths) > 1 else 5
    layout = by_position(width, options.columns, str(file.path))
    rows, header = RowCollector(file.path.name, "line"), None
    nothing = Contents.of_rows([""] * width, [])
    for number, row in _rows(file, delimiter):
        if len(row) == 3 and any(map(is_marker, row)):
            raise error  # what is left of a longer one
        first = not (rows.numbers or header) and len(row) == width
        if first and is_header(row, nothing, [layout[role] for role in TIMES if role in layout]):
            header = " ".join(row)
            continue
        rows.add(number, ((at, row[at]) for at in layout.values() if at < len(row)))
    remarks.append("rows of three columns are facts without a time")
    columns = [rows.column(at) for at in layout.values()]
    raw = RawFacts(rows.name, columns[:3], columns[3:], rows.locate, split)
    raw = replace(raw, header=header, is_text=True, remarks=tuple(remarks))
    qualified = qualify(raw)
    if not wanted and qualified is raw:
        raise DataError(
            f"{error}; if rows of three columns are facts without a time, choose what becomes of"
            f" them: {option('without_time', 'unknown')} or {option('without_time', 'always')}"
        )
    return qualified


def _rows(file: InputFile, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a file; a line of nothing but delimiters is none."""
    return ((number, row) for number, row in file.rows(delimiter) if any(map(str.strip, row)))


def _widths(file: InputFile, delimiter: str) -> set[int]:
    """How many columns the rows have: 3, and perhaps 4 or 5; empty if it is anything else."""
    widths: set[int] = set()
    for _, row in _rows(file, delimiter):
        widths.add(len(row))
        if not (widths <= {3, 4} or widths <= {3, 5}):
            return set()
    return widths if 3 in widths else set()
