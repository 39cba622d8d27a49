"""Runs of the path model: trained, stopped, resumed, evaluated and asked like all others."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import splime
from splime.errors import Interrupted, UsageError
from splime.graph import TemporalGraph
from splime.paths.relative import Times
from splime.paths.scorer import PathScorer, relative_scopes
from splime.runs import Run, evaluate, train
from splime.scoring.timed import TimedScoring
from splime.training.registry import make_settings
from tests.runs.small import StopAfter, call, small_graph

SMALL: dict[str, Any] = {"model": "path", "layers": 2, "dimension": 16, "batch_size": 20}


@pytest.fixture(scope="module")
def graph() -> TemporalGraph:
    return small_graph(test=60)


@pytest.fixture(scope="module")
def run(graph: TemporalGraph, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(graph, splime.Vanilla(), tmp_path_factory.mktemp("path"), **SMALL, epochs=12)


def test_it_learns_when(run: Run, graph: TemporalGraph, tmp_path: Path) -> None:
    # Objects change every four years, so a model without time can only guess among them.
    timeless = train(graph, splime.Vanilla(), tmp_path, **SMALL, epochs=12, relative="none")
    mrr = {each: evaluate(each).metrics["exact"]["both"].mrr for each in (run, timeless)}
    assert mrr[run] > mrr[timeless] + 0.03
    assert run.history[-1].loss < run.history[0].loss


def test_stopped_and_resumed_it_ends_with_the_same_bytes(
    graph: TemporalGraph, tmp_path: Path
) -> None:
    def again(where: str, steps: int) -> None:
        watch = StopAfter(steps)
        train(graph, splime.Vanilla(), tmp_path / where, **SMALL, epochs=3, watch=watch)

    again("whole", 10_000)
    for steps in (4, 7, 13):
        with pytest.raises(Interrupted):
            again("parts", steps)
    again("parts", 10_000)
    whole, parts = (tmp_path / name / "model.safetensors" for name in ("whole", "parts"))
    assert whole.read_bytes() == parts.read_bytes()


def test_the_bytes_do_not_depend_on_the_number_of_threads(tmp_path: Path) -> None:
    # Of a graph that is large enough for torch to divide its own sums among threads.
    graph, before = splime.load("demo"), torch.get_num_threads()
    few: dict[str, Any] = {"layers": 2, "dimension": 16, "steps": 2, "validate_every": 0}
    models = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            train(graph, splime.Vanilla(), tmp_path / str(threads), model="path", **few)
            models.append((tmp_path / str(threads) / "model.safetensors").read_bytes())
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert models[0] == models[1] == models[2]


def test_ranks_are_those_of_a_loop_over_the_facts(run: Run) -> None:
    graph, scorer = run.graph, run.scorer
    assert isinstance(scorer, PathScorer)
    evaluation = evaluate(run, "fact", split="valid")
    scorer.model.eval()
    scopes = relative_scopes(graph, run.settings)
    every = {(s, p, o, b, e, u) for s, p, o, b, e, u in zip(*graph.facts().columns(), strict=True)}
    for row in range(len(graph.valid)):
        fact = graph.valid.take(np.array([row]))
        s, p, o, b, e, u = (column[0] for column in fact.columns())
        near = scorer.read.scopes(scopes, Times.of(fact))
        with torch.inference_mode():
            scores = scorer.model(
                scorer.read,
                torch.tensor([int(s)]),
                scorer._start(torch.tensor([int(p)]), None),
                near,
                plain=True,
            )[0]
        others = [x for x in range(len(graph.entities)) if (s, p, x, b, e, u) not in every]
        rank = 1 + int((scores[others] > scores[int(o)] + 1e-5).sum())
        assert abs(evaluation.ranks["exact"][row, 0] - rank) <= 0.5


def test_all_questions(run: Run) -> None:
    query = splime.Query(run)
    assert isinstance(query.scoring, TimedScoring)
    what = query.ask("entity 3", "p1", "?", at=1999, limit=None)
    assert len(what) == len(run.graph.entities)
    who = query.ask("?", "p1", "entity 3", during=(1992, 1995))
    assert who.question.kind == "subject"
    which = query.ask("entity 3", "?", "entity 6", at=1999)
    assert sorted(row.name for row in which) == ["p0", "p1", "p2"]
    when = query.ask("entity 3", "p1", "entity 6", "?", limit=None)
    timeline = run.graph.timeline
    assert [row.begin for row in when.timeline()] == timeline.labels()
    for answers in (what, who, which, when):
        scores = [row.score for row in answers]
        assert scores == sorted(scores, reverse=True)


def test_evidence_is_chains_of_known_facts(run: Run) -> None:
    query = splime.Query(run)
    best = query.ask("entity 3", "p1", "?", at=1999)[0].name
    why = query.why("entity 3", "p1", "?", at=1999)
    assert why.answer == best
    known = set(run.graph.rows("train"))
    for reason in why.reasons:
        facts = [step.fact for step in reason.steps]
        assert known.issuperset(facts)
        assert len(facts) <= SMALL["layers"]
        place = "entity 3"
        for fact in facts:
            assert place in (fact.subject, fact.object)
            place = fact.object if place == fact.subject else fact.subject
        assert place == best
    contributions = [reason.contribution for reason in why.reasons]
    assert contributions == sorted(contributions, reverse=True)
    assert contributions
    asked = call("ask", run.path, "entity 3", "p1", "?", "--at", "1999", "--why", "--json")
    assert json.loads(asked.out)["evidence"] == why.to_json()


def test_evidence_of_other_questions_and_models(
    run: Run, graph: TemporalGraph, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="who or what"):
        splime.Query(run).why("entity 3", "?", "entity 6", at=1999, answer="p1")
    other = splime.train(graph, splime.Vanilla(), tmp_path, dimension=4, epochs=1)
    with pytest.raises(UsageError, match="path model"):
        splime.Query(other).why("entity 3", "p1", "?", at=1999)
    assert call("ask", tmp_path, "entity 3", "p1", "?", "--why").code == 2


def test_answers_are_scored_at_the_time(run: Run) -> None:
    query = splime.Query(run)
    early, late = (query.ask("entity 3", "p1", "?", at=year, limit=None) for year in (1990, 2005))
    assert {row.name: row.score for row in early} != {row.name: row.score for row in late}


def test_predicates_and_triples(run: Run) -> None:
    assert evaluate(run, "predicate").queries == len(run.graph.test)
    with pytest.raises(UsageError, match="protocol"):
        evaluate(run, "triple")


def test_on_the_command_line(graph: TemporalGraph, tmp_path: Path) -> None:
    splime.save(graph, tmp_path / "facts.parquet")
    small = ("--layers", 1, "--dimension", 16, "--epochs", 1, "--batch-size", 20)
    done = call(
        "train", tmp_path / "facts.parquet", "--model", "path", *small, "--out", tmp_path / "run"
    )
    assert done.code == 0, done.err
    assert call("evaluate", tmp_path / "run").code == 0
    asked = call("ask", tmp_path / "run", "entity 3", "p1", "?", "--at", "1999")
    assert asked.code == 0, asked.err
    done = call(
        "run", tmp_path / "facts.parquet", "--model", "path", *small, "--out", tmp_path / "all"
    )
    assert done.code == 0, done.err
    html = (tmp_path / "all" / "report.html").read_text(encoding="utf-8")
    assert html.count("the right answer") == 4  # of the questions who and what
    assert 'class="evidence"' in html
    assert re.search(r"why entity \d+, which came first", html)
    assert "path" in call("models").out


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"relative": "sometimes"}, "relative"),
        ({"relative": "events:1,x"}, "first distance"),
        ({"relative": "none:1,2"}, "distances"),
        ({"dimension": 33}, "width"),
        ({"layers": 0}, "layer"),
        ({"dropout": 1.0}, "dropout"),
        ({"past": "later"}, "past"),
        ({"aggregation": "median"}, "aggregation"),
        ({"reach": 0}, "reach"),
        ({"loss": "bce"}, "no effect"),
    ],
)
def test_nonsense(graph: TemporalGraph, tmp_path: Path, wrong: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        train(graph, splime.Vanilla(), tmp_path / "run", **{**SMALL, "epochs": 1, **wrong})
    assert not (tmp_path / "run" / "config.toml").exists()


def test_cuts_are_refused(graph: TemporalGraph, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no cuts"):
        train(graph, splime.Split(grow=2), tmp_path / "run", **SMALL, epochs=1)


def test_settings_are_checked_before_the_facts_are_read(tmp_path: Path) -> None:
    assert make_settings("path").layers == 4
    assert not hasattr(make_settings("complex"), "layers")
    for model, wrong in (("path", {"negatives": 5}), ("complex", {"layers": 2})):
        with pytest.raises(UsageError, match=f"no effect on {model}"):
            train("no such data", None, tmp_path / "run", model=model, **wrong)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:valid or test begins")
def test_the_past_alone(graph: TemporalGraph, tmp_path: Path) -> None:
    run = train(graph, splime.Vanilla(), tmp_path, **SMALL, epochs=1, past="train")
    scorer = run.scorer
    assert isinstance(scorer, PathScorer)
    first = graph.train.take(np.array([int(np.argmin(graph.train.begin))]))
    scores = scorer.entities("object", first)[0]
    # Nothing begins before the first fact, so no entity but the given one differs from the others.
    others = np.delete(np.arange(len(graph.entities)), int(first.subject[0]))
    assert np.ptp(scores[others].numpy()) < 1e-5


def test_the_begin_of_a_question_alone(run: Run, graph: TemporalGraph, tmp_path: Path) -> None:
    """With the same begin, a later end changes no score; a later begin does."""
    both = train(graph, splime.Vanilla(), tmp_path / "begin", **SMALL, epochs=2, begin_only=True)
    assert Run(both.path).settings.begin_only

    def scores(of: Run, begin: int, end: int) -> torch.Tensor:
        fact = graph.test.take(np.array([0]))
        begins, ends = (np.array([tick], fact.begin.dtype) for tick in (begin, end))
        known = np.zeros(1, np.uint8)
        asked = splime.Facts.owning(*fact.columns()[:3], begins, ends, known)
        return of.scorer.entities("object", asked)  # type: ignore[no-any-return]

    assert torch.equal(scores(both, 1994, 1994), scores(both, 1994, 2001))
    assert not torch.equal(scores(both, 1994, 2001), scores(both, 1998, 2001))
    assert not torch.equal(scores(run, 1994, 1994), scores(run, 1994, 2001))
    # It is trained so: the questions of train are other ones.
    usual = train(graph, splime.Vanilla(), tmp_path / "usual", **SMALL, epochs=2)
    assert usual.history[0].loss != both.history[0].loss
