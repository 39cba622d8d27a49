"""A plan: which data to read, which methods and models to run; and executing it.

A TOML file holds a plan; its results go into one folder.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial, wraps
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import msgspec

from splime.analysis import Comparison, compare
from splime.datasets import inspect, load
from splime.errors import (
    DataError,
    SplimeError,
    UsageError,
    check_fields,
    nearest,
    visible,
)
from splime.evaluation.filters import TIMED
from splime.graph import TemporalGraph
from splime.io import save
from splime.io.files import atomic_write, content, locked, read_toml, to_toml, write_json
from splime.io.inputs import is_stored, without_password
from splime.io.options import ReadOptions
from splime.methods import Method, make_method, standard_method, standard_methods
from splime.progress import Progress, Watching, silent
from splime.reporting.comparison import comparison_table, write_comparison
from splime.reporting.html import rendered
from splime.reporting.showing import write_page
from splime.reporting.style import make_figure
from splime.runs import Interrupted, Run, Watch, evaluate, is_finished, train
from splime.runs.evaluating import kept
from splime.runs.parallel import as_parallel, check_left, check_seen, map_trainings
from splime.runs.watching import tracking
from splime.training.registry import entry_for, make_settings
from splime.workers import Parallel, never

if TYPE_CHECKING:
    from splime.keywords import Training


@dataclass(frozen=True)
class PlannedRun:
    """One training: a method with its parameters, and the settings of the model."""

    name: str
    """The name of its folder."""
    method: Method
    training: Mapping[str, Any] = field(default_factory=dict)
    """What differs from the settings that all runs share: model, engine, preset, settings."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not re.fullmatch(r"[\w][\w.+=, -]*", self.name):
            raise UsageError(f"a run cannot be called {self.name!r}: it is the name of a folder")


@dataclass(frozen=True)
class Plan:
    """What `splime run` does; a mistake in it is an error when it is made, not hours later.

    >>> plan = Plan("demo", (PlannedRun("merge", make_method("merge", shrink=4)),),
    ...             training={"model": "complex", "epochs": 20})
    >>> plan.settings_of(plan.runs[0])
    {'model': 'complex', 'epochs': 20}
    """

    data: str
    runs: Sequence[PlannedRun]
    reading: Mapping[str, Any] = field(default_factory=dict)
    """Options of `splime.load`."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """What all runs share: model, engine, preset, settings of `splime.train`."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.runs:
            raise UsageError("a plan needs at least one run")
        ReadOptions.of(self.reading)
        names = [run.name for run in self.runs]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"two runs are called {name!r}; give one of them another name")
        for run in self.runs:
            try:
                training = self.settings_of(run)
                make_settings(**training)
                model, preset = training.get("model"), training.get("preset")
                entry = entry_for(model, preset, training.get("engine", "splime"))
                entry.check_cuts(run.method.name)
            except SplimeError as error:
                raise UsageError(f"run {run.name!r}: {error}") from None

    def settings_of(self, run: PlannedRun) -> dict[str, Any]:
        """Model, engine, preset and settings of a run."""
        return {**self.training, **run.training}

    def to_toml(self) -> str:
        """The text of a file that `read_plan` reads back."""
        runs = [
            {
                "name": run.name,
                "method": run.method.name,
                "parameters": asdict(run.method),
                "training": run.training or None,
            }
            for run in self.runs
        ]
        tables = {"reading": self.reading or None, "training": self.training or None, "run": runs}
        return to_toml({"data": without_password(self.data), **tables})


class _RunTable(msgspec.Struct, forbid_unknown_fields=True):
    """A [[run]] of a plan file."""

    method: str
    name: str | int | None = None
    parameters: dict[str, Any] = {}
    training: dict[str, Any] = {}


class _PlanTables(msgspec.Struct, forbid_unknown_fields=True):
    """A plan file."""

    data: str
    run: list[_RunTable]
    reading: dict[str, Any] = {}
    training: dict[str, Any] = {}


_EXAMPLE = 'a plan has data = "demo" and at least one [[run]] with method = "split"'


def read_plan(path: str | Path) -> Plan:
    """Read a plan from a TOML file; a mistake in it is an error that says where it is.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as here:
    ...     path = Path(here, "plan.toml")
    ...     _ = path.write_text('data = "demo"\\n[[run]]\\nmethod = "vanilla"\\n')
    ...     read_plan(path).runs[0].name
    'vanilla'
    """
    path = Path(path)
    tables = read_toml(path)
    try:
        file = msgspec.convert(tables, _PlanTables)
        if not file.run:
            raise UsageError(f"it has no [[run]]; {_EXAMPLE}")
        runs = [_planned(table, number) for number, table in enumerate(file.run, 1)]
        return Plan(file.data, runs, file.reading, file.training)
    except msgspec.ValidationError as error:
        raise DataError(f"{path}: {_explained(error)}") from None
    except SplimeError as error:
        raise DataError(f"{path}: {error}") from None


def _planned(table: _RunTable, number: int) -> PlannedRun:
    try:
        method = make_method(table.method, **table.parameters)
        msgspec.convert(table.parameters, type(method))  # 2.5 predicates, for example
        return PlannedRun(str(table.name or table.method), method, table.training)
    except msgspec.ValidationError as error:
        raise UsageError(f"[[run]] number {number}: parameters: {_explained(error)}") from None
    except SplimeError as error:
        raise UsageError(f"[[run]] number {number}: {error}") from None


def _explained(error: msgspec.ValidationError) -> str:
    """What is wrong with a table, and where."""
    what, _, place = str(error).replace("`", "").partition(" - at $.")
    place = re.sub(r"^run\[(\d+)\]\.?", lambda at: f"[[run]] number {int(at[1]) + 1}: ", place)
    what = what.removeprefix("Object ").replace("object", "table").replace("array", "list")
    if what.startswith("contains unknown field "):
        name = what.removeprefix("contains unknown field ")
        known = (_RunTable if place else _PlanTables).__struct_fields__
        what = f"there is no key {name!r}; there are {', '.join(known)}.{nearest(name, known)}"
    elif not place.removeprefix("run"):
        what = f"{what}; {_EXAMPLE}"
    return f"{place.rstrip(': ')}: {what}" if place else what


# Making one

_Methods: TypeAlias = str | Method | Iterable[str | Method] | None


def make_plan(
    data: str,
    *,
    method: _Methods = None,
    model: str | Iterable[str] | None = None,
    engine: str = "splime",
    reading: Mapping[str, Any] | None = None,
    **training: Any,
) -> Plan:
    """A run for each model and method; temporal models have one, unless methods are given.

    >>> [run.name for run in make_plan("demo", method=["split", "merge"]).runs]
    ['split', 'merge']
    """
    given = [method] if isinstance(method, str | Method) else [*(method or ())]
    cuts = [standard_method(one) if isinstance(one, str) else one for one in given]
    models = [model] if isinstance(model, str) else [*(model or ())]
    entries = {name: entry_for(name, engine=engine) for name in models}
    alone = {
        name: entry
        for name, entry in entries.items()
        if entry.cuts == "none" or (not cuts and entry.is_temporal)
    }
    if len(alone) == len(entries):
        for entry, one in product(alone.values(), cuts):
            entry.check_cuts(one.name)
    named = _named(cuts or [*standard_methods().values()])
    runs: list[PlannedRun] = []
    for name in models or [""]:
        more = f", {name}" if len(entries) - len(alone) > 1 else ""
        methods = {key + more: one for key, one in named.items()}
        if name in alone:
            methods = {name.lower(): standard_method(alone[name].method)}
        chosen = {"model": name} if len(models) > 1 else {}
        runs.extend(PlannedRun(key, one, chosen) for key, one in methods.items())
    shared = {"model": models[0] if len(models) == 1 else None} | training
    shared["engine"] = None if engine == "splime" else engine
    settings = {name: value for name, value in shared.items() if value is not None}
    return Plan(data, runs, reading or {}, settings)


def _named(methods: Sequence[Method]) -> dict[str, Method]:
    """Methods by their names, with their parameters where several have the same one."""
    names = [method.name for method in methods]
    named = {}
    for method in methods:
        more = [f"{name}={value}" for name, value in method.changed().items()]
        several = names.count(method.name) > 1
        named[", ".join([method.name, *more]) if several else method.name] = method
    if len(named) < len(methods):
        raise UsageError("one method is given twice, with the same parameters")
    return named


# Executing it

PLAN, RUNS = "plan.toml", "runs"
DATA = "data.parquet"
"""The facts, where they were given and not what they are read from."""
REPORT = "report.html"
_WAIT = 60.0  # seconds, for a worker that was left behind and saves its checkpoint


@dataclass(frozen=True)
class PlanResult:
    """The runs of a plan by their names, and their comparison."""

    out: Path
    runs: Mapping[str, Run]
    comparison: Comparison

    @property
    def report(self) -> Path:
        """The page with everything on it."""
        return self.out / REPORT

    def to_json(self) -> dict[str, Any]:
        """The comparison, and where the runs and the report are, as plain values."""
        runs = {name: str(run.path) for name, run in self.runs.items()}
        return {"runs": runs, "report": str(self.report), "comparison": self.comparison.to_json()}

    def __repr__(self) -> str:
        return visible(f"PlanResult({self.out}: {self.comparison!r})")

    def _repr_html_(self) -> str:
        page = f"all results on one page: {self.report}"
        return rendered([*comparison_table(self.comparison), page])


def execute(
    plan: Plan,
    out: str | Path,
    *,
    graph: TemporalGraph | None = None,
    device: str = "auto",
    parallel: Parallel | int | None = None,
    log: str | None = None,
    progress: Progress = silent,
    watching: Callable[[str], AbstractContextManager[Watch]] | None = None,
) -> PlanResult:
    """Execute a plan; what its folder already holds is not done again.

    Args:
        plan: what to do.
        out: the folder; one that holds another plan is an error.
        graph: the facts, where they are loaded already.
        device: cpu, cuda or auto.
        parallel: how to train several runs at once: a number of processes, or a `splime.Parallel`;
            by default one after the other, in this process.
        log: also log each run to an experiment tracker: tensorboard, mlflow or wandb.
        progress: called with the progress of each step.
        watching: watches the training of the run with a name, and can stop it; the same plan then
            resumes. With several at once, steps are not watched.
    """
    if not isinstance(plan, Plan):
        raise UsageError("plan must be a splime.Plan; splime.run takes data, or the file of a plan")
    pool = as_parallel(parallel, device)
    make_figure(1, 1)  # without matplotlib it fails now, not at the end
    with tracking(log):
        pass  # nor does a tracker that is not installed
    out = Path(out)
    facts = load(plan.data, **plan.reading) if graph is None else graph
    if not len(facts.test):
        raise UsageError(
            f"{without_password(plan.data)}: test has no facts, so that runs cannot be compared; a"
            " random split only moves facts whose names others have too, unless it may"
            " (--allow-unseen)"
        )
    with locked(out):
        _claim(out, plan)
        saved = out.absolute() / DATA
        if graph is not None and Path(plan.data) == saved and not saved.exists():
            save(graph, saved)
        write_json(out / "data.json", inspect(facts).to_json())
        places = {planned.name: out / RUNS / planned.name for planned in plan.runs}
        trains = partial(_train, facts, plan, device, log)
        if pool.one_by_one:
            runs = {
                planned.name: trains(planned, places[planned.name], watching, progress)
                for planned in plan.runs
            }
        else:
            with nullcontext() if watching is None else watching("trainings") as watch:
                _train_on_workers(trains, plan, out, pool, watch, progress)
            runs = {name: Run(place, device=device) for name, place in places.items()}
        compared = compare(list(runs.values()), progress=progress)
        write_comparison(compared, out / "comparison.json", "json")
        write_comparison(compared, out / "comparison.md", "markdown")
        write_page(list(runs.values()), out / REPORT, progress=progress)
        return PlanResult(out, runs, compared)


_Watching: TypeAlias = Callable[[str], AbstractContextManager[Watch]] | None


def _train(
    facts: TemporalGraph,
    plan: Plan,
    device: str,
    log: str | None,
    planned: PlannedRun,
    place: Path,
    watching: _Watching,
    progress: Progress = silent,
) -> Run:
    """One of the runs, trained in its folder."""
    cuts = planned.method.fit(facts, progress=_of_run(progress, planned.name))
    settings = plan.settings_of(planned)
    with (
        tracking(log) as tracker,
        nullcontext() if watching is None else watching(planned.name) as watch,
    ):
        run = train(facts, cuts, place, device=device, log=tracker, watch=watch, **settings)
        if tracker is not None:
            metrics = (kept(run) or evaluate(run)).metrics[TIMED[0]]["both"]
            tracker.metrics({f"test/{name}": value for name, value in vars(metrics).items()})
    return run


def _train_on_workers(
    trains: Callable[..., Run],
    plan: Plan,
    out: Path,
    parallel: Parallel,
    watch: Watch | None,
    progress: Progress,
) -> None:
    """All runs, on workers; a task is the folder of one, which names it in errors."""
    planned = {out.absolute() / RUNS / one.name: one for one in plan.runs}
    places, done = [*planned], 0
    progress("trainings", 0, len(places))
    work = partial(_train_on_worker, trains, planned)
    stop = never if watch is None else watch.stop
    for done, (number, _) in enumerate(map_trainings(work, places, parallel, stop=stop), 1):
        check_left(is_finished(places[number]), places[number])
        progress("trainings", done, len(places), places[number].name)
    if done < len(places):
        raise Interrupted(
            f"stopped after {done:,} of {len(places):,} trainings; {out} keeps them, and the same"
            " command resumes"
        )


def _train_on_worker(
    trains: Callable[..., Run], planned: Mapping[Path, PlannedRun], place: Path
) -> None:
    """Train and evaluate one of the runs; asked to stop, it saves a checkpoint."""
    check_seen(place.parents[1] / PLAN)
    with locked(place, wait=_WAIT):
        pass  # a worker that was left behind may be saving its checkpoint
    run = trains(planned[place], place, lambda _: Watching(silent))
    if kept(run) is None:
        evaluate(run)


def run(
    data: Plan | TemporalGraph | str | Path,
    out: str | Path,
    *,
    method: str | Method | Iterable[str | Method] | None = None,
    model: str | Iterable[str] | None = None,
    preset: str | None = None,
    engine: str = "splime",
    parallel: Parallel | int | None = None,
    device: str = "auto",
    reading: Mapping[str, Any] | None = None,
    log: str | None = None,
    progress: Progress = silent,
    watching: Callable[[str], AbstractContextManager[Watch]] | None = None,
    **settings: Unpack[Training],
) -> PlanResult:
    """Cut, train, evaluate, compare and report, into one folder, as `splime run` does.

    Args:
        data: the facts, or what `splime.load` reads them from; or a plan, or the TOML file of one,
            which says all that the other arguments say.
        out: the folder for everything.
        method: how to choose the cuts: a method or its name, or several; each becomes a run. All by
            default, with moderate parameters.
        model: the model, or several; each is run with every method, temporal models once.
        preset: the name of a preset.
        engine: splime, or pykeen for any model of PyKEEN.
        parallel: how to train several runs at once: a number of processes, or a `splime.Parallel`;
            by default one after the other, in this process.
        device: cpu, cuda or auto.
        reading: options of `splime.load`.
        log: also log each run to an experiment tracker: tensorboard, mlflow or wandb.
        progress: called with the progress of each step; for bars, see `splime.progress_bar`.
        watching: watches the training of the run with a name, and can stop it.
        settings: changes to the preset, see `splime.Settings`.

    For example `splime.run("demo", "all", method=["vanilla", "split"]).report`.
    """
    out = Path(out)
    graph, plan = data if isinstance(data, TemporalGraph) else None, data
    how: dict[str, Any] = {"method": method, "model": model, "preset": preset, "reading": reading}
    chosen = {**how, **settings} | ({} if engine == "splime" else {"engine": engine})
    if isinstance(plan, str | Path) and str(plan).lower().endswith(".toml"):
        plan = read_plan(plan)
    if not isinstance(plan, Plan):
        if not is_stored(data) and graph is None:  # it may be other facts the next time
            graph = load(data, **(chosen.pop("reading") or {}))
        plan = make_plan(str(out.absolute() / DATA if graph else data), **chosen)
    elif wrong := [name for name, value in chosen.items() if value is not None]:
        raise UsageError(f"a plan says everything: leave out {', '.join(wrong)}")
    return execute(
        plan,
        out,
        graph=graph,
        device=device,
        parallel=parallel,
        log=log,
        progress=progress,
        watching=watching,
    )


@wraps(execute)
def carry_out(*args: Any, **options: Any) -> PlanResult:
    """The old name of `execute`, for one version."""
    warnings.warn("splime.carry_out is now splime.execute", DeprecationWarning, stacklevel=2)
    return execute(*args, **options)


def _claim(out: Path, plan: Plan) -> None:
    """Write the plan into its folder, which must be empty, or this plan's."""
    path = out / PLAN
    if path.exists():
        if read_plan(path).to_toml() != plan.to_toml():
            raise UsageError(
                f"{path}: this folder belongs to another plan; choose another folder, or"
                " remove this one"
            )
        return
    if content(out):
        raise UsageError(f"{out}: holds other things; choose another folder")
    with atomic_write(path) as beside:
        beside.write_text(plan.to_toml(), encoding="utf-8")


def _of_run(progress: Progress, name: str) -> Progress:
    """Progress with a bar for each run."""

    def tell(what: str, done: int, total: int | None = None, note: str = "") -> None:
        progress(f"{what}, {name}", done, total, note)

    return tell
