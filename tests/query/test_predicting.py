"""Facts that a graph does not state: which, in which order, in which files, and on from where."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import splime
from splime.errors import SplimeError, UsageError
from splime.graph import Facts, TemporalGraph
from splime.io.files import read_json
from splime.query import predicting
from splime.query.predicted import write_predictions
from splime.query.predicting import Predictions, split_names
from splime.runs import Run, train
from splime.runs.graph_run import GraphRun
from splime.scoring.scoping import Kind
from splime.scoring.timed import TimedScorer, TimedScoring
from splime.vocabulary import Vocabulary
from tests.runs.small import call, small_graph

Names = tuple[str, str, str]
AT = 2006
predict = predicting.predict  # in the module that the tests change
FORMULA = "=HYPERLINK(1)"


def firms(people: int = 40, seed: int = 0, valid: int = 60) -> tuple[TemporalGraph, set[Names]]:
    """Everyone works for one firm, each year; half of them lost the fact of one year."""
    draw, rows, gone = random.Random(seed), [], set()
    for number in range(people):
        name = FORMULA if number == 1 else f"person {number}"
        for year in range(2000, 2010):
            firm = f"firm {number % 7}"
            if year == AT and number % 2:
                gone.add((name, "worksFor", firm))
            else:
                rows.append((name, "worksFor", firm, year, year))
        year = draw.randrange(2000, 2010)
        rows.append((name, "visits", f"town {draw.randrange(7)}", year, year))
    draw.shuffle(rows)
    splits: Any = {"train": rows[valid:], "valid": rows[:valid]} if valid else rows
    reading: Any = {} if valid else {"split": "none"}
    return splime.read(splits, granularity="year", **reading), gone


class Remembering(TimedScorer):
    """Scores answers by how often train states them at any time."""

    block = 16

    def __init__(self, graph: TemporalGraph) -> None:
        self.device, self.graph = torch.device("cpu"), graph

    def entities(self, kind: Kind, facts: Facts) -> torch.Tensor:
        train, scores = self.graph.train, np.zeros((len(facts), len(self.graph.entities)))
        for row, (s, p) in enumerate(zip(facts.subject, facts.predicate, strict=True)):
            own = (train.subject == s) & (train.predicate == p)
            np.add.at(scores[row], train.object[own], 1.0)
        return torch.from_numpy(scores).float()


def make_run(graph: TemporalGraph) -> Run:
    """A run whose scores are known."""
    run = GraphRun(graph, device="cpu")
    run.learned_from_facts = True  # so that it is calibrated on valid
    vars(run)["_scoring"] = TimedScoring(Remembering(graph), graph)
    return run


@pytest.fixture(scope="module")
def law() -> tuple[Run, set[Names]]:
    graph, gone = firms()
    return make_run(graph), gone


@pytest.fixture(scope="module")
def found(law: tuple[Run, set[Names]]) -> Predictions:
    return predict(law[0], at=AT)


def test_facts_that_were_taken_away_come_first(
    law: tuple[Run, set[Names]], found: Predictions
) -> None:
    gone = law[1]
    assert {row[:3] for row in found.rows[: len(gone)]} == gone
    assert found[len(gone) - 1].probability > 5 * found[len(gone)].probability
    assert [check.brier < check.base / 2 for check in found.checks.values()] == [True, True]


def test_what_is_found(law: tuple[Run, set[Names]], found: Predictions) -> None:
    graph = law[0].graph
    stated = {fact[:3] for fact in graph.at(AT).rows()}
    assert not stated & {row[:3] for row in found}
    assert len({row[:3] for row in found}) == len(found)
    probabilities = [row.probability for row in found]
    assert probabilities == sorted(probabilities, reverse=True)
    for row in found:
        assert row.probability == pytest.approx(row.if_there_is_one * row.there_is_one)
        assert 0 < row.probability <= min(row.if_there_is_one, row.there_is_one) <= 1
        assert (row.time, row.evidence) == (str(AT), None)
    for name in graph.entities:  # given that there is one, no more than one of them is right
        of_name = [row.if_there_is_one for row in found if row[:2] == (name, "worksFor")]
        assert sum(of_name) <= 1 + 1e-6
    assert repr(found).startswith(f"{len(found):,} facts that the graph does not state, {AT}")
    assert "there is one" in found._repr_html_()


@pytest.mark.parametrize("limit", [1, 7, 15])
def test_the_first_are_the_first_of_all(
    law: tuple[Run, set[Names]], found: Predictions, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asking ends as soon as no other question can have one of them."""
    monkeypatch.setattr(predicting, "_BLOCK", 4)
    monkeypatch.setattr(predicting, "_ENTITIES", 5)
    some = predict(law[0], at=AT, limit=limit)
    assert some.rows == found.rows[:limit]
    assert some.questions < found.questions


def test_the_likeliest_and_the_chosen_ones(law: tuple[Run, set[Names]], found: Predictions) -> None:
    likely = predict(law[0], at=AT, least=0.3)
    assert likely.rows == [row for row in found if row.probability >= 0.3]
    visits = predict(law[0], at=AT, predicate="visits", entity=["person 2", "person 5"])
    chosen = [r for r in found if r.predicate == "visits" and r.subject in ("person 2", "person 5")]
    assert visits.rows[: len(chosen)] == chosen  # `found` has the first thousand
    assert {row.predicate for row in visits} == {"visits"}
    assert {row.subject for row in visits} == {"person 2", "person 5"}
    assert predict(law[0], limit=1).time == "2009"
    assert predict(law[0], at=AT, least=1.0).rows == []


def test_evidence_is_a_chain_from_the_subject_to_the_object() -> None:
    run = GraphRun(firms(8, valid=0)[0])
    for row in predict(run, at=AT, limit=5):
        assert row.evidence is None or (row.subject in row.evidence and row.object in row.evidence)
        assert row.evidence is None or "(" in row.evidence  # how its time relates to the one asked
    assert all(row.evidence is None for row in predict(run, limit=3, evidence=False))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_files(law: tuple[Run, set[Names]], tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"missing{suffix}"
    made = predict(law[0], at=AT, out=out, limit=30)
    assert [path.name for path in tmp_path.iterdir()] == [out.name]  # nothing else is left
    expected = [row._asdict() for row in made]
    if suffix == ".parquet":
        assert pq.read_table(out).to_pylist() == expected
    elif suffix == ".jsonl":
        assert [json.loads(line) for line in out.read_text().splitlines()] == expected
    else:
        with out.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["object"] for row in rows] == [row.object for row in made]
        assert [float(row["probability"]) for row in rows] == [row.probability for row in made]
        assert "'" + FORMULA in {row["subject"] for row in rows}
        assert not any(cell[:1] in "=+-@" for row in rows for cell in row.values() if cell)


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x", 'a "quoted", name', "two\nlines"])
def test_cells_that_spreadsheets_would_read_as_formulas(name: str, tmp_path: Path) -> None:
    row = predicting.Prediction(name, name, name, "-431", 0.5, 0.5, 1.0, name)
    table = Predictions([row], "-431", 1, None, {}).to_table()  # type: ignore[arg-type]
    write_predictions(table, tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        cells = list(csv.reader(file))[1]
    safe = f"'{name}" if name[0] in "=+-@" and name not in ("+1", "-1") else name
    assert cells[:4] == [safe, safe, safe, "-431"]  # numbers stay numbers


def stopping(after: int, what: str = "asking") -> Any:
    """A progress that interrupts as Ctrl-C does."""

    def progress(work: str, done: int, total: int | None = None, note: str = "") -> None:
        if work == what and done >= after:
            raise KeyboardInterrupt

    return progress


def test_an_interrupted_one_goes_on(
    law: tuple[Run, set[Names]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predicting, "_BLOCK", 8)
    run, out, whole = law[0], tmp_path / "missing.csv", tmp_path / "whole.csv"
    work = tmp_path / "missing.csv.unfinished"
    options: dict[str, Any] = {"at": AT, "limit": 40}
    expected = predict(run, out=whole, **options)
    with pytest.raises(KeyboardInterrupt):
        predict(run, out=out, progress=stopping(8), **options)
    assert not out.exists()
    assert read_json(work)["done"]["questions"] == 8
    asked: list[int] = []

    def watched(what: str, done: int, total: int | None = None, note: str = "") -> None:
        asked.extend([done] * (what == "asking"))

    assert predict(run, out=out, progress=watched, **options) == expected
    assert asked[:2] == [8, 16]
    assert out.read_bytes() == whole.read_bytes()
    assert not work.exists()


@pytest.mark.parametrize(
    "other", [{"limit": 41}, {"least": 0.01}, {"at": 2005}, "graph", "broken", "changed"]
)
def test_other_work_starts_anew(
    law: tuple[Run, set[Names]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: Any
) -> None:
    monkeypatch.setattr(predicting, "_BLOCK", 8)
    run, out = law[0], tmp_path / "missing.csv"
    options: dict[str, Any] = {"at": AT, "limit": 40}
    with pytest.raises(KeyboardInterrupt):
        predict(run, out=out, progress=stopping(8), **options)
    if other == "graph":
        run = make_run(firms(seed=1)[0])
    elif other == "broken":
        (tmp_path / "missing.csv.unfinished").write_text('{"what": 3')
    elif other == "changed":
        path = tmp_path / "missing.csv.unfinished"
        text = path.read_text()
        path.write_text(text.replace('"questions": 8', '"questions": 24'))
        assert path.read_text() != text
    else:
        options |= other
    expected = predict(run, **options)
    assert predict(run, out=out, **options) == expected


def test_an_interruption_while_evidence_is_looked_for(tmp_path: Path) -> None:
    run, out = GraphRun(firms(8, valid=0)[0]), tmp_path / "missing.jsonl"
    with pytest.raises(KeyboardInterrupt):
        predict(run, at=AT, out=out, limit=6, progress=stopping(2, "evidence"))
    assert len(read_json(tmp_path / "missing.jsonl.unfinished")["done"]["evidence"]) == 2
    again = predict(run, at=AT, out=out, limit=6)
    assert again == predict(run, at=AT, limit=6)


def test_hostile_arguments(law: tuple[Run, set[Names]], tmp_path: Path) -> None:
    run = law[0]
    for wrong, message in (
        ({"predicate": "worksfor"}, "no predicate is called 'worksfor'. Did you mean worksFor"),
        ({"entity": ["persn 2"]}, "no entity is called 'persn 2'. Did you mean person 2"),
        ({"least": 1.5}, "least is a probability, from 0 to 1, not 1.5"),
        ({"least": float("nan")}, "least is a probability"),
        ({"least": "much"}, "least must be a number"),
        ({"limit": 0}, "limit is a number from 1 on"),
        ({"out": tmp_path / "a.xlsx"}, "written as .csv, .parquet, .jsonl"),
        ({"at": 1800}, "outside of the graph's time"),
    ):
        options: dict[str, Any] = wrong
        with pytest.raises(UsageError, match=message):
            predict(run, **options)
    with pytest.raises(SplimeError, match="cannot be written"):
        predict(run, out=tmp_path / "no folder" / "a.csv")
    assert not list(tmp_path.iterdir())


def test_runs_that_cannot_answer(tmp_path: Path) -> None:
    few = splime.read([("a", "p", "b", 1990)] * 3 + [("c", "p", "b", 1991)], split="none")
    with pytest.raises(UsageError, match="only 2 facts can be hidden to calibrate"):
        predict(few)
    ahead = train(small_graph(), splime.Vanilla(), tmp_path / "run", model="latest", past="all")
    with pytest.raises(UsageError, match="this run forecasts"):
        predict(ahead)


def test_names_with_commas() -> None:
    names = Vocabulary(["a, b", "b", "c", "a"], kind="entity")
    assert split_names("a, b,c", names) == ["a, b", "c"]
    assert split_names("b , a", names) == ["b", "a"]
    assert split_names("x,,b", names) == ["x", "b"]


def test_the_command(tmp_path: Path) -> None:
    data, out = tmp_path / "facts.csv", tmp_path / "missing.csv"
    with data.open("w") as file:
        for fact in firms(8, valid=0)[0].rows():
            file.write(",".join(map(str, fact)) + "\n")
    done = call("predict", data, "--at", AT, "--predicate", "worksFor", "--limit", 21, "--out", out)
    assert done.code == 0, done.err
    assert "21 facts written to" in done.out
    assert "the first 20 of 21" in done.out
    assert "Brier score" in done.out
    with out.open(newline="") as file:
        assert {row["predicate"] for row in csv.DictReader(file)} == {"worksFor"}
    shown = call("predict", data, "--at", AT, "--entity", "person 2,person 3", "--json")
    assert shown.code == 0, shown.err
    facts = json.loads(shown.out)["facts"]
    assert {fact["subject"] for fact in facts} <= {"person 2", "person 3"}
    assert len(facts) <= 20
    for wrong, message in (
        (["--predicate", "worksfor"], "Did you mean worksFor"),
        (["--least", "2"], "from 0 to 1"),
        (["--out", tmp_path / "a.txt"], "written as .csv"),
    ):
        refused = call("predict", data, *wrong)
        assert (refused.code, refused.out) == (2, "")
        assert message in refused.err
