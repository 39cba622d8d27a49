"""The baseline that repeats the latest facts: its scores are those of a loop over the facts."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

import splime
from splime.analysis import compare
from splime.errors import UsageError
from splime.graph import Facts, TemporalGraph
from splime.runs import evaluate, evaluations, train
from splime.settings import LatestSettings
from splime.training.latest import LatestScorer
from tests.runs.small import call, small_graph, small_run

PASTS = [None, "train", "all"]


def rows_of(facts: Facts) -> list[tuple[int, ...]]:
    return [tuple(row) for row in np.stack(facts.columns(), axis=1).tolist()]


def span(row: tuple[int, ...]) -> tuple[float, float]:
    begin, end, unknown = row[3:]
    if unknown == 3:
        return -math.inf, math.inf
    return (end if unknown == 1 else begin), (begin if unknown == 2 else end)


def literal(
    graph: TemporalGraph, past: str | None, asked: tuple[int, ...], side: int, candidate: int
) -> float:
    """The score of a candidate in a place of a fact, one fact after the other."""
    known = rows_of(graph.facts() if past == "all" else graph.train)
    begin, end = span(asked)
    other, nearest, having, alike = 2 - side, 0.0, 0, 0
    for fact in known:
        first, last = span(fact)
        if fact[1] != asked[1] or (past and not (first < begin and fact[5] != 3)):
            continue
        alike += 1
        having += fact[side] == candidate
        if fact[side] == candidate and fact[other] == asked[other]:
            nearest = max(nearest, 1 / (1 + max(0, begin - last, first - end)))
    return math.log(nearest + having / max(alike, 1) / 1000 + 1e-9)


@st.composite
def graphs(draw: st.DrawFn) -> TemporalGraph:
    name, year = st.sampled_from("abcd"), st.none() | st.integers(1990, 1999)

    def facts(least: int) -> list[Any]:
        rows = []
        for _ in range(draw(st.integers(least, 8))):
            begin, end = draw(year), draw(year)
            if begin is not None and end is not None and end < begin:
                begin, end = end, begin
            rows.append((draw(name), draw(st.sampled_from("pq")), draw(name), begin, end))
        return rows

    # A first fact fixes the kind of time.
    splits = {
        "train": [("a", "p", "b", 1993, 1995), *facts(2)],
        "valid": facts(1),
        "test": facts(1),
    }
    return splime.read(splits, granularity="year", keep_duplicates=True, allow_loss=True)


@given(graph=graphs(), past=st.sampled_from(PASTS))
def test_scores_are_those_of_a_loop(graph: TemporalGraph, past: Any) -> None:
    scorer = LatestScorer(graph, LatestSettings(model="latest", past=past))
    asked = graph.facts()
    for kind, side in (("object", 2), ("subject", 0)):
        scores = scorer.entities(kind, asked)  # type: ignore[arg-type]
        for row, fact in zip(scores.tolist(), rows_of(asked), strict=True):
            wanted = [literal(graph, past, fact, side, x) for x in range(len(graph.entities))]
            assert row == pytest.approx(wanted, abs=1e-4)


@given(graph=graphs(), past=st.sampled_from(["train", "all"]), year=st.integers(1990, 1999))
def test_what_begins_later_changes_nothing(graph: TemporalGraph, past: Any, year: int) -> None:
    def earlier(facts: Facts) -> Facts:
        first = np.array([span(row)[0] for row in rows_of(facts)])
        return facts.take((first < year) & (facts.unknown != 3))

    own: Any = {split: earlier(facts) for split, facts in graph.splits()}
    masked = replace(graph, **own)
    asked = graph.facts()
    asked = Facts.owning(
        asked.subject, asked.predicate, asked.object,
        np.full(len(asked), year), np.full(len(asked), year), np.zeros(len(asked), np.uint8),
    )  # fmt: skip
    whole, part = (
        LatestScorer(each, LatestSettings(model="latest", past=past)) for each in (graph, masked)
    )
    assert torch.equal(whole.entities("object", asked), part.entities("object", asked))
    assert torch.equal(whole.facts(asked), part.facts(asked))


def test_ties_go_to_the_answer_that_the_predicate_has_most() -> None:
    facts = [
        ("a", "p", "b", 1990), ("a", "p", "c", 1992), ("a", "p", "d", 1992),
        ("x", "p", "d", 1980), ("x", "p", "e", 1980), ("y", "p", "e", 1981),
    ]  # fmt: skip
    graph = splime.read({"train": facts, "test": [("a", "p", "b", 1995)]})
    scorer = LatestScorer(graph, LatestSettings(model="latest", past="train"))
    scores = scorer.entities("object", graph.test)[0]
    order = [graph.entities[at] for at in scores.argsort(descending=True, stable=True).tolist()]
    assert order[:4] == ["d", "c", "b", "e"]


def test_a_run_like_others(tmp_path: Path) -> None:
    graph = splime.split_graph(small_graph(test=60), "time", allow_unseen=True)
    splime.save(graph, tmp_path / "facts.parquet")
    done = call(
        *("train", tmp_path / "facts.parquet", "--model", "latest"),
        *("--past", "all", "--out", tmp_path / "latest"),
    )
    assert done.code == 0, done.err
    shown = call("evaluate", tmp_path / "latest")
    assert shown.code == 0, shown.err
    assert "forecast, single step" in " ".join(shown.out.split())
    run = splime.Run(tmp_path / "latest")
    assert [one.past for one in evaluations(run)] == ["all"]
    assert evaluate(run, "predicate").queries == len(graph.test)
    query = splime.Query(run)
    assert len(query.ask("entity 3", "p1", "?", at=2004, limit=None)) == len(graph.entities)
    assert {row.name for row in query.ask("entity 3", "?", "entity 6", at=2004)} <= {
        "p0",
        "p1",
        "p2",
    }
    when = query.ask("entity 3", "p1", "entity 6", "?", limit=None)
    assert len(when) == len(graph.timeline)
    other = small_run(graph, tmp_path / "other", splime.Vanilla())
    assert any("different facts" in each for each in compare([run, other]).remarks)
    done = call(
        *("run", tmp_path / "facts.parquet", "--model", "latest"),
        *("--past", "train", "--out", tmp_path / "all"),
    )
    assert done.code == 0, done.err
    assert (tmp_path / "all" / "report.html").exists()
    assert "latest" in call("models").out


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"dimension": 4}, "no effect"),
        ({"past": "later"}, "past"),
        ({"preset": "paper"}, "preset"),
    ],
)
def test_nonsense(tmp_path: Path, wrong: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        train(small_graph(), splime.Vanilla(), tmp_path / "run", model="latest", **wrong)
    with pytest.raises(UsageError, match="no cuts"):
        train(small_graph(), splime.Split(grow=2), tmp_path / "run", model="latest")
    assert not (tmp_path / "run" / "config.toml").exists()
