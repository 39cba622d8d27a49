"""The folder of a run: which files it has, what it holds already, and the history of its epochs."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from splime.errors import DataError, SplimeError, UsageError
from splime.graph import TemporalGraph
from splime.io import save, save_segmentation
from splime.io.files import LOCK, written_beside
from splime.runs.config import CONFIG, Config, differences, fingerprint, read_config, write_config
from splime.segmentation import Segmentation

ABOUT = "about.json"
"""Versions, device, times: what does not decide the result."""
GRAPH = "graph.parquet"
SEGMENTATION = "segmentation.json"
CHECKPOINT = "checkpoint.safetensors"
"""The state of a training that is not finished."""
BEST = "best.safetensors"
"""The parameters that were best on valid so far."""
MODEL = "model.safetensors"
"""The parameters with the names of entities and predicates; there when the training is finished."""
HISTORY = "history.csv"
METRICS = "metrics.json"


State = Literal["new", "started", "finished"]


def look(folder: Path, config: Config) -> State:
    """How far the run of a configuration is in a folder, which must be locked.

    A folder with another run, or with other things, is an error. A run that saved nothing yet may
    begin again, also with another configuration: there is nothing to lose.
    """
    try:
        names = {path.name for path in folder.iterdir()} - {LOCK}
    except OSError as error:
        raise SplimeError(f"{folder}: cannot be read: {error}") from None
    if CONFIG not in names:
        strange = sorted(name for name in names if not name.endswith(".part"))
        if strange:
            raise UsageError(f"{folder}: holds {strange[0]!r} and no run; choose another folder")
        return "new"
    there = read_config(folder)
    if names & {MODEL, CHECKPOINT, METRICS} and fingerprint(there) != fingerprint(config):
        raise UsageError(
            f"{folder}: holds a run with another configuration ({differences(there, config)});"
            " choose another folder, or remove this one"
        )
    # What a process that was killed while it wrote, or at the very end, left behind; safetensors
    # writes to files of its own first.
    for path in (*folder.glob(".*.part"), *folder.glob(".tmp*")):
        path.unlink(missing_ok=True)
    if MODEL in names:
        (folder / CHECKPOINT).unlink(missing_ok=True)
    return "finished" if MODEL in names else "started" if CHECKPOINT in names else "new"


def begin(folder: Path, config: Config, graph: TemporalGraph, segmentation: Segmentation) -> None:
    """Write what a run begins with; the configuration first, since it claims the folder."""
    write_config(folder, config)
    save(graph, folder / GRAPH)
    save_segmentation(segmentation, folder / SEGMENTATION)


def is_finished(folder: str | Path) -> bool:
    """Whether a folder holds a run whose training is finished."""
    return all((Path(folder) / name).exists() for name in (CONFIG, MODEL))


@dataclass(frozen=True)
class Epoch:
    """One line of the history; `valid` is the MRR on valid, where it was measured."""

    epoch: int
    loss: float
    valid: float | None = None


def write_history(path: Path, history: Sequence[Epoch]) -> None:
    """Write the epochs as CSV, in which numbers keep all their digits."""
    lines = [f"{e.epoch},{e.loss!r},{'' if e.valid is None else repr(e.valid)}" for e in history]
    with written_beside(path) as beside:
        beside.write_text("\n".join(["epoch,loss,valid", *lines, ""]), encoding="utf-8")


def read_history(path: Path) -> list[Epoch]:
    """Read them back; a DataError if they are not what was written."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, strict=True))
        history = [
            Epoch(
                int(row["epoch"]),
                float(row["loss"]),
                None if row["valid"] == "" else float(row["valid"]),
            )
            for row in rows
        ]
    except (OSError, KeyError, ValueError, TypeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
    if [each.epoch for each in history] != list(range(1, len(history) + 1)) or not history:
        raise DataError(f"{path}: not the history of a training")
    return history
