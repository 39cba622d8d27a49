"""`splime compare`: one table of several runs, and which differences are larger than chance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from splime.cli.console import console
from splime.cli.train import Device, torch_needed
from splime.progress import progress_bar


def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="The folders of runs.")],
    protocol: Annotated[
        str,
        typer.Option(
            help="fact, predicate, or triple (the paper's; every transform then has its own test"
            " set, and only runs with the same cuts are compared)."
        ),
    ] = "fact",
    split: Annotated[str, typer.Option(help="valid or test.")] = "test",
    filter: Annotated[
        str | None,
        typer.Option(
            help="fact, predicate: exact (the default), overlap or static. triple: the leak filter."
            " Default: inter, as in the paper."
        ),
    ] = None,
    samples: Annotated[int, typer.Option(help="The number of bootstrap samples.")] = 10_000,
    format: Annotated[
        str | None,
        typer.Option(
            help="table, markdown, latex or json. Default: by the name of the file, else table."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write to a file (.md, .tex, .json), do not print."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also draw MRR and intervals (.png, .svg or .pdf)."),
    ] = None,
    device: Device = "auto",
) -> None:
    """Compare runs: metrics with confidence intervals, best first, and what could be chance.

    Evaluations that the folders do not have yet are made, and kept there. Example: splime compare
    runs/* --out table.tex --plot runs.png
    """
    torch_needed()
    from splime.analysis import compare as compare_runs
    from splime.report.comparison import (
        FORMATS,
        comparison_table,
        format_of,
        plot_comparison,
        write_comparison,
    )
    from splime.report.style import check_picture, save_picture

    chosen = format_of(format, out)
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
            warn=lambda text: typer.secho(text, fg=typer.colors.YELLOW, err=True),
        )
    if plot is not None:
        save_picture(plot_comparison(comparison), plot)
    if out is not None:
        write_comparison(comparison, out, chosen)
        console().print(f"written to {out}", soft_wrap=True)
    elif chosen == "table":
        for part in comparison_table(comparison):
            console().print(part)
    else:
        typer.echo(FORMATS[chosen](comparison), nl=False)
    if plot is not None and chosen == "table":
        console().print(f"MRR and intervals: {plot}", soft_wrap=True)
