from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import splime
from splime.analysis import hidden
from splime.analysis.calibration import (
    CALIBRATION,
    Cases,
    fit_temperature,
    make_cases,
    make_cases_of,
)
from splime.errors import DataError, UsageError
from splime.query import Query, reliability
from splime.runs import Run
from splime.runs.graph_run import GraphRun
from splime.scoring.scoping import KINDS
from tests.query.conftest import RUNS
from tests.runs.small import small_graph, small_run


def planted(temperature: float, size: int = 4000, seed: int = 0) -> Cases:
    """Answers drawn with the probabilities that a temperature gives."""
    scores = torch.randn(size, 6, generator=torch.Generator().manual_seed(seed)) * 3
    scores[:, 5] = torch.where(torch.arange(size) % 2 == 0, -torch.inf, scores[:, 5])
    chances = (scores / temperature).softmax(1).numpy().astype(float)
    rng = np.random.default_rng(seed)
    drawn = (chances.cumsum(1) < rng.random((size, 1))).sum(1)
    return Cases(scores, np.arange(size), np.minimum(drawn, 5), torch.ones(size))


@pytest.mark.parametrize("temperature", [0.05, 0.7, 1.0, 8.0])
def test_a_planted_temperature_is_found(temperature: float) -> None:
    assert fit_temperature(planted(temperature)) == pytest.approx(temperature, rel=0.15)


def test_no_other_temperature_is_likelier(trained: dict[str, Path]) -> None:
    query = Query(Run(trained["split"]))
    for kind in KINDS:
        cases = make_cases(query.scoring, kind, "valid", 500)
        fitted = fit_temperature(cases)

        def loss(temperature: float, cases: Cases = cases) -> float:
            logits = cases.scores.double() / temperature
            own = cases.target() / temperature
            return float((logits.logsumexp(1) - own).mean())

        assert all(loss(fitted) < loss(fitted * by) for by in (0.5, 0.97, 1.03, 2.0))


def test_equal_scores_have_any_temperature() -> None:
    nothing = Cases(torch.zeros(60, 4), np.arange(60), np.zeros(60, int), torch.ones(60))
    assert fit_temperature(nothing) == 1.0


@pytest.mark.parametrize("name", RUNS)
def test_cases_of_times_share_the_truth(trained: dict[str, Path], name: str) -> None:
    query = Query(Run(trained[name]))
    cases = make_cases(query.scoring, "time", "valid", 500)
    if name == "vanilla":
        assert not len(cases)
        return
    whole = np.bincount(cases.row, cases.share.numpy(), minlength=len(cases))
    assert whole == pytest.approx(np.ones(len(cases)))
    assert torch.isfinite(cases.scores[cases.row, cases.column]).all()
    assert make_cases(query.scoring, "time", "valid", 60).scores.shape[0] == 60


@pytest.mark.parametrize("name", ["split", "reciprocal", "both"])
def test_when_is_calibrated_on_the_answers_that_are_shown(
    trained: dict[str, Path], name: str
) -> None:
    query = Query(Run(trained[name]))
    graph, facts = query.run.graph, query.run.graph.valid
    cases, at = make_cases_of(query.scoring, "time", facts), -1
    for at, (s, p, o) in enumerate(facts.array()[:, :3].tolist()):
        names = (graph.entities[s], graph.predicates[p], graph.entities[o])
        shown = query.ask(*names, "?", limit=None).rows
        new = [row.score for row in shown if row.known is None or row.known.split != "train"]
        right = cases.scores[at, cases.column[cases.row == at]].tolist()
        candidates = [score for score in cases.scores[at].tolist() if score > -math.inf]
        apart = np.abs(np.subtract.outer(candidates, new + right))
        assert max(apart.min(0).max(), apart.min(1).max()) < 1e-4
    assert at == len(cases) - 1


def test_very_many_predicates_are_not_calibrated() -> None:
    """Each question takes a message for each predicate and scope: hundreds of them, too long."""
    rows = [(f"e{n % 997}", f"p{n}", f"e{n % 991}", 2000 + n % 9) for n in range(12_000)]
    query = Query(splime.read(rows, split="none"))
    assert query.calibration("object").temperature is None
    assert "would take too long" in str(query.calibration("object"))
    assert query.trust is not None
    assert str(query.trust) == "how far to trust it is not known: no facts were hidden"
    assert query.scoring.scorer.block <= 4  # each question has a table of messages


def test_kept_in_the_folder(split: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    first = {kind: Query(split).calibration(kind) for kind in KINDS}
    other = Query(split, aggregate="max").calibration("object")
    stored = json.loads((split.path / CALIBRATION).read_text(encoding="utf-8"))
    assert stored["valid"] == len(split.graph.valid)
    assert set(stored["temperatures"]) == {"mean", "max"}
    assert set(stored["temperatures"]["mean"]) == set(KINDS)

    def refuse(*_: Any) -> Any:
        raise AssertionError("it is fitted already")

    monkeypatch.setattr("splime.analysis.calibration.fit_temperature", refuse)
    again = Run(split.path)
    assert {kind: Query(again).calibration(kind) for kind in KINDS} == first
    assert Query(again, aggregate="max").calibration("object") == other
    assert f"softmax of score / {first['object'].temperature:.3g}" in str(first["object"])


def test_another_model_is_fitted_again(split: Run) -> None:
    calibration = Query(split).calibration("object")
    path = split.path / CALIBRATION
    stored = json.loads(path.read_text(encoding="utf-8"))
    stored["temperatures"]["mean"]["object"]["temperature"] = 77.0
    path.write_text(json.dumps(stored), encoding="utf-8")
    assert Query(split).calibration("object").temperature == 77.0
    older = {key: value for key, value in stored.items() if key != "format"}
    for other in ({**stored, "config": "another"}, older):
        path.write_text(json.dumps(other), encoding="utf-8")
        assert Query(split).calibration("object") == calibration


@pytest.mark.parametrize(
    "change",
    [
        "{",
        "[]",
        {"temperatures": 3},
        {"temperatures": {"mean": 3}},
        {"temperatures": {"mean": {"object": 3}}},
        {"temperatures": {"mean": {"object": {"temperature": "hot", "facts": 3}}}},
        {"temperatures": {"mean": {"object": {"temperature": -1.0, "facts": 3}}}},
        {"temperatures": {"mean": {"object": {"temperature": 1.0}}}},
    ],
)
def test_damaged(split: Run, change: Any) -> None:
    Query(split).calibration("subject")
    path = split.path / CALIBRATION
    text = change
    if isinstance(change, dict):
        text = json.dumps({**json.loads(path.read_text(encoding="utf-8")), **change})
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=CALIBRATION):
        Query(split).ask("entity 1", "p1", "?")
    assert path.read_text(encoding="utf-8") == text


def test_a_folder_that_cannot_be_written(split: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> Path:
        raise PermissionError("read-only")

    monkeypatch.setattr(Path, "replace", refuse)
    assert Query(split).calibration("object").temperature is not None
    assert not (split.path / CALIBRATION).exists()


def test_too_few_facts(tmp_path: Path) -> None:
    run = small_run(small_graph(), tmp_path / "run")
    answers = Query(run).ask("entity 1", "p1", "?")
    assert {row.probability for row in answers} == {None}
    assert answers.remarks == (
        "no probabilities: valid has 15 facts, and 50 are needed to calibrate them",
    )
    assert not (run.path / CALIBRATION).exists()
    with pytest.raises(UsageError, match="valid has 15 facts"):
        reliability(Query(run), "object")


def test_predicates_that_are_not_cut(trained: dict[str, Path], tmp_path: Path) -> None:
    run = Run(shutil.copytree(trained["vanilla"], tmp_path / "run"))
    calibration = Query(run).calibration("time")
    assert calibration.temperature is None
    assert "0 facts of predicates that are cut" in calibration.why


@pytest.mark.parametrize("kind", KINDS)
def test_reliability_by_plain_loops(trained: dict[str, Path], kind: Any) -> None:
    query = Query(Run(trained["split"]))
    measured = reliability(query, kind, split="test", temperature=1.5, bins=5)
    cases = make_cases(query.scoring, kind, "test", 2000)
    bins: dict[int, list[tuple[float, float]]] = {}
    loss = 0.0
    for row in range(len(cases)):
        chances = (cases.scores[row].double() / 1.5).softmax(0).tolist()
        truth = {
            int(column): float(share)
            for at, column, share in zip(cases.row, cases.column, cases.share, strict=True)
            if at == row
        }
        best = max(range(len(chances)), key=chances.__getitem__)
        bins.setdefault(min(int(chances[best] * 5), 4), []).append(
            (chances[best], truth.get(best, 0.0))
        )
        loss -= sum(share * math.log(chances[column]) for column, share in truth.items())
    error = 0.0
    for members in bins.values():
        sure, right = (sum(column) / len(members) for column in zip(*members, strict=True))
        error += len(members) * abs(sure - right) / len(cases)
    assert measured.questions == len(cases) == sum(one.questions for one in measured.bins)
    assert measured.error == pytest.approx(error)
    assert measured.loss == pytest.approx(loss / len(cases))
    assert len(measured.bins) == len(bins)


def test_reliability_of_nothing(split: Run) -> None:
    with pytest.raises(UsageError, match="there is no kind of question 'objects'"):
        reliability(Query(split), "objects")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="there is no split 'tset'"):
        reliability(Query(split), "object", split="tset")  # type: ignore[arg-type]


def test_what_would_take_too_long_is_not_calibrated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a graph without a training: each predicate and each time is a question of its own."""
    run = GraphRun(small_graph(), device="cpu")
    fact = next(run.graph.rows())
    which = (fact.subject, "?", fact.object, fact.begin)
    when = (fact.subject, fact.predicate, fact.object, None)
    what = (fact.subject, fact.predicate, "?", fact.begin)

    def calibrated() -> list[bool]:
        query = Query(run)
        found = (query.ask(*names, at=at) for *names, at in (which, when, what))
        return [any(answer.probability is not None for answer in answers) for answers in found]

    assert calibrated() == [True, True, True]
    monkeypatch.setattr(hidden, "_READ_FOR_KIND", 1000)
    assert calibrated() == [False, False, True]
