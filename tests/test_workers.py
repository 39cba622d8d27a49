from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest

from splime.errors import DataError, SplimeError, UsageError
from splime.workers import Parallel, worker_pool

pytestmark = pytest.mark.system

ENGINES = ("processes", "ray")


@pytest.fixture(scope="module", autouse=True)
def cluster(ray_cluster: Any) -> Any:
    return ray_cluster


def map_unordered(
    function: Callable[[Any], Any], tasks: Any, stop: Any = lambda: False, **options: Any
) -> Iterator[tuple[int, Any]]:
    with worker_pool(Parallel(**options)) as pool:
        yield from pool.map_unordered(function, tasks, stop=stop)


def squared(number: int) -> int:
    return number * number


def die(path: Path, times: int) -> None:
    """Die as often as that, and count it in a file."""
    with path.open("a") as file:
        file.write("x")
    if path.stat().st_size <= times:
        os.kill(os.getpid(), signal.SIGKILL)


def die_once(path: Path) -> str:
    die(path, 1)
    return path.name


def die_always(path: Path) -> None:
    if path.name == "bad":
        die(path, 100)


def fail(task: tuple[str, Path]) -> None:
    word, ended = task
    if word == "data":
        raise DataError("facts.parquet, row 3: broken")
    if word == "bug":
        raise KeyError("a bug")
    time.sleep(60)
    ended.touch()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("processes", [1, 3, None])
def test_every_task_is_done_once(engine: str, processes: int | None) -> None:
    done = [*map_unordered(squared, range(10), engine=engine, processes=processes)]
    assert sorted(done) == [(number, number * number) for number in range(10)]
    assert [*map_unordered(squared, [], engine=engine)] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_dead_worker_loses_nothing(tmp_path: Path, engine: str) -> None:
    paths = [tmp_path / name for name in "abc"]
    done = [*map_unordered(die_once, paths, engine=engine, processes=2)]
    assert sorted(done) == [(0, "a"), (1, "b"), (2, "c")]
    assert [path.read_text() for path in paths] == ["xx"] * 3


def test_workers_that_die_together(tmp_path: Path) -> None:
    """How each ended is known, also where its place was taken before it was asked for."""
    with worker_pool(Parallel(processes=2)) as pool:
        function = pool.prepare(die_once)
        died = [pool.submit(function, tmp_path / name) for name in "ab"]
        assert len(wait(died, 60).done) == 2
        again = pool.submit(function, tmp_path / "a")
        assert {pool.death(each) for each in died} == {"exit code -9"}
        assert again.result(60)
        assert pool.death(again) is None


@pytest.mark.parametrize("engine", ENGINES)
def test_a_task_that_kills_its_workers_is_named(tmp_path: Path, engine: str) -> None:
    with pytest.raises(SplimeError, match=r"bad: the worker died 3 times.*fewer workers"):
        [
            *map_unordered(
                die_always, [tmp_path / "good", tmp_path / "bad"], engine=engine, processes=2
            )
        ]
    assert (tmp_path / "bad").read_text() == "xxx"


@pytest.mark.parametrize("engine", ENGINES)
def test_errors_of_tasks_end_all(tmp_path: Path, engine: str) -> None:
    started = time.monotonic()
    for word, kind in (("data", DataError), ("bug", KeyError)):
        tasks = [("", tmp_path / "ended"), (word, tmp_path / "ended")]
        with pytest.raises(kind, match=r"row 3: broken|a bug") as raised:
            [*map_unordered(fail, tasks, engine=engine, processes=2)]
        assert hasattr(raised.value, "__notes__") is (word == "bug")
    assert time.monotonic() - started < 50  # nobody waited for the other task


def test_what_cannot_be_asked_for() -> None:
    for options in (
        {"engine": "threads"},
        {"processes": 0},
        {"processors": 0},
        {"address": "host:1"},
    ):
        with pytest.raises(UsageError):
            [*map_unordered(squared, [1], **options)]
    with pytest.raises(UsageError, match=r"at most \d+ on this machine, not 1,000"):
        [*map_unordered(squared, [1], processes=1_000)]
    with pytest.raises(UsageError, match=r"no node .* has 1000 processors and 0.5 of a GPU"):
        [*map_unordered(squared, [1], engine="ray", processors=1000, gpu=0.5)]


def test_ray_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SplimeError, match=r"pip install 'splime-kg\[cluster\]'"):
        [*map_unordered(squared, [1], engine="ray")]


def run(command: list[Any], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


SCRIPT = """
import os, signal, sys, time
from splime.workers import Parallel, worker_pool

def forever(_):
    os.write(1, f"{os.getpid()}\\n".encode())  # both write to it, each at once
    time.sleep(100)

def stop(number, _):
    raise KeyboardInterrupt

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    with worker_pool(Parallel(processes=2)) as pool:
        [*pool.map_unordered(forever, [1, 2])]
"""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_worker_is_left_behind(tmp_path: Path, sent: signal.Signals) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        workers = [int(driver.stdout.readline()) for _ in range(2)]
        driver.send_signal(sent)
        assert driver.stdout.read() == ""  # its end: nobody who could write to it is left
    assert len({*workers, driver.pid}) == 3


def test_a_second_signal_kills_a_stopped_worker(tmp_path: Path) -> None:
    """It cannot react to the first one."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with subprocess.Popen([sys.executable, script], stdout=-1, stderr=-3, text=True) as driver:
        assert driver.stdout is not None
        workers = [int(driver.stdout.readline()) for _ in range(2)]
        os.kill(workers[0], signal.SIGSTOP)
        driver.send_signal(signal.SIGTERM)
        while f"{workers[1]}" in Path(f"/proc/{driver.pid}/task/{driver.pid}/children").read_text():
            time.sleep(0.02)
        assert driver.poll() is None
        driver.send_signal(signal.SIGTERM)
        assert driver.stdout.read() == ""
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def test_a_stopped_worker_ends_with_its_parent(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        workers = [int(driver.stdout.readline()) for _ in range(2)]
        os.kill(workers[0], signal.SIGSTOP)
        driver.kill()
        assert driver.stdout.read() == ""


OWN = """
from splime.workers import Parallel, worker_pool

def where(_):
    import ray

    return ray.nodes()[0]["NodeManagerAddress"]

if __name__ == "__main__":
    with worker_pool(Parallel("ray", 1)) as pool:
        print([*pool.map_unordered(where, [1])])
"""


def test_a_cluster_of_this_machine_alone(tmp_path: Path) -> None:
    """It is quiet, and other machines cannot reach it."""
    script = tmp_path / "script.py"
    script.write_text(OWN)
    env = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    done = run([sys.executable, script], env=env)
    assert (done.stdout, done.stderr, done.returncode) == ("[(0, '127.0.0.1')]\n", "", 0)


@pytest.mark.parametrize("address", ["127.0.0.1:9", "nonsense"])
def test_addresses_without_a_cluster(address: str) -> None:
    script = f"from splime.workers import *; worker_pool(Parallel('ray', address={address!r}))"
    script += ".__enter__()"
    done = run([sys.executable, "-c", script])
    assert f"SplimeError: the Ray cluster {address} cannot be reached" in done.stderr


def cleans_up(path: Path) -> None:
    """Works until it is asked to end, and then has something left to do."""
    path.with_suffix(".begun").touch()
    try:
        while True:
            time.sleep(0.01)
    except KeyboardInterrupt:
        path.with_suffix(".cleaned").touch()
        raise


@pytest.mark.parametrize("engine", ENGINES)
def test_workers_that_are_asked_to_stop_end_well(tmp_path: Path, engine: str) -> None:
    paths = [tmp_path / name for name in "abc"]

    def stop() -> bool:
        return len([*tmp_path.glob("*.begun")]) == 2

    assert [*map_unordered(cleans_up, paths, engine=engine, processes=2, stop=stop)] == []
    assert {path.name for path in tmp_path.glob("*.cleaned")} == {"a.cleaned", "b.cleaned"}
    assert not (tmp_path / "c.begun").exists()


@pytest.mark.parametrize("engine", ENGINES)
def test_an_iterator_is_asked_when_there_is_room(engine: str) -> None:
    """What is next may follow from what is done; the cluster has room for two tasks."""
    taken: list[int] = []
    done: list[tuple[int, int]] = []

    def tasks() -> Iterator[int]:
        for number in range(6):
            assert number - len(done) <= 2 + 1  # one result may wait to be taken
            taken.append(number)
            yield number

    processes = 2 if engine == "processes" else None
    for each in map_unordered(squared, tasks(), engine=engine, processes=processes):
        done.append(each)
    assert sorted(done) == [(number, number * number) for number in taken]
    assert len(taken) == 6
