"""`splime train` and `splime models`: cut a graph, and train a static model on it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from splime.cli import source
from splime.cli.console import console
from splime.cli.parameters import method_options, setting_options, taken_by, with_options
from splime.cli.watching import Watching
from splime.embedding.settings import SETTINGS
from splime.errors import SplimeError, UsageError
from splime.methods import METHODS, Method, make_method
from splime.progress import progress_bar

if TYPE_CHECKING:
    from splime.runs import Run
    from splime.segmentation import Segmentation

Engine = Annotated[str, typer.Option(help="splime, or pykeen for any model that PyKEEN has.")]
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
    engine: Engine = "splime",
    device: Device = "auto",
    **given: Any,
) -> None:
    """Cut a graph in time, train a static model on its triples, and leave a run folder.

    The same command resumes a run that was interrupted. Options left out are those of the preset.
    Example: splime train demo --method merge --shrink 4 --model complex --out run
    """
    torch_needed()
    from splime.embedding.device import choose_device
    from splime.io import load_segmentation
    from splime.runs import Interrupted, is_finished, train as train_run
    from splime.training.engines import make_settings

    settings = {n: v for n in SETTINGS if (v := given.pop(f"set_{n}", None)) is not None}
    reading = source.reading_options(given)
    parameters = {name: value for name, value in given.items() if value is not None}
    if segmentation is not None and (method != "vanilla" or parameters):
        raise UsageError("give the cuts as a segmentation or choose a method, not both")
    # Mistakes are errors before the facts are read.
    cuts: Method | Segmentation = make_method(method, **parameters, **taken_by(method, settings))
    make_settings(model, preset, engine=engine, **settings)
    choose_device(device)
    was_finished = is_finished(out)
    if segmentation is not None:
        cuts = load_segmentation(segmentation)
    graph = source.load_graph(data, reading)
    try:
        with progress_bar() as update:
            if isinstance(cuts, Method):
                cuts = cuts.fit(graph, progress=update)
            with Watching(update) as watch:
                run = train_run(
                    graph,
                    cuts,
                    out,
                    model=model,
                    preset=preset,
                    engine=engine,
                    device=device,
                    watch=watch,
                    **settings,
                )
    except Interrupted as stopped:
        typer.secho(str(stopped), err=True)
        raise typer.Exit(stopped.exit_code) from None
    _tell(run, was_finished)


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
    """List the models, the losses and the presets."""
    torch_needed()
    from splime.embedding.losses import LOSSES
    from splime.embedding.models import MODELS
    from splime.embedding.presets import PRESETS
    from splime.training.engines import make_settings

    out = console()
    table = Table("model", "what it scores", "strong preset", box=None, pad_edge=False)
    for name, model in MODELS.items():
        settings = make_settings(name)
        about = f"{settings.loss}, dimension {settings.dimension}, {settings.optimizer}"
        table.add_row(name, (model.__doc__ or "").splitlines()[0], about)
    out.print(table)
    out.print("")
    table = Table("loss", "what it is", "compares with", box=None, pad_edge=False)
    for loss in LOSSES.values():
        negatives = "all entities" if loss.against == "all" else "sampled negatives"
        table.add_row(loss.name, loss.about, negatives)
    out.print(table)
    out.print("")
    table = Table("preset", "settings", box=None, pad_edge=False)
    for name, values in PRESETS.items():
        table.add_row(name, ", ".join(f"{key} {value}" for key, value in values.items()))
    out.print(table)
    out.print("\nWith --engine pykeen: any model of PyKEEN, such as TuckER.")
