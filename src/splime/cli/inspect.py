"""`splime inspect`: what is in the data, and can it be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from splime.cli.console import show, show_json
from splime.cli.options import AsJson, Data, load_graph, with_options


@with_options
def inspect(
    data: Data,
    as_json: AsJson = False,
    plot: Annotated[
        Path | None,
        Option(metavar="FILE", help="Also draw the facts over time (.png, .svg or .pdf)."),
    ] = None,
    *,
    reading: dict[str, Any],
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
    graph = load_graph(data, reading)
    with working("looking for leaks …"):
        statistics, leaks = describe(graph), leakage.report(graph)
    if plot is not None:
        save_picture(plot_facts_over_time(graph), plot)
    if as_json:
        show_json(tables.inspection_json(graph, statistics, leaks))
        return
    show(tables.statistics_table(statistics), *tables.reading_table(graph.reading))
    show(tables.predicate_table(graph), *tables.leak_table(leaks))
    if plot is not None:
        show(f"facts over time: {plot}")
