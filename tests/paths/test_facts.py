"""A run asked over other facts than its own, and forecasts, which see only what lies before."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings, strategies as st

import splime
from splime.device import free_memory
from splime.errors import SplimeError, UsageError
from splime.graph import Fact, Facts, TemporalGraph
from splime.paths.scorer import PathScorer, check_memory, make_path_model
from splime.query import Query
from splime.runs import Run, combine, evaluate, evaluations, train
from splime.training.paths import PathTrainer
from splime.training.registry import make_settings
from splime.vocabulary import Vocabulary
from tests.query.test_coverage import lacking_graph
from tests.runs.small import call, small_graph, small_run

SMALL: dict[str, Any] = {"model": "path", "layers": 2, "dimension": 16, "batch_size": 20}
NEW = [("Newcomer", "p1", "entity 7", 1998, 2001), ("entity 7", "p2", "Newcomer", 1999, 1999)]


@pytest.fixture(scope="module")
def graph() -> TemporalGraph:
    return small_graph(test=60)


@pytest.fixture(scope="module")
def run(graph: TemporalGraph, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(graph, splime.Vanilla(), tmp_path_factory.mktemp("path"), **SMALL, epochs=6)


@pytest.fixture(scope="module")
def latest(graph: TemporalGraph, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(graph, splime.Vanilla(), tmp_path_factory.mktemp("latest"), model="latest")


def facts(rows: Any, **options: Any) -> TemporalGraph:
    return splime.read(rows, **{"split": "none", "granularity": "year", **options})


def written(path: Path, rows: Any) -> Path:
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    return path


def test_an_entity_that_train_never_saw(run: Run) -> None:
    with pytest.raises(UsageError, match="Newcomer"):
        Query(run).ask("Newcomer", "p1", "?", at=1999)
    query = Query(run.over(facts(NEW)))
    answers = query.ask("Newcomer", "p1", "?", at=1999, limit=3)
    assert "entity 7" in [row.name for row in answers]
    assert not answers.doubt
    why = query.why("Newcomer", "p1", "?", answer="entity 7", at=1999)
    named = [step.fact for reason in why.reasons for step in reason.steps]
    assert Fact("Newcomer", "p1", "entity 7", "1998", "2001") in named
    # Who is asked for may be new, too.
    who = query.ask("?", "p1", "entity 7", at=1999, limit=None)
    assert "Newcomer" in [row.name for row in who]


def test_a_correction_changes_an_answer(latest: Run, run: Run) -> None:
    own = [("entity 3", "p1", "entity 9", 1990, 1999), ("entity 3", "p1", "entity 0", 1990, 1994)]
    alone = facts([*own, ("entity 3", "p0", "entity 1", 1985, 1985)])
    before = Query(latest.over(alone, instead=True))
    assert before.ask("entity 3", "p1", "?", at=1998)[0].name == "entity 9"
    # It did not last that long; the other one did.
    right = facts([(*own[0][:4], 1991), (*own[1][:4], 1999)])
    after = Query(latest.over(alone, instead=True).over(right))
    assert after.ask("entity 3", "p1", "?", at=1998)[0].name == "entity 0"
    assert len(after.run.graph.train) == 3
    scores = [
        {row.name: row.score for row in Query(run.over(each)).ask("entity 3", "p1", "?", at=1998)}
        for each in (alone, right)
    ]
    assert scores[0] != scores[1]


@pytest.mark.parametrize("instead", [False, True])
def test_over_its_own_facts_nothing_changes(run: Run, latest: Run, instead: bool) -> None:
    for each in (run, latest):
        # In another order, and with ids of their own.
        order = np.random.default_rng(0).permutation(len(each.graph.train))
        shuffled = TemporalGraph(
            each.graph.train.take(order), each.graph.valid, each.graph.test,
            each.graph.entities, each.graph.predicates, each.graph.timeline,
        )  # fmt: skip
        other = each.over(shuffled, instead=instead)
        assert sorted(other.graph.rows("train"), key=str) == sorted(
            each.graph.rows("train"), key=str
        )
        for kind in ("object", "subject"):
            torch.testing.assert_close(
                other.scorer.entities(kind, each.graph.test),
                each.scorer.entities(kind, each.graph.test),
                atol=1e-4, rtol=1e-4,
            )  # fmt: skip


def test_only_what_overlaps_is_replaced(latest: Run) -> None:
    old = facts([
        ("a", "p0", "b", 1990, 1995), ("a", "p0", "b", 2000, None), ("a", "p0", "c", 1990, 1995),
        ("a", "p1", "b", 1990, 1995),
    ])  # fmt: skip
    base = latest.over(old, instead=True)
    joined = base.over(facts([("a", "p0", "b", 1995, 1997), ("a", "p0", "b", 2004, 2004)]))
    assert {tuple(fact)[1:] for fact in joined.graph.rows("train")} == {
        ("p0", "b", "1995", "1997"), ("p0", "b", "2004", "2004"), ("p0", "c", "1990", "1995"),
        ("p1", "b", "1990", "1995"),
    }  # fmt: skip
    added = base.over(facts([("a", "p0", "b", 1996, 1997)]))
    assert len(added.graph.train) == 5


@pytest.mark.parametrize("past", ["split", "all"])
def test_what_forecasts_know_is_replaced_too(past: Any, tmp_path: Path) -> None:
    rows = [(f"entity {at % 5}", "p0", f"entity {at % 7}", 1990 + at, None) for at in range(30)]
    splits = {"train": rows[:20], "valid": rows[20:25], "test": rows[25:]}
    graph = splime.read(splits, granularity="year")
    run = train(graph, None, tmp_path / "run", model="latest", past=past)
    repeated = facts([*rows[23:27], ("Newcomer", "p0", "entity 1", 2025, 2026)])
    alone = run.over(repeated, instead=True)
    assert len(alone.graph) == 5
    first = alone.graph.facts().take(np.array([0]))
    assert alone.scorer.entities("object", first).unique().numel() == 1  # nothing is before
    assert run.scorer.entities("object", first).unique().numel() > 1
    both = run.over(repeated).graph
    assert len(both) == len(graph) + 1
    assert len({str(fact) for fact in both.rows()}) == len(both)
    assert len(both.valid) == 3
    assert len(both.test) == 3


def test_predicates_that_train_never_saw(run: Run, graph: TemporalGraph, tmp_path: Path) -> None:
    strange = [("Newcomer", "zz", "entity 1", 1999, 1999), ("Other", "yy", "Stranger", 1999, 1999)]
    counted = run.over(facts([*NEW, *strange]), warn=pytest.fail)
    assert Query(counted).ask("Other", "yy", "?", at=1999)[0].name == "Stranger"
    learned = train(graph, None, tmp_path / "run", **SMALL, messages="learned", epochs=1)
    told: list[str] = []
    other = learned.over(facts([*NEW, *strange]), warn=told.append)
    assert len(told) == 1
    assert "2 of 4" in told[0]
    assert "yy, zz" in told[0]
    assert "Stranger" not in other.graph.entities
    assert other.graph.predicates == run.graph.predicates
    with pytest.raises(UsageError, match="not learned"):
        learned.over(facts(strange))


def test_what_cannot_be_asked_over_other_facts(
    run: Run, graph: TemporalGraph, tmp_path: Path
) -> None:
    days = splime.read([("a", "p1", "b", "1999-05-03")], split="none")
    with pytest.raises(UsageError, match="--granularity year"):
        run.over(days)
    factors = small_run(graph, tmp_path / "factors", splime.Vanilla(), epochs=1)
    combined = combine([run, factors], tmp_path / "combined")
    for each in (factors, combined):
        with pytest.raises(UsageError, match="vector for each entity"):
            each.over(facts(NEW))


def test_combinations_of_such_runs(run: Run, latest: Run, tmp_path: Path) -> None:
    combined = combine([run, latest], tmp_path / "combined").over(facts(NEW))
    asked = combined.graph.train.take(slice(-2, None))
    first, second = combined.config["settings"]["weights"]
    parts = [each.over(facts(NEW)).scorer.entities("object", asked) for each in (run, latest)]
    wanted = first * parts[0].log_softmax(1) + second * parts[1].log_softmax(1)
    torch.testing.assert_close(combined.scorer.entities("object", asked), wanted)


def test_metrics_over_other_facts_are_not_kept(graph: TemporalGraph, tmp_path: Path) -> None:
    train(graph, splime.Vanilla(), tmp_path / "run", model="latest")
    own = evaluate(Run(tmp_path / "run"))
    before = sorted(path.name for path in (tmp_path / "run").iterdir())
    folder = tmp_path / "newer"
    folder.mkdir()
    written(folder / "train.tsv", NEW)
    written(folder / "test.tsv", [("Newcomer", "p1", "entity 7", 2001, 2003)])
    done = call("evaluate", tmp_path / "run", "--facts", folder, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["queries"] == 2
    shown = " ".join(call("evaluate", tmp_path / "run", "--facts", folder).out.split())
    assert "not kept" in shown
    # Without a test of its own it is the run's.
    other = Run(tmp_path / "run").over(facts(NEW))
    assert evaluate(other).queries == own.queries
    Query(other).ask("Newcomer", "p1", "?", at=1999)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == before
    assert [one.queries for one in evaluations(Run(tmp_path / "run"))] == [own.queries]


def test_on_the_command_line(run: Run, tmp_path: Path) -> None:
    newer = written(tmp_path / "newer.tsv", NEW)
    asked = ("ask", run.path, "Newcomer", "p1", "?", "--at", 1999)
    done = call(*asked, "--facts", newer, "--granularity", "year", "--why", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["evidence"]["reasons"]
    questions = written(
        tmp_path / "many.tsv", [("Newcomer", "p1", "?", 1999), ("?", "p2", "Newcomer", 2000)]
    )
    out = tmp_path / "answers.tsv"
    done = call(
        *("ask", run.path, "--file", questions, "--out", out, "--facts", newer),
        *("--granularity", "year"),
    )
    assert done.code == 0, done.err
    assert "Newcomer" in out.read_text()
    for wrong in (
        (*asked, "--instead"),
        (*asked, "--first", 1990),
        (*asked, "--facts", "none.tsv"),
    ):
        done = call(*wrong)
        assert done.code in (2, 3)
        assert "Traceback" not in done.err


def test_an_entity_without_facts_is_said(run: Run) -> None:
    # It is only in test: it has a name, and no fact to start from.
    given = facts(
        {"train": NEW[1:], "test": [("Nobody", "p1", "entity 7", 1999, 2000)]}, split=None
    )
    answers = Query(run.over(given)).ask("Nobody", "p1", "?", at=1999)
    assert "no fact" in answers.doubt
    assert all(row.probability is None for row in answers)


def test_times_that_train_does_not_have(tmp_path: Path) -> None:
    # No scope stands in where there are none.
    latest = train(lacking_graph(), splime.Vanilla(), tmp_path, model="latest")
    doubt = Query(latest).ask("e1", "early", "?", at=2004).doubt
    assert doubt == "train has facts of early only from 1990 to 1994, not at the time asked about"


# Forecasts


def begins(fact: tuple[int, ...]) -> int | None:
    """When a fact surely began; None if it has no time."""
    begin, end, unknown = fact[3:]
    return None if unknown == 3 else end if unknown == 1 else begin


@st.composite
def graphs(draw: st.DrawFn) -> TemporalGraph:
    name, year = st.sampled_from("abcde"), st.none() | st.integers(1990, 1999)

    def some(least: int) -> list[Any]:
        rows = []
        for _ in range(draw(st.integers(least, 9))):
            begin, end = draw(year), draw(year)
            if begin is not None and end is not None and end < begin:
                begin, end = end, begin
            rows.append((draw(name), draw(st.sampled_from("pq")), draw(name), begin, end))
        return rows

    splits = {"train": [("a", "p", "b", 1993, 1995), *some(3)], "valid": some(1), "test": some(1)}
    return splime.read(splits, granularity="year", allow_loss=True)


@settings(max_examples=15)
@given(graph=graphs(), past=st.sampled_from(["train", "all"]), seed=st.integers(0, 9))
def test_no_fact_that_begins_later_changes_a_score(
    graph: TemporalGraph, past: Any, seed: int
) -> None:
    relative = "intervals:1,3,6"
    chosen = make_settings(
        "path", messages="learned", past=past, layers=2, dimension=16, seed=seed, relative=relative
    )
    scorer = PathScorer(make_path_model(graph, chosen), graph, chosen)
    for asked in (graph.test, graph.train):
        for row in range(len(asked)):
            one = asked.take(np.array([row]))
            # A literal loop: what is known, and began before.
            now = begins(tuple(int(column[0]) for column in one.columns()))
            if now is None:
                now = int(one.begin[0])
            known: dict[Any, Any] = {}
            for split, part in graph.splits():
                table = zip(*(column.tolist() for column in part.columns()), strict=True)
                kept = [
                    at for at, fact in enumerate(table)
                    if (began := begins(fact)) is not None and began < now
                ]  # fmt: skip
                known[split] = part.take(np.array(kept, np.int64))
            if past == "train":
                known["valid"], known["test"] = graph.valid, graph.test
            before = replace(graph, **known)
            alone = PathScorer(scorer.model, before, chosen)
            for kind in ("object", "subject"):
                torch.testing.assert_close(
                    alone.entities(kind, one), scorer.entities(kind, one), atol=1e-5, rtol=1e-5
                )


def test_training_reads_train_alone(graph: TemporalGraph) -> None:
    chosen = make_settings(**SMALL, messages="learned", past="all", relative="intervals:1,3")
    trainer = PathTrainer(graph, chosen, torch.device("cpu"))
    assert trainer.questions.facts.facts == len(graph.train)
    assert trainer.questions.relative.past
    scorer = trainer.scoring().scorer
    assert isinstance(scorer, PathScorer)
    assert len(scorer.known) == len(graph)


def test_a_forecast_that_learns_from_later_facts_warns(tmp_path: Path) -> None:
    rows = [(f"e{n % 7}", "p", f"e{n % 5}", 2000 + n) for n in range(60)]
    in_order, drawn = splime.read(rows, split="time"), splime.read(rows, split="random")
    for graph, warnings in ((in_order, 0), (drawn, 1)):
        warned: list[str] = []
        run = tmp_path / str(warnings)
        train(graph, None, run, **SMALL, epochs=1, past="all", warn=warned.append)
        assert sum("learns from later facts" in text for text in warned) == warnings


def test_rows_that_state_the_same_are_hidden_together(graph: TemporalGraph) -> None:
    chosen = make_settings(**SMALL, messages="learned", relative="intervals:1,3")

    def losses(train: Facts) -> list[float]:
        """Of the questions for the object and the subject of the first fact."""
        trainer = PathTrainer(replace(graph, train=train), chosen, torch.device("cpu"))
        loss, seed = trainer.questions.loss, torch.tensor(0)
        trainer.model.eval()
        asked = (torch.tensor([number]) for number in (0, len(train)))
        return [loss(trainer.model, one, seed).item() for one in asked]

    train = graph.train
    again = Facts.concat([train, train.take(np.array([0, 0]))])
    assert losses(again) == pytest.approx(losses(train), abs=1e-5)
    earlier = replace(again, begin=np.append(again.begin[:-2], again.begin[-2:] - 1))
    assert losses(earlier) != pytest.approx(losses(train), abs=1e-3)


@pytest.mark.filterwarnings("ignore:valid or test begins")
def test_metrics_say_whose_past(graph: TemporalGraph, tmp_path: Path) -> None:
    run = train(graph, splime.Vanilla(), tmp_path, **SMALL, epochs=1, past="train")
    assert evaluate(run).past == "train"
    stored = json.loads((tmp_path / "metrics.json").read_text())
    assert [one["past"] for one in stored.values()] == ["train"]
    assert "forecast, train only" in " ".join(call("evaluate", tmp_path).out.split())


def test_the_time_of_a_forecast(graph: TemporalGraph, tmp_path: Path) -> None:
    train(graph, splime.Vanilla(), tmp_path, model="latest", past="all")
    query = Query(Run(tmp_path))
    last = graph.timeline.last
    # Without a time it is the first one that is not known yet.
    following = query.ask("entity 3", "p1", "?")
    assert (following.question.begin, following.question.end) == (str(last + 1),) * 2
    assert list(following) == list(query.ask("entity 3", "p1", "?", at=last + 1))
    assert not query.ask("entity 3", "p1", "?", at=last + 3).doubt
    # Far from all that was learned, and before all facts, it says so.
    assert query.ask("entity 3", "p1", "?", at=last + 1000).doubt
    assert query.ask("entity 3", "p1", "?", at=graph.timeline.first).doubt
    with pytest.raises(UsageError, match="outside"):
        query.ask("entity 3", "p1", "?", at=graph.timeline.first - 1)
    table = query.ask_many(
        pa.table({"subject": ["entity 3"] * 2, "predicate": ["p1"] * 2, "object": ["?"] * 2,
                  "at": [str(last + 3), ""]})
    )  # fmt: skip
    assert set(table["begin"].to_pylist()) == {str(last + 3), str(last + 1)}


def test_other_runs_are_not_asked_about_times_after_the_graph(run: Run) -> None:
    with pytest.raises(UsageError, match="outside"):
        Query(run).ask("entity 3", "p1", "?", at=run.graph.timeline.last + 1)


# Memory


def test_what_does_not_fit_is_said_before(
    graph: TemporalGraph, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = 0
    monkeypatch.setattr("splime.paths.scorer.free_memory", lambda _: free)
    with pytest.raises(SplimeError, match="take fewer facts, or lower dimension or layers"):
        train(graph, splime.Vanilla(), tmp_path / "run", **SMALL, epochs=1)
    with pytest.raises(SplimeError, match="train with a lower dimension"):
        Query(Run(run.path)).ask("entity 3", "p1", "?", at=1999)
    free = 400_000
    with pytest.raises(SplimeError, match=r"--batch-size \d+ fits") as error:
        train(graph, splime.Vanilla(), tmp_path / "run", **SMALL, epochs=1)
    assert not (tmp_path / "run" / "config.toml").exists()
    fitting = int(re.findall(r"--batch-size (\d+)", str(error.value))[0])
    assert 1 <= fitting < SMALL["batch_size"]
    train(graph, splime.Vanilla(), tmp_path / "run", **{**SMALL, "batch_size": fitting}, steps=2)
    assert Query(Run(run.path)).ask("entity 3", "p1", "?", at=1999).rows
    done = call("evaluate", run.path)
    assert done.code == 0, done.err
    free = 0
    assert "GB are free" in call("evaluate", run.path).err


def test_a_bound_on_the_facts_that_are_read_takes_less(
    graph: TemporalGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("splime.paths.scorer.free_memory", lambda _: 60_000)
    chosen = make_settings(**SMALL, relative="intervals:1,3")
    many = replace(graph, entities=Vocabulary([f"entity {n}" for n in range(1000)], kind="entity"))
    with pytest.raises(SplimeError, match="1,000 entities"):
        check_memory(many, len(graph.train), chosen, torch.device("cpu"))
    check_memory(many, len(graph.train), replace(chosen, reach=5), torch.device("cpu"))


def test_memory_that_is_free() -> None:
    free = free_memory(torch.device("cpu"))
    assert free is None or free > 1 << 20
