"""`splime ask`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from splime.query import Query
from splime.runs import Run
from tests.query.conftest import RUNS, valid_graph
from tests.runs.small import Called, call, small_run


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cuts, settings = RUNS["split"]
    return small_run(valid_graph(), tmp_path_factory.mktemp("asked") / "run", cuts, **settings).path


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    """A run of one's own."""
    return shutil.copytree(trained, tmp_path / "copied")


def words(done: Called) -> str:
    assert (done.code, done.err) == (0, ""), done.err
    return " ".join(done.out.split())


def test_from_end_to_end(folder: Path) -> None:
    done = call("ask", folder, "entity 1", "p1", "?", "--at", "1995")
    assert (done.code, done.err) == (0, ""), done.err
    answers = Query(Run(folder)).ask("entity 1", "p1", "?", at=1995)
    assert done.out.startswith("What: entity 1 p1 ? at 1995\n")
    for row in answers:
        [line] = [x for x in done.out.splitlines() if f" {row.rank} " in x and row.name in x]
        assert f"{row.score:.4g}" in line
        assert (row.known is None) == (" % " in line)
        assert row.known is None or str(row.known) in line
    assert f"scored by {answers[0].scopes[0]}\n" in done.out
    assert "if there is such a fact" in done.out
    assert "calibrated on 65 facts of valid" in done.out


def test_every_kind(folder: Path) -> None:
    shown = words(call("ask", folder, "_", "p1", "entity 3", "--during", "1990..1995"))
    assert shown.startswith("Who: ? p1 entity 3 from 1990 to 1995 ")
    shown = words(call("ask", folder, "entity 1", "_", "entity 3"))
    assert "Which predicate: entity 1 ? entity 3, over the whole time of the graph, " in shown
    shown = words(call("ask", folder, "entity 1", "?", "entity 3", "--best", "25", "--at", "1999"))
    assert "no probabilities: the best scoped predicates of all are not all candidates" in shown
    shown = words(call("ask", folder, "--near", "p1", "--at", "1999"))
    assert "Near p1 at 1999 " in shown
    assert "scores are cosines of vectors" in shown
    for how in ("ends", "max", "sum"):
        words(call("ask", folder, "entity 1", "p1", "?", "--aggregate", how))


def test_when(folder: Path) -> None:
    done = call("ask", folder, "entity 1", "p1", "entity 4")
    shown = words(done)
    assert shown.startswith("When: entity 1 p1 entity 4 ")
    answers = Query(Run(folder)).ask("entity 1", "p1", "entity 4", "?")
    lines = [line for line in done.out.splitlines() if "█" in line]
    assert [line.split("│")[1].strip() for line in lines] == [r.name for r in answers.timeline()]
    [best] = [line for line in lines if " best " in line]
    assert answers[0].name in best
    assert best.count("█") == max(line.count("█") for line in lines)


def test_json_and_limits(folder: Path) -> None:
    done = call("ask", folder, "entity 1", "p1", "?", "--limit", 3, "--known", "drop", "--json")
    assert (done.code, done.err) == (0, "")
    query = Query(Run(folder))
    expected = query.ask("entity 1", "p1", "?", limit=3, known="drop").to_json()
    there = query.there_is_one("entity 1", "p1", "?")
    assert there is not None
    said = {**expected, "there_is_one": there._asdict()}
    assert json.loads(done.out) == json.loads(json.dumps(said))
    assert len(expected["answers"]) == 3


def test_a_file_of_questions(folder: Path, tmp_path: Path) -> None:
    questions, out = tmp_path / "questions.tsv", tmp_path / "answers.parquet"
    questions.write_text("entity 1\tp1\t?\t1995\n?\tp2\tentity 3\t\n", encoding="utf-8")
    done = call("ask", folder, "--file", questions, "--out", out, "--limit", 4)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"8 answers written to {out}\n"
    expected = Query(Run(folder)).ask_many(questions, limit=4)
    assert pq.read_table(out).to_pylist() == expected.to_pylist()
    questions.write_text("entity 1\tp1\t?\t1995\n?\tpp2\tentity 3\t\n", encoding="utf-8")
    done = call("ask", folder, "--file", questions, "--out", tmp_path / "more.tsv")
    assert done.code == 3
    assert f"{questions}, line 2, column predicate: no predicate is called 'pp2'" in done.err
    assert "Did you mean p" in done.err
    assert not (tmp_path / "more.tsv").exists()


def test_answers_to_a_file_are_printed(folder: Path, tmp_path: Path) -> None:
    questions = tmp_path / "questions.tsv"
    questions.write_text(
        "entity 1\tp1\t?\t1995\n?\tp2\tentity 3\t\nentity 1\tp1\tentity 2\t\n", encoding="utf-8"
    )
    shown = words(call("ask", folder, "--file", questions, "--limit", 3))
    expected = Query(Run(folder)).ask_many(questions, limit=3).to_pylist()
    assert "entity 1 p1 ? at 1995 │ 1 │ " in shown
    for row in expected:
        if row["question"] != 3:
            assert row["answer"] in shown
    best = next(row for row in expected if row["question"] == 3)
    assert f"entity 1 p1 entity 2 │ 1 │ {best['scope_begin']}" in shown
    done = call("ask", folder, "--file", questions, "--limit", 3, "--json")
    assert json.loads(done.out) == json.loads(json.dumps(expected))
    shown = words(call("ask", folder, "--file", questions, "--limit", 12))
    assert "the first 20 of " in shown
    assert "--out FILE writes all" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "ask with SUBJECT PREDICATE OBJECT, with --near NAME, or with --file"),
        (["entity 1", "p1"], "ask with SUBJECT PREDICATE OBJECT"),
        (["entity 1", "p1", "?", "--near", "p1"], "ask with SUBJECT PREDICATE OBJECT"),
        (["entity 1", "p1", "entity 2", "--at", "1990"], "nothing is asked for"),
        (["_", "p1", "_"], "2 things are asked for"),
        (["entty 1", "p1", "?"], "Did you mean entity 1"),
        (["entity 1", "p1", "?", "--at", "1066"], "outside of the graph's time, 1990 to 20"),
        (["entity 1", "p1", "?", "--during", "1990-1995"], "during is written 2009..2017"),
        (["entity 1", "p1", "?", "--during", "1990.."], "during is written 2009..2017"),
        (["entity 1", "p1", "?", "--known", "hide"], "there are mark, drop"),
        (["entity 1", "p1", "?", "--limit", "0"], "limit is a number from 1 on"),
        (["entity 1", "p1", "?", "--aggregate", "men"], "Did you mean mean"),
        (["--near", "p1", "--out", "a.tsv"], "--out is for the answers to the questions of --file"),
        (["--near", "p1", "--best", "3"], "--best does not go with --near"),
        (["entity 1", "p1", "?", "--kind", "entity"], "--kind is for --near"),
        (["--file", "q.tsv", "--out", "a.csv"], "answers are written as .tsv, .json, .parquet"),
        (["--file", "q.tsv", "--out", "a.tsv", "--at", "1990"], "have their own times"),
        (["--near", "nobody"], "no entity is called 'nobody'"),
    ],
)
def test_wrong_arguments(folder: Path, arguments: list[str], message: str) -> None:
    done = call("ask", folder, *arguments)
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert "Traceback" not in done.err


def test_damaged_calibration(folder: Path) -> None:
    (folder / "calibration.json").write_text("{", encoding="utf-8")
    done = call("ask", folder, "entity 1", "p1", "?")
    assert done.code == 3
    assert f"{folder / 'calibration.json'}: cannot be read" in done.err


def test_help() -> None:
    shown = " ".join(call("ask", "--help").out.replace("│", " ").split())
    for word in (
        'splime ask run "Sara Finnby" livesIn "?" --at 1982', "--during BEGIN..END", "--near NAME",
        "splime ask run --file questions.tsv --out answers.parquet", "as in the paper", "--json",
    ):  # fmt: skip
        assert word in shown, word
