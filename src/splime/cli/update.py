"""`splime update`: add facts to a run for good."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

from typer import Argument

from splime.cli import options
from splime.cli.console import show, show_json, warn
from splime.progress import working


@options.with_options()
def update(
    run: Annotated[Path, Argument(metavar="RUN", help="The folder of a run of the path model.")],
    newer: Annotated[
        str, Argument(metavar="NEWER", help="The facts to add: a file or folder as for --facts.")
    ],
    as_json: options.AsJson = False,
    *,
    added: dict[str, Any],
) -> None:
    """Add facts to a run for good, without training it again.

    They take the place of facts of train that state the same at overlapping times, as with --facts.
    The model must be one that reads facts (path, latest); others are trained again. A run that was
    updated answers from the new facts at once, and its probabilities are calibrated anew.

    Example: splime update run newer.csv
    """
    from splime.reporting.results import change_table
    from splime.runs import Run

    opened = Run(run, device="cpu")
    with working(f"adding {newer} …"):
        change = opened.update(newer, warn=warn, **added)
    if as_json:
        show_json(change.to_json())
        return
    path = shlex.quote(str(run))
    if not change.is_new:
        show(f"{path}: has all of these facts already, and stays as it was")
        return
    show(change_table(change, path), f"{path}: updated; next: splime evaluate {path}")
