from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from splime.errors import DataError, SplimeError, UsageError
from splime.query import Query, many, write_answers
from splime.runs import Run
from tests.query.conftest import RUNS

ROWS = [
    ("entity 1", "p1", "?", "1995", "1999"),
    ("?", "p2", "entity 3", "1990", ""),
    ("entity 1", "?", "entity 5", "", "1993"),
    ("entity 1", "p1", "entity 4", "", ""),
    ("entity 2", "p0", "?", "", ""),
    ("entity 1", "p1", "?", "2001", "2001"),
    ("entity 1", "p1", "?", "1995", "1999"),
    ("entity 7", "p3", "entity 4", "?", ""),
]
COLUMNS = ("subject", "predicate", "object", "begin", "end")


def table(rows: Any = ROWS, columns: Any = COLUMNS) -> pa.Table:
    return pa.table(dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)))


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("options", [{}, {"limit": 3, "known": "drop"}, {"best": 4}])
def test_the_same_as_one_by_one(
    trained: dict[str, Path], name: str, options: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(trained[name])
    query = Query(run)
    first, last = (run.graph.timeline.label(at) for at in (0, -1))
    expected = []
    for number, (s, p, o, begin, end) in enumerate(ROWS, start=1):
        own = dict(options)
        if p != "?":
            own.pop("best", None)
        if "?" in (s, p, o):
            answers = query.ask(s, p, o, during=(begin or first, end or last), **own)
        else:
            answers = query.ask(s, p, o, "?", **own)
        rows = answers.to_table().to_pylist()
        expected += [{**row, "question": number} for row in rows]
    steps: list[Any] = []
    answered = query.ask_many(table(), progress=lambda *step: steps.append(step), **options)
    assert answered.schema == many.SCHEMA
    _check_same(answered.to_pylist(), expected)
    assert steps == [("answering", 0, 8), ("answering", 8, 8)]
    monkeypatch.setattr(many, "_BLOCK", 3)
    small = Query(run, memory=1 << 16).ask_many(table(), **options)
    _check_same(small.to_pylist(), expected)


def _check_same(actual: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """The same rows; blocks of another size may add numbers up in another order."""
    assert len(actual) == len(expected)
    for row, wanted in zip(actual, expected, strict=True):
        for key, value in wanted.items():
            number = isinstance(value, float)
            assert row[key] == (pytest.approx(value, rel=1e-4, abs=1e-6) if number else value), key
        assert row.keys() == wanted.keys()


def test_where_questions_come_from(split: Run, tmp_path: Path) -> None:
    query = Query(split)
    expected = query.ask_many(table()).to_pylist()
    pq.write_table(table(), tmp_path / "q.parquet")
    lines = ["\t".join(row) for row in ROWS]
    (tmp_path / "q.tsv").write_text("\n".join(["\t".join(COLUMNS), *lines]), encoding="utf-8")
    (tmp_path / "plain.tsv").write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    frame = pd.DataFrame(ROWS, columns=COLUMNS)
    frame[[*reversed(COLUMNS)]].to_csv(tmp_path / "q.csv", index=False)
    for source in (
        tmp_path / "q.parquet",
        str(tmp_path / "q.tsv"),
        tmp_path / "plain.tsv",
        tmp_path / "q.csv",
        frame,
        pl.DataFrame(ROWS, schema=COLUMNS, orient="row"),
    ):
        assert query.ask_many(source).to_pylist() == expected
    years = [("entity 1", "p1", "?", 1995), ("entity 1", "p1", "entity 4", None)]
    actual = query.ask_many(table(years, (*COLUMNS[:3], "at"))).to_pylist()
    one = query.ask("entity 1", "p1", "?", at=1995)
    assert [row["answer"] for row in actual if row["question"] == 1] == [row.name for row in one]
    assert {row["begin"] for row in actual if row["question"] == 2} == {None}
    actual = query.ask_many(table([row[:3] for row in years], COLUMNS[:3])).to_pylist()
    assert {row["end"] for row in actual if row["question"] == 1} == {
        split.graph.timeline.label(-1)
    }


@pytest.mark.parametrize("suffix", [".tsv", ".json", ".parquet"])
def test_files_of_answers(split: Run, tmp_path: Path, suffix: str) -> None:
    query, path = Query(split), tmp_path / f"answers{suffix}"
    expected = query.ask_many(table())
    assert write_answers(query.answer_blocks(table()), path) == len(expected)
    if suffix == ".parquet":
        assert pq.read_table(path).to_pylist() == expected.to_pylist()
    elif suffix == ".json":
        assert json.loads(path.read_text(encoding="utf-8")) == expected.to_pylist()
    else:
        read = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
        assert list(read.columns) == many.SCHEMA.names
        for column in ("answer", "scope", "known", "begin"):
            assert read[column].tolist() == [x or "" for x in expected[column].to_pylist()]
        scores = [float(x) for x in read["score"]]
        assert scores == pytest.approx(expected["score"].to_pylist())
    assert [p.name for p in tmp_path.iterdir() if p.name != "run"] == [path.name]


@pytest.mark.parametrize(
    ("row", "where", "message"),
    [
        (("entty 1", "p1", "?", "1995"), "column subject", "Did you mean entity 1"),
        (("entity 1", "pp1", "?", "1995"), "column predicate", "Did you mean p1"),
        (("?", "p1", "entity 99", "1995"), "column object", "no entity is called 'entity 99'"),
        (("entity 1", "", "?", "1995"), "column predicate", "write ? for the answer"),
        (("?", "p1", "?", "1995"), "", "a question has one '?', and this one has several"),
        (("?", "p1", "entity 1", "?"), "", "a question has one '?', and this one has several"),
        (("entity 1", "p1", "entity 2", "1995"), "", "nothing is asked for"),
        (("entity 1", "p1", "?", "soon"), "column at", "cannot read 'soon' as a time"),
        (("entity 1", "p1", "?", "1066"), "column at", "outside of the graph's time, 1990 to 20"),
    ],
)
def test_a_wrong_question_in_a_file(
    split: Run, tmp_path: Path, row: Any, where: str, message: str
) -> None:
    good = ("entity 1", "p1", "?", "1995")
    path, out = tmp_path / "questions.tsv", tmp_path / "answers.tsv"
    lines = [("subject", "predicate", "object", "at"), good, row, row]
    path.write_text("\n".join("\t".join(cells) for cells in lines), encoding="utf-8")
    query = Query(split)
    with pytest.raises(DataError) as error:
        write_answers(query.answer_blocks(path), out)
    assert str(error.value).startswith(f"{path}, line 3{where and ', ' + where}: ")
    assert message in str(error.value)
    assert not out.exists()
    with pytest.raises(DataError, match=f"table, row 2{where and ', ' + where}: "):
        query.ask_many(table(lines[1:], lines[0]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are no questions"),
        ("subject\tpredicate\tobject\tat\n", "there are no questions"),
        ("subject\tpredicate\tobject\tbeginn\na\tb\tc\t1\n", "line 1: questions have the columns"),
        ("subject\tpredicate\tobject\tbegin\na\tb\tc\t1\n", "found subject, predicate, object, be"),
        ("entity 1\tp1\n", "line 1: questions have the columns subject, predicate, object, and at"),
        ("entity 1\tp1\t?\nentity 1\tp1\n", "line 2: expected 3 columns as in the first line"),
        ("entity 1\tp1\t?\t1999\t1995\n", "1999 to 1995 ends before it begins"),
    ],
)
def test_files_that_are_no_questions(split: Run, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "questions.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as error:
        Query(split).ask_many(path)
    assert message in str(error.value)


def test_hostile_sources(split: Run, tmp_path: Path) -> None:
    query = Query(split)
    (tmp_path / "q.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        query.ask_many(tmp_path / "q.parquet")
    with pytest.raises(DataError, match="cannot be opened"):
        query.ask_many(tmp_path / "nowhere.tsv")
    with pytest.raises(UsageError, match=r"questions are read from .tsv, .csv, .parquet"):
        query.ask_many(tmp_path / "q.xlsx")
    with pytest.raises(UsageError, match="not list"):
        query.ask_many([("entity 1", "p1", "?")])
    with pytest.raises(DataError, match="there are no questions"):
        query.ask_many(table().slice(0, 0))
    with pytest.raises(DataError, match="column 'subject' has type double"):
        query.ask_many(table([(1.5, "p1", "?")], COLUMNS[:3]))
    with pytest.raises(UsageError, match=r"answers are written as .tsv, .json, .parquet"):
        write_answers([], tmp_path / "answers.csv")
    with pytest.raises(SplimeError, match="cannot be written"):
        write_answers(query.answer_blocks(table()), tmp_path / "nowhere" / "answers.tsv")


def test_a_name_that_tsv_cannot_hold(tmp_path: Path) -> None:
    row = dict.fromkeys(many.SCHEMA.names) | {"question": 1, "answer": "a\tb"}
    tables = [pa.Table.from_pylist([row], schema=many.SCHEMA)]
    with pytest.raises(UsageError, match="holds a tab or a line break, which TSV cannot"):
        write_answers(tables, tmp_path / "answers.tsv")
    assert not list(tmp_path.iterdir())
    assert write_answers(tables, tmp_path / "answers.json") == 1
    assert write_answers([], tmp_path / "none.json") == 0
    assert json.loads((tmp_path / "none.json").read_text(encoding="utf-8")) == []
