"""The folder of a run: its files, its configuration, what it holds already, and its history."""

from __future__ import annotations

import csv
import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from splime.errors import DataError, UsageError
from splime.graph import SPLITS, TemporalGraph
from splime.io import save, save_segmentation
from splime.io.files import (
    atomic_write,
    content,
    read_plain,
    read_toml,
    to_toml,
    whole_numbers,
    write_toml,
)
from splime.segmentation import Segmentation
from splime.settings import BaseSettings, Settings
from splime.shown import Tabular

CONFIG = "config.toml"
ABOUT = "about.json"
"""Versions, device, times: what does not decide the result."""
GRAPH = "graph.parquet"
SEGMENTATION = "segmentation.json"
CHECKPOINT = "checkpoint.safetensors"
"""The state of a training that is not finished."""
BEST = "best.safetensors"
"""The parameters that were best on valid so far."""
MODEL = "model.safetensors"
"""The parameters; there when the training is finished."""
HISTORY = "history.csv"
METRICS = "metrics.json"
MEMBERS = "members"
"""The folder with the runs that a combination adds up, and what the configuration says of them."""

Config: TypeAlias = dict[str, dict[str, Any]]

# What every configuration has.
_KEYS: Mapping[str, Mapping[str, type]] = {
    "run": {"engine": str},
    "data": {"name": str, "sha256": str, "train": int},
    "method": {"name": str},
    "cuts": {"predicates": int, "sha256": str},
    "settings": {"model": str},
}
_OF_CUTS = ("method", "cuts")
"""Tables that models without cuts do not have; earlier versions wrote those of `Vanilla`."""


def describe(
    graph: TemporalGraph,
    segmentation: Segmentation | None,
    settings: Mapping[str, Any],
    engine: str,
) -> Config:
    """The configuration of a run: data, method and the cuts that came of it, settings."""
    config: Config = {
        "run": {"engine": engine},
        "data": data_of(graph, checksum(graph)),
        **({} if segmentation is None else _described(segmentation)),
        "settings": {**settings},
    }
    return tomllib.loads(to_toml(config))  # exactly what a reader will find


def data_of(graph: TemporalGraph, sha256: str) -> dict[str, Any]:
    """What a configuration says of the facts, whose checksum is given."""
    return {
        "name": graph.name,
        "sha256": sha256,
        **{split: len(facts) for split, facts in graph.splits()},
        "timestamps": len(graph.timeline),
    }


def _described(segmentation: Segmentation) -> Config:
    method = segmentation.method
    parameters = {key: value for key, value in method.items() if key not in ("method", "name")}
    return {
        "method": {"name": str(method.get("method", "given")), **parameters},
        "cuts": {
            "predicates": len(segmentation.predicates),
            "entities": None if segmentation.entities is None else len(segmentation.entities),
            "sha256": checksum_of_cuts(segmentation),
        },
    }


def fingerprint(config: Config) -> str:
    """A checksum of a configuration, which the files that belong to it carry."""
    return hashlib.sha256(json.dumps(whole_numbers(config), sort_keys=True).encode()).hexdigest()


def read_config(folder: Path) -> Config:
    """The configuration of a run."""
    path = folder / CONFIG
    if not path.exists():
        why = f"it has no {CONFIG}" if folder.is_dir() else "there is no such folder"
        raise UsageError(f"{folder}: this is not a run of splime: {why}")
    config = read_toml(path)
    for title, keys in _KEYS.items():
        if title in _OF_CUTS and config.keys().isdisjoint(_OF_CUTS):
            continue
        table = config.get(title)
        for key, kind in keys.items():
            if not isinstance(table, dict) or not isinstance(table.get(key), kind):
                raise DataError(
                    f"{path}: not the configuration of a run: {title}.{key} is missing or wrong"
                )
    for split in SPLITS:
        if not isinstance(config["data"].get(split, 0), int):
            raise DataError(f"{path}: not the configuration of a run: data.{split} is wrong")
    return config


def differences(there: Config, wanted: Config) -> str:
    """What two configurations differ in, the first three of it."""
    listed = []
    for title in {**there, **wanted}:
        mine, yours = there.get(title, {}), wanted.get(title, {})
        keys = [key for key in {**mine, **yours} if mine.get(key) != yours.get(key)]
        for key in keys:
            if key != "sha256":
                listed.append(f"{title}.{key} is {_shown(mine, key)}, not {_shown(yours, key)}")
            elif len(keys) == 1:
                listed.append(f"the {title} are others")
    more = f"; and {len(listed) - 3} more" if len(listed) > 3 else ""
    return "; ".join(listed[:3]) + more


def _shown(table: Mapping[str, Any], key: str) -> str:
    return repr(table[key]) if key in table else "not set"


def checksum(graph: TemporalGraph) -> str:
    """A checksum of the facts, names and times of a graph, however it is stored."""
    digest = hashlib.sha256()
    for names in (graph.entities, graph.predicates):
        _add_names(digest, names)
    timeline = graph.timeline
    digest.update(timeline.granularity.encode())
    _add_numbers(digest, timeline.starts, timeline.ends)
    for split, facts in graph.splits():
        digest.update(split.encode())
        _add_numbers(digest, *facts.columns())
    return digest.hexdigest()


def checksum_of_cuts(segmentation: Segmentation) -> str:
    """A checksum of cuts and scopes, however they were chosen."""
    digest = hashlib.sha256()
    for scopes in (segmentation.predicates, segmentation.entities):
        if scopes is not None:
            _add_names(digest, scopes.names)
            columns = (scopes.cuts, scopes.offsets, scopes.facts, scopes.first, scopes.last)
            _add_numbers(digest, *columns)
    return digest.hexdigest()


def _add_names(digest: hashlib._Hash, names: Iterable[str]) -> None:
    digest.update(json.dumps(list(names)).encode())


def _add_numbers(digest: hashlib._Hash, *columns: np.ndarray[Any, Any]) -> None:
    for column in columns:
        digest.update(f" {len(column)} ".encode())
        digest.update(np.ascontiguousarray(column, "<i8").data)


State = Literal["new", "started", "finished"]


def run_state(folder: Path, config: Config) -> State:
    """How far the run of a configuration is in a folder, which must be locked.

    A folder with another run, or with other things, is an error. A run that saved nothing yet may
    begin again, also with another configuration: there is nothing to lose.
    """
    names = {path.name for path in content(folder)}
    if CONFIG not in names:
        strange = sorted(name for name in names if not name.endswith(".part"))
        if strange:
            raise UsageError(f"{folder}: holds {strange[0]!r} and no run; choose another folder")
        return "new"
    there = read_config(folder)
    if MODEL in names and "cuts" not in config:
        there = {title: table for title, table in there.items() if title not in _OF_CUTS}
    kind = Settings if config["run"]["engine"] == "splime" else BaseSettings
    settings = {kind.new_name(name, value): value for name, value in there["settings"].items()}
    there = {**there, "settings": settings}
    if names & {MODEL, CHECKPOINT, METRICS} and fingerprint(there) != fingerprint(config):
        raise UsageError(
            f"{folder}: holds a run with another configuration ({differences(there, config)});"
            " choose another folder, or remove this one"
        )
    # What a process that was killed while it wrote, or at the very end, left behind; safetensors
    # writes to separate files first.
    for path in (*folder.glob(".*.part"), *folder.glob(".tmp*")):
        path.unlink(missing_ok=True)
    if MODEL in names:
        sweep(folder)
    return "finished" if MODEL in names else "started" if CHECKPOINT in names else "new"


def begin(
    folder: Path, config: Config, graph: TemporalGraph, segmentation: Segmentation | None
) -> None:
    """Write what a run begins with; the configuration first: then the folder is this run's."""
    write_toml(folder / CONFIG, config)
    save(graph, folder / GRAPH)
    if segmentation is not None:
        save_segmentation(segmentation, folder / SEGMENTATION)


def sweep(folder: Path) -> None:
    """Remove what only resuming would need, once the run is finished."""
    for name in (CHECKPOINT, BEST):
        (folder / name).unlink(missing_ok=True)


def is_finished(folder: str | Path) -> bool:
    """Whether a folder holds a run whose training is finished."""
    return all((Path(folder) / name).exists() for name in (CONFIG, MODEL))


@dataclass(frozen=True)
class Epoch:
    """One line of the history; `valid` is the MRR on valid, where it was measured."""

    epoch: int
    loss: float
    valid: float | None = None


class History(list[Epoch], Tabular):
    """The epochs of a training; a list that can be had as a table."""

    def to_table(self) -> pa.Table:
        """As an Arrow table: a row for each epoch; `valid` is null where it was not measured."""
        types = {"epoch": pa.int64(), "loss": pa.float64(), "valid": pa.float64()}
        return pa.Table.from_pylist([*map(vars, self)], schema=pa.schema([*types.items()]))


def write_history(path: Path, history: Sequence[Epoch]) -> None:
    """Write the epochs as CSV, in which numbers keep all their digits."""
    lines = [f"{e.epoch},{e.loss!r},{'' if e.valid is None else repr(e.valid)}" for e in history]
    with atomic_write(path) as beside:
        beside.write_text("\n".join(["epoch,loss,valid", *lines, ""]), encoding="utf-8")


def read_history(path: Path) -> History:
    """Read them back; a DataError if they are not what was written."""
    try:
        lines = read_plain(path).splitlines(keepends=True)
        rows = [*csv.DictReader(lines, restval="missing", strict=True)]
        rows = [{**row, "valid": row["valid"] or None} for row in rows]
        history = History(msgspec.convert(rows, list[Epoch], strict=False))
    except (OSError, KeyError, ValueError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
    if [epoch.epoch for epoch in history] != list(range(1, len(history) + 1)) or not history:
        raise DataError(f"{path}: not the history of a training")
    return history
