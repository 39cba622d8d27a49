"""`splime train` and `splime models`: cut a graph, and train a static model on it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from splime.cli import source
from splime.cli.console import console
from splime.cli.parameters import method_options, setting_options, taken_by, with_options
from splime.cli.watching import Watching
from splime.embedding.settings import SETTINGS
from splime.errors import SplimeError, UsageError, check_name
from splime.methods import METHODS, Method, make_method
from splime.progress import progress_bar

if TYPE_CHECKING:
    from splime.runs import Run
    from splime.segmentation import Segmentation

Device = Annotated[str, typer.Option(help="Where to compute: auto, cpu or cuda.")]


# `--seed` is the training's and, where it has one, the method's.
_METHODS = {name: option for name, option in method_options().items() if name not in SETTINGS}


@with_options({**source.READING, **setting_options(), **_METHODS})
def train(
    data: source.Data,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the run.")],
    method: Annotated[
        str, typer.Option(help=f"How to choose the cuts: {', '.join(METHODS)}.")
    ] = "vanilla",
    segmentation: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Cuts that `splime transform` wrote, instead of a method."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="The static model, see `splime models`. Default: complex.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="Settings by name: paper, hyte, rotate, ampligraph (all TransE), or strong, a good"
            " one for each model (the default)."
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option(help="splime, or pykeen for any model that PyKEEN has.")
    ] = "splime",
    device: Device = "auto",
    **given: Any,
) -> None:
    """Cut a graph in time, train a static model on its triples, and leave a run folder.

    The same command goes on with a run that was interrupted. Options left out are those of the
    preset. Example: splime train demo --method merge --shrink 4 --model complex --out run
    """
    torch_needed()
    from splime.io import load_segmentation
    from splime.runs import ENGINES, Interrupted, is_finished

    settings = {n: v for n in SETTINGS if (v := given.pop(f"set_{n}", None)) is not None}
    reading = source.reading_options(given)
    parameters = {name: value for name, value in given.items() if value is not None}
    if segmentation is not None and (method != "vanilla" or parameters):
        raise UsageError("give the cuts as a segmentation or choose a method, not both")
    check_name("engine", engine, ENGINES)
    chosen = make_method(method, **parameters, **taken_by(method, settings))
    trainer = _trainer(engine, model, preset, device, settings)
    was_finished = is_finished(out)
    cuts: Method | Segmentation = chosen
    if segmentation is not None:
        cuts = load_segmentation(segmentation)
    graph = source.load_graph(data, reading)
    try:
        with progress_bar() as update:
            if isinstance(cuts, Method):
                cuts = cuts.fit(graph, advance=lambda done, of: update("choosing cuts", done, of))
            with Watching(update) as watch:
                run = trainer(graph, cuts, out, watch=watch)
    except Interrupted as stopped:
        typer.secho(str(stopped), err=True)
        raise typer.Exit(stopped.exit_code) from None
    _tell(run, was_finished)


def _trainer(
    engine: str, model: str | None, preset: str | None, device: str, settings: dict[str, Any]
) -> Callable[..., Run]:
    """What trains; wrong settings are an error before the facts are read."""
    from splime.embedding.device import choose_device

    choose_device(device)
    if engine == "pykeen":
        from splime.runs.pykeen import check_pykeen, train_pykeen

        if model is None or preset is not None:
            raise UsageError("the engine pykeen needs a model, and has no presets")
        check_pykeen(model, settings)
        return partial(train_pykeen, model=model, device=device, **settings)
    from splime.embedding.presets import make_settings
    from splime.runs import train as train_run

    make_settings(model, preset, **settings)
    return partial(train_run, model=model, preset=preset, device=device, **settings)


def _tell(run: Run, was_finished: bool) -> None:
    from splime.report.tables import run_table

    out = console()
    out.print(run_table(run))
    path = shlex.quote(str(run.path))
    done = "was finished before, nothing is left to train" if was_finished else "written"
    out.print(f"{path}: {done}; next: splime evaluate {path}", soft_wrap=True)


def torch_needed() -> None:
    """An error that says how to install PyTorch, where it is not there."""
    try:
        import safetensors  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        raise SplimeError(
            f"training and evaluating need PyTorch ({error}); install it with:"
            " pip install 'splime[train]'"
        ) from None


def models() -> None:
    """List the models and the presets."""
    torch_needed()
    from splime.embedding.models import MODELS
    from splime.embedding.presets import PRESETS, make_settings

    out = console()
    table = Table("model", "what it scores", "strong preset", box=None, pad_edge=False)
    for name, model in MODELS.items():
        settings = make_settings(name)
        about = f"{settings.loss}, dimension {settings.dimension}, {settings.optimizer}"
        table.add_row(name, (model.__doc__ or "").splitlines()[0], about)
    out.print(table)
    out.print("")
    table = Table("preset", "settings", box=None, pad_edge=False)
    for name, values in PRESETS.items():
        table.add_row(name, ", ".join(f"{key} {value}" for key, value in values.items()))
    out.print(table)
    out.print("\nWith --engine pykeen: any model of PyKEEN, such as TuckER.")
