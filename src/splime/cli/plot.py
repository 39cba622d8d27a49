"""`splime plot` and `splime report`: pictures of runs, and the page about them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from splime.cli.console import show
from splime.cli.options import Device, RunFolders
from splime.errors import UsageError, check_name
from splime.progress import progress_bar, working


def plot(
    runs: RunFolders,
    out: Annotated[
        Path,
        Option(
            metavar="FILE_OR_DIR",
            help="The picture (.png, .svg or .pdf); with --what all, a folder for all of them.",
        ),
    ],
    what: Annotated[
        str,
        Option(
            help="predicates, predicate, segmentation, facts, learning, strata, costs; or all that"
            " the runs allow. predicate, learning and strata compare several runs."
        ),
    ] = "all",
    predicate: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="predicate: the one to draw. Default: the one that all runs cut most.",
        ),
    ] = None,
) -> None:
    """Draw runs: their embeddings (t-SNE), scopes, facts, learning curves, metrics, costs.

    Example: splime plot runs/merge runs/random --what predicate --out evolution.png
    """
    from splime.plans.showing import PICTURES, draw_picture, draw_pictures, picture_table
    from splime.report.style import FORMATS, check_picture, make_figure, save_picture, save_pictures
    from splime.runs import Run

    # What is wrong is said before the work, not after it.
    check_name("picture", what, [*PICTURES, "all"])
    if what != "all":
        check_picture(out)
        with working(f"drawing {what} …"):
            opened = [Run(run, device="cpu") for run in runs]
            save_picture(draw_picture(what, opened, predicate), out)
    else:
        if out.suffix.lower() in FORMATS or (out.exists() and not out.is_dir()):
            raise UsageError(f"{out}: all pictures go to a folder; for a file choose one of them")
        make_figure(1, 1)  # an error without matplotlib
        opened = [Run(run, device="cpu") for run in runs]
        with progress_bar() as progress:
            drawn = draw_pictures(opened, predicate, progress=progress)
        save_pictures(drawn.pictures, out)
        show(picture_table(drawn))
    show(f"written to {out}")


def report(
    runs: RunFolders,
    out: Annotated[Path, Option(metavar="FILE", help="The page to write.")] = Path("report.html"),
    device: Device = "auto",
) -> None:
    """Write one page about runs: metrics, data, leaks, cuts, training, embeddings, questions.

    The page needs nothing but itself: it can be sent to somebody, and read on a phone. What was not
    evaluated yet is evaluated. Example: splime report runs/vanilla runs/merge --out report.html
    """
    from splime.plans.showing import write_page
    from splime.runs import Run

    with progress_bar() as progress:
        write_page([Run(path, device=device) for path in runs], out, progress=progress)
    show(f"written to {out}")
