"""Where facts come from: pipes, folders and patterns, nested JSON, and what is not read."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import splime
from splime.errors import DataError, UsageError
from splime.io.columns import RawFacts
from splime.io.inputs import InputFile
from splime.io.options import ReadOptions
from splime.io.readers import read_file
from tests.runs.small import call

HEADER = "subject,predicate,object,time\n"
LINES = {2019: "Ada,joins,Ajax,2019\n", 2020: "Bob,joins,PSV,2020\n", 2021: "Ada,joins,PSV,2021\n"}
ALL = {("Ada", "joins", "Ajax"), ("Bob", "joins", "PSV"), ("Ada", "joins", "PSV")}


def names(graph: splime.TemporalGraph) -> set[tuple[str, str, str]]:
    return {(fact.subject, fact.predicate, fact.object) for fact in graph.rows()}


def write_years(folder: Path, suffix: str = ".csv") -> Path:
    folder.mkdir(exist_ok=True)
    for year, line in LINES.items():
        data = (HEADER + line).encode()
        path = folder / f"{year}{suffix}"
        path.write_bytes(gzip.compress(data) if suffix.endswith(".gz") else data)
    return folder


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv"])
def test_a_folder_is_one_table(tmp_path: Path, suffix: str) -> None:
    folder = write_years(tmp_path / "routes", suffix)
    (folder / "README.txt").write_text("About this.\n", encoding="utf-8")
    for source in (folder, str(folder / f"*{suffix}"), str(folder / "20[12]*")):
        graph = splime.read(source, split="none")
        assert names(graph) == ALL
        assert graph.name == "routes"
        (remark, *_) = graph.reading.remarks
        assert remark.startswith("3 files are read as one table: 2019")


def test_rows_of_a_folder_are_where_they_stand(tmp_path: Path) -> None:
    folder = write_years(tmp_path / "routes")
    with (folder / "2020.csv").open("a", encoding="utf-8") as file:
        file.write("Ada,joins,Ajax,2019\nEve,joins,PSV,never\n")
    graph = splime.read(folder, split="none")
    assert graph.reading.dropped == {"duplicate": 1, "unreadable time": 1}
    assert {one.where for one in graph.reading.examples} == {
        "2020.csv, line 3",
        "2020.csv, line 4",
    }


def test_a_folder_is_read_as_the_same_rows_in_one_file(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    whole = [f"e{n % 7},p{n % 3},e{n % 5},{1990 + n % 9},{2000 + n % 4}\n" for n in range(60)]
    header = "subject,predicate,object,begin,end\n"
    for at in range(3):
        part = "".join(whole[20 * at : 20 * at + 20])
        (folder / f"{at}.csv").write_text(header + part, encoding="utf-8")
    (tmp_path / "whole.csv").write_text(header + "".join(whole), encoding="utf-8")
    together, one = splime.read(folder, seed=3), splime.read(tmp_path / "whole.csv", seed=3)
    assert together == one
    assert together.reading.dropped == one.reading.dropped


def test_other_columns_are_an_error(tmp_path: Path) -> None:
    folder = write_years(tmp_path / "routes")
    other = folder / "2022.csv"
    for content in (
        "object,predicate,subject,time\nAjax,joins,Ada,2022\n",
        "Ada,joins,Ajax,2022\n",
        "subject,predicate,object,begin,end\nAda,joins,Ajax,2022,2023\n",
        "who,what\n",
    ):
        other.write_text(content, encoding="utf-8")
        for source in (folder, folder / "*.csv"):
            with pytest.raises(DataError, match=r"2022\.csv"):
                splime.read(source)


def test_folders_that_are_no_table(tmp_path: Path) -> None:
    folder = write_years(tmp_path / "routes")
    (folder / "more.tsv").write_text("a\tp\tb\t1\n", encoding="utf-8")
    with pytest.raises(DataError, match="expected a file train"):
        splime.read(folder)
    (folder / "more.tsv").rename(folder / "train.csv")
    (folder / "train.csv").write_text(HEADER + LINES[2019], encoding="utf-8")
    assert len(splime.read(folder)) == 1
    with pytest.raises(DataError, match="no file is called so"):
        splime.read(folder / "none*.csv")
    (tmp_path / "graphs").mkdir()
    for number in (1, 2):
        (tmp_path / "graphs" / f"graph_{number}.csv").write_text(HEADER + LINES[2019], "utf-8")
    with pytest.raises(DataError, match=r"one graph or two graphs.*by a pattern, '.*graph_\*.csv'"):
        splime.read(tmp_path / "graphs")
    graph = splime.read(tmp_path / "graphs" / "graph_*.csv", split="none")
    assert graph.reading.dropped == {"duplicate": 1}


def test_the_cache_knows_all_files_of_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPLIME_NO_CACHE", "0")
    monkeypatch.setenv("SPLIME_CACHE", str(tmp_path / "cache"))
    folder = write_years(tmp_path / "routes")
    for source in (folder, folder / "*.csv"):
        (folder / "2022.csv").unlink(missing_ok=True)
        asked = ("ask", source, "Ada", "joins", "?", "--at", "2021")
        assert "PSV" in call(*asked).out
        (folder / "2022.csv").write_text(HEADER + "Eve,joins,NAC,2021\n", encoding="utf-8")
        assert not call("ask", source, "Eve", "joins", "?", "--at", "2021").code


def test_standard_input(tmp_path: Path) -> None:
    """Whatever it is: compressed, UTF-16, JSON."""
    text = HEADER + "".join(LINES.values())
    records = [
        dict(zip(HEADER.strip().split(","), line.strip().split(","), strict=True))
        for line in LINES.values()
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    for data in (
        text.encode(),
        gzip.compress(text.encode()),
        text.encode("utf-16"),
        text.replace("Ajax", "Ajáx").encode("latin-1"),
        lines.encode(),
        b"\n " + json.dumps({"data": records}, indent=1).encode(),
    ):
        file = InputFile(Path("standard input"), content=data)
        raw = read_file(file, None, ReadOptions())
        assert isinstance(raw, RawFacts)
        assert raw.rows == 3


@pytest.mark.system
def test_commands_read_standard_input(tmp_path: Path) -> None:
    text = HEADER + "".join(LINES.values())
    program = [sys.executable, "-m", "splime"]

    def pipe(*arguments: str, sent: str | bytes = text) -> subprocess.CompletedProcess[bytes]:
        data = sent.encode() if isinstance(sent, str) else sent
        return subprocess.run(
            [*program, *arguments], input=data, capture_output=True, cwd=tmp_path, check=False
        )

    # What lies in the folder is not beside what comes through a pipe.
    (tmp_path / "entity2id.txt").write_text("x\t0\n", encoding="utf-8")
    asked = pipe("ask", "-", "Ada", "joins", "?", "--at", "2021")
    assert not asked.returncode, asked.stderr
    assert b"PSV" in asked.stdout
    assert b"stdin: read 3 facts and 1 header line" in asked.stderr
    for sent, message in (
        ("", b"standard input: the file is empty"),
        ("a,b\n", b"standard input, line 1"),
        (b"PAR1xxxxPAR1", b"Parquet cannot be read from a pipe"),
        (b"\0\1\2\3" * 9, b"standard input: unknown kind of file"),
        (b"PK\3\4" + b"x" * 99, b"standard input: cannot be read as an Excel file"),
    ):
        failed = pipe("inspect", "-", sent=sent)
        assert failed.returncode == 3
        assert message in failed.stderr
        assert b"Traceback" not in failed.stderr
    closed = subprocess.run(
        f"{sys.executable} -m splime inspect - <&-", shell=True, capture_output=True, check=False
    )
    assert closed.returncode == 2
    assert b"standard input" in closed.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_as_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for line in LINES.values():
        data = (HEADER + line).encode()
        writer = threading.Thread(target=pipe.write_bytes, args=(data,))
        writer.start()
        done = call("ask", pipe, line.split(",")[0], "joins", "?", "--at", line[-5:-1])
        writer.join()
        assert line.split(",")[2] in done.out, done.err


NESTED = [
    {"subject": "Ada", "predicate": "p", "object": f"o{n}", "time": 1990 + n} for n in range(3)
]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("path", ["items", "data.items", "a.b.c"])
def test_a_list_in_an_object(tmp_path: Path, path: str, indent: int | None) -> None:
    value: Any = NESTED
    for key in reversed(path.split(".")):
        value = {"meta": {"count": 3, "tags": ["x"], "empty": []}, key: value}
    file = tmp_path / "facts.json"
    file.write_text(json.dumps(value, indent=indent), encoding="utf-8")
    graph = splime.read(file, split="none")
    assert len(graph) == 3
    assert f"the objects in {path!r} are read" in graph.reading.remarks
    assert splime.read(file, table=path, split="none") == graph
    with pytest.raises(UsageError, match=f"no list of objects at 'x'; there are {path} "):
        splime.read(file, table="x")


def test_several_lists(tmp_path: Path) -> None:
    file = tmp_path / "facts.json"
    value = {"facts": NESTED, "more": {"facts": NESTED[:2], "people": [{"name": "Ada"}]}}
    file.write_text(json.dumps(value), encoding="utf-8")
    listed = r"facts \(3 objects\), more.facts \(2 objects\), more.people \(1 object\)"
    with pytest.raises(DataError, match=rf"choose one with table='NAME': {listed}"):
        splime.read(file)
    assert len(splime.read(file, table="more.facts", split="none")) == 2
    refused = call("inspect", file, "--table", "more.fact")
    assert refused.code == 2
    assert "Did you mean more.facts" in refused.err
    file.write_text("\n".join(map(json.dumps, NESTED)), encoding="utf-8")
    with pytest.raises(UsageError, match="leave out table"):
        splime.read(file, table="facts")
    (tmp_path / "facts.csv").write_text(HEADER + LINES[2019], encoding="utf-8")
    with pytest.raises(UsageError, match=r"leave out table \(--table\), which is for spreadsheets"):
        splime.read(tmp_path / "facts.csv", table="facts")


def test_one_object_with_lists_in_it_is_one_fact(tmp_path: Path) -> None:
    file = tmp_path / "facts.jsonl"
    file.write_text(json.dumps(NESTED[0] | {"notes": [{"a": 1}]}), encoding="utf-8")
    assert len(splime.read(file, split="none")) == 1


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"a":['])
@pytest.mark.parametrize("depth", [900, 5_000, 100_000])
def test_json_that_is_deep(tmp_path: Path, opening: str, depth: int) -> None:
    closing = "".join({"[": "]", "{": "}"}[one] for one in reversed(opening) if one in "[{")
    file = tmp_path / "facts.json"
    for middle in ("", "1", json.dumps(NESTED)):
        file.write_text(opening * depth + middle + closing * depth, encoding="utf-8")
        with suppress(DataError):
            assert len(splime.read(file, split="none")) == 3


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("facts.ttl", "SPARQL"),
        ("facts.nt.gz", "SPARQL"),
        ("facts.NQ", "SPARQL"),
        ("facts.rdf", "SPARQL"),
        ("facts.owl", "SPARQL"),
        ("facts.xls", r"\.xlsx or \.csv"),
        ("facts.ods", r"\.xlsx or \.csv"),
        ("facts.zip", "unpack it"),
        ("facts.csv.zip", "unpack it"),
        ("facts.tar.gz", "unpack it"),
        ("facts.csv.bz2", "unpack it"),
        ("facts.sql", r"\.csv or \.parquet"),
    ],
)
def test_what_is_not_read_says_what_to_do(tmp_path: Path, name: str, advice: str) -> None:
    path = tmp_path / name
    path.write_text("<a> <p> <b> .\n", encoding="utf-8")
    with pytest.raises(DataError, match=rf"{name}: .*{advice}"):
        splime.read(path)


@pytest.mark.parametrize(
    ("address", "advice"),
    [
        ("https://ada:secret@example.org/facts.csv", r"curl -L https://ada@.* \| splime inspect -"),
        ("ftp://example.org/facts.csv", "download it first"),
        ("s3://bucket/facts.csv", "download it first"),
        ("file:///tmp/facts.csv", "leave out file://"),
        ("mysql://ada:secret@localhost/x", "mysql is not read; expected postgresql://"),
        ("neo4j://ada:secret@localhost", "save the result of a query"),
        ("https://example.org/" + "x" * 5_000, "curl"),
    ],
)
def test_addresses_say_what_to_do(address: str, advice: str) -> None:
    for command in (("inspect", address), ("ask", address, "a", "p", "?")):
        refused = call(*command)
        assert refused.code == 2
        assert "secret" not in refused.err
    with pytest.raises(UsageError, match=advice):
        splime.load(address)


def test_parquet_takes_none_of_these_options(tmp_path: Path) -> None:
    path = tmp_path / "facts.parquet"
    pq.write_table(pa.table({"s": ["a"], "p": ["p"], "o": ["b"], "time": [1990]}), path)
    for option in ("query", "table", "encoding"):
        given: dict[str, Any] = {option: "utf-8"}
        for source in (path, tmp_path / "*.parquet"):
            with pytest.raises(UsageError, match=f"leave out {option}"):
                splime.read(source, **given)
