"""What a run keeps when facts are added to it for good: its graph as it is now, and what was added.

The files that the training wrote stay. The new graph has a file of its own name, and `updates.json`
names it: until that is replaced, which happens at once, the run is what it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from splime.errors import DataError, counted
from splime.graph import TemporalGraph
from splime.io import save
from splime.io.files import read_json, validated, write_json
from splime.runs.folder import checksum, data_of

UPDATES = "updates.json"
_GRAPHS = "updated-*.parquet"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What one update changed."""

    source: str
    date: str
    added: int
    """Facts that the run did not have."""
    corrected: int
    """Facts of the run whose place others took that state the same at overlapping times."""
    same: int
    """Facts that the run had already."""
    left_out: int = 0
    """Facts of predicates that the model cannot know."""
    entities: Sequence[str] = ()
    """The new ones, the first few; `new_entities` is their number."""
    predicates: Sequence[str] = ()
    new_entities: int = 0
    new_predicates: int = 0
    new_timestamps: int = 0
    time: tuple[str, str] = ("", "")
    """The first and the last time of the graph."""
    time_before: tuple[str, str] = ("", "")

    @property
    def is_new(self) -> bool:
        """Whether anything changed."""
        return bool(self.added or self.corrected)

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        made: dict[str, Any] = msgspec.to_builtins(self)
        return made

    def __str__(self) -> str:
        corrected = f", {self.corrected:,} corrected" if self.corrected else ""
        return f"{counted(self.added, 'fact')} added{corrected}"


class Updates(msgspec.Struct, frozen=True):
    """The content of updates.json."""

    graph: str
    """The file of the graph, in the folder of the run."""
    data: dict[str, Any]
    """What `config.toml` says of the graph that was trained on, of this one."""
    changes: list[Change]

    def __str__(self) -> str:
        last = self.changes[-1]
        times = "once" if len(self.changes) == 1 else f"{len(self.changes):,} times"
        return f"{times}, last from {last.source} on {last.date[:10]} ({last})"


def read_updates(folder: Path) -> Updates | None:
    """What was added to the run in a folder; None if nothing was."""
    path = folder / UPDATES
    if not path.exists():
        return None
    updates = validated(path, read_json(path), Updates)
    if Path(updates.graph).name != updates.graph or not Path(updates.graph).match(_GRAPHS):
        raise DataError(f"{path}: {updates.graph!r:.60} is no graph of this run")
    return updates


def write_update(folder: Path, graph: TemporalGraph, changes: list[Change]) -> None:
    """Make a graph that of the run in a folder, which must be locked."""
    sha256 = checksum(graph)
    updates = Updates(_GRAPHS.replace("*", sha256[:16]), data_of(graph, sha256), changes)
    save(graph, folder / updates.graph)
    write_json(folder / UPDATES, msgspec.to_builtins(updates))
    sweep(folder, updates)


def sweep(folder: Path, updates: Updates | None) -> None:
    """Remove graphs of other updates, and what a process that was killed left of them."""
    for left in (*folder.glob(_GRAPHS), *folder.glob(f".{_GRAPHS}*.part")):
        if updates is None or left.name != updates.graph:
            left.unlink(missing_ok=True)
