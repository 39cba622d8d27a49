"""`splime train`, `models`, `run` and `tune`: cut graphs, and train static models on them."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.table import Table
from typer import Argument, Option

from splime import embedding
from splime.cli import options
from splime.cli.console import show, warn
from splime.cli.together import work_together
from splime.errors import UsageError, not_installed
from splime.methods import METHODS, Method, make_method
from splime.progress import Watching, progress_bar

if TYPE_CHECKING:
    from splime.plans.plan import Carried
    from splime.segmentation import Segmentation


Log = Annotated[
    str | None,
    Option(
        metavar="<tensorboard|mlflow|wandb>",
        help="Also tell a tracker of experiments: settings, the loss of each epoch, metrics.",
    ),
]


@options.with_options
def train(
    data: options.Data,
    out: Annotated[Path, options.folder(help="The folder of the run.")],
    method: Annotated[
        str | None,
        Option(
            help=f"How to choose the cuts: {', '.join(METHODS)}. Default: vanilla, and timestamp"
            " for models that know time."
        ),
    ] = None,
    segmentation: Annotated[
        Path | None, options.file(help="Cuts that `splime transform` wrote, instead of a method.")
    ] = None,
    model: options.Model = None,
    preset: Annotated[
        str | None,
        Option(
            help="Settings by name: paper, hyte, rotate, ampligraph (all TransE); strong, a good"
            " one for each model (the default); quick, a smaller and shorter one; or published,"
            " published-yago11k, published-wikidata12k: what the authors of a model that knows"
            " time used."
        ),
    ] = None,
    engine: options.Engine = "splime",
    device: options.Device = "auto",
    workers: options.Together = None,
    shard: options.Shard = False,
    log: Log = None,
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
    from splime.runs.watching import tracking
    from splime.training.engines import implied_method, make_settings

    work_together(workers, device)
    if segmentation is not None and (method not in (None, "vanilla") or parameters):
        raise UsageError("give the cuts as a segmentation or choose a method, not both")
    if method is None:
        method = implied_method(model, engine)
        if method != "vanilla" and segmentation is None:
            warn(f"{model} knows time itself: the method is {method}, with every timestamp")
    # Mistakes are errors before the facts are read.
    cuts: Method | Segmentation = make_method(method, **parameters, **_taken_by(method, settings))
    training: dict[str, Any] = {"model": model, "preset": preset, "engine": engine, **settings}
    make_settings(**training)
    choose_device(device)
    training["shard"] = shard
    tracker = tracking(log)
    was_finished = is_finished(out)
    if segmentation is not None:
        cuts = load_segmentation(segmentation)
    graph = options.load_graph(data, reading)
    with progress_bar() as progress, tracker as training["log"]:
        if isinstance(cuts, Method):
            cuts = cuts.fit(graph, progress=progress)
        with Watching(progress) as watch:
            run = train_run(graph, cuts, out, device=device, watch=watch, warn=warn, **training)
    path = shlex.quote(str(run.path))
    done = "was finished before, nothing is left to train" if was_finished else "written"
    show(run_table(run), f"{path}: {done}; next: splime evaluate {path}")


def models() -> None:
    """List the models, the losses and the presets."""
    try:
        from splime.embedding.losses import LOSSES
        from splime.embedding.models import MODELS
        from splime.embedding.presets import PRESETS, QUICK, QUICKER
        from splime.training.engines import LATEST, PATH, make_settings
        from splime.training.paths import QUICKER as QUICKER_PATH
    except ImportError as error:
        table = Table("model", "what it scores", box=None, pad_edge=False)
        for name, about in _models_in_source():
            table.add_row(name, about)
        show(table, f"\n{not_installed('Training', error)}")
        return
    columns = ("model", "what it scores", "knows time", "strong preset")
    table = Table(*columns, box=None, pad_edge=False)
    for name, model in MODELS.items():
        settings = make_settings(name)
        about = f"{settings.loss}, dimension {settings.dimension}, {settings.optimizer}"
        time = "yes" if model.knows_time else ""
        table.add_row(name, (model.__doc__ or "").splitlines()[0], time, about)
    settings = make_settings(PATH)
    about = f"{settings.layers} layers, dimension {settings.dimension}, dropout {settings.dropout}"
    table.add_row(PATH, "Chains of facts, by how their times lie to the question's.", "yes", about)
    table.add_row(LATEST, "The answers of the latest facts, a baseline.", "yes", "nothing to learn")
    show(table, "")
    table = Table("loss", "what it is", "compares with", box=None, pad_edge=False)
    for loss in LOSSES.values():
        negatives = "all entities" if loss.against == "all" else "sampled negatives"
        table.add_row(loss.name, loss.about, negatives)
    show(table, "")
    table = Table("preset", "settings", box=None, pad_edge=False)
    for name, values in PRESETS.items():
        table.add_row(name, _listed(values))
    quick = f"strong, but {_listed(QUICKER)}; {PATH}: {_listed(QUICKER_PATH)}"
    table.add_row(QUICK, quick)
    show(table, "\nWith --engine pykeen: any model of PyKEEN, such as TuckER.")


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in settings.items())


def _models_in_source() -> Iterator[tuple[str, str]]:
    """Names and first lines of the models, which cannot be imported without PyTorch."""
    for file in sorted(Path(embedding.__path__[0], "models").glob("*.py")):
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                about = (ast.get_docstring(node) or "").partition("\n")[0]
                for line in node.body:
                    match line:
                        case ast.Assign([ast.Name("name")], ast.Constant(str() as name)):
                            yield name, about


@options.with_options
def run(
    data: Annotated[
        str,
        Argument(
            metavar="DATA|PLAN.toml",
            help="A dataset, file or folder as for `splime train`; or a plan, a TOML file that"
            " says all that the options say, for each run.",
        ),
    ],
    out: Annotated[Path, options.folder(help="The folder for everything.")],
    method: Annotated[
        list[str] | None,
        Option(
            help=f"How to choose the cuts: {', '.join(METHODS)}. May be given several times, each"
            " becomes a run. Default: all of them, with moderate parameters."
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        Option(
            help="The model, see `splime models`. May be given several times; each is run with"
            " every method, and models that know time once. Default: complex."
        ),
    ] = None,
    preset: Annotated[
        str | None, Option(help="Settings by name, see `splime models`. Default: strong.")
    ] = None,
    engine: options.Engines = None,
    processes: options.Processes = None,
    processors: options.Processors = None,
    gpu: options.Gpu = None,
    address: options.Address = None,
    device: options.Device = "auto",
    log: Log = None,
    *,
    reading: dict[str, Any],
    settings: dict[str, Any],
    parameters: dict[str, Any],
) -> None:
    """Inspect, cut, train, evaluate, compare and report, into one folder.

    The folder then has plan.toml (what was done; `splime run DIR/plan.toml` does it again),
    data.json, a run for each method in runs/, comparison.md and .json, and report.html. The same
    command resumes what was interrupted.

    Example: splime run demo --model complex --model path --preset quick --out demo-run
    """
    from splime.plans import carry_out, make_plan, read_plan
    from splime.report.comparison import comparison_table, in_short
    from splime.runs.spreading import sort_engines

    trainer, spreader = sort_engines(engine or ())
    own = {"preset": preset, "engine": None if trainer == "splime" else trainer}
    training = {key: value for key, value in own.items() if value is not None} | settings
    graph = None
    if data.lower().endswith(".toml"):
        chosen = {"method": method, "model": model, **training, **parameters}
        given = [
            f"--{name.replace('_', '-')}"
            for name, value in chosen.items()
            if value not in (None, [])
        ]
        if given or reading:
            wrong = ", ".join(given) or "how to read the facts"
            raise UsageError(f"a plan says everything: leave out {wrong}, or write it into {data}")
        plan = read_plan(data)
    else:
        cuts = _chosen(method, training, parameters)
        plan = make_plan(data, method=cuts, model=model, reading=reading, **training)
        graph = options.load_graph(data, reading)
    with progress_bar() as progress:
        done = carry_out(
            plan,
            out,
            graph=graph,
            device=device,
            engine=spreader,
            processes=processes,
            processors=processors,
            gpu=gpu,
            address=address,
            log=log,
            progress=progress,
            watching=lambda name: Watching(progress, f"training, {name}"),
        )
    show(*comparison_table(done.comparison), in_short(done.comparison))
    show(f"everything, with pictures: {done.report}", f"ask it: {_question(done)}")


def _chosen(
    methods: list[str] | None, training: dict[str, Any], parameters: dict[str, Any]
) -> list[Method]:
    """The methods that were chosen, each with those of the parameters that it has."""
    if not methods and parameters:
        raise UsageError(
            f"--{next(iter(parameters))} belongs to a method; choose one with --method"
        )
    # `--seed` is the training's, and the method's if it has one.
    given = {**training, **parameters}
    chosen = {name: make_method(name, **_taken_by(name, given)) for name in methods or ()}
    for key in parameters:
        if not any(_taken_by(name, {key: None}) for name in chosen):
            raise UsageError(f"none of {', '.join(chosen)} has a parameter {key}")
    return [*chosen.values()]


def _taken_by(method: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some values that a method has a parameter for.

    >>> _taken_by("merge", {"shrink": 4, "grow": 5})
    {'shrink': 4}
    """
    own = {field.name for field in fields(METHODS[method])} if method in METHODS else set()
    return {name: value for name, value in values.items() if name in own}


def _question(done: Carried) -> str:
    """A question that can be asked, about a fact that the best run has not seen."""
    from splime.query.questions import quoted
    from splime.training.engines import PATH

    best = done.runs[done.comparison.rows[0].name]
    fact = next(best.graph.rows("test"))
    names = (f"\\{name}" if name == "_" else quoted(name) for name in fact[:2])
    asked = [str(best.path), *names, "?"]
    at = ["--at", when] if (when := fact.begin or fact.end) else []
    at += ["--why"] if best.settings.model == PATH else []
    is_option = any(name.startswith("-") for name in asked)
    return shlex.join(["splime", "ask", *([*at, "--", *asked] if is_option else [*asked, *at])])


@options.with_options
def tune(
    data: options.Data,
    out: Annotated[Path, options.folder(help="The folder of the search.")],
    trials: Annotated[int, Option(help="How many configurations to try.")] = 50,
    methods: Annotated[
        str | None,
        options.names(help=f"Among which methods. Default: {', '.join(METHODS)}."),
    ] = None,
    models: Annotated[
        str, options.names(help="Among which models, see `splime models`.")
    ] = "complex",
    space: Annotated[
        Path | None,
        options.file(help="A TOML file that changes what is tried, see docs/tuning.md."),
    ] = None,
    engine: options.Engines = None,
    processes: options.Processes = None,
    processors: options.Processors = None,
    gpu: options.Gpu = None,
    address: options.Address = None,
    device: options.Device = "auto",
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
    from splime.tuning.results import tuned_tables

    graph = options.load_graph(data, reading)
    with progress_bar() as progress, Watching(progress) as watch:
        tuned = search(
            graph,
            out,
            trials=trials,
            processes=processes,
            processors=processors,
            gpu=gpu,
            address=address,
            methods=methods,
            models=models,
            engine=engine or (),
            space=space,
            device=device,
            data=data,
            reading=reading,
            progress=progress,
            stop=watch.stop,
            **settings,
        )
    show(
        *tuned_tables(tuned),
        f"{tuned.out}: written trials.csv, importance.png and best.toml;"
        f" next: splime run {shlex.quote(str(tuned.out / 'best.toml'))} --out DIR",
    )
