"""`splime train` and `splime models`: cut a graph, and train a static model on it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.table import Table
from typer import Option

from splime.cli.console import Watching, show
from splime.cli.options import Data, Device, Engine, Model, load_graph, taken_by, with_options
from splime.errors import UsageError
from splime.methods import METHODS, Method, make_method
from splime.progress import progress_bar

if TYPE_CHECKING:
    from splime.segmentation import Segmentation


@with_options
def train(
    data: Data,
    out: Annotated[Path, Option(metavar="DIR", help="The folder of the run.")],
    method: Annotated[
        str, Option(help=f"How to choose the cuts: {', '.join(METHODS)}.")
    ] = "vanilla",
    segmentation: Annotated[
        Path | None,
        Option(metavar="FILE", help="Cuts that `splime transform` wrote, instead of a method."),
    ] = None,
    model: Model = None,
    preset: Annotated[
        str | None,
        Option(
            help="Settings by name: paper, hyte, rotate, ampligraph (all TransE), or strong, a good"
            " one for each model (the default)."
        ),
    ] = None,
    engine: Engine = "splime",
    device: Device = "auto",
    *,
    reading: dict[str, Any],
    settings: dict[str, Any],
    parameters: dict[str, Any],
) -> None:
    """Cut a graph in time, train a static model on its triples, and leave a run folder.

    The same command resumes a run that was interrupted. Options left out are those of the preset.
    Example: splime train demo --method merge --shrink 4 --model complex --out run
    """
    from splime.embedding.device import choose_device
    from splime.io import load_segmentation
    from splime.report.tables import run_table
    from splime.runs import is_finished, train as train_run
    from splime.training.engines import make_settings

    if segmentation is not None and (method != "vanilla" or parameters):
        raise UsageError("give the cuts as a segmentation or choose a method, not both")
    # Mistakes are errors before the facts are read.
    cuts: Method | Segmentation = make_method(method, **parameters, **taken_by(method, settings))
    training: dict[str, Any] = {"model": model, "preset": preset, "engine": engine, **settings}
    make_settings(**training)
    choose_device(device)
    was_finished = is_finished(out)
    if segmentation is not None:
        cuts = load_segmentation(segmentation)
    graph = load_graph(data, reading)
    with progress_bar() as progress:
        if isinstance(cuts, Method):
            cuts = cuts.fit(graph, progress=progress)
        with Watching(progress) as watch:
            run = train_run(graph, cuts, out, device=device, watch=watch, **training)
    path = shlex.quote(str(run.path))
    done = "was finished before, nothing is left to train" if was_finished else "written"
    show(run_table(run), f"{path}: {done}; next: splime evaluate {path}")


def models() -> None:
    """List the models, the losses and the presets."""
    from splime.embedding.losses import LOSSES
    from splime.embedding.models import MODELS
    from splime.embedding.presets import PRESETS
    from splime.training.engines import make_settings

    table = Table("model", "what it scores", "strong preset", box=None, pad_edge=False)
    for name, model in MODELS.items():
        settings = make_settings(name)
        about = f"{settings.loss}, dimension {settings.dimension}, {settings.optimizer}"
        table.add_row(name, (model.__doc__ or "").splitlines()[0], about)
    show(table, "")
    table = Table("loss", "what it is", "compares with", box=None, pad_edge=False)
    for loss in LOSSES.values():
        negatives = "all entities" if loss.against == "all" else "sampled negatives"
        table.add_row(loss.name, loss.about, negatives)
    show(table, "")
    table = Table("preset", "settings", box=None, pad_edge=False)
    for name, values in PRESETS.items():
        table.add_row(name, ", ".join(f"{key} {value}" for key, value in values.items()))
    show(table, "\nWith --engine pykeen: any model of PyKEEN, such as TuckER.")
