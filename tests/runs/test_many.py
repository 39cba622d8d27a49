"""Very many entities and queries: what is done by default, said, and changed by an option."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import splime
from splime.errors import UsageError
from splime.evaluation import Evaluation, protocols
from splime.graph import TemporalGraph
from splime.reporting.results import conditions
from splime.runs import Run, evaluate
from splime.runs.evaluating import kept
from splime.training import native
from tests.runs.small import small_run


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts as very many."""
    monkeypatch.setattr(protocols, "MOST_SCORES", 10)
    monkeypatch.setattr(protocols, "SAMPLE", 8)
    monkeypatch.setattr(native, "MANY_ENTITIES", 3)


@pytest.mark.parametrize("protocol", ["fact", "triple", "predicate"])
def test_a_sample_has_the_ranks_of_all(run: Run, protocol: str) -> None:
    whole, some = evaluate(run, protocol), evaluate(run, protocol, questions=6)
    assert whole.sample is None
    assert "sample" not in whole.to_json()
    assert some.queries == 6
    assert some.to_json()["sample"] == {"queries": 6, "of": whole.queries, "seed": 0}
    assert Evaluation.from_json(some.to_json()) == some
    assert some.intervals
    assert f"6 of {whole.queries:,} queries" in conditions(some)
    if protocol != "triple":  # there a fact may have several triples
        for name, ranks in some.ranks.items():
            assert np.array_equal(ranks, whole.ranks[name][some.facts])


def test_a_sample_follows_from_its_seed(run: Run) -> None:
    one, same, other = (evaluate(run, questions=6, seed=seed) for seed in (1, 1, 2))
    assert one.facts.tolist() == same.facts.tolist() != other.facts.tolist()
    assert len(list(run.path.glob("ranks-*"))) == 2


def test_very_many_queries_are_sampled_unless_all_are_asked_for(run: Run, many: None) -> None:
    some = evaluate(run)
    assert some.sample is not None
    assert some.queries == 8
    again = kept(run)
    assert again is not None
    assert again.sample == some.sample
    assert kept(run, questions="all") is None
    whole = evaluate(run, questions="all")
    assert whole.sample is None
    assert whole.queries == 2 * len(run.graph.test)
    both = [kept(run), kept(run, questions="all")]
    assert [each and each.queries for each in both] == [8, whole.queries]


@pytest.mark.parametrize("questions", [0, -3, "some", 2.5, True])
def test_how_many_questions_must_make_sense(run: Run, questions: Any) -> None:
    with pytest.raises(UsageError, match="questions "):
        evaluate(run, questions=questions)


def test_more_questions_than_there_are_is_all(run: Run) -> None:
    assert evaluate(run, questions=10**9).sample is None


def test_very_many_entities_are_sampled_unless_the_loss_is_given(
    graph: TemporalGraph, tmp_path: Path, many: None
) -> None:
    said: list[str] = []
    small: dict[str, Any] = {"model": "complex", "dimension": 4, "epochs": 1, "validate_every": 0}
    cuts = splime.Vanilla().fit(graph)
    run = splime.train(graph, cuts, tmp_path / "sampled", warn=said.append, **small)
    assert run.settings.loss == "sampled_softmax"
    assert len(said) == 1
    assert "--loss softmax" in said[0]
    given = {**small, "loss": "softmax"}
    run = splime.train(graph, cuts, tmp_path / "given", warn=said.append, **given)
    assert run.settings.loss == "softmax"
    assert len(said) == 1


def test_small_graphs_keep_the_loss_of_the_preset(graph: TemporalGraph, tmp_path: Path) -> None:
    run = small_run(graph, tmp_path / "run", model="complex", epochs=1)
    assert run.settings.loss == "softmax"
