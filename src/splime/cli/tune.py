"""`splime tune`: search for the best method, parameters and settings on valid."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from splime.cli import source
from splime.cli.console import console
from splime.cli.parameters import setting_options, with_options
from splime.cli.train import Device, Engine, torch_needed
from splime.cli.watching import Watching
from splime.embedding.settings import SETTINGS
from splime.methods import METHODS
from splime.progress import progress_bar

if TYPE_CHECKING:
    from splime.tuning import Tuned

_SHOWN = 5


@with_options({**source.READING, **setting_options()})
def tune(
    data: source.Data,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the search.")],
    trials: Annotated[int, typer.Option(help="How many configurations to try.")] = 50,
    processes: Annotated[
        int, typer.Option(help="How many to train at the same time; they share the cores.")
    ] = 2,
    methods: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help=f"Among which methods. Default: {', '.join(METHODS)}."),
    ] = None,
    models: Annotated[
        str, typer.Option(metavar="A,B,…", help="Among which models, see `splime models`.")
    ] = "complex",
    space: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A TOML file that says what else to try, see docs/tuning.md."
        ),
    ] = None,
    engine: Engine = "splime",
    device: Device = "auto",
    **given: Any,
) -> None:
    """Search for the method, its parameters and the settings that are best on valid.

    Settings that are given are the same for all trials, and not searched for. The facts of test
    are never used. The same command resumes a search that was interrupted, or adds trials to it.
    At the end DIR has best.toml, which `splime run` carries out, trials.csv and importance.png.

    Example: splime tune demo --methods split,merge --epochs 20 --dimension 32 --out search
    """
    torch_needed()
    from splime.runs import Interrupted
    from splime.tuning import tune as search

    settings = {n: v for n in SETTINGS if (v := given.pop(f"set_{n}", None)) is not None}
    reading = source.reading_options(given)
    graph = source.load_graph(data, reading)
    try:
        with progress_bar() as update, Watching(update) as watch:
            tuned = search(
                graph,
                out,
                trials=trials,
                processes=processes,
                methods=None if methods is None else _names(methods),
                models=_names(models),
                engine=engine,
                space=space,
                device=device,
                data=data,
                reading=reading,
                progress=update,
                stop=watch.stop,
                **settings,
            )
    except Interrupted as stopped:
        typer.secho(str(stopped), err=True)
        raise typer.Exit(stopped.exit_code) from None
    _tell(tuned)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _tell(tuned: Tuned) -> None:
    from splime.report.tables import make_table

    states = [one.state for one in tuned.trials]
    counts = {state: states.count(state) for state in dict.fromkeys(states)}
    listed = ", ".join(f"{count:,} {state}" for state, count in counts.items())
    title = f"the best of {len(states):,} trials ({listed})"
    columns = ("trial", "valid MRR", "method", "model", "seconds")
    table = make_table(title, *columns, words=("method", "model"))
    for one in tuned.ranking()[:_SHOWN]:
        method, model = one.described()
        mrr, seconds = f"{one.valid:.3f}", f"{one.seconds:,.1f}"
        table.add_row(f"{one.number:,}", mrr, Text(method), Text(model), seconds)
    out = console()
    out.print(table)
    if tuned.importances:
        shares = ", ".join(
            f"{name} {100 * s:.0f} %" for name, s in tuned.importances.items() if s >= 0.005
        )
        out.print(f"what mattered: {shares}", soft_wrap=True)
    place = shlex.quote(str(tuned.out / "best.toml"))
    out.print(
        f"{tuned.out}: written trials.csv, importance.png and best.toml;"
        f" next: splime run {place} --out DIR",
        soft_wrap=True,
    )
