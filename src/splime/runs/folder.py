"""The folder of a run: which files it has, whether it is in use, whose configuration it holds."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from splime.errors import DataError, SplimeError, UsageError
from splime.graph import TemporalGraph
from splime.io.files import written_beside
from splime.runs.toml import write_toml

CONFIG = "config.toml"
"""What decides the result: data, cuts and settings."""
ABOUT = "about.json"
"""Versions, device, times: what does not."""
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

Config = dict[str, dict[str, Any]]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep others from working in the folder; the lock ends with the process, however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"{folder}: this is a file; a run is a folder") from None
    except OSError as error:
        raise SplimeError(f"{folder}: cannot be written: {error}") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"{folder}: another process is working in this run; wait for it, or choose another"
                " folder"
            ) from None
        yield
    finally:
        os.close(handle)


def claim(folder: Path, config: Config) -> bool:
    """Take a folder for a configuration; whether it was this one's already.

    A folder with another run, or with other things, is an error.
    """
    try:
        found = {path.name for path in folder.iterdir()} - {LOCK}
    except OSError as error:
        raise SplimeError(f"{folder}: cannot be read: {error}") from None
    if CONFIG not in found:
        strange = sorted(name for name in found if not name.endswith(".part"))
        if strange:
            raise UsageError(f"{folder}: holds {strange[0]!r} and no run; choose another folder")
        return False
    there = read_config(folder)
    if there != tomllib.loads(write_toml(config)):
        raise UsageError(
            f"{folder}: holds a run with another configuration ({_differences(there, config)});"
            " choose another folder, or remove this one"
        )
    return True


def write_config(folder: Path, config: Config) -> None:
    """Write the configuration: from then on the folder is this run's."""
    with written_beside(folder / CONFIG) as beside:
        beside.write_text(write_toml(config), encoding="utf-8")


def read_config(folder: Path) -> Config:
    """The configuration of a run."""
    try:
        return tomllib.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except FileNotFoundError:
        what = "there is no such folder" if not folder.exists() else f"it has no {CONFIG}"
        raise UsageError(f"{folder}: this is not a run of splime: {what}") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{folder / CONFIG}: cannot be read: {error}") from None


def write_json(path: Path, value: Any) -> None:
    """Write JSON for people and programs."""
    with written_beside(path) as beside:
        beside.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Read JSON; a DataError where it is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None


def checksum(graph: TemporalGraph) -> str:
    """A checksum of the facts, names and times of a graph, however it is stored."""
    found = hashlib.sha256()
    for names in (graph.entities, graph.predicates):
        found.update("\0".join(names).encode() + b"\n")
    timeline = graph.timeline
    found.update(
        timeline.granularity.encode() + timeline.starts.tobytes() + timeline.ends.tobytes()
    )
    for split, facts in graph.splits():
        found.update(f"{split} {len(facts)}".encode())
        for column in facts.columns():
            found.update(column.tobytes())
    return found.hexdigest()


def _differences(there: Mapping[str, Any], config: Config) -> str:
    """What two configurations differ in, the first three of it."""
    wanted = tomllib.loads(write_toml(config))
    found = []
    for title in [*there, *(t for t in wanted if t not in there)]:
        mine, yours = there.get(title, {}), wanted.get(title, {})
        for key in [*mine, *(k for k in yours if k not in mine)]:
            if mine.get(key) != yours.get(key):
                found.append(f"{key} is {mine.get(key)!r} there and {yours.get(key)!r} here")
    more = f", and {len(found) - 3} more" if len(found) > 3 else ""
    return "; ".join(found[:3]) + more
