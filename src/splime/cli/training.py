"""`splime train`, `models`, `run`, `tune` and `update`: runs are made, and get new facts."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from splime.cli import options
from splime.cli.ask import question_to
from splime.cli.console import Result, lists, open_page, warn
from splime.cli.launch import join_workers
from splime.errors import not_installed
from splime.io.inputs import is_stored
from splime.methods import METHODS, Method, make_methods
from splime.progress import Watching, progress_bar, working
from splime.workers import Parallel

if TYPE_CHECKING:
    from splime.plans import PlanResult


DataOrPlan = Annotated[
    str,
    Argument(
        metavar="DATA|PLAN.toml",
        help="A dataset, file or folder as for `splime train`; or a plan, a TOML file with all"
        " options of each run.",
    ),
]


@options.with_options(
    model=options.name(
        "See `splime models`. Default: path, from the shipped weights; with cuts, complex."
    ),
    preset=options.Preset,
    engine=options.Engine,
)
def train(
    data: options.Data,
    out: Annotated[Path, options.folder("The folder of the run.")],
    method: Annotated[
        str | None,
        options.name(f"{options.CUTS} Default: what suits the model."),
    ] = None,
    segmentation: Annotated[
        Path | None, options.file("Cuts that `splime transform` wrote, instead of a method.")
    ] = None,
    *,
    given: dict[str, Any],
    device: options.Device = "auto",
    workers: Annotated[int | None, options.Together] = None,
    log: Annotated[str | None, options.Log] = None,
    reading: dict[str, Any],
    settings: dict[str, Any],
    parameters: dict[str, Any],
) -> Result:
    """Train a model on a graph, and write the folder of a run.

    The same command resumes a run that was interrupted. Options left out are those of the preset;
    `splime train --model NAME --help` shows the settings of a model. Examples: splime train
    facts.csv --out run; splime train demo --method merge --shrink 4 --model complex --out run
    """
    from splime.device import choose_device
    from splime.runs import is_finished, train as train_run
    from splime.runs.training import choose_cuts
    from splime.runs.watching import tracking
    from splime.settings import BaseSettings
    from splime.training.registry import WITHOUT_CUTS, entry_for

    join_workers(workers, device)
    # Mistakes are errors before the facts are read.
    has_cuts = method is not None or segmentation is not None
    entry = entry_for(**given, default=BaseSettings.model if has_cuts else WITHOUT_CUTS)
    given["model"] = name = entry.name
    entry.make_settings(given.get("preset"), **settings)
    if entry.cuts == "timestamps" and not has_cuts:
        warn(f"{name} is a temporal model: the method is {entry.method}, with every timestamp")
    cuts = choose_cuts(entry, method, segmentation, parameters, settings)
    choose_device(device)
    tracker, was_finished = tracking(log), is_finished(out)
    graph = options.load_graph(data, reading)
    with progress_bar(shorter=_shorter(given)) as progress, tracker as given["log"]:
        if isinstance(cuts, Method):
            cuts = cuts.fit(graph, progress=progress)
        with Watching(progress) as watch:
            run = train_run(
                graph, cuts, out, device=device, watch=watch, warn=warn, **given, **settings
            )
    path = shlex.quote(str(run.path))
    done = "was finished before, nothing is left to train" if was_finished else "written"
    return Result(run, after=[f"{path}: {done}; next: splime evaluate {path}"])


def _shorter(given: Mapping[str, Any]) -> str:
    """What makes a training shorter."""
    return "--epochs N, --steps N" if given.get("preset") == "quick" else "--preset quick"


@options.with_options()
def models() -> Result:
    """List the models, the losses and the presets."""
    from splime.training.registry import model_names

    try:
        kinds = _models()
    except ImportError as error:
        names = model_names()
        return Result({"models": names}, [*names, str(not_installed("Training", error))])
    return lists(kinds, ["With --engine pykeen: any model of PyKEEN, such as TuckER."])


def _models() -> dict[str, tuple[Sequence[str], Sequence[Sequence[str]]]]:
    """Models, losses and presets: their columns and rows."""
    from splime.embedding.losses import LOSSES
    from splime.embedding.presets import PRESETS, QUICK, QUICKER
    from splime.training.registry import find_model, model_names

    entries = [find_model(name) for name in model_names()]
    models = [(one.name, one.about, "yes" if one.is_temporal else "") for one in entries]
    against = {"all": "all entities"}
    losses = [
        (loss.name, loss.about, against.get(loss.against, "sampled negatives"))
        for loss in LOSSES.values()
    ]
    quick = f"strong, but smaller and shorter: {_listed(QUICKER)}"
    presets = [*((name, _listed(values)) for name, values in PRESETS.items()), (QUICK, quick)]
    return {
        "models": (("model", "what it scores", "temporal"), models),
        "losses": (("loss", "what it is", "compares with"), losses),
        "presets": (("preset", "settings"), presets),
    }


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in settings.items())


@options.with_options(
    model=Annotated[
        list[str] | None,
        options.name(
            "The model, see `splime models`. May be repeated; each is run with every method,"
            " temporal models once. Default: complex."
        ),
    ],
    preset=options.Preset,
    device=options.Device,
    log=options.Log,
)
def run(
    data: DataOrPlan,
    out: Annotated[Path, options.folder("The folder for everything.")],
    method: Annotated[
        list[str] | None,
        options.name(
            f"{options.CUTS} May be repeated; each becomes a run. Default: all, with moderate"
            " parameters."
        ),
    ] = None,
    engine: Annotated[list[str] | None, options.Engines] = None,
    *,
    given: dict[str, Any],
    reading: dict[str, Any],
    settings: dict[str, Any],
    parameters: dict[str, Any],
    parallel: dict[str, Any],
    show_page: options.Open = False,
) -> Result:
    """Do a whole experiment: inspect, cut, train, evaluate, compare and report.

    The folder then has plan.toml (what was done; `splime run DIR/plan.toml` does it again),
    data.json, a run for each method in runs/, comparison.md and .json, and report.html. The same
    command resumes what was interrupted.

    Example: splime run demo --model complex --model path --preset quick --out demo-run
    """
    from splime.plans import run as run_plan
    from splime.reporting.comparison import comparison_table, in_short
    from splime.runs.parallel import sort_engines

    trainer, pool = sort_engines(engine or ())
    with progress_bar(shorter=_shorter(given)) as progress:
        done = run_plan(
            data,
            out,
            method=make_methods(method or (), parameters, settings) or None,
            engine=trainer,
            parallel=Parallel(pool, **parallel) if pool or parallel else None,
            reading=reading or None,
            progress=progress,
            watching=lambda name: Watching(progress, f"training, {name}"),
            **given,
            **settings,
        )
    if show_page:
        open_page(done.report)
    parts = [*comparison_table(done.comparison), in_short(done.comparison)]
    after = [f"everything, with pictures: {done.report}", f"ask it: {_question(done)}"]
    return Result(done, parts, after)


def _question(done: PlanResult) -> str:
    """A question to try, about a fact that the best run has not seen."""
    best = done.runs[done.comparison.rows[0].name]
    fact = next(best.graph.rows("test"))
    return question_to(str(best.path), fact, why=best.entry.explains)


@options.with_options(
    trials=options.number("How many to try. Default: 50."),
    methods=options.names(help=f"The methods to try. Default: {', '.join(METHODS)}."),
    models=options.names(help="The models to try, see `splime models`. Default: complex."),
    space=options.file("A TOML file with another search space, see docs/tuning.md."),
    device=options.Device,
)
def tune(
    data: options.Data,
    out: Annotated[Path, options.folder("The folder of the search.")],
    engine: Annotated[list[str] | None, options.Engines] = None,
    *,
    given: dict[str, Any],
    reading: dict[str, Any],
    settings: dict[str, Any],
    parallel: dict[str, Any],
) -> Result:
    """Search for the method, its parameters and the settings that are best on valid.

    Settings that you give are fixed. The facts of test are never used. The same command resumes an
    interrupted search, or adds trials to it. At the end DIR has best.toml, which `splime run`
    executes, trials.csv and importance.png.

    Example: splime tune demo --methods split,merge --epochs 20 --dimension 32 --out search
    """
    from splime.runs.parallel import sort_engines
    from splime.tuning import tune as search
    from splime.tuning.results import tuning_tables

    trainer, pool = sort_engines(engine or ())
    graph = options.load_graph(data, reading)
    shorter = "--trials N, --epochs N"
    with progress_bar(shorter=shorter) as progress, Watching(progress) as watch:
        tuned = search(
            graph,
            out,
            parallel=Parallel(pool, **parallel) if pool or parallel else None,
            engine=trainer,
            data=data if is_stored(data) else None,
            reading=reading,
            progress=progress,
            stop=watch.stop,
            **given,
            **settings,
        )
    done = f"{tuned.out}: written trials.csv, importance.png and best.toml"
    best = shlex.quote(str(tuned.out / "best.toml"))
    return Result(tuned, tuning_tables(tuned), [f"{done}; next: splime run {best} --out DIR"])


@options.with_options()
def update(
    run: Annotated[Path, Argument(metavar="RUN", help="The folder of a run of the path model.")],
    newer: Annotated[
        str, Argument(metavar="NEWER", help="The facts to add: a file or folder as for --facts.")
    ],
    *,
    added: dict[str, Any],
) -> Result:
    """Add facts to a run for good, without training it again.

    They replace facts of train that state the same at overlapping times, as with --facts.
    The model must be one that reads facts (path, latest); others must be trained again. The run
    then answers from the new facts, and its probabilities are calibrated again.

    Example: splime update run newer.csv
    """
    from splime.reporting.results import change_table
    from splime.runs import Run

    opened = Run(run, device="cpu")
    with working(f"adding {newer} …"):
        change = opened.update(newer, warn=warn, **added)
    path = shlex.quote(str(run))
    if not change.is_new:
        return Result(change, [f"{path}: has all of these facts already, and stays as it was"])
    after = [f"{path}: updated; next: splime evaluate {path}"]
    return Result(change, [change_table(change, path)], after)
