"""`splime inspect`: what is in the data, and can it be trusted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from splime.cli import source
from splime.cli.console import console
from splime.cli.parameters import with_options


@with_options(source.READING)
def inspect(
    data: source.Data,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also draw the facts over time (.png, .svg or .pdf)."),
    ] = None,
    **given: Any,
) -> None:
    """Show what is in a temporal knowledge graph, what was dropped, and what leaks into the test.

    Example: splime inspect icews14 --plot facts.png
    """
    from splime import leakage
    from splime.progress import working
    from splime.report import tables
    from splime.report.plots import plot_facts_over_time
    from splime.report.style import check_picture, save_picture
    from splime.statistics import describe

    if plot is not None:
        check_picture(plot)  # before the work, not after it
    graph = source.load_graph(data, source.reading_options(given))
    with working("looking for leaks …"):
        statistics, leaks = describe(graph), leakage.report(graph)
    if plot is not None:
        save_picture(plot_facts_over_time(graph), plot)
    out = console()
    if as_json:
        inspected = tables.inspection_json(graph, statistics, leaks)
        typer.echo(json.dumps(inspected, indent=2, ensure_ascii=False))
        return
    out.print(tables.statistics_table(statistics))
    for part in tables.reading_table(graph.reading):
        out.print(part)
    out.print(tables.predicate_table(graph))
    for part in tables.leak_table(leaks):
        out.print(part)
    if plot is not None:
        out.print(f"facts over time: {plot}")
