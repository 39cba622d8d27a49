"""`splime predict`: the most probable facts that a graph does not state."""

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
def predict(
    run: options.RunFolder,
    out: Annotated[
        Path | None, options.file("The file to write: .csv, .parquet or .jsonl.")
    ] = None,
    predicate: Annotated[
        str | None, options.option("A,B,…", "Only facts of these predicates.")
    ] = None,
    entity: Annotated[str | None, options.option("A,B,…", "Only facts of these subjects.")] = None,
    at: Annotated[
        str | None,
        options.option("TIME", "The time: 1985, 2014-05-03. Default: the last one of the graph."),
    ] = None,
    next: Annotated[
        str | None,
        options.option(
            "TIME", "Forecast what begins in so much time after the graph's: 7, week, 2 months."
        ),
    ] = None,
    new: Annotated[
        bool, Option("--new", help="Only facts that the graph states at no other time.")
    ] = False,
    least: Annotated[
        float, options.option("P", "Only facts at least as probable: 0.8. Default: 0.")
    ] = 0.0,
    limit: Annotated[
        int | None,
        options.option("N", "At most so many facts. Default: 1000 in the file, else 20."),
    ] = None,
    device: options.Device = "auto",
    as_json: options.AsJson = False,
    *,
    facts: dict[str, Any],
) -> None:
    """Predict the most probable facts that a graph does not state.

    The probability of a fact is that of its object, if the subject has such a fact (or one more)
    then, times how often a graph like this one states one. Where it was interrupted, the same
    command goes on. Examples: splime predict demo --predicate livesIn --at 1990 --out missing.csv,
    splime predict demo --next 2
    """
    from splime.query.predicted import check_suffix
    from splime.query.predicting import LIMIT, predict as predict_facts, split_names
    from splime.reporting.predictions import prediction_parts

    if out is not None:
        check_suffix(out)
    opened = options.open_run(run, device, facts)
    graph = opened.graph
    shorter = "--predicate A, --entity A, --limit N, --least P"
    with progress_bar(shorter=shorter) as progress:
        found = predict_facts(
            opened,
            out=out,
            predicate=None if predicate is None else split_names(predicate, graph.predicates),
            entity=None if entity is None else split_names(entity, graph.entities),
            at=at,
            next=next,
            new=new,
            least=least,
            limit=limit if limit is not None else _SHOWN if out is None else LIMIT,
            progress=progress,
        )
    if as_json:
        show_json(found.to_json())
        return
    show(*prediction_parts(found, _SHOWN))
    if out is not None:
        show(f"{counted(len(found), 'fact')} written to {out}")
