"""`splime doubts`: the facts of a graph that look wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from splime.cli import options
from splime.cli.console import show, show_json
from splime.errors import counted
from splime.progress import progress_bar

_SHOWN = 20


@options.with_options()
def doubts(
    run: options.RunFolder,
    out: Annotated[
        Path | None, options.file("The file to write: .csv, .parquet or .jsonl.")
    ] = None,
    kind: Annotated[
        str | None,
        options.option(
            "A,B,…", "Only these kinds: object, subject, predicate, time, overlap, name."
        ),
    ] = None,
    predicate: Annotated[
        str | None, options.option("A,B,…", "Only facts of these predicates.")
    ] = None,
    entity: Annotated[str | None, options.option("A,B,…", "Only facts of these entities.")] = None,
    limit: Annotated[
        int | None,
        options.option("N", "At most so many. Default: 1000 in the file, else 20."),
    ] = None,
    why: Annotated[
        bool, Option("--why", help="Show what speaks for something else, or against the fact.")
    ] = False,
    device: options.Device = "auto",
    as_json: options.AsJson = False,
    *,
    facts: dict[str, Any],
) -> None:
    """List the facts that look wrong: those that the others speak against come first.

    Each fact is hidden and asked for: a wrong object, subject, predicate or time; an object too
    many at a time; one thing under two names. Where it was interrupted, the same command goes on.
    Example: splime doubts facts.csv --why --out doubts.csv
    """
    from splime.query.doubting import LIMIT, doubts as find_doubts
    from splime.query.predicted import check_suffix
    from splime.query.predicting import split_names
    from splime.reporting.doubts import doubt_parts

    if out is not None:
        check_suffix(out)
    opened = options.open_run(run, device, facts)
    graph = opened.graph
    with progress_bar() as progress:
        found = find_doubts(
            opened,
            out=out,
            kind=None if kind is None else [one.strip() for one in kind.split(",")],
            predicate=None if predicate is None else split_names(predicate, graph.predicates),
            entity=None if entity is None else split_names(entity, graph.entities),
            limit=limit if limit is not None else _SHOWN if out is None else LIMIT,
            evidence=why,
            progress=progress,
        )
    if as_json:
        show_json(found.to_json())
        return
    show(*doubt_parts(found, _SHOWN))
    if out is not None:
        show(f"{counted(len(found), 'doubt')} written to {out}")
