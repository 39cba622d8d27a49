"""`splime compare`: one table of several runs, and which differences are larger than chance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from splime.cli.console import show, warn
from splime.cli.options import Device, RunFolders, Split
from splime.progress import progress_bar


def compare(
    runs: RunFolders,
    protocol: Annotated[
        str,
        Option(
            help="fact, predicate, or triple (the paper's; every transform then has its own test"
            " set, and only runs with the same cuts are compared)."
        ),
    ] = "fact",
    split: Split = "test",
    filter: Annotated[
        str | None,
        Option(
            help="fact, predicate: exact (the default), overlap or static. triple: the leak filter."
            " Default: inter, as in the paper."
        ),
    ] = None,
    samples: Annotated[int, Option(help="The number of bootstrap samples.")] = 10_000,
    format: Annotated[
        str | None,
        Option(
            help="table, markdown, latex or json. Default: by the name of the file, else table."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        Option(metavar="FILE", help="Write to a file (.md, .tex, .json), do not print."),
    ] = None,
    plot: Annotated[
        Path | None,
        Option(metavar="FILE", help="Also draw MRR and intervals (.png, .svg or .pdf)."),
    ] = None,
    device: Device = "auto",
) -> None:
    """Compare runs: metrics with confidence intervals, best first, and what could be chance.

    Evaluations that the folders do not have yet are made, and kept there. Example: splime compare
    runs/* --out table.tex --plot runs.png
    """
    from splime.analysis import compare as compare_runs
    from splime.report import comparison as report
    from splime.report.style import check_picture, save_picture

    chosen = report.format_of(format, out)
    if plot is not None:
        check_picture(plot)  # before the work, not after it
    with progress_bar() as progress:
        comparison = compare_runs(
            runs,
            protocol,
            split=split,  # type: ignore[arg-type]
            filter=filter,
            samples=samples,
            device=device,
            progress=progress,
            warn=warn,
        )
    if plot is not None:
        save_picture(report.plot_comparison(comparison), plot)
    if out is not None:
        report.write_comparison(comparison, out, chosen)
        show(f"written to {out}")
    elif chosen == "table":
        show(*report.comparison_table(comparison))
    else:
        typer.echo(report.FORMATS[chosen](comparison), nl=False)
    if plot is not None and chosen == "table":
        show(f"MRR and intervals: {plot}")
