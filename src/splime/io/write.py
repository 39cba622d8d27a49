"""Graphs as text files: one file for each split, names and dates, an empty cell for an unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from splime.errors import SplimeError, UsageError
from splime.graph import TemporalGraph
from splime.io.files import written_beside
from splime.io.tables import to_table
from splime.times import format_ticks


def write_text(
    graph: TemporalGraph, folder: str | Path, *, format: Literal["tsv", "csv"] = "tsv"
) -> list[Path]:
    """Write train, valid and test as text files without header into a folder.

    Tab-separated files have no way to hold a tab or a line break in a name: then it is an error
    that tells so, and `csv` can.
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
    return [
        _write(graph, split, folder / f"{split}.{format}")
        for split, facts in graph.splits()
        if len(facts)
    ]


def _check_names(graph: TemporalGraph) -> None:
    import pyarrow.compute as pc

    for names in (graph.entities, graph.predicates):
        bad = names.labels.filter(pc.match_substring_regex(names.labels, "[\t\r\n]"))
        if len(bad):
            raise UsageError(
                f"the {names.kind} {bad[0].as_py()!r} holds a tab or a line break, which a .tsv"
                " file cannot; write csv or Parquet"
            )


def _write(graph: TemporalGraph, split: str, path: Path) -> Path:
    import pyarrow as pa
    from pyarrow import csv

    part = graph.where(split=split)  # type: ignore[arg-type]
    facts = part.facts()
    table = to_table(part)
    columns = [table[name].cast(pa.string()) for name in ("subject", "predicate", "object")]
    for ticks, bit in ((facts.begin, 1), (facts.end, 2)):
        unknown = (facts.unknown & bit) != 0
        text = format_ticks(ticks, graph.timeline.granularity)
        columns.append(
            pa.array(["" if u else t for u, t in zip(unknown.tolist(), text, strict=True)])
        )
    tabs = path.suffix == ".tsv"
    options = csv.WriteOptions(
        include_header=False,
        delimiter="\t" if tabs else ",",
        quoting_style="none" if tabs else "all_valid",
    )
    with written_beside(path) as beside:
        csv.write_csv(pa.table(columns, names=list("spobe")), beside, options)
    return path
