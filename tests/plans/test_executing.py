"""The whole way: what the folder holds, going on after an end, and the command line."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import splime
from splime.errors import UsageError
from splime.plans import Plan, PlannedRun, execute, read_plan
from splime.runs import Run
from tests.runs.small import SETTINGS, StopAfter, call, small_graph

FILES = {"plan.toml", "data.json", "runs", "comparison.json", "comparison.md", "report.html"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "small.parquet"
    splime.save(small_graph(), path)
    return path


def small_plan(data: Path, **training: Any) -> Plan:
    runs = [
        PlannedRun("plain", splime.Vanilla()),
        PlannedRun("cut", splime.Split(grow=2), {"seed": 1}),
    ]
    return Plan(str(data), runs, training={**SETTINGS, **training})


def test_the_folder_has_everything(data: Path, tmp_path: Path) -> None:
    updates: list[str] = []
    plan = small_plan(data)
    done = execute(plan, tmp_path / "out", progress=lambda what, *_: updates.append(what))
    assert {path.name for path in done.out.iterdir()} == FILES
    assert list(done.runs) == ["plain", "cut"]
    assert done.runs["cut"].settings.seed == 1
    assert done.runs["plain"].settings.seed == 0
    assert {what for what in updates if "cutting" not in what} == {"evaluating", "drawing"}
    compared = json.loads((done.out / "comparison.json").read_text(encoding="utf-8"))
    mrr = {row["name"]: row["metrics"]["mrr"] for row in compared["rows"]}
    for name, run in done.runs.items():
        assert mrr[name] == splime.evaluate(run).metrics["exact"]["both"].mrr
    inspected = json.loads((done.out / "data.json").read_text(encoding="utf-8"))
    assert inspected["statistics"]["facts"]["train"] == len(small_graph().train)
    assert read_plan(done.out / "plan.toml").to_toml() == plan.to_toml()


@pytest.mark.system
def test_what_is_there_is_not_done_again(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    execute(small_plan(data), out)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("model.safetensors")}
    assert len(before) == 2
    execute(small_plan(data), out)
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("model.safetensors")}
    with pytest.raises(UsageError, match="another plan"):
        execute(small_plan(data, epochs=3), out)
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds other things"):
        execute(small_plan(data), other)
    assert [path.name for path in other.iterdir()] == ["letter.txt"]


@pytest.mark.system
def test_it_goes_on_where_it_was_stopped(data: Path, tmp_path: Path) -> None:
    class Watching(StopAfter):
        def __enter__(self) -> Watching:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    from splime.runs import Interrupted

    plan, out = small_plan(data), tmp_path / "out"
    with pytest.raises(Interrupted):
        execute(plan, out, watching=lambda name: Watching(5 if name == "cut" else 10**9))
    assert (out / "runs" / "plain" / "model.safetensors").exists()
    assert not (out / "runs" / "cut" / "model.safetensors").exists()
    assert not (out / "report.html").exists()
    again, whole = execute(plan, out), execute(plan, tmp_path / "whole")
    for name in ("plain", "cut"):
        mine, theirs = (done.runs[name].path / "model.safetensors" for done in (again, whole))
        assert mine.read_bytes() == theirs.read_bytes()


OPTIONS = (
    "--model", "distmult", "--dimension", 4, "--epochs", 2, "--batch-size", 32,
    "--validate-every", 0,
)  # fmt: skip


@pytest.mark.system
def test_from_arguments(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("--method", "vanilla", "--method", "split", "--grow", 2, *OPTIONS, "--out", out)
    done = call("run", data, *arguments)
    assert done.code == 0, done.err
    assert "vanilla" in done.out
    assert "MRR" in done.out
    assert str(out / "report.html") in done.out.replace("\n", "")
    plan = read_plan(out / "plan.toml")
    assert plan.training == {"model": "distmult", "dimension": 4, "epochs": 2, "batch_size": 32,
                             "validate_every": 0}  # fmt: skip
    assert [run.method for run in plan.runs] == [splime.Vanilla(), splime.Split(grow=2)]
    # The plan in the folder does the same again elsewhere.
    done = call("run", out / "plan.toml", "--out", tmp_path / "again")
    assert done.code == 0, done.err
    for name in ("vanilla", "split"):
        mine, theirs = (Run(folder / "runs" / name) for folder in (out, tmp_path / "again"))
        assert mine.tensors.keys() == theirs.tensors.keys()
        assert all(bool((mine.tensors[key] == theirs.tensors[key]).all()) for key in mine.tensors)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--method", "splitt"), "Did you mean split"),
        (("--method", "vanilla", "--grow", "3"), "none of vanilla has a parameter grow"),
        (("--grow", "3"), "--grow belongs to a method"),
        (("--method", "split", "--grow", "2", "--model", "complx"), "there is no model 'complx'"),
        (("--method", "split"), "grow"),
    ],
)
def test_wrong_arguments(
    data: Path, tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    done = call("run", data, *arguments, "--out", tmp_path / "out")
    assert done.code == 2
    assert complaint in " ".join(done.err.split())
    assert not (tmp_path / "out").exists()


def test_a_plan_takes_no_options(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(small_plan(data).to_toml(), encoding="utf-8")
    done = call("run", path, "--epochs", 3, "--out", tmp_path / "out")
    assert done.code == 2
    assert "leave out epochs" in " ".join(done.err.split())


@pytest.mark.system
def test_killed_and_gone_on_with(data: Path, tmp_path: Path) -> None:
    """kill -9 in the middle of the second training; the same command finishes it."""
    out, method = tmp_path / "out", ("--method", "vanilla", "--method", "split", "--grow", "2")
    options = [*map(str, OPTIONS), "--epochs", "600"]  # the last --epochs counts
    arguments = ["run", str(data), *method, *options, "--out", str(out)]
    process = subprocess.Popen([sys.executable, "-m", "splime", *arguments], stderr=-3, stdout=-3)
    until = time.monotonic() + 120
    while not (out / "runs" / "split" / "config.toml").exists() and process.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (out / "report.html").exists()
    done = call(*arguments)
    assert done.code == 0, done.err
    assert {path.name for path in out.iterdir() if not re.match(r"\..*\.part", path.name)} == FILES
