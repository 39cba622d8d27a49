"""Signals, full disks, closed streams and killed processes: what is lost, and what is said."""

from __future__ import annotations

import errno
import os
import shlex
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import optuna
import pyarrow.parquet as pq
import pytest

import splime
from experiments import running
from experiments.world import World, make_world
from splime.errors import SplimeError, WriteError
from splime.graph import TemporalGraph
from splime.io import files
from splime.io.files import atomic_folder, atomic_write, scratch_folder
from splime.runs import is_finished
from splime.streaming import transform_parts
from splime.tuning import tune
from splime.tuning.search import _Watch
from tests.experiments.small import STUDY, call_experiments, save_small
from tests.runs.small import StopAfter, call, small_graph, small_run
from tests.runs.test_resume import same, wait_for

pytestmark = pytest.mark.system

SMALL = (
    "--model", "distmult", "--dimension", "4", "--batch-size", "32", "--device", "cpu",
)  # fmt: skip
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return splime.save(small_graph(), tmp_path_factory.mktemp("data") / "facts.parquet")


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "splime", *map(str, arguments)]
    return subprocess.Popen(command, stdout=-1, stderr=-1, text=True, env=ENVIRONMENT)


def raising(number: int) -> Callable[..., Any]:
    """In place of some work: while it is done, a signal arrives."""

    def work(*_: Any, **__: Any) -> None:
        signal.raise_signal(number)
        raise AssertionError("the signal was ignored")

    return work


# Signals


def test_sigterm_while_training(data: Path, tmp_path: Path) -> None:
    """A container, Slurm or systemd asks to end: a checkpoint, a message, and the usual code."""

    def arguments(out: str) -> tuple[object, ...]:
        more = ("--epochs", "200", "--validate-every", "0", "--out", tmp_path / out)
        return ("train", data, *SMALL, *more)

    with start(*arguments("run")) as it:
        wait_for((tmp_path / "run" / "about.json").exists)
        it.send_signal(signal.SIGTERM)
        printed, said = it.communicate()
    assert (it.returncode, printed) == (143, ""), said
    assert "stopped in epoch " in said
    assert "the same command resumes" in said
    assert (tmp_path / "run" / "checkpoint.safetensors").exists()
    assert not is_finished(tmp_path / "run")
    again, whole = call(*arguments("run")), call(*arguments("whole"))
    assert (again.code, whole.code) == (0, 0), again.err
    assert same(tmp_path / "run", tmp_path / "whole")


def test_sigterm_while_tuning(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "search"
    arguments = (
        "tune", data, "--out", out, "--methods", "vanilla", "--models", "distmult",
        "--dimension", "4", "--epochs", "2", "--trials", "2", "--processes", "1",
        "--device", "cpu",
    )  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(_Watch, "step", lambda *_: signal.raise_signal(signal.SIGTERM))
        done = call(*arguments)
    assert (done.code, done.out) == (143, ""), done.err
    assert "the same command resumes the search" in done.err
    assert len([*out.glob("trials/*/checkpoint.safetensors")]) == 1
    journal = optuna.storages.journal.JournalFileBackend(str(out / "journal.log"))
    study = optuna.load_study(study_name=None, storage=optuna.storages.JournalStorage(journal))
    assert [one.state.name for one in study.trials] == ["RUNNING"]
    assert call(*arguments).code == 0


@pytest.mark.parametrize(("number", "word"), [(2, "interrupted"), (15, "terminated")])
def test_signals_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, word: str
) -> None:
    """While a run is evaluated, while a table is reproduced: what was done stays, one word."""
    run = small_run(small_graph(), tmp_path / "run")
    before = {path: path.read_bytes() for path in run.path.iterdir()}
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    with monkeypatch.context() as patch:
        patch.setattr("splime.runs.evaluating.evaluate_scoring", raising(number))
        done = call("evaluate", run.path, "--device", "cpu")
    assert (done.code, done.out, done.err) == (128 + number, "", f"{word}\n")
    assert {path: path.read_bytes() for path in run.path.iterdir()} == before
    assert handlers == [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]

    monkeypatch.setattr("experiments.studies.STUDIES", {"small": STUDY})
    run_case, ran = running.run_case, []

    def first_only(*given: Any, **options: Any) -> Any:
        ran.append(given)
        return run_case(*given, **options) if len(ran) == 1 else raising(number)()

    monkeypatch.setattr(running, "run_case", first_only)
    data = save_small(tmp_path / "data")
    small = ("small", "--data", data, "--results", tmp_path / "results", "--device", "cpu")
    assert call_experiments(*small, "--run").code == 128 + number
    monkeypatch.setattr(running, "run_case", run_case)
    assert "not run yet: 3 of the trainings" in call_experiments(*small).err


def test_a_second_signal_ends_at_once(data: Path, tmp_path: Path) -> None:
    from splime.progress import Watching

    for number in (signal.SIGINT, signal.SIGTERM):
        with Watching(lambda *_, **__: None) as watch:
            signal.raise_signal(number)
            assert watch.stop()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)


class Crash:
    """Watches a training, and ends it as a crash does."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def step(self, *_: float) -> None:
        self.left -= 1
        if not self.left:
            raise RuntimeError("crash")

    def epoch(self, *_: Any) -> None:
        """Nothing."""

    def stop(self) -> bool:
        return False


def test_training_without_validation_is_saved_now_and_then(tmp_path: Path) -> None:
    graph = small_graph()
    settings: dict[str, Any] = {"validate_every": 0, "epochs": 30}
    with pytest.raises(RuntimeError, match="crash"):
        small_run(graph, tmp_path / "run", watch=Crash(50), save_seconds=0, **settings)
    watch = StopAfter(10_000)
    run = small_run(graph, tmp_path / "run", watch=watch, **settings)
    assert watch.told[0][:3] == (16, 30, 2)  # step 50 of three an epoch, not step 1
    assert same(run.path, small_run(graph, tmp_path / "whole", **settings).path)


INTERRUPTED_IMPORT = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv = ["splime", "models"]
from splime.__main__ import main
main()
"""


def test_a_signal_in_code_that_is_made_from_text(tmp_path: Path) -> None:
    # So a dataclass is made. After a plain KeyboardInterrupt there, `python -m` ended by SIGINT.
    text = "import os, signal, time; os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)"
    code = f"from splime.cli import main\nmain.main(lambda: exec({text!r}))"
    tmp_path.joinpath("program.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-m", "program"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (143, "terminated\n")


@pytest.mark.parametrize(
    ("module", "code", "said"),
    [("numpy", -2, ""), ("torch", 130, "interrupted\n")],
)
def test_ctrl_c_while_modules_are_imported(module: str, code: int, said: str) -> None:
    program = INTERRUPTED_IMPORT.format(module=module)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)


# Streams


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """Run in bash, where `splime` is this one."""
    program = f'splime() {{ {shlex.quote(sys.executable)} -m splime "$@"; }}; {command}'
    return subprocess.run(["bash", "-c", program], capture_output=True, text=True, env=ENVIRONMENT)


@pytest.mark.parametrize(
    ("command", "code", "out", "err"),
    [
        ("splime methods 2>&-", 0, "vanilla", ""),
        ("splime methods >&- 2>&- <&-", 0, "", ""),
        ("splime inspect nothing.txt 2>&-", 3, "", ""),
        ("splime inspect nothing.txt 2>/dev/full", 3, "", ""),
        ("splime methods >/dev/full", 1, "", "error: [Errno 28] No space left on device\n"),
        ("splime --version >/dev/full", 1, "", "error: [Errno 28] No space left on device\n"),
        ("splime methods | head -1; exit ${PIPESTATUS[0]}", (0, 1), "method", ""),
        ("splime methods | true; exit ${PIPESTATUS[0]}", 1, "", ""),
    ],
)
def test_streams(command: str, code: int | tuple[int, ...], out: str, err: str) -> None:
    done = shell(command)
    assert done.returncode in (code if isinstance(code, tuple) else (code,)), done.stderr
    assert out in done.stdout
    assert bool(done.stdout) == bool(out)
    assert done.stderr.startswith(err)
    assert bool(done.stderr) == bool(err)


def test_a_file_never_gets_the_number_of_a_closed_stream(data: Path, tmp_path: Path) -> None:
    """Else what is said would be written into it."""
    done = shell(
        f"splime transform {data} --method vanilla --out {tmp_path / 'out'} >&- 2>&- <&-;"
        f" splime transform {data} --method vanilla --out {tmp_path / 'out'} >&- 2>&- <&-"
    )
    assert done.returncode == 2
    assert splime.load_segmentation(tmp_path / "out" / "segmentation.json")


# Full disks


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 400 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=400k", "splime-test", str(place)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a small file system needs the right to mount one: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


SEARCH: dict[str, Any] = {
    "trials": 3,
    "methods": ["vanilla"],
    "models": ["distmult"],
    "dimension": 4,
    "epochs": 2,
    "device": "cpu",
}


def fill(folder: Path) -> Path:
    """Fill the rest of a disk."""
    ballast = folder.parent / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 12, 1):
            with suppress(OSError):
                while True:
                    file.write(b"x" * size)
    return ballast


def test_a_full_disk_while_tuning(small_disk: Path) -> None:
    graph, out = small_graph(), small_disk / "search"
    tune(graph, out, **{**SEARCH, "trials": 1}, parallel=1)
    ballast = fill(out)
    with pytest.raises(SplimeError, match=r"No space left|is the disk full"):
        tune(graph, out, **SEARCH, parallel=2)
    ballast.unlink()
    tuned = tune(graph, out, **SEARCH, parallel=1)
    assert [one.state for one in tuned.trials] == ["finished"] * 3


@pytest.mark.parametrize("engine", ["processes", "ray"])
def test_a_full_disk_while_transforming(
    small_disk: Path, tmp_path: Path, engine: str, ray_cluster: Any
) -> None:
    """The parts that are there are kept, and the same command goes on when there is room."""
    make_world(tmp_path / "world.parquet", World(facts=3_000))
    source, out = tmp_path / "facts.parquet", small_disk / "big"
    table = pq.read_table(tmp_path / "world.parquet").replace_schema_metadata(None)
    pq.write_table(table, source, row_group_size=500)
    ballast = small_disk / "ballast"
    options: dict[str, Any] = {"engine": engine, "part_rows": 500}

    def transform() -> None:
        transform_parts(source, out, splime.Merge(shrink=4), workers=1, **options)

    ballast.write_bytes(bytes(370_000))
    with pytest.raises(WriteError, match=r"big: cannot be written"):
        transform()  # while duplicates are searched for
    assert not out.exists()
    ballast.write_bytes(bytes(330_000))
    with pytest.raises(WriteError, match=r"big/.*cannot be written.*No space left"):
        transform()
    kept = sorted(path.name for path in out.glob("part-*.json"))
    assert kept
    assert not [*out.glob(".*"), *out.glob("manifest.json")]
    ballast.unlink()
    transform()
    assert len(splime.read(out)) > 3_000


def test_a_disk_that_fails_while_tuning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a write fails, the search stops there, and resumes there."""
    graph, whole = small_graph(), tune(small_graph(), tmp_path / "whole", **SEARCH, parallel=1)
    fsync, left, failures = os.fsync, [0], 0
    codes = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)

    def fails(place: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            code = codes[failures % len(codes)]
            raise OSError(code, os.strerror(code))
        fsync(place)

    tuned = None
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        while tuned is None:
            left[0] = 5 + 5 * failures
            try:
                tuned = tune(graph, tmp_path / "search", **SEARCH, parallel=1)
            except WriteError:
                failures += 1
                assert failures < 30
    assert failures > 3
    assert [one.state for one in tuned.trials] == ["finished"] * 3
    assert [one.valid for one in tuned.trials] == [one.valid for one in whole.trials]


# What killed processes leave

KILLED = textwrap.dedent(
    """
    import os, signal, sys
    from pathlib import Path
    from splime.io.files import scratch_folder, atomic_write, atomic_folder
    how = {"file": atomic_write, "folder": atomic_folder, "work": scratch_folder}[sys.argv[1]]
    with how(Path(sys.argv[2])) as beside:
        (beside if sys.argv[1] == "file" else beside / "half").write_bytes(b"half of it")
        print("here", flush=True)
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGKILL)
    """
)


def writer(kind: str, path: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", KILLED, kind, str(path)]
    it = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert it.stdout is not None
    assert it.stdout.readline() == b"here\n"
    return it


@pytest.mark.parametrize("kind", ["file", "folder", "work"])
def test_what_a_killed_process_left_is_swept_by_the_next(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a [1].txt"
    it = writer(kind, path)
    own = [*tmp_path.iterdir()]
    assert len(own) == 1
    write: Any = {"file": atomic_write, "folder": atomic_folder, "work": scratch_folder}[kind]

    def write_again() -> None:
        with write(path) as beside:
            (beside if kind == "file" else beside / "whole").write_text("whole", encoding="utf-8")

    write_again()  # while the other is alive, nothing of it is touched
    assert own[0].exists()
    it.communicate(b"")
    assert it.returncode == -signal.SIGKILL
    write_again()
    assert [*tmp_path.iterdir()] == ([] if kind == "work" else [path])


def leftover(path: Path, process: int, kind: str = "part") -> Path:
    """The name of what a process of this machine was writing."""
    return path.with_name(f".{path.name}.{files._MACHINE}-{process}-0.{kind}")


def test_only_what_a_dead_process_of_this_machine_left_is_swept(tmp_path: Path) -> None:
    path = tmp_path / "model"
    dead, alive = leftover(path, 999_999_999), leftover(path, os.getppid())
    strangers = [
        tmp_path / ".model.elsewhere-999999999-0.part",
        tmp_path / ".model.part",
        leftover(tmp_path / "models", 999_999_999),
    ]
    for file in (dead, alive, *strangers):
        file.write_bytes(b"?")
    with atomic_write(path) as temporary:
        temporary.write_bytes(b"whole")
    assert {*tmp_path.iterdir()} == {path, alive, *strangers}


def test_two_writers_of_one_process(tmp_path: Path) -> None:
    """As threads do: each has a file of its own, and the last one counts."""
    path = tmp_path / "model"
    with atomic_write(path) as first:
        first.write_text("first", encoding="utf-8")
        with atomic_write(path) as second:
            second.write_text("second", encoding="utf-8")
        assert path.read_text(encoding="utf-8") == "second"
    assert path.read_text(encoding="utf-8") == "first"
    assert [*tmp_path.iterdir()] == [path]


def test_a_folder_whose_replacement_was_killed_comes_back(tmp_path: Path) -> None:
    """Between the two renamings, the only copy has the name of what is thrown away."""
    place = tmp_path / "out"
    old = leftover(place, 999_999_999, "old")
    old.mkdir()
    (old / "precious").write_text("precious", encoding="utf-8")
    with pytest.raises(RuntimeError), atomic_folder(place):
        raise RuntimeError
    assert (place / "precious").exists()
    assert not old.exists()


def test_a_folder_that_cannot_be_moved_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "out"
    place.mkdir()
    (place / "precious").write_text("precious", encoding="utf-8")
    rename = Path.rename

    def fails(path: Path, target: Path) -> Path:
        if path.suffix == ".part":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(WriteError, match="out: cannot be written"), atomic_folder(place):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (place / "precious").exists()


def test_a_process_with_the_same_number_as_the_killed_one(tmp_path: Path) -> None:
    """As in containers, where it is often 1."""
    place, number = tmp_path / "out", os.getpid()
    for left in (place, leftover(place, number, "old"), leftover(place, number)):
        left.mkdir()
        (left / "left").write_text("left", encoding="utf-8")
    with atomic_folder(place) as beside:
        assert not [*beside.iterdir()]
        with atomic_write(beside / "file") as inner:
            inner.write_bytes(b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert [path.name for path in place.iterdir()] == ["file"]


def test_read_only_errors_are_one_line(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the system that nobody foresaw is no traceback."""

    def full(*_: Any, **__: Any) -> TemporalGraph:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("splime.cli.options.load_graph", full)
    done = call("inspect", data)
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: [Errno 5] Input/output error\n"
