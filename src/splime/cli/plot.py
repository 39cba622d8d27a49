"""`splime plot`: pictures of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from splime.cli.console import console
from splime.cli.train import torch_needed

WHAT = "predicates, predicate, segmentation, facts, learning, strata, costs"


def plot(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="The folders of runs.")],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE_OR_DIR",
            help="The picture (.png, .svg or .pdf); with --what all, a folder for all of them.",
        ),
    ],
    what: Annotated[
        str,
        typer.Option(
            help=f"{WHAT}; or all that the runs allow. predicate, learning and strata compare"
            " several runs."
        ),
    ] = "all",
    predicate: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="predicate: the one to draw. Default: the one that all runs cut most.",
        ),
    ] = None,
) -> None:
    """Draw runs: their embeddings (t-SNE), segments, facts, learning curves, figures, costs.

    Example: splime plot runs/merge runs/random --what predicate --out evolution.png
    """
    torch_needed()
    from splime.progress import progress_bar, working
    from splime.report.pictures import (
        check_pictures,
        draw_picture,
        draw_pictures,
        picture_table,
        save_pictures,
    )
    from splime.report.style import save_picture
    from splime.runs import Run

    check_pictures(what, out)  # before the work, not after it
    opened = [Run(run, device="cpu") for run in runs]
    if what != "all":
        with working(f"drawing {what} …"):
            save_picture(draw_picture(what, opened, predicate), out)
        console().print(f"written to {out}", soft_wrap=True)
        return
    with progress_bar() as update:
        drawn = draw_pictures(
            opened, predicate, advance=lambda done, of, name: update("drawing", done, of, name)
        )
    save_pictures(drawn, out)
    console().print(picture_table(drawn))
    console().print(f"written to {out}", soft_wrap=True)
