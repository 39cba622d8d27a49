"""Graphs as text files."""

from __future__ import annotations

from pathlib import Path
from typing import Literal
from warnings import warn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splime.errors import SplimeError, UsageError
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, TemporalGraph
from splime.io.files import atomic_write, check_one_line
from splime.io.folders import split_files
from splime.io.formulas import with_apostrophes
from splime.times import format_ticks

_ROWS = 1 << 18  # written at a time, so that the text of a large graph is never in memory
_BOM = "\ufeff"


def to_table(graph: TemporalGraph) -> pa.Table:
    """The same as `graph.to_table()`, which takes its place."""
    warn("use graph.to_table() instead of to_table(graph)", DeprecationWarning, stacklevel=3)
    return graph.to_table()


def write_text(
    graph: TemporalGraph, folder: str | Path, *, format: Literal["tsv", "csv"] = "tsv"
) -> list[Path]:
    """Write train, valid and test as text files without header into a folder.

    In `csv`, a name that a spreadsheet would run as a formula begins with an apostrophe, without
    which it is read. A tab or a line break in a name is an error in tab-separated files; `csv` can
    hold it. Other files of splits in the folder, which would be read together with these, are an
    error too.
    """
    if format not in ("tsv", "csv"):
        raise UsageError(f"text files are tsv or csv, not {format!r}")
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SplimeError(f"{folder}: cannot be made: {error}") from None
    if format == "tsv":
        for names in (graph.entities, graph.predicates):
            check_one_line(names.labels, "a .tsv file", "write csv or Parquet", kind=names.kind)
        for _, facts in graph.splits():
            if len(facts) and graph.entities[facts.subject[0]].startswith(_BOM):
                raise UsageError(
                    f"the entity {graph.entities[facts.subject[0]]!r} begins with a byte order"
                    " mark, which a .tsv file cannot at its start; write csv or Parquet"
                )
    paths = {split: folder / f"{split}.{format}" for split, facts in graph.splits() if len(facts)}
    there = [
        path
        for split, files in split_files(folder).items()
        for rank, path in files
        if rank == 0 or split not in paths  # others give way to train.tsv
    ]
    if others := [path.name for path in there if path not in paths.values()]:
        raise UsageError(
            f"{folder}: {', '.join(others)} would be read together with the files to be written;"
            " remove what is there, or write to another folder"
        )
    for split, path in paths.items():
        of_split = graph.where(split=split)
        with atomic_write(path) as temporary, temporary.open("wb") as file:
            for start in range(0, len(of_split), _ROWS):
                file.write(_text(of_split, slice(start, start + _ROWS), path.suffix))
    return [*paths.values()]


def _text(graph: TemporalGraph, rows: slice, suffix: str) -> bytes:
    """Some facts as lines of text."""
    from pyarrow import csv as arrow_csv

    facts = graph.facts().take(np.arange(len(graph))[rows])
    entities, predicates = graph.entities.labels, graph.predicates.labels
    columns = [
        labels.take(pa.array(ids))
        for labels, ids in zip((entities, predicates, entities), facts.columns()[:3], strict=True)
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
    names = map(with_apostrophes, columns[:3])
    table = pa.table([*names, *columns[3:]], names=list("spobe"))
    arrow_csv.write_csv(table, sink, arrow_csv.WriteOptions(include_header=False))
    return bytes(sink.getvalue())
