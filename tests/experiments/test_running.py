"""Running cases: metrics as by hand, nothing twice, and what is done survives."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from experiments import running
from experiments.rows import METRICS, Case, Combination, Results, TableRow
from experiments.running import run_case, run_cases
from splime.errors import DataError, SplimeError
from splime.runs import Interrupted, Run, combine, evaluate, is_finished, train
from splime.workers import Parallel
from tests.experiments.small import ROWS, STUDY, save_small, small_case
from tests.runs.small import SETTINGS, StopAfter, small_graph, small_run

CPU = Parallel(device="cpu")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return save_small(tmp_path / "data")


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "results" / "small.json")


def test_a_case_gives_what_training_and_evaluating_by_hand_does(data: Path, tmp_path: Path) -> None:
    case = small_case("split", grow=2)
    record = run_case(case, data=data, device="cpu")
    run = small_run(small_graph(), tmp_path / "run", **SETTINGS)
    by_hand = [
        evaluate(run, "triple", filter="none").metrics["triple"]["both"],
        evaluate(run, "fact", split="valid", aggregate="ends").metrics["exact"]["both"],
    ]
    for stored, name, metrics in zip(record["figures"], ("triple", "exact"), by_hand, strict=True):
        for metric in METRICS:
            expected = pytest.approx(getattr(metrics, metric), abs=1e-6)
            assert stored["metrics"][name][metric] == expected
    assert record["predicates"] == len(run.segmentation.predicates)
    assert {"device", "versions", "started", "seconds", "parameters"} <= set(record)
    json.dumps(record)


def test_a_run_is_kept_where_it_is_asked_for(data: Path, tmp_path: Path) -> None:
    run_case(small_case(), data=data, device="cpu", keep=tmp_path / "kept")
    assert Run(tmp_path / "kept").settings.seed == 0


def test_what_is_there_is_not_run_again(
    data: Path, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    STUDY.run(results, ["vanilla"], data, data=data, parallel=CPU)
    assert len(results.records) == 2
    ran: list[Case] = []
    original = running.run_case

    def watched(case: Case, **how: object) -> running.Record:
        ran.append(case)
        return original(case, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(running, "run_case", watched)
    again = Results(results.path)
    STUDY.run(again, [], data, data=data, parallel=CPU)
    assert [case.method for case in ran] == ["split", "split"]
    STUDY.run(Results(results.path), [], data, data=data, parallel=CPU)
    assert len(ran) == 2


def test_runs_that_are_gone_are_made_again(data: Path, results: Results, tmp_path: Path) -> None:
    drawn = replace(ROWS[0], cases=ROWS[0].cases[:1], folder="kept")
    study = replace(STUDY, rows=[drawn])
    run_cases(drawn.cases, results, data=data, parallel=CPU)
    study.run(results, [], tmp_path, data=data, parallel=CPU)
    assert is_finished(tmp_path / "kept")
    assert len(results.records) == 1


def test_combinations_wait_for_their_members(
    data: Path, results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are trained if they must, kept, and found again; what is stored is not run again."""
    members = [small_case("split", grow=2), small_case(seed=1)]
    fact = {"protocol": "fact", "split": "test"}
    together = Combination("small", "vanilla", evaluations=[fact], members=members)
    study = replace(
        STUDY, rows=[TableRow("small", "together", [together]), TableRow("small", "alone", members)]
    )
    how: dict[str, Any] = {"data": data, "parallel": CPU}
    study.run(results, ["alone"], tmp_path, **how)
    kept = [tmp_path / member.key() for member in members]
    assert all(map(is_finished, kept))
    shutil.rmtree(kept[1])
    study.run(Results(results.path), ["together"], tmp_path, **how)
    record = Results(results.path)[together]
    run = combine(kept, tmp_path / "by hand", device="cpu")
    assert record["weights"] == pytest.approx(run.config["settings"]["weights"], abs=1e-6)
    assert record["valid"] == pytest.approx(run.about["valid"]["mrr"], abs=1e-6)
    mrr = evaluate(run).metrics["exact"]["both"].mrr
    assert record["figures"][0]["metrics"]["exact"]["mrr"] == pytest.approx(mrr, abs=1e-6)
    shutil.rmtree(kept[0])
    monkeypatch.setattr(running, "run_case", None)
    study.run(Results(results.path), [], tmp_path, **how)


def test_a_file_takes_records_of_several_processes(results: Results) -> None:
    other = Results(results.path)
    cases = [small_case(seed=seed) for seed in range(2)]
    for mine, case in zip((results, other), cases, strict=True):
        mine.add(case, {"figures": [], "predicates": 1})
    assert not Results(results.path).missing(cases)
    assert not other.missing(cases)


def test_a_killed_study_keeps_what_is_done(
    data: Path, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [small_case(seed=seed) for seed in range(3)]
    original = running.run_case

    def killed(case: Case, **how: object) -> running.Record:
        if case.training["seed"] == 2:
            raise KeyboardInterrupt
        return original(case, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(running, "run_case", killed)
    with pytest.raises(KeyboardInterrupt):
        run_cases(cases, results, data=data, parallel=CPU)
    assert Results(results.path).missing(cases) == [cases[2]]


def test_a_stopped_training_resumes(
    data: Path, results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, case = Results(tmp_path / "whole.json"), small_case()
    run_cases([case], whole, data=data, parallel=CPU)
    monkeypatch.setattr(running, "train", partial(train, watch=StopAfter(3)))
    with pytest.raises(Interrupted):
        run_cases([case], results, data=data, parallel=CPU)
    (folder,) = (results.path.parent / running.UNFINISHED).iterdir()
    watch = StopAfter(10**9)
    monkeypatch.setattr(running, "train", partial(train, watch=watch))
    run_cases([case], results, data=data, parallel=CPU)
    assert results[case]["figures"] == whole[case]["figures"]
    assert watch.told[0][0] == 1  # the steps of epoch 0 are not taken again
    assert not folder.parent.exists()


def test_a_case_that_fails_does_not_stop_the_others(data: Path, results: Results) -> None:
    wrong = small_case("split", grow=10_000)
    cases = [wrong, small_case()]
    updates: list[tuple[object, ...]] = []
    with pytest.raises(SplimeError, match=r"1 of 2 trainings failed.*cannot reach"):
        run_cases(
            cases,
            results,
            data=data,
            parallel=CPU,
            progress=lambda *update: updates.append(update),
        )
    assert updates == [("trainings", at, 2, str(case)) for at, case in enumerate(cases, 1)]
    assert results.missing(cases) == [wrong]


@pytest.mark.system
def test_processes_give_the_same(data: Path, results: Results, tmp_path: Path) -> None:
    cases = [small_case(seed=seed) for seed in range(2)]
    alone = Results(tmp_path / "alone.json")
    run_cases(cases, results, data=data, parallel=Parallel(processes=2, device="cpu"))
    run_cases(cases, alone, data=data, parallel=CPU)
    for case in cases:
        assert results[case]["figures"] == alone[case]["figures"]


def test_averages(results: Results) -> None:
    for seed, value in enumerate((0.2, 0.4)):
        metrics = {"mrr": value, "hits1": value, "hits3": value, "hits10": 1.0}
        record = {"figures": [{"metrics": {"triple": metrics}}] * 2, "predicates": 3 + seed}
        results.add(small_case(seed=seed), record)
    cases = [small_case(seed=seed) for seed in range(3)]
    average = results.average(cases, protocol="triple")
    assert average.mean["mrr"] == pytest.approx(0.3)
    assert average.mrrs == [0.2, 0.4]
    assert average.deviation == pytest.approx(0.2 / 2**0.5)
    assert average.predicates == 3.5
    assert results.average(cases[:1], protocol="triple").deviation is None
    assert not results.average(cases[2:]).mean
    assert not results.average(cases, protocol="predicate").mean


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"a": 3}', '{"a": {"case": {}}}', '{"a": {"figures": []}}']
)
def test_damaged_results(tmp_path: Path, text: str) -> None:
    path = tmp_path / "main.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"main\.json"):
        Results(path)


@pytest.mark.parametrize("metrics", [None, {}, {"triple": {"mrr": "much"}}, {"triple": {}}])
def test_damaged_metrics(results: Results, metrics: object) -> None:
    case = small_case()
    results.add(case, {"figures": [{"metrics": metrics}] * 2, "predicates": 1})
    with pytest.raises(DataError, match="has no metrics"):
        results.average([case])
