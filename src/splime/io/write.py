"""Graphs as text files: one file for each split, names and dates, an empty cell for an unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from splime.errors import SplimeError, UsageError
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, SplitName, TemporalGraph
from splime.io.files import check_one_line, split_files, written_beside
from splime.times import format_ticks

_ROWS = 1 << 18  # at a time, so that the text of a large graph is never in memory as a whole


def write_text(
    graph: TemporalGraph, folder: str | Path, *, format: Literal["tsv", "csv"] = "tsv"
) -> list[Path]:
    """Write train, valid and test as text files without header into a folder.

    A tab or a line break in a name is an error in tab-separated files; `csv` can hold it. Other
    files of splits in the folder, which would be read together with these, are an error too.
    """
    if format not in ("tsv", "csv"):
        raise UsageError(f"text files are tsv or csv, not {format!r}")
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SplimeError(f"{folder}: cannot be made: {error}") from None
    if format == "tsv":
        _check_names(graph)
    paths = {split: folder / f"{split}.{format}" for split, facts in graph.splits() if len(facts)}
    there = [path for files in split_files(folder).values() for path in files]
    if others := [path.name for path in there if path not in paths.values()]:
        raise UsageError(
            f"{folder}: {', '.join(others)} would be read together with the files to be written;"
            " remove what is there, or write to another folder"
        )
    return [_write(graph, split, path) for split, path in paths.items()]


def _check_names(graph: TemporalGraph) -> None:
    for names in (graph.entities, graph.predicates):
        check_one_line(names.labels, "a .tsv file", "write csv or Parquet", kind=names.kind)
    for _, facts in graph.splits():
        if len(facts) and graph.entities[facts.subject[0]].startswith("\ufeff"):
            raise UsageError(
                f"the entity {graph.entities[facts.subject[0]]!r} begins with a byte order mark,"
                " which a .tsv file cannot at its start; write csv or Parquet"
            )


def _write(graph: TemporalGraph, split: SplitName, path: Path) -> Path:
    part = graph.where(split=split)
    with written_beside(path) as beside, beside.open("wb") as file:
        for start in range(0, len(part), _ROWS):
            file.write(_text(part, slice(start, start + _ROWS), path.suffix))
    return path


def _text(graph: TemporalGraph, rows: slice, suffix: str) -> bytes:
    """Some facts as lines of text."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    facts = graph.facts().take(np.arange(len(graph))[rows])
    columns = [
        names.labels.take(pa.array(ids))
        for ids, names in (
            (facts.subject, graph.entities),
            (facts.predicate, graph.predicates),
            (facts.object, graph.entities),
        )
    ]
    for ticks, bit in ((facts.begin, BEGIN_UNKNOWN), (facts.end, END_UNKNOWN)):
        dates = pa.array(format_ticks(ticks, graph.timeline.granularity), pa.large_string())
        columns.append(pc.if_else(pa.array((facts.unknown & bit) != 0), "", dates))
    if suffix == ".tsv":
        # Arrow's own writer refuses quotes in a file without quoting.
        tab = pa.scalar("\t", pa.large_string())
        lines = pc.binary_join_element_wise(*columns, tab).to_pylist()
        return "".join(f"{line}\n" for line in lines).encode()
    sink = pa.BufferOutputStream()
    csv.write_csv(
        pa.table(columns, names=list("spobe")), sink, csv.WriteOptions(include_header=False)
    )
    return bytes(sink.getvalue())
