"""Trackers of experiments: told of settings, epochs and metrics, in their own stores."""

from __future__ import annotations

import json
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import pytest

import splime
from splime.errors import SplimeError
from splime.runs import Interrupted, Run
from splime.runs.watching import TRACKERS
from tests.runs.small import SETTINGS, StopAfter, call, small_graph

GRAPH = small_graph()
Told = dict[str, list[tuple[int, float]]]


def trained(out: Path, log: str, **more: Any) -> Run:
    return splime.train(GRAPH, "split", out, log=log, **{**SETTINGS, **more})


def check(told: Told, run: Run, **more: float) -> None:
    """The loss of each epoch, the MRR of each validation, and what there was at the end."""
    validated = {one.epoch: one.valid for one in run.history if one.valid is not None}
    assert len(told["loss"]) == len(run.history)  # each once
    assert dict(told["loss"]) == pytest.approx({one.epoch: one.loss for one in run.history})
    assert dict(told["valid/mrr"]) == pytest.approx(validated)
    best = max(validated.values())
    ended = {"epochs": 6, "best_epoch": run.about["best_epoch"], "valid/best_mrr": best, **more}
    assert {name: told[name][-1][1] for name in ended} == pytest.approx(ended)


def events(folder: Path) -> tuple[Told, str]:
    """What TensorBoard reads: scalars by name, and the text of the settings."""
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="TensorBoard is not installed",
    )
    read = accumulator.EventAccumulator(str(folder / "tensorboard")).Reload()
    told = {
        name: [(event.step, event.value) for event in read.Scalars(name)]
        for name in read.Tags()["scalars"]
    }
    *_, text = read.Tensors("settings/text_summary")
    return told, text.tensor_proto.string_val[0].decode()


def installed(package: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what others deprecate
        return pytest.importorskip(package, reason=f"{package} is not installed")


@pytest.mark.filterwarnings("ignore")
def test_tensorboard(tmp_path: Path) -> None:
    installed("tensorboard")
    run = trained(tmp_path / "run", "tensorboard")
    told, settings = events(run.path)
    check(told, run)
    assert "| settings.dimension | 4 |" in settings


@pytest.mark.filterwarnings("ignore")
def test_what_was_interrupted_is_told_once(tmp_path: Path) -> None:
    installed("tensorboard")
    with pytest.raises(Interrupted):
        trained(tmp_path / "run", "tensorboard", watch=StopAfter(12))
    run = trained(tmp_path / "run", "tensorboard")
    check(events(run.path)[0], run)
    # A run that is finished is not told again.
    trained(tmp_path / "run", "tensorboard")
    check(events(run.path)[0], run)


@pytest.mark.filterwarnings("ignore")
def test_a_plan_tells_the_metrics_of_test(tmp_path: Path) -> None:
    installed("tensorboard")
    small = [f"--{name.replace('_', '-')}={value}" for name, value in SETTINGS.items()]
    splime.save(GRAPH, tmp_path / "g.parquet")
    given = ("--out", tmp_path / "out", "--method", "vanilla", "--log", "tensorboard", *small)
    done = call("run", tmp_path / "g.parquet", *given)
    assert done.code == 0, done.err
    run = Run(tmp_path / "out/runs/vanilla")
    test = splime.evaluate(run).metrics["exact"]["both"]
    check(events(run.path)[0], run, **{"test/mrr": test.mrr, "test/hits10": test.hits10})


@pytest.mark.filterwarnings("ignore")
def test_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = installed("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "ml").as_uri())
    with mlflow.start_run(run_name="mine"):  # one of the caller's own stays open
        run = trained(tmp_path / "run", "mlflow")
        assert mlflow.active_run().info.run_name == "mine"
    client = mlflow.MlflowClient()
    [told] = [one for one in client.search_runs(["0"]) if one.info.run_name == "run"]
    assert told.info.status == "FINISHED"
    assert told.data.params["settings.dimension"] == "4"
    history = {
        name: [(one.step, one.value) for one in client.get_metric_history(told.info.run_id, name)]
        for name in told.data.metrics
    }
    check(history, run)


@pytest.mark.filterwarnings("ignore")
def test_wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed("wandb")
    for name, value in {"MODE": "offline", "SILENT": "true", "DIR": str(tmp_path)}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    run = trained(tmp_path / "run", "wandb")
    [path] = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    written = path.read_bytes()  # protocol buffers, in which the values are JSON
    for one in run.history:
        assert json.dumps(one.loss).encode() in written
        assert one.valid is None or json.dumps(one.valid).encode() in written
    for name in ("valid/mrr", "valid/best_mrr", "best_epoch", "distmult"):
        assert name.encode() in written


# Whatever is installed


@pytest.mark.parametrize("name", TRACKERS)
def test_what_is_not_installed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, TRACKERS[name].package, None)
    with pytest.raises(SplimeError, match=f"pip install {name}"):
        trained(tmp_path / "run", name)
    assert not (tmp_path / "run").exists()
    done = call("train", "demo", "--log", name, "--out", tmp_path / "run")
    assert (done.code, done.err.count("Traceback")) == (1, 0)
    assert not (tmp_path / "run").exists()


def test_a_tracker_nobody_knows(tmp_path: Path) -> None:
    done = call("train", "demo", "--log", "tensorbord", "--out", tmp_path / "run")
    assert done.code == 2
    assert "Did you mean tensorboard?" in done.err


def broken(when: str) -> types.SimpleNamespace:
    """What stands in for MLflow, and fails."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no such server\nand more")

    names = ("start_run", "log_params", "log_metrics", "end_run")
    done = dict.fromkeys(names, lambda *_, **__: None)
    return types.SimpleNamespace(**{**done, when: fail})


def test_one_that_fails_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", broken("start_run"))
    with pytest.raises(SplimeError, match=r"mlflow cannot begin: no such server$"):
        trained(tmp_path / "run", "mlflow")


def test_one_that_fails_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", broken("log_metrics"))
    with pytest.warns(UserWarning, match=r"mlflow stopped logging: no such server$") as warned:
        run = trained(tmp_path / "run", "mlflow")
    assert len(run.history) == 6
    assert len([one for one in warned if "stopped logging" in str(one.message)]) == 1
