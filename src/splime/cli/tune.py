"""`splime tune`: search for the best method, parameters and settings on valid."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.text import Text
from typer import Option

from splime.cli.console import Watching, show
from splime.cli.options import Data, Device, Engine, load_graph, names_in, with_options
from splime.methods import METHODS
from splime.progress import progress_bar

if TYPE_CHECKING:
    from splime.tuning import Tuned

_SHOWN = 5


@with_options
def tune(
    data: Data,
    out: Annotated[Path, Option(metavar="DIR", help="The folder of the search.")],
    trials: Annotated[int, Option(help="How many configurations to try.")] = 50,
    processes: Annotated[
        int, Option(help="How many to train at the same time; they share the cores.")
    ] = 2,
    methods: Annotated[
        str | None,
        Option(
            metavar="A,B,…",
            help=f"Among which methods. Default: {', '.join(METHODS)}.",
            callback=names_in,
        ),
    ] = None,
    models: Annotated[
        str,
        Option(metavar="A,B,…", help="Among which models, see `splime models`.", callback=names_in),
    ] = "complex",
    space: Annotated[
        Path | None,
        Option(metavar="FILE", help="A TOML file that says what else to try, see docs/tuning.md."),
    ] = None,
    engine: Engine = "splime",
    device: Device = "auto",
    *,
    reading: dict[str, Any],
    settings: dict[str, Any],
) -> None:
    """Search for the method, its parameters and the settings that are best on valid.

    Settings that are given are the same for all trials, and not searched for. The facts of test
    are never used. The same command resumes a search that was interrupted, or adds trials to it.
    At the end DIR has best.toml, which `splime run` carries out, trials.csv and importance.png.

    Example: splime tune demo --methods split,merge --epochs 20 --dimension 32 --out search
    """
    from splime.tuning import tune as search

    graph = load_graph(data, reading)
    with progress_bar() as progress, Watching(progress) as watch:
        tuned = search(
            graph,
            out,
            trials=trials,
            processes=processes,
            methods=methods,
            models=models,
            engine=engine,
            space=space,
            device=device,
            data=data,
            reading=reading,
            progress=progress,
            stop=watch.stop,
            **settings,
        )
    _show(tuned)


def _show(tuned: Tuned) -> None:
    from splime.report.tables import make_table

    counts = Counter(one.state for one in tuned.trials)
    listed = ", ".join(f"{count:,} {state}" for state, count in counts.items())
    title = f"the best of {len(tuned.trials):,} trials ({listed})"
    columns = ("trial", "valid MRR", "method", "model", "seconds")
    table = make_table(title, *columns, words=("method", "model"))
    for one in tuned.ranking()[:_SHOWN]:
        method, model = one.described()
        mrr, seconds = f"{one.valid:.3f}", f"{one.seconds:,.1f}"
        table.add_row(f"{one.number:,}", mrr, Text(method), Text(model), seconds)
    show(table)
    if tuned.importances:
        shares = tuned.importances.items()
        show(f"what mattered: {', '.join(f'{n} {100 * s:.0f} %' for n, s in shares if s >= 0.005)}")
    show(
        f"{tuned.out}: written trials.csv, importance.png and best.toml;"
        f" next: splime run {shlex.quote(str(tuned.out / 'best.toml'))} --out DIR"
    )
