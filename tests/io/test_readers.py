"""The registry of readers: what every entry must do, and entries of other packages."""

from __future__ import annotations

import builtins
import json
import os
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import splime
from splime.errors import SplimeError
from splime.io import READERS
from splime.io.inputs import COMPRESSION, InputFile
from splime.io.readers import BUILTIN

FACTS = [("Ada", "worksFor", "Search", "1990", "1994"), ("Bob", "worksFor", "Ads", "1992", "1995")]
NAMES = ("subject", "predicate", "object", "begin", "end")


def write_example(format: str, path: Path) -> Path:
    """A file of each format; a new one needs a line here."""
    if format == "text":
        path.write_text("".join("\t".join(fact) + "\n" for fact in FACTS), encoding="utf-8")
    elif format == "json":
        records = [dict(zip(NAMES, fact, strict=True)) for fact in FACTS]
        path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    elif format == "parquet":
        columns = dict(zip(NAMES, zip(*FACTS, strict=True), strict=True))
        pq.write_table(pa.table({name: list(texts) for name, texts in columns.items()}), path)
    elif format == "spreadsheet":
        workbook = openpyxl.Workbook()
        assert workbook.active is not None
        for row in (NAMES, *FACTS):
            workbook.active.append(row)
        workbook.save(path)
    elif format == "database":
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("create table facts (s, p, o, since, until)")
            database.executemany("insert into facts values (?, ?, ?, ?, ?)", FACTS)
    return path


def facts(graph: splime.TemporalGraph) -> set[tuple[Any, ...]]:
    return {tuple(fact) for fact in graph.rows()}


@pytest.mark.parametrize("format", BUILTIN)
def test_every_reader_claims_and_reads_its_files(tmp_path: Path, format: str) -> None:
    reader = READERS[format]
    options: dict[str, Any] = {"query": "select * from facts"} if "query" in reader.options else {}
    assert reader.help
    for number, suffix in enumerate(reader.suffixes):
        assert suffix.startswith(".")
        path = write_example(format, tmp_path / f"facts{suffix.upper() if number else suffix}")
        claims = [name for name, other in READERS.items() if other.suffix_of(path.name)]
        assert claims == [format]
        assert facts(splime.read(path, split="none", **options)) == {*FACTS}
        folder = tmp_path / f"folder{number}"
        folder.mkdir()
        path.rename(folder / f"train{suffix}")
        assert facts(splime.read(folder, **options)) == {*FACTS}
    for pack in COMPRESSION:
        packed = InputFile(tmp_path / f"facts{reader.suffixes[0]}{pack}")
        assert bool(reader.suffix_of(packed.path.name)) == reader.compressed


def test_a_text_file_is_opened_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once to see what it is, once to read it."""
    opened: list[str] = []
    stream, plain = pa.input_stream, builtins.open

    def input_stream(source: str, **options: Any) -> pa.NativeFile:
        opened.append(source)
        return stream(source, **options)

    def open_(source: Any, *arguments: Any, **options: Any) -> Any:
        opened.append(str(source))
        return plain(source, *arguments, **options)

    monkeypatch.setattr(pa, "input_stream", input_stream)
    monkeypatch.setattr(builtins, "open", open_)
    monkeypatch.setattr("io.open", open_)
    header = "subject,predicate,object,begin,end\n"
    for name, text in (
        ("facts.tsv", "".join("\t".join(fact) + "\n" for fact in FACTS)),
        ("facts", "".join(" ".join(fact) + "\n" for fact in FACTS)),
        ("facts.csv", header + "".join(",".join(fact) + "\n" for fact in FACTS)),
        ("query.csv", "item,property,value,start,end\nQ1,P1,Q2,1990,1991\n"),
    ):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        opened.clear()
        splime.read(path, split="none")
        assert opened.count(str(path)) == 2, name


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with an installed package that reads files with `>` between subject and object."""
    home = tmp_path / "installed"
    about = home / "arrow_facts-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: arrow-facts\nVersion: 1.0\n", encoding="utf-8"
    )
    (about / "entry_points.txt").write_text(
        "[splime.readers]\narrows = arrow_facts:ARROWS\nbroken = arrow_facts.missing:READER\n",
        encoding="utf-8",
    )
    (home / "arrow_facts.py").write_text(
        textwrap.dedent(
            """
            from splime.io import Reader
            from splime.io.tables import raw_from_rows

            def read(file, split, options):
                cells = [line.split() for line in file.lines()]
                rows = [(s, p, o, time) for s, _, o, p, time in cells]
                return raw_from_rows(rows, name=file.path.name, split=split)

            ARROWS = Reader("arrows", (".arrows",), read)
            """
        ),
        encoding="utf-8",
    )
    return home


def run(package: Path, code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(package), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.system
def test_an_installed_package_adds_a_reader(package: Path, tmp_path: Path) -> None:
    for name in ("facts.arrows", "train.arrows", "test.arrows"):
        (tmp_path / name).write_text("Ada > Search worksFor 1990\n", encoding="utf-8")
    (tmp_path / "facts.tsv").write_text("a\tp\tb\t1990\n", encoding="utf-8")
    code = f"""
import sys, splime
from splime.errors import SplimeError
from splime.io import READERS
splime.read({str(tmp_path / "facts.tsv")!r}, split="none")
assert "arrow_facts" not in sys.modules, "a package is loaded that is not needed"
graph = splime.read({str(tmp_path / "facts.arrows")!r}, split="none")
print([tuple(fact)[:4] for fact in graph.rows()], len(splime.read({str(tmp_path)!r}).test))
try:
    READERS["broken"]
except SplimeError as error:
    print(error)
"""
    first, second = run(package, code).splitlines()
    assert first == "[('Ada', 'worksFor', 'Search', '1990')] 1"
    assert "'broken' of splime.readers (package arrow-facts" in second


def test_a_file_of_no_format(tmp_path: Path) -> None:
    path = tmp_path / "facts.bin"
    path.write_bytes(b"\0\1\2")
    with pytest.raises(SplimeError, match=r"unknown kind of file; expected .*JSON.*\.parquet"):
        splime.read(path)
