"""The folder of a run: which files it has, whether it is in use, what it holds already."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from splime.errors import SplimeError, UsageError
from splime.graph import TemporalGraph
from splime.io import save, save_segmentation
from splime.io.files import LOCK
from splime.runs.config import CONFIG, Config, differences, fingerprint, read_config, write_config
from splime.segmentation import Segmentation

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
