"""Tables as people keep them, and what a person expects of each (`expected.toml`)."""

from __future__ import annotations

import csv
import re
import tomllib
import zipfile
from datetime import date
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

import splime
from splime.errors import DataError
from splime.times import format_ticks
from tests.runs.small import call

HERE = Path(__file__).parent
TABLES: dict[str, Any] = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))
NAMES = [
    pytest.param(name, marks=pytest.mark.xfail(strict=True)) if "not_yet" in expected else name
    for name, expected in TABLES.items()
]
_DAY_ZERO = date(1899, 12, 30)  # of the numbers that stand for days in spreadsheets
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


@pytest.mark.parametrize("name", NAMES)
def test_table(name: str, tmp_path: Path) -> None:
    expected = TABLES[name]
    path = the_file(name, tmp_path)
    option: dict[str, Any] = expected.get("option", {})
    for chosen in option:
        with pytest.raises(DataError, match=chosen):
            splime.load(str(path))
        refused = call("inspect", path)
        assert refused.code
        assert f"--{chosen.replace('_', '-')}" in refused.err
    graph = splime.load(str(path), **option)
    timeline, reading = graph.timeline, graph.reading
    first, last = format_ticks(timeline.starts[[0, -1]], timeline.granularity)
    assert (first, last) == (expected["first"], expected["last"])
    assert (len(graph), len(graph.entities)) == (expected["facts"], expected["entities"])
    assert sum(reading.dropped.values()) == expected.get("dropped", 0)
    assert "" not in graph.entities
    rows = {tuple(value or "" for value in fact) for fact in graph.rows()}
    assert {tuple(row) for row in expected["rows"]} <= rows


def test_most_need_no_option() -> None:
    assert len(TABLES) >= 28
    assert sum("option" not in expected for expected in TABLES.values()) >= 22


def the_file(name: str, folder: Path) -> Path:
    """The table as people have it; the spreadsheet is made of text."""
    path: Path = HERE / TABLES[name]["file"]
    if name != "ministers":
        return path
    with path.open(encoding="utf-8", newline="") as file:
        return spreadsheet(list(csv.reader(file)), folder / "ministers.xlsx")


def spreadsheet(rows: list[list[str]], path: Path) -> Path:
    """An Excel file in which dates are numbers that are shown as dates, as Excel keeps them."""

    def cell(text: str, place: str) -> str:
        if not text:
            return ""
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            number = (date.fromisoformat(text) - _DAY_ZERO).days
            return f'<c r="{place}" s="1"><v>{number}</v></c>'
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(text)}</t></is></c>'

    lines = [
        f'<row r="{at}">'
        + "".join(cell(text, f"{chr(ord('A') + i)}{at}") for i, text in enumerate(row))
        + "</row>"
        for at, row in enumerate(rows, 1)
    ]
    font = "<fonts><font/></fonts><fills><fill/></fills><borders><border/></borders>"
    formats = "<cellXfs><xf/><xf numFmtId='14' applyNumberFormat='1'/></cellXfs>"
    main = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels"'
        ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{main}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{main}.styles+xml"/>'
        f'<Override PartName="/xl/sheet1.xml" ContentType="{main}.worksheet+xml"/></Types>',
        "_rels/.rels": _related(("officeDocument", "xl/workbook.xml")),
        "xl/_rels/workbook.xml.rels": _related(
            ("worksheet", "sheet1.xml"), ("styles", "styles.xml")
        ),
        "xl/workbook.xml": f'<workbook xmlns="{_SHEET}" xmlns:r="{_RELATIONS}"><sheets>'
        '<sheet name="Ministers" sheetId="1" r:id="r0"/></sheets></workbook>',
        "xl/styles.xml": f'<styleSheet xmlns="{_SHEET}">{font}<cellStyleXfs><xf/></cellStyleXfs>'
        f"{formats}</styleSheet>",
        "xl/sheet1.xml": f'<worksheet xmlns="{_SHEET}"><sheetData>{"".join(lines)}</sheetData>'
        "</worksheet>",
    }
    with zipfile.ZipFile(path, "w") as file:
        for part, content in parts.items():
            file.writestr(part, f'<?xml version="1.0" encoding="UTF-8"?>{content}')
    return path


def _related(*parts: tuple[str, str]) -> str:
    relations = "".join(
        f'<Relationship Id="r{at}" Type="{_RELATIONS}/{kind}" Target="{target}"/>'
        for at, (kind, target) in enumerate(parts)
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{relations}</Relationships>'
