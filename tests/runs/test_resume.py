"""Trainings that stop and go on, the seed, and which epoch is kept."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import splime
from splime.errors import DataError, SplimeError, UsageError, explain_out_of_memory
from splime.graph import Facts, TemporalGraph
from splime.runs import Interrupted, Run, training
from splime.runs.folder import is_finished
from splime.tensors import load_tensors, save_tensors
from splime.training.trainer import Trainer
from tests.runs.small import CUTS, StopAfter, call, small_graph, small_run

# Three steps an epoch. One stops early, one comes to its end, one does not look at valid, and one
# goes through all triples where the others draw one of each fact.
KINDS: dict[str, dict[str, Any]] = {
    "early": {"epochs": 40, "validate_every": 1, "patience": 2, "init": "xavier_normal"},
    "adam": {"model": "transe", "negatives": 6, "optimizer": "adam", "epochs": 5},
    "last": {"epochs": 3, "validate_every": 0, "steps": 8},
    "triples": {"epochs": 4, "each": "triple"},
}
each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def wholes(graph: TemporalGraph, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """The uninterrupted runs."""
    folder = tmp_path_factory.mktemp("whole")
    return {kind: small_run(graph, folder / kind, **KINDS[kind]) for kind in KINDS}


def same(one: Path, other: Path) -> bool:
    files = ("model.safetensors", "history.csv", "config.toml")
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in files)


def steps_of(run: Run) -> int:
    return run.settings.steps or 3 * len(run.history)


def test_the_kinds_are_what_they_should_be(wholes: dict[str, Run]) -> None:
    early, adam, last = (wholes[kind] for kind in ("early", "adam", "last"))
    assert 3 < len(early.history) < 40
    assert early.about["best_epoch"] == len(early.history) - 2
    assert len(adam.history) == 5
    assert [one.valid for one in last.history] == [None] * 3
    for kind, run in wholes.items():
        counted = run.about["triples"] if kind == "triples" else len(run.graph.train)
        assert 64 < counted <= 96


@each_kind
@pytest.mark.parametrize("stop", [1, 2, 3, 4, 6, 7, "last but one"])
def test_an_interruption_changes_nothing(
    kind: str, stop: int | str, wholes: dict[str, Run], graph: TemporalGraph, tmp_path: Path
) -> None:
    whole = wholes[kind]
    steps = stop if isinstance(stop, int) else steps_of(whole) - 1
    with pytest.raises(Interrupted, match="the same command resumes") as stopped:
        small_run(graph, tmp_path / "run", watch=StopAfter(steps), **KINDS[kind])
    assert stopped.value.exit_code == 130
    assert (tmp_path / "run" / "checkpoint.safetensors").exists()
    watch = StopAfter(10_000)
    run = small_run(graph, tmp_path / "run", watch=watch, **KINDS[kind])
    assert len(watch.told) == steps_of(whole) - steps
    assert same(run.path, whole.path)
    assert {p.name for p in run.path.iterdir()} == {p.name for p in whole.path.iterdir()}
    assert run.about["best_epoch"] == whole.about["best_epoch"]


@each_kind
def test_many_interruptions_change_nothing(
    kind: str, wholes: dict[str, Run], graph: TemporalGraph, tmp_path: Path
) -> None:
    out, times = tmp_path / "run", 0
    while not is_finished(out):
        try:
            small_run(graph, out, watch=StopAfter(2), **KINDS[kind])
        except Interrupted:
            times += 1
    assert times >= 3
    assert same(out, wholes[kind].path)


def killing(at: str) -> Callable[..., None]:
    """Stands in for a function that writes, and never comes back from one of the writes."""
    write, left = save_tensors, [2]

    def killed(path: Path, *rest: Any) -> None:
        left[0] -= path.name == at
        if left[0] == 0:
            raise KeyboardInterrupt
        write(path, *rest)

    return killed


@pytest.mark.parametrize("at", ["checkpoint.safetensors", "best.safetensors"])
def test_a_kill_between_two_writes(
    at: str,
    wholes: dict[str, Run],
    graph: TemporalGraph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The best embeddings may be newer than the checkpoint, or not there."""
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr("splime.runs.training.save_tensors", killing(at))
        with pytest.raises(KeyboardInterrupt):
            small_run(graph, out, **KINDS["early"])
    assert not is_finished(out)
    assert same(small_run(graph, out, **KINDS["early"]).path, wholes["early"].path)


@pytest.mark.parametrize("name", ["write_history", "machine"])
def test_a_kill_at_the_very_end(
    name: str,
    wholes: dict[str, Run],
    graph: TemporalGraph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    for kind, values in KINDS.items():
        out = tmp_path / kind
        with monkeypatch.context() as patch:
            patch.setattr(training, name, killed)
            with pytest.raises(KeyboardInterrupt):
                small_run(graph, out, **values)
        assert same(small_run(graph, out, **values).path, wholes[kind].path)


def test_a_kill_after_the_end(wholes: dict[str, Run], graph: TemporalGraph, tmp_path: Path) -> None:
    """The model is there, and the checkpoint still is: it is finished, and that is tidied up."""
    out = shutil.copytree(wholes["adam"].path, tmp_path / "run")
    (out / "checkpoint.safetensors").write_bytes(b"large")
    watch = StopAfter(1)
    small_run(graph, out, watch=watch, **KINDS["adam"])
    assert watch.told == []
    assert {p.name for p in out.iterdir()} == {p.name for p in wholes["adam"].path.iterdir()}


def test_going_on_without_about(
    wholes: dict[str, Run], graph: TemporalGraph, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with pytest.raises(Interrupted):
        small_run(graph, out, watch=StopAfter(5), **KINDS["adam"])
    (out / "about.json").unlink()
    run = small_run(graph, out, **KINDS["adam"])
    assert same(run.path, wholes["adam"].path)
    assert run.about["parameters"] == wholes["adam"].about["parameters"]


def test_the_time_of_all_parts_counts(
    graph: TemporalGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]

    def later() -> float:
        clock[0] += 100
        return clock[0]

    monkeypatch.setattr(time, "monotonic", later)
    with pytest.raises(Interrupted):
        small_run(graph, tmp_path / "run", watch=StopAfter(5), save_seconds=1e9)
    first = load_tensors(tmp_path / "run" / "checkpoint.safetensors")[1]["progress"]
    run = small_run(graph, tmp_path / "run", save_seconds=1e9)
    assert run.about["seconds"] > first["seconds"] > 100
    assert run.about["started"] == first["started"]


SCRIPT = textwrap.dedent(
    """
    import sys, torch
    from pathlib import Path
    from tests.runs.small import small_graph, small_run
    torch.set_num_threads(1)
    small_run(small_graph(), Path(sys.argv[1]), epochs=80, patience=80, save_seconds=0)
    """
)


def wait_for(what: Callable[[], bool]) -> None:
    for _ in range(6_000):
        if what():
            return
        time.sleep(0.005)
    raise TimeoutError


def test_what_a_killed_process_left_is_removed(graph: TemporalGraph, tmp_path: Path) -> None:
    """Our own files, and those that safetensors writes to first."""
    out = tmp_path / "run"
    with pytest.raises(Interrupted):
        small_run(graph, out, watch=StopAfter(4))
    for name in (".model.safetensors.77.part", ".tmpDpNhD5"):
        (out / name).write_bytes(b"half of it")
    small_run(graph, out)
    assert not list(out.glob(".*"))


@pytest.mark.system
def test_kill_9(graph: TemporalGraph, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with subprocess.Popen([sys.executable, "-c", SCRIPT, out], cwd=Path(__file__).parents[2]) as it:
        wait_for((out / "checkpoint.safetensors").exists)
        time.sleep(0.1)
        it.kill()
    assert it.returncode == -signal.SIGKILL
    assert not is_finished(out)
    settings: dict[str, Any] = {"epochs": 80, "patience": 80}
    watch = StopAfter(10_000)
    run = small_run(graph, out, watch=watch, **settings)
    assert 0 < len(watch.told) < 3 * 80
    assert same(run.path, small_run(graph, tmp_path / "whole", **settings).path)
    assert not list(out.glob(".*"))


@pytest.mark.system
def test_ctrl_c(graph: TemporalGraph, tmp_path: Path) -> None:
    """The first one ends a training well, and says how to go on."""
    splime.save(graph, tmp_path / "facts.parquet")

    def arguments(out: str) -> list[str]:
        return [
            "train", str(tmp_path / "facts.parquet"), "--method", "split", "--grow", "2",
            "--model", "distmult", "--dimension", "4", "--batch-size", "32", "--epochs", "400",
            "--validate-every", "0", "--device", "cpu", "--out", str(tmp_path / out),
        ]  # fmt: skip

    out = tmp_path / "run"
    with subprocess.Popen(
        [sys.executable, "-m", "splime", *arguments("run")],
        stdout=-1, stderr=-1, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as it:  # fmt: skip
        wait_for((out / "about.json").exists)
        it.send_signal(signal.SIGINT)
        printed, said = it.communicate()
    assert it.returncode == 130, said
    assert printed == ""
    assert "stopped in epoch " in said
    assert "the same command resumes" in said
    assert (out / "checkpoint.safetensors").exists()
    assert not (out / "lock").exists()
    again, whole = call(*arguments("run")), call(*arguments("whole"))
    assert (again.code, whole.code) == (0, 0), again.err
    assert "run: written; next: splime evaluate" in again.out
    assert same(out, tmp_path / "whole")


@pytest.mark.system
def test_ctrl_c_twice(graph: TemporalGraph, tmp_path: Path) -> None:
    """In this process: the second one is a KeyboardInterrupt, and the handler is put back."""
    from splime.progress import Watching

    before = signal.getsignal(signal.SIGINT)
    with Watching(lambda *_, **__: None) as watch:
        assert not watch.stop()
        signal.raise_signal(signal.SIGINT)
        assert watch.stop()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


# A checkpoint that is not what it was


@pytest.fixture
def stopped(graph: TemporalGraph, tmp_path: Path) -> Path:
    """A run that stopped after it looked at valid."""
    with pytest.raises(Interrupted):
        small_run(graph, tmp_path / "stopped", watch=StopAfter(10))
    assert (tmp_path / "stopped" / "best.safetensors").exists()
    return tmp_path / "stopped"


def truncated(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    return data[:-5] + bytes([data[-5] ^ 4]) + data[-4:]


@pytest.mark.parametrize("name", ["checkpoint.safetensors", "best.safetensors"])
@pytest.mark.parametrize("damage", [truncated, flipped, lambda _: b"", lambda _: b"text" * 9])
def test_a_damaged_checkpoint(
    name: str, damage: Callable[[bytes], bytes], stopped: Path, graph: TemporalGraph
) -> None:
    path = stopped / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError) as error:
        small_run(graph, stopped)
    assert str(path) in str(error.value)
    advice = f"remove {stopped / 'checkpoint.safetensors'} to begin the training again"
    assert advice in str(error.value)
    (stopped / "checkpoint.safetensors").unlink()
    run = small_run(graph, stopped)
    assert same(run.path, small_run(graph, stopped.parent / "whole").path)


def test_the_checkpoint_of_another_run(stopped: Path, graph: TemporalGraph) -> None:
    with pytest.raises(Interrupted):
        small_run(graph, stopped.parent / "other", watch=StopAfter(10), seed=1)
    for name in ("checkpoint.safetensors", "best.safetensors"):
        copied = shutil.copytree(stopped, stopped.parent / name)
        shutil.copy(stopped.parent / "other" / name, copied / name)
        with pytest.raises(DataError, match=rf"{name}: belongs to another run; remove"):
            small_run(graph, copied)


def test_a_checkpoint_without_what_it_needs(stopped: Path, graph: TemporalGraph) -> None:
    path = stopped / "checkpoint.safetensors"
    tensors, about = load_tensors(path)
    for wrong in (
        {**about, "progress": {}},
        {**about, "progress": {**about["progress"], "history": [1]}},
        {**about, "trainer": {}},
        {"config": about["config"]},
    ):
        save_tensors(path, tensors, wrong)
        with pytest.raises(DataError, match=r"checkpoint\.safetensors: not a checkpoint"):
            small_run(graph, stopped)
    save_tensors(path, {"entities": tensors["entities"]}, about)
    with pytest.raises(DataError, match=r"checkpoint\.safetensors: not a checkpoint"):
        small_run(graph, stopped)


def test_best_embeddings_of_another_epoch(stopped: Path, graph: TemporalGraph) -> None:
    """As when somebody goes on with a run on a machine that computes otherwise."""
    path = stopped / "best.safetensors"
    tensors, about = load_tensors(path)
    checkpoint = stopped / "checkpoint.safetensors"
    state, numbers = load_tensors(checkpoint)
    numbers["progress"]["best"] = 1.0
    save_tensors(checkpoint, state, numbers)
    save_tensors(path, tensors, {**about, "epoch": about["epoch"] + 1})
    with pytest.raises(DataError, match=r"best\.safetensors: not of epoch \d, the best one; remov"):
        small_run(graph, stopped)


# The seed, and the epoch that is kept


@each_kind
def test_the_seed(kind: str, wholes: dict[str, Run], graph: TemporalGraph, tmp_path: Path) -> None:
    again = small_run(graph, tmp_path / "again", **KINDS[kind])
    other = small_run(graph, tmp_path / "other", seed=1, **KINDS[kind])
    assert same(again.path, wholes[kind].path)
    assert not torch.equal(other.tensors["entities"], again.tensors["entities"])
    assert other.history != again.history


@pytest.mark.system
def test_the_same_bytes_in_another_process(wholes: dict[str, Run], tmp_path: Path) -> None:
    """Neither hash seeds nor the order of metadata may show."""
    code = "from tests.runs.test_resume import another; another()"
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "run")],
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert same(tmp_path / "run", wholes["early"].path)


def another() -> None:
    torch.set_num_threads(1)
    small_run(small_graph(), Path(sys.argv[1]), **KINDS["early"])


def test_the_best_epoch_is_kept(
    wholes: dict[str, Run], graph: TemporalGraph, tmp_path: Path
) -> None:
    """The tables are those of a training that ends there."""
    run = wholes["early"]
    values = [one.valid for one in run.history if one.valid is not None]
    best = run.about["best_epoch"]
    assert values.index(max(values)) + 1 == best
    assert len(values) == best + 2  # the patience
    until = {**KINDS["early"], "epochs": best, "validate_every": 0}
    short = small_run(graph, tmp_path / "short", **until)
    assert short.about["best_epoch"] == best
    for name in ("entities", "predicates"):
        assert torch.equal(short.tensors[name], run.tensors[name])


@pytest.mark.parametrize(
    ("values", "patience", "kept", "epochs"),
    [
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 1, 6, 6),
        ([0.1, 0.2, 0.2, 0.3, 0.3, 0.3], 1, 2, 3),  # as good is not better
        ([0.1, 0.2, 0.2, 0.3, 0.3, 0.3], 2, 4, 6),
        ([0.5, 0.4, 0.3, 0.6, 0.1, 0.1], 2, 1, 3),
        ([0.5, 0.4, 0.3, 0.6, 0.1, 0.1], 3, 4, 6),
        ([0.0, 0.0, 0.0, 0.0, 0.0, 0.0], 4, 1, 5),
    ],
)
def test_patience(
    values: list[float],
    patience: int,
    kept: int,
    epochs: int,
    graph: TemporalGraph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        training._Training, "_validate", lambda self: values[self.learner.epoch - 1]
    )
    watch = StopAfter(10_000)
    settings: dict[str, Any] = {"epochs": 6, "validate_every": 1, "patience": patience}
    run = small_run(graph, tmp_path / "run", watch=watch, **settings)
    assert [one.valid for one in run.history] == values[:epochs]
    assert run.about["best_epoch"] == kept
    assert load_tensors(run.path / "model.safetensors")[1]["epoch"] == kept
    bests = [found.epoch for found, best in watch.epochs if best]
    assert bests[-1] == kept
    assert len(watch.epochs) == epochs


def test_the_last_epoch_is_looked_at_too(graph: TemporalGraph, tmp_path: Path) -> None:
    run = small_run(graph, tmp_path / "run", epochs=5, validate_every=3)
    assert [one.epoch for one in run.history if one.valid is not None] == [3, 5]


def test_what_the_watch_is_told(graph: TemporalGraph, tmp_path: Path) -> None:
    watch = StopAfter(10_000)
    run = small_run(graph, tmp_path / "run", watch=watch, epochs=2)
    assert watch.told == [(epoch, 2, step, 3) for epoch in (0, 1) for step in (1, 2, 3)]
    assert [found for found, _ in watch.epochs] == run.history


# Trainings that fail


def test_divergence(graph: TemporalGraph, tmp_path: Path) -> None:
    out = tmp_path / "run"
    wrong: dict[str, Any] = {"learning_rate": 9e18, "optimizer": "sgd"}
    with pytest.raises(SplimeError, match=r"training diverged\. Lower learning_rate"):
        small_run(graph, out, **wrong)
    assert not is_finished(out)
    assert small_run(graph, out).scorer  # the folder does not stand in the way


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB\nmore"),
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
    ],
)
def test_no_memory_left(
    error: Exception, graph: TemporalGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "take_step", fails)
        with pytest.raises(SplimeError, match="not enough memory: lower batch_size"):
            small_run(graph, tmp_path / "run")
    assert small_run(graph, tmp_path / "run", batch_size=16).settings.batch_size == 16


def test_other_errors_are_not_about_memory() -> None:
    with pytest.raises(RuntimeError, match="shapes"), explain_out_of_memory("lower it"):
        raise RuntimeError("shapes do not fit")


def test_a_full_disk_loses_nothing(
    graph: TemporalGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last checkpoint stays good when the next one cannot be written."""
    from safetensors import SafetensorError, torch as written

    save, left = written.save_file, [4]

    def full(*arguments: Any, **more: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise SafetensorError("I/O error: No space left on device (os error 28)")
        save(*arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(written, "save_file", full)
        with pytest.raises(SplimeError, match=r"safetensors: cannot be written: .*No space left"):
            small_run(graph, tmp_path / "run", save_seconds=0)
    watch = StopAfter(10_000)
    run = small_run(graph, tmp_path / "run", watch=watch)
    assert len(watch.told) < 18
    assert same(run.path, small_run(graph, tmp_path / "whole").path)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"batch_size": 10_000}, "a batch of 10,000 is larger than train"),
        ({"dimension": 0}, "dimension must be at least 1, not 0"),
        ({"model": "transh", "dimension": 1}, "TransH needs a dimension of at least 2, not 1"),
        ({"model": "transe", "norm": 3}, "TransE measures distances with norm 1 or 2, not 3"),
        ({"loss": "softmx"}, r"no loss 'softmx'.*Did you mean softmax\?"),
        ({"init": "xavier"}, r"no initialiser 'xavier'.*Did you mean xavier_"),
        ({"model": "distmul"}, r"no model 'distmul'.*Did you mean distmult or "),
        ({"preset": "papr"}, r"no preset 'papr'.*Did you mean paper\?"),
        ({"optimizer": "adan"}, r"optimizer is one of.*Did you mean adam"),
        ({"dimensions": 3}, r"no setting 'dimensions'\. Did you mean dimension\?"),
        ({"device": "gpu"}, "device is auto, cpu or cuda, not 'gpu'"),
        ({"cuts": splime.Split(grow=1000)}, "Split by time cannot reach"),
    ],
)
def test_errors_before_the_training_take_no_folder(
    wrong: dict[str, Any], message: str, graph: TemporalGraph, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        small_run(graph, tmp_path / "run", **wrong)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_no_gpu(graph: TemporalGraph, tmp_path: Path, finished: Path) -> None:
    with pytest.raises(UsageError, match=r"cuda is not available: .* use cpu"):
        small_run(graph, tmp_path / "run", device="cuda")
    with pytest.raises(UsageError, match=r"cuda is not available: .* use cpu"):
        Run(finished, device="cuda")
    assert list(tmp_path.iterdir()) == []


def test_empty_splits(graph: TemporalGraph, tmp_path: Path) -> None:
    without_valid = replace(graph, valid=Facts.empty())
    with pytest.raises(UsageError, match=r"valid has no facts.*\(--validate-every 0\)"):
        small_run(without_valid, tmp_path / "run")
    run = small_run(without_valid, tmp_path / "run", validate_every=0)
    assert run.about["best_epoch"] == 6
    without_train = replace(graph, train=Facts.empty())
    for cuts in (CUTS, splime.Vanilla().fit(without_valid)):
        with pytest.raises(UsageError, match="train has no facts; there is nothing to learn from"):
            small_run(without_train, tmp_path / "other", cuts)
    assert not (tmp_path / "other").exists()
