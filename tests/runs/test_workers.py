"""One training by several processes: the same run as by one, whatever happens to them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import splime
from splime.graph import TemporalGraph
from splime.progress import SIGNALS
from splime.runs import Run, evaluate
from tests.runs.small import call
from tests.runs.working import PROTOCOLS, TRAININGS, metrics, small_graph, train_one

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
COMMAND = ["--method", "split", "--grow", "2", "--device", "cpu"]


def as_options(settings: dict[str, Any]) -> list[str]:
    return [
        text
        for key, value in settings.items()
        for text in (f"--{key.replace('_', '-')}", str(value))
    ]


@pytest.fixture(scope="module")
def graph() -> TemporalGraph:
    return small_graph()


@pytest.fixture(scope="module")
def facts(graph: TemporalGraph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("facts") / "facts.parquet"
    splime.save(graph, path)
    return path


@pytest.fixture(scope="module")
def worked(facts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes left behind."""
    folder = tmp_path_factory.mktemp("worked")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = []
    for rank in range(2):
        environment = {
            **ENVIRONMENT,
            **{"RANK": str(rank), "WORLD_SIZE": "2"},
            **{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)},
        }
        processes.append(
            subprocess.Popen(
                [sys.executable, "-m", "tests.runs.working", str(facts), str(folder)],
                env=environment,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    told = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], "\n".join(told)
    return folder


@pytest.fixture(scope="module")
def alone(facts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same trainings by one process."""
    folder, graph = tmp_path_factory.mktemp("alone"), splime.load(facts)
    for name in TRAININGS:
        train_one(graph, name, folder / name)
    return folder


def assert_alike(run: Run, other: Run) -> None:
    assert [each.valid for each in run.history] == pytest.approx([e.valid for e in other.history])
    losses = [[each.loss for each in one.history] for one in (run, other)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert run.tensors.keys() == other.tensors.keys()
    for name, tensor in run.tensors.items():
        # A bias of all scores has gradients of 0 but for rounding, which Adam makes large.
        if name != "score_bias":
            torch.testing.assert_close(tensor, other.tensors[name], rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.parametrize("name", TRAININGS)
def test_the_same_as_one_process(name: str, worked: Path, alone: Path) -> None:
    run, other = Run(worked / name), Run(alone / name)
    assert_alike(run, other)
    assert {path.name for path in run.path.iterdir()} - {"metrics.json"} - {
        each.name for each in run.path.glob("ranks-*")
    } == {path.name for path in other.path.iterdir()}
    assert run.config == other.config
    assert run.about["parameters"] == other.about["parameters"]
    assert run.about["workers"] == 2


def test_evaluation_is_the_same(worked: Path) -> None:
    measured = json.loads((worked / "measured.json").read_text())["metrics"]
    for protocol in PROTOCOLS:
        expected = pytest.approx(metrics(evaluate(worked / "complex", protocol)))
        assert measured[protocol] == expected, protocol
    for name in ("path", "moving"):
        assert measured[name] == pytest.approx(metrics(evaluate(worked / name)))


@pytest.mark.parametrize("name", ["transe", "complex"])
def test_a_checkpoint_of_two_workers_resumes_on_two_and_on_one(
    name: str, facts: Path, worked: Path, alone: Path, tmp_path: Path
) -> None:
    assert_alike(Run(worked / "resumed" / name), Run(worked / name))
    stopped = shutil.copytree(worked / "stopped" / name, tmp_path / name)
    one = train_one(splime.load(facts), name, stopped)
    assert_alike(one, Run(alone / name))


def test_a_checkpoint_of_two_workers_resumes_on_three(
    facts: Path, worked: Path, alone: Path, tmp_path: Path
) -> None:
    """By torchrun."""
    out = shutil.copytree(worked / "stopped" / "complex", tmp_path / "run")
    train = ["-m", "splime", "train", str(facts), "--out", str(out), *COMMAND]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3"]
    done = subprocess.run(
        [sys.executable, *torchrun, *train, *as_options(TRAININGS["complex"])],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("next: splime evaluate") == 1  # only one worker prints
    assert_alike(Run(out), Run(alone / "complex"))
    assert Run(out).about["workers"] == 3


def test_a_worker_that_is_killed(facts: Path, tmp_path: Path) -> None:
    """The others stop and say so; the same command goes on, to the same end, and to its metrics."""
    settings = {**TRAININGS["complex"], "epochs": 40, "validate_every": 5}
    outs = tmp_path / "killed", tmp_path / "alone"
    command = [sys.executable, "-m", "splime", "train", str(facts), "--out", str(outs[0])]
    command += [*COMMAND, *as_options(settings), "--workers", "2"]
    process = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    while not (outs[0] / "checkpoint.safetensors").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    os.kill(workers_of(process.pid)[1], signal.SIGKILL)
    told = process.communicate()[1]
    assert process.returncode == 1
    assert "worker 1 was ended by SIGKILL" in told
    assert told.count("the same command resumes from the last checkpoint") == 1
    assert "Traceback" not in told
    assert not (outs[0] / "model.safetensors").exists()
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    one = train_one(splime.load(facts), "complex", outs[1], **settings)
    assert_alike(Run(outs[0]), one)
    command = [sys.executable, "-m", "splime", "evaluate", str(outs[0]), "--json"]
    command += ["--workers", "2", "--device", "cpu"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = metrics(evaluate(one))
    told = json.loads(done.stdout)["metrics"]
    assert {name: each["both"]["mrr"] for name, each in told.items()} == pytest.approx(expected)


@pytest.mark.parametrize(
    "what",
    ["one is terminated", "one is stopped", "the parent is killed", "stopped, the parent killed"],
)
def test_no_worker_is_left_behind(facts: Path, tmp_path: Path, what: str) -> None:
    settings = {"model": "distmult", "dimension": 4, "epochs": 100_000, "validate_every": 0}
    command = [sys.executable, "-m", "splime", "train", str(facts), "--out", str(tmp_path / "run")]
    command += [*as_options(settings), "--device", "cpu", "--workers", "2"]
    process = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "run" / "about.json").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    workers = workers_of(process.pid)
    assert len(workers) == 2
    if what == "one is terminated":
        os.kill(workers[1], signal.SIGTERM)
    elif "killed" in what:
        if "stopped" in what:
            os.kill(workers[1], signal.SIGSTOP)
        process.kill()
    else:
        os.kill(workers[1], signal.SIGSTOP)
        process.terminate()
        time.sleep(1)
        assert process.poll() is None
        process.terminate()
    told = process.communicate()[1]  # until the last process that can write has ended
    expected = -signal.SIGKILL if "killed" in what else 128 + signal.SIGTERM
    assert process.returncode == expected
    assert "Traceback" not in told
    assert not any(map(is_running, workers))
    saved = (tmp_path / "run" / "checkpoint.safetensors").exists()
    assert saved is (what != "one is stopped")


@pytest.mark.parametrize("number", SIGNALS, ids=SIGNALS.values())
def test_a_signal_while_workers_begin(facts: Path, tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "splime", "train", str(facts), "--out", str(tmp_path / "run")]
    process = subprocess.Popen(
        [*command, "--workers", "2"], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    )
    while len(workers := workers_of(process.pid)) < 2:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(number)
    told = process.communicate()[1]
    assert (process.returncode, told.split()) == (128 + number, [SIGNALS[number]])
    assert not any(map(is_running, workers))


def is_running(process: int) -> bool:
    """Whether there is such a process, and not only its exit code."""
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def workers_of(launcher: int) -> list[int]:
    """The processes that a process started, in that order, but for its helper."""
    listed = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    return [
        int(each) for each in listed if "spawn_main" in Path(f"/proc/{each}/cmdline").read_text()
    ]


def test_errors(worked: Path) -> None:
    told = json.loads((worked / "measured.json").read_text())["errors"]
    for name, words in {
        "pykeen": "trains in one process",
        "small batches": "raise batch_size",
    }.items():
        assert re.search(words, told.pop(name))
    assert not told
    called = call("train", "demo", "--out", "nowhere", "--workers", "0")
    assert called.code == 2
    assert "at least 1" in called.err
