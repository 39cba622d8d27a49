"""Excel files, written by another library than the one that reads them."""

from __future__ import annotations

import builtins
import datetime as dt
import io
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given, strategies as st

import splime
from splime.errors import DataError, SplimeError, UsageError
from tests.runs.small import call
from tests.tables.test_tables import spreadsheet

HEADER = ("subject", "predicate", "object", "begin", "end")
ROWS: list[tuple[Any, ...]] = [
    ("Ada", "leads", "Search", dt.date(1990, 1, 2), dt.date(1994, 5, 31)),
    ("Bob", "works for", "Ads, and more", dt.date(1992, 3, 1), None),
    ('Cleo "C"', "works for", 7, None, dt.datetime(1999, 12, 31)),
]
FACTS = {
    ("Ada", "leads", "Search", "1990-01-02", "1994-05-31"),
    ("Bob", "works for", "Ads, and more", "1992-03-01", None),
    ('Cleo "C"', "works for", "7", None, "1999-12-31"),
}


def write(path: Path, sheets: dict[str, list[tuple[Any, ...]]], **more: Any) -> Path:
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for name, rows in sheets.items():
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(row)
    workbook.save(path)
    return path


def rows(graph: splime.TemporalGraph) -> set[tuple[Any, ...]]:
    return {tuple(fact) for fact in graph.rows()}


def test_a_sheet(tmp_path: Path) -> None:
    path = write(tmp_path / "facts.xlsx", {"Facts": [HEADER, *ROWS]})
    graph = splime.read(path, split="none")
    assert rows(graph) == FACTS
    assert graph.reading.sources[0].header is not None
    assert not any("sheet" in remark for remark in graph.reading.remarks)
    done = call("ask", path, "Ada", "leads", "?", "--at", "1991-01-01")
    assert "Search" in done.out


def test_without_a_header_and_in_folders(tmp_path: Path) -> None:
    write(tmp_path / "train.xlsx", {"a": ROWS})
    write(tmp_path / "test.xlsx", {"a": ROWS[:2]})
    graph = splime.read(tmp_path)
    assert (len(graph.train), len(graph.test)) == (3, 2)


def test_titles_gaps_and_places(tmp_path: Path) -> None:
    """Rows keep their numbers; what stands above the table is left out, and said."""
    late = [*(("",) * 5,) * 2, ("", "Staff, 1990 to 1999"), ()]
    body = [HEADER, ROWS[0], (), ROWS[1], ("Eve", "leads", "X", "never", None), ROWS[2]]
    shifted = [(None, *row) for row in [*late, *body]]
    graph = splime.read(write(tmp_path / "facts.xlsx", {"Facts": shifted}), split="none")
    assert rows(graph) == FACTS
    assert graph.reading.dropped == {"unreadable time": 1}
    assert graph.reading.examples[0].where == "facts.xlsx, line 9"
    assert "rows above the table were left out" in graph.reading.remarks


def test_several_sheets(tmp_path: Path) -> None:
    other = [("x", "p", "y", 1990, 1991), ("z", "p", "y", 1990, 1992)]
    sheets = {"Notes": [("about",), ("this",)], "Facts": [HEADER, *ROWS], "Other": other}
    path = write(tmp_path / "facts.xlsx", sheets)
    graph = splime.read(path, split="none")
    assert rows(graph) == FACTS
    told = "the sheet 'Facts' is read; table='NAME' chooses another: 'Notes', 'Other'"
    assert told in graph.reading.remarks
    assert len(splime.read(path, table="Other", split="none")) == 2
    with pytest.raises(
        UsageError, match=r"no sheet 'Othr' among Notes, Facts, Other\. Did you mean"
    ):
        splime.read(path, table="Othr")
    with pytest.raises(DataError, match="no table is in Notes"):
        splime.read(path, table="Notes")
    hidden = openpyxl.load_workbook(path)
    hidden["Facts"].sheet_state = "hidden"
    hidden.create_chartsheet("Chart", 0)
    hidden.save(path)
    assert len(splime.read(path, split="none")) == 2
    assert rows(splime.read(path, table="Facts", split="none")) == FACTS


def test_cells_of_all_kinds(tmp_path: Path) -> None:
    facts = [
        ("a\tb\nc", True, 7.0, dt.datetime(1990, 1, 2, 3, 4, 5), None),
        ("nan", "#N/A", 2.5, dt.datetime(1990, 1, 2), dt.datetime(1991, 1, 2, 1)),
        ("007", "=1+1", -1, dt.datetime(1990, 1, 2, 3), "1991-01-01T00:00:00"),
        ("time", "p", "x", dt.time(1, 2), dt.timedelta(hours=30)),
    ]
    path = write(tmp_path / "facts.xlsx", {"a": [HEADER, *facts]})
    graph = splime.read(path, split="none", missing_name="?")
    read = {fact[:4] for fact in rows(graph)}
    assert ("a b c", "True", "7", "1990-01-02T03:04:05") in read
    # Midnight is a time, too, where the others of the column have one.
    assert ("nan", "?", "2.5", "1990-01-02T00:00:00") in read
    assert ("007", "?", "-1", "1990-01-02T03:00:00") in read
    assert graph.reading.dropped == {"unreadable time": 1}


@given(
    st.lists(
        st.tuples(
            *[
                st.text(
                    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"]),
                    min_size=1,
                    max_size=20,
                ).filter(lambda text: not text.startswith(("=", "#", "_")))
            ]
            * 3,
            st.dates(dt.date(1901, 1, 1)),
        ),
        min_size=2,
        max_size=20,
        unique=True,
    )
)
def test_what_is_written_is_read(facts: list[tuple[Any, ...]]) -> None:
    file = io.BytesIO()
    workbook = openpyxl.Workbook()
    assert workbook.active is not None
    for row in [(*HEADER[:3], "time"), *facts]:
        workbook.active.append(row)
        for cell in workbook.active[workbook.active.max_row][:3]:
            cell.data_type = "s"
    workbook.save(file)
    from splime.io.inputs import InputFile
    from splime.io.options import ReadOptions
    from splime.io.spreadsheets import read_spreadsheet

    raw = read_spreadsheet(InputFile(Path("x.xlsx"), content=file.getvalue()), None, ReadOptions())
    assert raw.texts(range(raw.rows)) == [(*names, day.isoformat()) for *names, day in facts]


def _edited(source: Path, target: Path, edit: Any) -> Path:
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, edit(data) if name.endswith("sheet1.xml") else data)
    return target


def test_hostile_files(tmp_path: Path) -> None:
    good = spreadsheet([list(HEADER), ["a", "p", "b", "1990-01-01", ""]], tmp_path / "good.xlsx")
    assert len(splime.read(good, split="none")) == 1
    data = good.read_bytes()
    path = tmp_path / "bad.xlsx"
    for length in range(0, len(data), 97):
        path.write_bytes(data[:length])
        with pytest.raises(DataError, match=r"bad\.xlsx"):
            splime.read(path)
    for at in range(0, len(data), 41):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        with suppress(SplimeError):
            splime.read(path, split="none")
    cell = (
        b"<row r='1048576'><c r='XFD1048576' t='inlineStr'><is><t>x</t></is></c></row></sheetData>"
    )
    far = _edited(good, path, lambda xml: xml.replace(b"</sheetData>", cell))
    with pytest.raises(DataError, match=r"cells as far as row 1,048,576 and column 16,384; delete"):
        splime.read(far)
    for broken in (b"", b"<x", b"<worksheet/>"):
        with pytest.raises(DataError, match=r"bad\.xlsx"):
            splime.read(_edited(good, path, lambda _, broken=broken: broken))


def test_a_file_that_is_much_larger_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = spreadsheet([list(HEADER), ["a", "p", "b", "1990-01-01", ""]], tmp_path / "good.xlsx")
    bomb = _edited(good, tmp_path / "bomb.xlsx", lambda xml: xml + b" " * 50_000_000)
    assert bomb.stat().st_size < 100_000
    monkeypatch.setattr("splime.io.spreadsheets._MOST_BYTES", 10_000_000)
    with pytest.raises(DataError, match=r"bomb.xlsx: 50,\d+,\d+ bytes unpacked"):
        splime.read(bomb)
    # Nor does it help to lie about the size.
    with zipfile.ZipFile(bomb) as archive:
        size = max(part.file_size for part in archive.infolist())
    data = bomb.read_bytes().replace(size.to_bytes(4, "little"), (99).to_bytes(4, "little"))
    bomb.write_bytes(data)
    with pytest.raises(DataError, match=r"bomb.xlsx: cannot be read as an Excel file"):
        splime.read(bomb)


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "facts.xlsx", {"a": ROWS})
    real = builtins.__import__

    def without(name: str, *arguments: Any, **more: Any) -> Any:
        if name == "python_calamine":
            raise ModuleNotFoundError("No module named 'python_calamine'", name=name)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SplimeError, match=r"pip install 'splime-kg\[excel\]'"):
        splime.read(path)
