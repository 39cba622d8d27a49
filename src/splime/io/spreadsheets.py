"""Spreadsheets: the rows of a sheet become lines of text, and are read as those of a text file."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splime.errors import DataError, UsageError, nearest, not_installed, option
from splime.graph import SplitName
from splime.io.columns import RawFacts
from splime.io.delimited import FEWEST, read_text
from splime.io.inputs import InputFile
from splime.io.options import ReadOptions

if TYPE_CHECKING:
    from python_calamine import CalamineWorkbook

SUFFIXES = (".xlsx", ".xlsm")
# More of either is no table of facts, and the library would take many gigabytes for it, or end the
# whole process: it makes room for all cells up to the last one, and one may lie far away.
_MOST_BYTES = 4 << 30
_MOST_CELLS = 1 << 25
_CHUNK = 1 << 22
_CELL = re.compile(rb"""<(?:\w+:)?c\s[^<>]{0,200}?\br=["']([A-Z]{1,3})([0-9]{1,7})["']""")
_LONGEST = 256


def read_spreadsheet(file: InputFile, split: SplitName | None, options: ReadOptions) -> RawFacts:
    """Read the facts of a sheet: of the one that was chosen, or of the first with a table."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError as error:
        raise not_installed("Reading Excel files", error) from None
    try:
        content = file.path.read_bytes() if file.content is None else file.content
        _check_size(file.path, content)
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(content))
        lines, remarks = _table(workbook, file.path, options.table)
    except (CalamineError, zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError) as error:
        raise DataError(f"{file.path}: cannot be read as an Excel file (.xlsx): {error}") from None
    except (NotImplementedError, RuntimeError) as error:  # packed in another way, or encrypted
        raise DataError(f"{file.path}: cannot be read; save it anew: {error}") from None
    text = InputFile(file.path, content="\n".join([*lines, ""]).encode())
    raw = read_text(text, split, options)
    return replace(raw, remarks=(*remarks, *raw.remarks))


def _check_size(path: Path, content: bytes) -> None:
    """An error if a file is too large for the library; or damaged, as all of it is unpacked."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = archive.infolist()
        if (size := sum(part.file_size for part in parts)) > _MOST_BYTES:
            raise DataError(f"{path}: {size:,} bytes unpacked; save the table as .csv")
        for part in parts:
            rows, columns, rest = 0, {b""}, b""
            with archive.open(part) as stream:
                while chunk := stream.read(_CHUNK):
                    cells = _CELL.findall(rest + chunk)
                    columns |= {column for column, _ in cells}
                    rows = max(rows, *(int(row) for _, row in cells), 0)
                    rest = chunk[-_LONGEST:]
            if rows * (width := max(map(_number, columns))) > _MOST_CELLS:
                raise DataError(
                    f"{path}: a sheet has cells as far as row {rows:,} and column {width:,}; delete"
                    " what lies beyond the table, or save it as .csv"
                )


def _number(column: bytes) -> int:
    """The number of a column: 1 of A, 27 of AA."""
    number = 0
    for letter in column:
        number = 26 * number + letter - 64
    return number


def _table(
    workbook: CalamineWorkbook, path: Path, wanted: str | None
) -> tuple[list[str], list[str]]:
    """The lines of the sheet to read, and what to remark."""
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    names = workbook.sheet_names
    if wanted is not None and wanted not in names:
        raise UsageError(
            f"{path}: there is no sheet {wanted!r} among {', '.join(names)}."
            f"{nearest(wanted, names)}"
        )
    shown = [
        sheet.name
        for sheet in workbook.sheets_metadata
        if sheet.typ == SheetTypeEnum.WorkSheet and sheet.visible == SheetVisibleEnum.Visible
    ]
    for name in shown if wanted is None else [wanted]:
        if lines := _lines(workbook, name):
            break
    else:
        raise DataError(f"{path}: no table is in {wanted or ', '.join(shown)}")
    remarks = []
    if wanted is None and len(shown) > 1:
        others = ", ".join(repr(other) for other in shown if other != name)
        chosen = option("table", "NAME")
        remarks = [f"the sheet {name!r} is read; {chosen} chooses another: {others}"]
    return lines, remarks


def _lines(workbook: CalamineWorkbook, name: str) -> list[str]:
    """The rows of a sheet, each at its number; none if there is no table."""
    sheet = workbook.get_sheet_by_name(name)
    rows: list[list[Any]] = sheet.to_python(skip_empty_area=True)
    filled = [sum(cell != "" for cell in row) for row in rows]
    if sum(count >= FEWEST for count in filled) < 2 or sheet.start is None:
        return []
    # A date is a time at midnight where other cells of the column have a time of day.
    timed = [
        any(isinstance(cell, datetime) for cell in column) for column in zip(*rows, strict=True)
    ]
    lines = [""] * sheet.start[0]
    for row, count in zip(rows, filled, strict=True):
        cells = [_text(cell, exact) for cell, exact in zip(row, timed, strict=True)]
        lines.append("\t".join(cells) if count else "")
    return lines


def _text(cell: object, exact: bool) -> str:
    """A cell as text in a line."""
    if isinstance(cell, str):
        return re.sub(r"[\t\r\n]+", " ", cell)
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, date):
        is_day = exact and not isinstance(cell, datetime)
        return f"{cell.isoformat()}T00:00:00" if is_day else cell.isoformat()
    return str(cell)
