"""What `splime train` and `splime evaluate` show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import splime
from splime.graph import TemporalGraph
from splime.reporting.results import conditions, evaluation_tables, run_table
from splime.runs import Run, evaluate
from tests.report.test_report import printed
from tests.runs.small import small_graph, small_run


@pytest.fixture(scope="module")
def graph() -> TemporalGraph:
    return small_graph(test=40)


@pytest.fixture(scope="module")
def run(graph: TemporalGraph, tmp_path_factory: pytest.TempPathFactory) -> Run:
    torch.set_num_threads(1)
    return small_run(graph, tmp_path_factory.mktemp("run") / "run")


def test_a_run(run: Run) -> None:
    text = printed(run_table(run))
    best = max((one for one in run.history if one.valid), key=lambda one: one.valid or 0)
    for shown in (
        f"run {run.path}"[:20],
        f"facts, {len(run.graph.train)} facts in train",
        "Split (target predicates, fit_on train, by time, grow 2)",
        "scoped predicates       │ 6",
        "distmult (dimension 4, loss softmax, optimizer adagrad",
        "parameters              │ 96",
        "6 in ",
        f"{run.history[0].loss:.4g} → {run.history[-1].loss:.4g}",
        f"{best.valid:.3f} after epoch {best.epoch}, kept",
    ):
        assert shown in text


def test_a_run_without_valid_and_method(graph: TemporalGraph, tmp_path: Path) -> None:
    cuts = replace(splime.Vanilla().fit(graph), method={})
    named = replace(graph, name="[red]mine")
    run = small_run(named, tmp_path / "run", cuts, validate_every=0)
    text = printed(run_table(run))
    assert "[red]mine, " in text
    assert "│ given " in text
    assert "valid" not in text.replace(str(tmp_path), "")


def test_an_evaluation(run: Run) -> None:
    evaluation = evaluate(run, bootstrap=20)
    text = printed(*evaluation_tables(evaluation))
    metrics = evaluation.metrics["overlap"]["subject"]
    assert f"{metrics.mrr:.3f} │" in text
    assert f"{100 * metrics.hits10:.1f} │" in text
    low, high = (evaluation.intervals["static"]["both"] or {})["mrr"]
    assert f"MRR static: between {low:.3f} and {high:.3f} with 95 % confidence" in text
    assert "by predicate" not in text
    strata = printed(*evaluation_tables(evaluation, strata=True))
    assert "by predicate (filter exact)" in strata
    for name in run.graph.predicates:
        assert f"│ {name} " in strata


def test_conditions(run: Run) -> None:
    fact, triple = evaluate(run), evaluate(run, "triple")
    assert conditions(fact).startswith(
        "80 queries among 12 candidates; ties: mean rank; scores of scopes: mean; 18 timestamps;"
        " left out: "
    )
    assert "; leak filter: inter; " in conditions(triple)
    reasons = {why: count for why, count in triple.left_out.items() if count}
    for why, count in reasons.items():
        assert f"{count} {why}" in conditions(triple)
    bucketed = replace(fact, buckets=True, left_out={"unreadable time": 1_200, "other": 0})
    assert "18 buckets; left out: 1,200 unreadable time; " in conditions(bucketed)
    assert "left out: nothing" in conditions(replace(fact, left_out={}))
