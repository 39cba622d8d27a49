"""Rules that the counts of a graph give: `splime rules`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument

from splime.cli import options
from splime.cli.console import show, show_json
from splime.errors import UsageError
from splime.progress import progress_bar


@options.with_options(
    support=options.number("How many known facts end at the answer, at least. Default: 5."),
    limit=options.number(
        "How many rules of a kind for a question. Default: 10; of each predicate, 3."
    ),
    examples=options.number("Also so many examples of each rule: facts with their dates."),
)
def rules(
    source: Annotated[
        str,
        Argument(
            metavar="DATA|RUN",
            help="A file, a folder of files or the name of a dataset; or the folder of a run whose"
            " model answers from facts: its graph is counted.",
        ),
    ],
    predicate: Annotated[
        str | None,
        Argument(help="What is asked about. Default: a few rules of every predicate."),
    ] = None,
    *,
    given: dict[str, Any],
    plot: Annotated[
        Path | None, options.picture("how often facts before and after lead to the answer")
    ] = None,
    as_json: options.AsJson = False,
    reading: dict[str, Any],
) -> None:
    """Say what the counts of a graph say, as rules over relative time.

    A rule says how often a known fact, or two in a row, ends at the answer to a question about a
    predicate. Chains of two facts are counted where a predicate is named.

    Example: splime rules demo visited --examples 2 --plot visited.png
    """
    from splime.analysis.rules import rules as find_rules
    from splime.reporting.plots import plot_rules
    from splime.reporting.rules import rule_tables
    from splime.reporting.style import save_picture

    if plot is not None and predicate is None:
        raise UsageError("--plot draws the rules of one predicate: name it after the source")
    with progress_bar(shorter="the rules of one predicate") as progress:
        found = find_rules(source, predicate, progress=progress, **given, **reading)
    if plot is not None:
        save_picture(plot_rules(found), plot)
    if as_json:
        show_json(found.to_json())
        return
    show(*rule_tables(found))
    if plot is not None:
        show(f"before and after: {plot}")
