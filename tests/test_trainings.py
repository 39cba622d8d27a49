"""Many trainings at once: the same figures wherever they run, whatever dies, and nothing twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import splime
from experiments.rows import Results
from experiments.running import run_cases
from splime.errors import SplimeError, UsageError
from splime.io.files import LOCK
from splime.plans import Plan, PlannedRun, execute
from splime.progress import Showing, silent
from splime.runs import is_finished
from splime.runs.parallel import check_left, check_seen, sort_engines
from splime.tuning import TuningResult, tune
from splime.workers import Parallel
from tests.experiments.small import call_experiments, save_small, small_case
from tests.runs.small import call, small_graph

LONG = 200
"""So many epochs of a small training that something can happen to it."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is drawn here, and workers are looked at often."""
    for name in ("tuning.search.save_picture", "tuning.search.plot_importances"):
        monkeypatch.setattr(f"splime.{name}", lambda *_, **__: None)
    monkeypatch.setattr("splime.plans.write_page", lambda *_, **__: None)
    monkeypatch.setattr("splime.workers._POLL", 0.02)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "small.parquet"
    splime.save(small_graph(), path)
    return path


def small_plan(data: Path) -> Plan:
    methods = {"plain": splime.Vanilla(), "cut": splime.Split(grow=2)}
    training = {"model": "distmult", "dimension": 4, "batch_size": 32}
    long = {"epochs": LONG, "validate_every": LONG // 4}
    runs = [PlannedRun(name, method) for name, method in methods.items()]
    return Plan(str(data), runs, training={**training, **long})


def search(out: Path, **changes: Any) -> TuningResult:
    """So few trials that none depends on how others end: they are drawn, and none is pruned."""
    small: dict[str, Any] = {
        "trials": 3,
        "methods": ["vanilla", "split"],
        "models": ["distmult"],
        "dimension": 4,
        "epochs": 2,
        "validate_every": 1,
        "batch_size": 32,
        "device": "cpu",
    }
    return tune(small_graph(), out, **{**small, **changes})


def outcomes(tuned: TuningResult) -> list[object]:
    return [(one.number, one.state, one.valid, one.chosen, one.epochs) for one in tuned.trials]


def same_runs(one: Path, other: Path) -> bool:
    models = [sorted(out.glob("runs/*/model.safetensors")) for out in (one, other)]
    assert [len(each) for each in models] == [2, 2]
    pairs = zip(*models, strict=True)
    return all(mine.read_bytes() == theirs.read_bytes() for mine, theirs in pairs)


def holder(folder: Path) -> int | None:
    """The process that holds the lock of a folder."""
    try:
        node = (folder / LOCK).stat().st_ino
    except OSError:
        return None
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if "FLOCK" in words and words[-3].endswith(f":{node}"):
            return int(words[-4])
    return None


class Kills(Showing):
    """Kills the worker of the first training that has a checkpoint, once; never asks to stop."""

    def __init__(self, folders: Path) -> None:
        super().__init__(silent)
        self.folders, self.killed = folders, 0

    def stop(self) -> bool:
        for checkpoint in self.folders.glob("*/checkpoint.safetensors"):
            if not self.killed and (worker := holder(checkpoint.parent)):
                assert worker != os.getpid()
                os.kill(worker, signal.SIGKILL)
                self.killed = worker
        return False


@pytest.fixture(scope="module")
def alone(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plan, one run after the other."""
    return execute(small_plan(data), tmp_path_factory.mktemp("plan") / "alone").out


@pytest.mark.system
def test_cases_and_trials_on_ray(ray_cluster: Any, tmp_path: Path) -> None:
    data = save_small(tmp_path / "data")
    cases = [small_case(seed=seed) for seed in range(2)] + [small_case("split", grow=10_000)]
    updates: list[tuple[object, ...]] = []
    stored = {}
    for engine in ("ray", None):
        results = stored[engine] = Results(tmp_path / f"{engine}.json")
        with pytest.raises(SplimeError, match=r"1 of 3 trainings failed.*cannot reach"):
            run_cases(
                cases,
                results,
                data=data,
                parallel=Parallel(engine, device="cpu"),
                progress=lambda *update: updates.append(update[:3]),
            )
    for case in cases[:2]:
        assert stored["ray"][case]["figures"] == stored[None][case]["figures"]
    assert updates[:3] == [("trainings", done, 3) for done in (1, 2, 3)]
    told: list[int] = []
    tuned = search(
        tmp_path / "ray", parallel=Parallel("ray"), progress=lambda *each: told.append(each[1])
    )
    assert outcomes(tuned) == outcomes(search(tmp_path / "alone", parallel=1))
    assert (told[0], told[-1], told) == (0, 3, sorted(told))


@pytest.mark.system
def test_a_worker_of_a_cluster_is_killed(
    ray_cluster: Any, data: Path, alone: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    kills = Kills(out / "runs")
    done = execute(
        small_plan(data),
        out,
        parallel=Parallel("ray", processors=1),
        watching=lambda _: nullcontext(kills),
    )
    assert kills.killed
    assert same_runs(out, alone)
    commands = {run.about["command"] for run in done.runs.values()}
    assert commands == {splime.Run(alone / "runs" / "cut").about["command"]}
    rows = splime.compare([*(alone / "runs").iterdir()]).rows
    assert {row.metrics.mrr for row in done.comparison.rows} == {row.metrics.mrr for row in rows}


@pytest.mark.system
def test_a_process_of_a_search_is_killed(tmp_path: Path) -> None:
    out = tmp_path / "search"
    kills = Kills(out / "trials")
    settings = {"epochs": LONG, "validate_every": LONG // 2, "trials": 2, "methods": ["vanilla"]}
    tuned = search(out, stop=kills.stop, **settings)
    assert kills.killed
    assert outcomes(tuned) == outcomes(search(tmp_path / "alone", parallel=1, **settings))


def wait_until(there: Callable[[], object]) -> None:
    until = time.monotonic() + 120
    while not there():
        assert time.monotonic() < until
        time.sleep(0.02)


def start(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "splime", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=-3, stderr=-1, text=True, env={**os.environ, **environment}
    )


@pytest.mark.system
def test_the_driver_is_killed(ray_cluster: Any, data: Path, alone: Path, tmp_path: Path) -> None:
    """Meanwhile nobody else may work in the folder; afterwards the same command resumes."""
    out = tmp_path / "out"
    command = ("run", alone / "plan.toml", "--engine", "ray", "--out", out)
    with start(*command, RAY_ADDRESS=ray_cluster.address) as driver:
        wait_until(lambda: list(out.glob("runs/*/checkpoint.safetensors")) or driver.poll())
        again = call(*command)
        assert (again.code, again.out) == (2, "")
        assert "another process is working in this folder" in again.err
        driver.kill()
    assert not all(map(is_finished, (out / "runs").iterdir()))
    done = call(*command)
    assert done.code == 0, done.err
    assert same_runs(out, alone)


@pytest.mark.system
def test_an_interrupted_search_leaves_no_process(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "search"
    small = ("--models", "distmult", "--methods", "vanilla", "--dimension", 4, "--batch-size", 32)
    long = ("--epochs", 100_000, "--validate-every", 50_000, "--processes", 2)
    with start("tune", data, "--out", out, *small, *long) as it:
        wait_until(lambda: len(list(out.glob("trials/*/about.json"))) == 2 or it.poll())
        workers = [holder(folder) for folder in (out / "trials").iterdir()]
        assert all(workers)
        it.send_signal(signal.SIGTERM)
        _, said = it.communicate()
    assert it.returncode == 143, said
    assert "the same command resumes the search" in said
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
    assert len(list(out.glob("trials/*/checkpoint.safetensors"))) == 2


def test_without_ray(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    for command in ("run", "tune"):
        done = call(command, data, "--engine", "ray", "--out", tmp_path / "out")
        assert done.code == 1
        assert "pip install 'splime-kg[cluster]'" in done.err
    assert call_experiments("main", "--engine", "ray").code == 1
    assert not (tmp_path / "out").exists()


def test_storage_that_not_all_see(tmp_path: Path) -> None:
    check_seen(tmp_path)
    check_left(True, tmp_path)
    with pytest.raises(UsageError, match=r"gone: is not there on .* all machines must see"):
        check_seen(tmp_path / "gone")
    with pytest.raises(SplimeError, match=r"it is not here; .* all machines must see"):
        check_left(False, tmp_path)


def test_engines_by_name() -> None:
    assert sort_engines(()) == ("splime", None)
    assert sort_engines(["processes", "splime"]) == ("splime", "processes")
    for engines, message in (
        (["ray", "processes"], "choose one engine of ray and processes"),
        (["pykeen", "splime"], "choose one engine of pykeen and splime"),
        ("rya", r"no engine 'rya'; there are splime, .*Did you mean ray"),
    ):
        with pytest.raises(UsageError, match=message):
            sort_engines(engines)


def test_old_names() -> None:
    """They work for one version."""
    with pytest.warns(DeprecationWarning, match="parallel"), pytest.raises(SplimeError):
        splime.tune("no-such-data", "nowhere", processes=2)
    plan = splime.Plan("no-such-data", [splime.PlannedRun("a", splime.Vanilla())])
    with pytest.warns(DeprecationWarning, match="splime.execute"), pytest.raises(SplimeError):
        splime.carry_out(plan, "nowhere")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"processes": 0}, "processes must be at least 1, not 0"),
        ({"processors": 0}, "processors must be at least 1, not 0"),
        ({"gpu": -0.5}, r"gpu must be 0 or more, not -0\.5"),
        ({"gpu": 0.5}, "gpu belongs to the engine ray"),
        ({"engine": "processes", "address": "host:1"}, "address belongs to the engine ray"),
        ({"engine": "pykeen"}, "there is no engine 'pykeen'; there are processes, ray"),
    ],
)
def test_nonsense(how: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Parallel(**how)
