"""The configuration of a run: everything that decides its result, and nothing else."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from splime.errors import DataError, UsageError
from splime.graph import TemporalGraph
from splime.io.files import to_toml, whole_numbers, write_toml
from splime.segmentation import Segmentation

CONFIG = "config.toml"

Config: TypeAlias = dict[str, dict[str, Any]]

# What every configuration has.
_KEYS: Mapping[str, Mapping[str, type]] = {
    "run": {"engine": str},
    "data": {"name": str, "sha256": str, "train": int},
    "method": {"name": str},
    "cuts": {"predicates": int, "sha256": str},
    "settings": {"model": str},
}


def describe(
    graph: TemporalGraph, segmentation: Segmentation, settings: Mapping[str, Any], engine: str
) -> Config:
    """The configuration of a run: data, method, the cuts that came of it, settings."""
    method = segmentation.method
    parameters = {key: value for key, value in method.items() if key not in ("method", "name")}
    config: Config = {
        "run": {"engine": engine},
        "data": {
            "name": graph.name,
            "sha256": checksum(graph),
            **{split: len(facts) for split, facts in graph.splits()},
            "timestamps": len(graph.timeline),
        },
        "method": {"name": str(method.get("method", "given")), **parameters},
        "cuts": {
            "predicates": len(segmentation.predicates),
            "entities": None if segmentation.entities is None else len(segmentation.entities),
            "sha256": checksum_of_cuts(segmentation),
        },
        "settings": {**settings},
    }
    return tomllib.loads(to_toml(config))  # exactly what a reader will find


def fingerprint(config: Config) -> str:
    """A checksum of a configuration, which the files that belong to it carry."""
    return hashlib.sha256(json.dumps(whole_numbers(config), sort_keys=True).encode()).hexdigest()


def write_config(folder: Path, config: Config) -> None:
    """Write the configuration: from then on the folder is this run's."""
    write_toml(folder / CONFIG, config)


def read_config(folder: Path) -> Config:
    """The configuration of a run."""
    path = folder / CONFIG
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        why = f"it has no {CONFIG}" if folder.is_dir() else "there is no such folder"
        raise UsageError(f"{folder}: this is not a run of splime: {why}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
    for title, keys in _KEYS.items():
        table = config.get(title)
        for key, kind in keys.items():
            if not isinstance(table, dict) or not isinstance(table.get(key), kind):
                raise DataError(
                    f"{path}: not the configuration of a run: {title}.{key} is missing or wrong"
                )
    return config


def differences(there: Config, wanted: Config) -> str:
    """What two configurations differ in, the first three of it."""
    found = []
    for title in {**there, **wanted}:
        mine, yours = there.get(title, {}), wanted.get(title, {})
        keys = [key for key in {**mine, **yours} if mine.get(key) != yours.get(key)]
        for key in keys:
            if key != "sha256":
                found.append(f"{title}.{key} is {_shown(mine, key)}, not {_shown(yours, key)}")
            elif len(keys) == 1:
                found.append(f"the {title} are others")
    more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
    return "; ".join(found[:3]) + more


def _shown(table: Mapping[str, Any], key: str) -> str:
    return repr(table[key]) if key in table else "not set"


def checksum(graph: TemporalGraph) -> str:
    """A checksum of the facts, names and times of a graph, however it is stored."""
    found = hashlib.sha256()
    for names in (graph.entities, graph.predicates):
        _add_names(found, names)
    timeline = graph.timeline
    found.update(timeline.granularity.encode())
    _add_numbers(found, timeline.starts, timeline.ends)
    for split, facts in graph.splits():
        found.update(split.encode())
        _add_numbers(found, *facts.columns())
    return found.hexdigest()


def checksum_of_cuts(segmentation: Segmentation) -> str:
    """A checksum of cuts and pieces, however they were chosen."""
    found = hashlib.sha256()
    for scopes in (segmentation.predicates, segmentation.entities):
        if scopes is not None:
            _add_names(found, scopes.names)
            columns = (scopes.cuts, scopes.offsets, scopes.facts, scopes.first, scopes.last)
            _add_numbers(found, *columns)
    return found.hexdigest()


def _add_names(found: hashlib._Hash, names: Iterable[str]) -> None:
    found.update(json.dumps(list(names)).encode())


def _add_numbers(found: hashlib._Hash, *columns: np.ndarray[Any, Any]) -> None:
    for column in columns:
        found.update(f" {len(column)} ".encode())
        found.update(np.ascontiguousarray(column, "<i8").data)
