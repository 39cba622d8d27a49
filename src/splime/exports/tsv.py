"""The folder that the paper's code writes, as for RotatE and many after it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from splime.exports.lines import ids, joined, split_files, write_cells, write_triples
from splime.static import StaticGraph
from splime.times import format_ticks

FILES = (*split_files(".txt"), "entities.dict", "relations.dict", "time_map")


def write(static: StaticGraph, folder: Path) -> None:
    """Tab-separated names; dictionaries of `id<TAB>name`; the dates of every timestamp."""
    entities, predicates = static.entities.labels, static.predicates.labels
    write_triples(
        static,
        folder,
        ".txt",
        joined(entities, "\t"),
        joined(predicates, "\t"),
        joined(entities, "\n"),
    )
    write_cells(folder / "entities.dict", joined(ids(entities), "\t", entities, "\n"))
    write_cells(folder / "relations.dict", joined(ids(predicates), "\t", predicates, "\n"))
    timeline = static.segmentation.timeline
    first, last = (
        pa.array(format_ticks(ticks, timeline.granularity), pa.large_string())
        for ticks in (timeline.starts, timeline.ends)
    )
    write_cells(folder / "time_map", joined(ids(first), "\t", first, "\t", last, "\n"))
