"""`splime backtest`: forecasts as they would have been made, against what happened."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from splime.cli import options
from splime.cli.console import show, show_json
from splime.progress import progress_bar


@options.with_options()
def backtest(
    source: Annotated[
        str,
        Argument(metavar="DATA", help="A file, a folder of files or the name of a dataset."),
    ],
    begin: Annotated[
        str | None,
        Option(
            "--from",
            metavar="TIME",
            show_default=False,
            help="Where the first window begins. Default: after three quarters of the facts.",
        ),
    ] = None,
    every: Annotated[
        str,
        options.option(
            "TIME",
            "How long a window is: day, week, month, quarter, year, 2 weeks, or a number in the"
            " unit of the graph. Default: ten windows.",
        ),
    ] = "",
    questions: Annotated[
        int, options.option("N", "At most so many questions in a window. Default: 400.")
    ] = 400,
    out: Annotated[
        Path | None,
        options.file("A .json for the result; interrupted, the same command goes on."),
    ] = None,
    plot: Annotated[Path | None, options.picture("metrics and probabilities over time")] = None,
    device: options.Device = "auto",
    as_json: options.AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Make forecasts as they would have been made, and compare them with what happened.

    For each window of time only the facts that began before it are known. Beside the model without
    training there are two baselines: what held lately or often (recurrency), and the latest fact.

    Example: splime backtest demo --from 2010 --every year --plot backtest.png
    """
    from splime.analysis.backtest import backtest as run_backtest
    from splime.reporting.backtests import backtest_tables
    from splime.reporting.plots import plot_backtest
    from splime.reporting.style import save_picture

    shorter = "--questions 50, a later --from, a longer --every"
    with progress_bar(shorter=shorter) as progress:
        found = run_backtest(
            source,
            begin=begin,
            every=every,
            questions=questions,
            out=out,
            device=device,
            progress=progress,
            **reading,
        )
    if plot is not None:
        save_picture(plot_backtest(found), plot)
    if as_json:
        show_json(found.to_json())
        return
    show(*backtest_tables(found))
    written = {"windows": out, "over time": plot}
    show(*(f"{what}: {path}" for what, path in written.items() if path is not None))
