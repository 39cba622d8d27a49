"""The folder of a run: which files it has, whether it is in use, what it holds already."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from splime.errors import DataError, SplimeError, UsageError
from splime.graph import TemporalGraph
from splime.io import save, save_segmentation
from splime.io.files import written_beside
from splime.runs.config import CONFIG, Config, differences, fingerprint, read_config, write_config
from splime.segmentation import Segmentation

if sys.platform != "win32":
    import fcntl

ABOUT = "about.json"
"""Versions, device, times: what does not decide the result."""
GRAPH = "graph.parquet"
SEGMENTATION = "segmentation.json"
CHECKPOINT = "checkpoint.safetensors"
"""The last state of a training that is not finished."""
BEST = "best.safetensors"
"""The embeddings that were best on valid so far."""
MODEL = "model.safetensors"
"""The embeddings with their names; there when the training is finished."""
HISTORY = "history.csv"
METRICS = "metrics.json"
LOCK = "lock"
"""There while a process works in the folder."""


@contextmanager
def locked(folder: Path, *, wait: float = 0.0) -> Iterator[None]:
    """Keep others from working in the folder; the lock ends with the process, however it ends.

    A folder that is made for this and is still empty afterwards is removed again.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    handle = _take_lock(folder, time.monotonic() + wait)
    try:
        yield
    finally:
        with suppress(OSError):
            (folder / LOCK).unlink()
        os.close(handle)
        with suppress(OSError):
            for path in missing:
                path.rmdir()


def _take_lock(folder: Path, until: float) -> int:
    path = folder / LOCK
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except (FileExistsError, NotADirectoryError):
            raise UsageError(f"{folder}: there is a file of this name; a run is a folder") from None
        except OSError as error:
            raise SplimeError(f"{folder}: cannot be written: {error}") from None
        if _is_mine(handle, path):
            return handle
        os.close(handle)
        if time.monotonic() > until:
            raise UsageError(
                f"{folder}: another process is working in this run; wait for it, or choose another"
                " folder"
            )
        time.sleep(0.01)


def _is_mine(handle: int, path: Path) -> bool:
    """Whether the lock could be taken, and its file was not removed by who had it before."""
    if sys.platform != "win32":
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass  # some network file systems know no locks: better to go on
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except OSError:
        return False


State = Literal["new", "begun", "finished"]


def look(folder: Path, config: Config) -> State:
    """How far the run of a configuration is in a folder, which must be locked.

    A folder with another run, or with other things, is an error. A run of which nothing was saved
    yet may be begun again, also with another configuration: there is nothing to lose.
    """
    try:
        found = {path.name for path in folder.iterdir()} - {LOCK}
    except OSError as error:
        raise SplimeError(f"{folder}: cannot be read: {error}") from None
    if CONFIG not in found:
        strange = sorted(name for name in found if not name.endswith(".part"))
        if strange:
            raise UsageError(f"{folder}: holds {strange[0]!r} and no run; choose another folder")
        return "new"
    there = read_config(folder)
    if found & {MODEL, CHECKPOINT, METRICS} and fingerprint(there) != fingerprint(config):
        raise UsageError(
            f"{folder}: holds a run with another configuration ({differences(there, config)});"
            " choose another folder, or remove this one"
        )
    # What a process that was killed while it wrote, or at the very end, left behind; safetensors
    # writes to files of its own first.
    for path in (*folder.glob(".*.part"), *folder.glob(".tmp*")):
        path.unlink(missing_ok=True)
    if MODEL in found:
        (folder / CHECKPOINT).unlink(missing_ok=True)
    return "finished" if MODEL in found else "begun" if CHECKPOINT in found else "new"


def begin(folder: Path, config: Config, graph: TemporalGraph, segmentation: Segmentation) -> None:
    """Write what a run begins with; the configuration first, since it claims the folder."""
    write_config(folder, config)
    save(graph, folder / GRAPH)
    save_segmentation(segmentation, folder / SEGMENTATION)


def is_finished(folder: str | Path) -> bool:
    """Whether a folder holds a run whose training is finished."""
    return all((Path(folder) / name).exists() for name in (CONFIG, MODEL))


def write_json(path: Path, value: Any) -> None:
    """Write JSON for people and programs."""
    with written_beside(path) as beside:
        beside.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; a DataError where it is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise DataError(f"{path}: not what splime writes there")
    return found
