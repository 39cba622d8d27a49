"""What is kept for later questions to a file: its graph, and all that is made of it once.

A key is made from the bytes of the files and from all else that decides what is read. Only files of
this machine are kept: a graph in memory has no bytes to know it by, and what comes from elsewhere,
such as a database or standard input, may change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from splime import __version__
from splime.datasets.loading import announce, cache_folder, files_of_source
from splime.errors import SplimeError
from splime.graph import TemporalGraph
from splime.io import read, save
from splime.io.cache import Cache, Entry
from splime.io.files import checksum
from splime.io.inputs import is_stored
from splime.io.readers import BUILTIN, READERS
from splime.io.sources import name_of
from splime.paths.counting import FactCounts

T = TypeVar("T")
FORMAT = 2
"""Raised whenever the same file would be kept in another way."""


def kept_graphs() -> Cache:
    """The user's cache of graphs that were asked without training."""
    return Cache(cache_folder() / "graphs")


def entry_of(source: Any, reading: Mapping[str, Any]) -> Entry:
    """Where what is made of a source is kept; nowhere unless it is files of this machine."""
    key = _key(source, reading)
    return kept_graphs().entry(key) if key else Entry()


def _key(source: Any, reading: Mapping[str, Any]) -> str:
    """A checksum of all that decides what is read; empty where it cannot be known.

    Of a database its files do not say it: what was written last may lie in another one.
    """
    if not is_stored(source) or reading.get("query") is not None:
        return ""
    added = [reader for name, reader in READERS.items() if name not in BUILTIN]
    try:
        paths = files_of_source(str(source), reading)
        if not paths or not all(path.is_file() for path in paths):
            return ""
        if any(reader.suffix_of(path.name) for reader in added for path in paths):
            return ""  # what another package makes of a file may change with the package
        about = {
            "versions": (FORMAT, __version__),
            "name": (Path(source).name, name_of(str(source))),
            "files": [(path.name, checksum(path)) for path in paths],
            "options": sorted((name, repr(value)) for name, value in reading.items()),
        }
    except (OSError, SplimeError, TypeError):
        return ""  # reading it says what is wrong
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def keep_graph(
    entry: Entry, source: Any, reading: Mapping[str, Any], make: Callable[..., TemporalGraph]
) -> TemporalGraph:
    """The graph of a source, read again only if it is not kept."""

    def reopen(path: Path) -> TemporalGraph:
        graph = read(path)
        if not reading.get("allow_loss"):
            graph.reading.check()
        announce(graph)
        return graph

    def read_whole() -> TemporalGraph:
        graph = make(source, **reading)
        if _key(source, reading) != entry.key:  # it was changed meanwhile
            entry.forget()
        return graph

    if not entry.key:
        return make(source, **reading)
    # Parquet is read as quickly; a graph that splime saved gets no account of its rows again.
    if str(source).lower().endswith(".parquet"):
        graph = read_whole()
    else:
        graph = entry.get("graph.parquet", read_whole, read=reopen, write=save)
    entry.describe(Path(source).name, len(graph))
    return graph


def write_counts(counts: FactCounts, path: Path) -> None:
    """Write counts."""
    np.savez(path, **{one.name: getattr(counts, one.name) for one in fields(counts)})


def read_counts(path: Path) -> FactCounts:
    """Read them back."""
    with np.load(path) as file:
        return FactCounts(int(file["scopes"]), *(file[one.name] for one in fields(FactCounts)[1:]))


def write_value(value: Any, path: Path) -> None:
    """Write what a dataclass, or msgspec's, holds."""
    path.write_bytes(msgspec.json.encode(value))


def read_value(kind: type[T], path: Path) -> T:
    """Read it back."""
    return msgspec.json.decode(path.read_bytes(), type=kind)
