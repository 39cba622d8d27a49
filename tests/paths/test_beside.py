"""The path model beside others: in one run, in plans, comparisons and searches; its picture."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import optuna
import pytest
import torch

import splime
import splime.plans
from splime.errors import DataError, UsageError
from splime.plans import Plan, PlannedRun, execute, read_plan
from splime.reporting.plots import plot_evidence
from splime.runs import Run
from splime.runs.training import TrainingSource
from splime.training import paths
from splime.training.registry import make_settings
from splime.tuning import make_space, tune
from tests.runs.small import call, small_graph

TINY = ("--epochs", 1, "--batch-size", 20, "--validate-every", 0)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "small.parquet"
    splime.save(small_graph(test=60), path)
    return path


@pytest.fixture(scope="module")
def everything(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of runs of two models, and what was said."""
    out = tmp_path_factory.mktemp("everything") / "out"
    models = ("--model", "complex", "--model", "path", "--preset", "quick")
    methods = ("--method", "vanilla", "--method", "timestamp")
    done = call("run", data, *models, *methods, *TINY, "--out", out)
    assert done.code == 0, done.err
    return out, done.out


@pytest.mark.system
def test_several_models_in_one_run(everything: tuple[Path, str]) -> None:
    out, said = everything
    runs = {path.name: Run(path) for path in (out / "runs").iterdir()}
    assert {name: run.settings.model for name, run in runs.items()} == {
        "vanilla": "complex",
        "timestamp": "complex",
        "path": "path",
    }
    assert (runs["path"].settings.dimension, runs["vanilla"].settings.dimension) == (32, 50)
    plan = read_plan(out / "plan.toml")
    assert [(run.name, run.method.name) for run in plan.runs][-1] == ("path", "vanilla")
    rows = json.loads((out / "comparison.json").read_text(encoding="utf-8"))["rows"]
    assert {row["name"] for row in rows} == {*runs}
    question = shlex.split(said.rpartition("ask it: ")[2])
    assert ("--why" in question) == (rows[0]["name"] == "path")
    assert call(*question[1:]).code == 0
    assert (out / "report.html").stat().st_size


def test_a_path_run_and_others_are_compared(everything: tuple[Path, str]) -> None:
    runs = [everything[0] / "runs" / name for name in ("path", "timestamp")]
    compared = splime.compare(runs)
    assert {row.model for row in compared.rows} == {"path", "complex"}
    assert len(compared.pairs) == 1
    assert compared.pairs[0].corrected["mrr"] is not None
    assert call("compare", *runs).code == 0


def test_several_models_with_cuts(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = []

    def kept(plan: Plan, *_: object, **__: object) -> None:
        plans.append(plan)
        raise UsageError("that is enough")

    monkeypatch.setattr("splime.plans.execute", kept)
    models = ("--model", "distmult", "--model", "complex", "--dimension", 4)
    call("run", data, *models, "--method", "vanilla", "--out", tmp_path)
    planned = {run.name: plans[0].settings_of(run) for run in plans[0].runs}
    assert planned == {
        "vanilla, distmult": {"model": "distmult", "dimension": 4},
        "vanilla, complex": {"model": "complex", "dimension": 4},
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "path", "--method", "split", "--grow", 2), "no cuts"),
        (("--model", "complex", "--model", "path", "--dimension", 50), "16, 32, 64"),
        (("--model", "complex", "--model", "complex"), "two runs are called"),
        (("--model", "path", "--preset", "paper"), "preset"),
    ],
)
def test_mistakes_leave_no_folder(
    data: Path, tmp_path: Path, arguments: tuple[object, ...], message: str
) -> None:
    done = call("run", data, *arguments, "--out", tmp_path / "out")
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert not (tmp_path / "out").exists()


def test_a_plan_leaves_nothing_to_options(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(Plan("demo", [PlannedRun("a", splime.Vanilla())]).to_toml(), "utf-8")
    done = call("run", path, "--model", "path", "--validate-every", 0, "--out", tmp_path)
    assert "leave out model, validate_every" in done.err
    several = ("--model", "path", "--model", "complex")
    assert "leave out model" in call("run", path, *several, "--out", tmp_path).err


def test_in_a_plan(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    text = f"""
        data = {str(data)!r}
        [training]
        epochs = 1
        batch_size = 20
        validate_every = 0
        [[run]]
        method = "timestamp"
        training = {{ model = "distmult", dimension = 4 }}
        [[run]]
        name = "path"
        method = "vanilla"
        training = {{ model = "path", layers = 1, dimension = 16 }}
    """
    path.write_text(text, encoding="utf-8")
    plan = read_plan(path)
    assert plan.settings_of(plan.runs[1])["layers"] == 1
    path.write_text(text.replace('method = "vanilla"', 'method = "timestamp"'), encoding="utf-8")
    with pytest.raises(DataError, match=r"run 'path': .* no cuts"):
        read_plan(path)
    with pytest.raises(UsageError, match="no cuts"):
        Plan("demo", [PlannedRun("cut", splime.Split(grow=2))], training={"model": "path"})


@pytest.mark.system
def test_a_search(data: Path, tmp_path: Path) -> None:
    fixed: dict[str, Any] = {"layers": 1, "dimension": 16, "epochs": 1, "batch_size": 20}
    tuned = tune(
        splime.load(data), tmp_path / "search", trials=2, parallel=1, models=["path"], **fixed
    )
    assert {one.state for one in tuned.trials} == {"finished"}
    assert {*tuned.best.chosen} == {"method", "model", "dropout", "learning_rate"}
    assert [(run.name, run.method.name) for run in tuned.plan.runs] == [("path", "vanilla")]
    done = execute(read_plan(tmp_path / "search" / "best.toml"), tmp_path / "best")
    assert done.runs["path"].settings.layers == 1
    refused = call(
        "tune", data, "--models", "path", "--methods", "split", "--out", tmp_path / "other"
    )
    assert refused.code == 2
    assert "no cuts" in refused.err
    assert not (tmp_path / "other").exists()


def test_a_search_among_models_with_and_without_cuts() -> None:
    space = make_space(small_graph(), ["split", "timestamp"], ["complex", "path"])
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    suggested = [space.suggest(study.ask()) for _ in range(40)]
    assert {one.method for one in suggested if one.model == "complex"} == {"split", "timestamp"}
    assert {one.method for one in suggested if one.model == "path"} == {"vanilla"}
    for one in suggested:
        make_settings(one.model, **one.settings)


def test_few_facts_have_few_layers() -> None:
    graph, settings = small_graph(), make_settings("path", epochs=1, messages="learned")
    source = TrainingSource(graph, None, torch.device("cpu"))
    assert settings.layers == 4
    assert paths.engine.fitted(settings, source, {}).layers == 3
    assert paths.engine.fitted(settings, source, {"layers": 4}).layers == 4


def test_quick_is_smaller_than_strong() -> None:
    for model in ("path", "complex"):
        strong, quick = make_settings(model), make_settings(model, "quick")
        assert quick.dimension <= strong.dimension
        assert quick.epochs < strong.epochs
        assert quick.learning_rate == strong.learning_rate
        assert make_settings(model, "quick", epochs=7).epochs == 7


def test_the_picture_of_evidence(everything: tuple[Path, str], tmp_path: Path) -> None:
    run = everything[0] / "runs" / "path"
    evidence = splime.Query(Run(run)).why("entity 3", "p1", "?", at=1999)
    facts = [step.fact for reason in evidence.reasons for step in reason.steps]
    axes = plot_evidence(evidence, "year").axes[0]
    tinted, *bars = (
        patch.get_extents().transformed(axes.transData.inverted()) for patch in axes.patches
    )
    assert len(bars) == len(facts)
    for bar, fact in zip(bars, facts, strict=True):
        begin, end = int(fact.begin or fact.end or 0), int(fact.end or fact.begin or 0)
        assert bar.x1 - bar.x0 == pytest.approx(end - begin + 1)
        # All on one axis: as far from the time asked about as the dates say.
        assert bar.x0 - tinted.x0 == pytest.approx(begin - 1999)
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert shown == [f"{fact.subject} {fact.predicate} {fact.object}" for fact in facts]
    asked = ("ask", run, "entity 3", "p1", "?", "--at", 1999, "--plot", tmp_path / "why.svg")
    assert call(*asked, "--why").code == 0
    assert (tmp_path / "why.svg").stat().st_size
    assert "give both" in call(*asked).err
