"""What train does not have: it is said, and such answers have no probability."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import splime
from splime.analysis.calibration import make_cases
from splime.graph import Fact, TemporalGraph
from splime.query import Query
from splime.query.examples import ask_examples
from splime.reporting.answers import brief_table
from splime.runs import Run
from splime.scoring.coverage import FEWEST
from splime.scoring.scoping import KINDS, NAMES, Kind
from tests.runs.small import call, small_run

Row = tuple[str, str, str, int | None, int | None]


def lacking_graph() -> TemporalGraph:
    """Train ends in 2005; `early` ends in 1994, `rare` has 3 facts, and strangers come later."""
    draw = random.Random(3)

    def drawn(predicate: str, first: int, last: int) -> Row:
        subject, begin = draw.randrange(12), draw.randrange(first, last + 1)
        object_ = (subject + 3 + begin // 5) % 12
        return f"e{subject}", predicate, f"e{object_}", begin, min(begin + draw.randrange(3), last)

    train = [drawn(f"p{n % 3}", 1990, 2005) for n in range(200)]
    train += [drawn("early", 1990, 1994) for _ in range(30)]
    train += [drawn("rare", 1990, 2005) for _ in range(3)]
    train += [("e0", "p0", "timeless", None, None)] * 2
    valid = [drawn(f"p{n % 3}", 1990, 2005) for n in range(70)]
    valid += [drawn("p1", 2006, 2009) for _ in range(40)]
    test = [drawn(f"p{n % 3}", 1990, 2005) for n in range(20)]
    test += [drawn("early", 1998, 2009) for _ in range(10)]
    test += [drawn("rare", 1990, 2005) for _ in range(5)]
    test += [("stranger", "p1", "e3", 2000, 2001), ("e3", "p1", "stranger", 2000, 2001)]
    test += [("e4", "never", "e5", 2000, 2001), ("timeless", "p2", "e9", None, None)]
    return splime.read({"train": train, "valid": valid, "test": test}, granularity="year")


RUNS: dict[str, Any] = {
    "vanilla": splime.Vanilla(),
    "split": splime.Split(grow=3),
    "entities": splime.Split(grow=2, target="both"),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder, graph = tmp_path_factory.mktemp("lacking"), lacking_graph()
    return {name: small_run(graph, folder / name, cuts) for name, cuts in RUNS.items()}


def lacks(graph: TemporalGraph, kind: Kind, fact: Fact) -> set[str]:
    """By plain loops: which of names and time, as asked without `kind`, train does not have."""
    train = list(graph.rows("train"))
    names = {name for row in train for name in (row.subject, row.object)}
    lacking = {
        name for name in ("subject", "object") if name != kind and getattr(fact, name) not in names
    }
    same = [row for row in train if row.predicate == fact.predicate]
    if kind != "predicate" and len(same) < FEWEST:
        lacking.add("predicate")
    if kind == "predicate":
        same = train
    if kind != "time" and same:
        held = [int(year) for row in same for year in row[3:] if year is not None]
        begin, end = int(fact.begin or 1990), int(fact.end or 2009)
        if end < min(held) or begin > max(held):
            lacking.add("time")
    return lacking


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("kind", KINDS)
def test_by_plain_loops(runs: dict[str, Run], name: str, kind: Kind) -> None:
    query = Query(runs[name])
    graph, coverage = query.run.graph, query.scoring.coverage
    for split, facts in graph.splits():
        asked = coverage.asked(kind, facts)
        reasons = coverage.reasons(kind, facts)
        for at, fact in enumerate(graph.rows(split)):
            lacking = lacks(graph, kind, fact)
            assert asked[at] == bool(lacking) == bool(reasons[at]), fact
            assert ("train has facts" in reasons[at]) == ("time" in lacking)
            few = "predicate" in lacking and fact.predicate == "rare"
            assert (", fewer than" in reasons[at]) == few
        if split == "train":
            rare = np.isin(facts.predicate, [graph.predicates.id("rare")])
            assert not asked[~rare].any()


def test_what_is_asked(runs: dict[str, Run]) -> None:
    query = Query(runs["split"])
    known = query.ask("e1", "p1", "?", at=2000)
    assert known.doubt == ""
    assert any(row.probability is not None for row in known)
    last = runs["split"].segmentation.scopes_of("p1")[-1].name
    early = runs["split"].segmentation.scopes_of("early")[-1].name
    for question, at, reason in (
        (("stranger", "p1", "?"), 2000, "train has no fact of stranger"),
        (("e1", "never", "?"), 2000, "train has no fact of never"),
        (("e1", "rare", "?"), 2000, "train has 3 facts of rare, fewer than 10"),
        (("?", "rare", "stranger"), 2000, "train has 3 facts of rare, fewer than 10; train has no"),
        (("e1", "early", "?"), 2008,
         f"train has facts of early only from 1990 to 1994, and {early} stands in"),
        (("?", "p1", "e1"), 2008, f"of p1 only from 1990 to 2005, and {last} stands in"),
        (("e1", "?", "e2"), 2008, "only from 1990 to 2005, and the nearest scopes stand in"),
    ):  # fmt: skip
        answers = query.ask(*question, at=at)
        assert reason in answers.doubt, answers.doubt
        assert answers.remarks == (f"no probabilities: {answers.doubt}",)
        assert {row.probability for row in answers} == {None}
        assert answers.temperature is None
        for remark in answers.to_table()["remark"].to_pylist():
            assert remark.startswith(answers.doubt)
        assert answers.to_json()["remarks"] == [*answers.remarks]
    # A time that train covers in part, or the whole time of the graph, is no reason.
    assert query.ask("e1", "p1", "?", during=(2004, 2008)).doubt == ""
    assert query.ask("e1", "p1", "?").doubt == ""
    without = Query(runs["vanilla"]).ask("e1", "p1", "?", at=2008)
    assert "this run has not cut it, so to it that time is like any other" in without.doubt


def test_answers_that_train_does_not_have(runs: dict[str, Run]) -> None:
    query = Query(runs["split"])
    answers = query.ask("e1", "p1", "?", at=2000, limit=None)
    by_name = {row.name: row for row in answers}
    assert by_name["stranger"].remark == "train has no fact of the answer"
    assert by_name["stranger"].probability is None
    assert [row.name for row in answers if row.remark] == ["stranger"]
    which = {row.name: row for row in query.ask("e1", "?", "e2", at=2000, limit=None)}
    assert {name for name, row in which.items() if row.remark} == {"rare", "never", "early"}
    assert which["early"].remark == query.ask("e1", "early", "?", at=2000).doubt
    assert which["early"].probability is None
    which = {row.name: row for row in query.ask("e1", "?", "e2", at=1992, limit=None)}
    assert {name for name, row in which.items() if row.remark} == {"rare", "never"}
    assert which["rare"].remark == "train has 3 facts of the answer, fewer than 10"
    assert which["rare"].probability is which["never"].probability is None
    near = query.near("stranger", limit=None)
    assert near.remarks[0] == near.doubt == "train has no fact of stranger"
    near = query.near("e1", limit=None)
    assert near.doubt == ""
    assert [row.name for row in near if row.remark] == ["stranger"]
    assert "stands in" in query.near("early", at=2008).doubt


@pytest.mark.parametrize("name", RUNS)
def test_many_at_once_are_as_one_by_one(runs: dict[str, Run], name: str) -> None:
    query = Query(runs[name])
    questions = [
        ("stranger", "p1", "?", "2000"),
        ("e1", "rare", "?", "2000"),
        ("?", "early", "e1", "2008"),
        ("e1", "?", "e2", "2008"),
        ("e1", "p1", "?", "2000"),
        ("e1", "rare", "e2", ""),
    ]
    columns = dict(zip((*NAMES, "at"), zip(*questions, strict=True), strict=True))
    table = query.ask_many(pa.table({key: [*cells] for key, cells in columns.items()}), limit=None)
    for number, (*names, at) in enumerate(questions, start=1):
        own = table.filter(pc.equal(table["question"], number))
        alone = query.ask(*names, **({"at": at} if at else {"time": "?"}), limit=None)  # type: ignore[arg-type]
        assert own["remark"].to_pylist() == alone.to_table()["remark"].to_pylist()
        assert own["probability"].is_null().to_pylist() == [
            row.probability is None for row in alone
        ]
        if number != 5:
            assert own["probability"].null_count == len(own)


def test_calibrated_on_what_gets_probabilities(runs: dict[str, Run]) -> None:
    query = Query(runs["split"])
    graph, cuts = query.run.graph, query.run.segmentation
    for kind in KINDS:
        usable = [fact for fact in graph.rows("valid") if not lacks(graph, kind, fact)]
        if kind == "time":
            usable = [fact for fact in usable if len(cuts.scopes_of(fact.predicate)) > 1]
        assert len(usable) >= 50
        assert len(make_cases(query.scoring, kind, "valid", 500)) == len(usable)
        assert query.calibration(kind).facts == len(usable)
    assert query.calibration("object").facts < len(graph.valid)


def test_only_later_facts_to_calibrate_on(tmp_path: Path) -> None:
    rows = [(f"e{n % 9}", "p", f"e{n * n % 9}", 1990 + n % 10) for n in range(60)]
    later = [(s, p, o, year + 20) for s, p, o, year in rows]
    run = small_run(splime.read({"train": rows, "valid": later, "test": later}), tmp_path / "run")
    answers = Query(run).ask("e1", "p", "?", at=1995)
    assert answers.remarks == (
        "no probabilities: valid has 0 facts of names and times that train has, and 50 are needed"
        " to calibrate them",
    )


def test_a_fact_without_time_does_not_say_when(runs: dict[str, Run]) -> None:
    query = Query(runs["split"])
    when = query.ask("e0", "p0", "timeless", "?", limit=None)
    assert len(when) > 1
    assert {row.known for row in when} == {None}
    assert {row.probability for row in when} == {None}
    assert "train states this without a time" in when.remarks[0]
    assert len(query.ask("e0", "p0", "timeless", "?", limit=None, known="drop")) == len(when)
    when = query.ask("timeless", "p2", "e9", "?", limit=None)
    assert {row.known for row in when} == {None}
    assert all(row.probability is not None for row in when)
    # At a time it may hold or not: it is marked as such, and not as a right answer.
    what = query.ask("timeless", "p2", "?", at=2000, limit=None)
    known = {row.name: str(row.known) for row in what if row.known is not None}
    assert known == {"e9": "test, without time"}
    cells = [cell for column in brief_table(what, "", "e1").columns for cell in column.cells]
    bold = {cell.plain for cell in cells if cell.style == "bold"}  # type: ignore[union-attr]
    assert "e1" in bold
    assert "e9" not in bold


def test_the_right_answer_is_always_shown(runs: dict[str, Run]) -> None:
    examples = ask_examples(runs)
    assert [*examples.questions[0].answers] == [*runs][:1] + [*runs][-1:]
    kinds = [next(iter(one.answers.values())).question.kind for one in examples.questions]
    assert kinds.count("time") == 2
    outside = 0
    for truth, answers, _ in examples.questions:
        for name, each in answers.items():
            if truth is None:
                assert name != "vanilla"  # which has no scopes to tell apart
                assert any(row.known is not None and row.known.dated for row in each)
                continue
            asked = each.question
            when = {} if asked.whole else {"during": (asked.begin, asked.end)}
            names = (asked.subject, asked.predicate, asked.object)
            every = Query(runs[name]).ask(*names, **when, limit=None)  # type: ignore[arg-type]
            expected = [row for row in every if row.rank <= 5 or row.name == truth]
            assert [row[:2] for row in each] == [row[:2] for row in expected]
            outside += len(each) > 5
    assert outside


def test_no_when_without_scopes(runs: dict[str, Run]) -> None:
    examples = ask_examples({"vanilla": runs["vanilla"]})
    kinds = {next(iter(one.answers.values())).question.kind for one in examples.questions}
    assert kinds == {"object", "subject", "predicate"}


def test_on_the_command_line(runs: dict[str, Run], tmp_path: Path) -> None:
    folder = runs["split"].path
    shown = " ".join(call("ask", folder, "stranger", "p1", "?", "--at", 2000).out.split())
    assert "no probabilities: train has no fact of stranger" in shown
    assert "%" not in shown
    out = tmp_path / "answers.tsv"
    (tmp_path / "questions.tsv").write_text("e1\trare\t?\t2000\n", encoding="utf-8")
    assert call("ask", folder, "--file", tmp_path / "questions.tsv", "--out", out).code == 0
    head, first, *_ = (line.split("\t") for line in out.read_text(encoding="utf-8").splitlines())
    row = dict(zip(head, first, strict=True))
    assert row["probability"] == ""
    assert row["remark"] == "train has 3 facts of rare, fewer than 10"


def test_on_the_page(runs: dict[str, Run], tmp_path: Path) -> None:
    splime.write_page([runs["split"], runs["vanilla"]], tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    questions = html.partition('<section id="questions">')[2]
    assert "no probabilities: train has" in questions
    assert "<b>" in questions
