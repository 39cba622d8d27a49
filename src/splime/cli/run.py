"""`splime run`: the whole way into one folder."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from splime.cli.console import Watching, show
from splime.cli.options import Device, Engine, Model, load_graph, taken_by, with_options
from splime.errors import UsageError
from splime.methods import METHODS, Method, make_method, standard_methods
from splime.progress import progress_bar

if TYPE_CHECKING:
    from splime.plans import Carried


@with_options
def run(
    data: Annotated[
        str,
        Argument(
            metavar="DATA|PLAN.toml",
            help="A dataset, file or folder as for `splime train`; or a plan, a TOML file that"
            " says all that the options say, for each run.",
        ),
    ],
    out: Annotated[Path, Option(metavar="DIR", help="The folder for everything.")],
    method: Annotated[
        list[str] | None,
        Option(
            help=f"How to choose the cuts: {', '.join(METHODS)}. May be given several times, each"
            " becomes a run. Default: all of them, with moderate parameters."
        ),
    ] = None,
    model: Model = None,
    preset: Annotated[
        str | None, Option(help="Settings by name, see `splime models`. Default: strong.")
    ] = None,
    engine: Engine = "splime",
    device: Device = "auto",
    *,
    reading: dict[str, Any],
    settings: dict[str, Any],
    parameters: dict[str, Any],
) -> None:
    """Inspect, cut, train, evaluate, compare and report, into one folder.

    The folder then has plan.toml (what was done; `splime run DIR/plan.toml` does it again),
    data.json, a run for each method in runs/, comparison.md and .json, and report.html. The same
    command resumes what was interrupted.

    Example: splime run demo --method vanilla --method split --grow 5 --epochs 20 --out demo-run
    """
    from splime.plans import Plan, PlannedRun, carry_out, read_plan
    from splime.report.comparison import comparison_table, in_short

    named = {"model": model, "preset": preset, "engine": None if engine == "splime" else engine}
    training = {key: value for key, value in named.items() if value is not None} | settings
    graph = None
    if data.lower().endswith(".toml"):
        if given := [*(["method"] if method else []), *training, *parameters, *reading]:
            raise UsageError(
                f"a plan says everything: write {', '.join(given)} into {data}, and leave out the"
                " options"
            )
        plan = read_plan(data)
    else:
        chosen = _chosen(method, training, parameters)
        graph = load_graph(data, reading)
        runs = [PlannedRun(name, each) for name, each in chosen.items()]
        plan = Plan(data, runs, reading, training)
    with progress_bar() as progress:
        done = carry_out(
            plan,
            out,
            graph=graph,
            device=device,
            progress=progress,
            watching=lambda name: Watching(progress, f"training, {name}"),
        )
    show(*comparison_table(done.comparison), in_short(done.comparison))
    show(f"everything, with pictures: {done.report}", f"ask it: {_question(done)}")


def _chosen(
    methods: list[str] | None, training: dict[str, Any], parameters: dict[str, Any]
) -> dict[str, Method]:
    """The methods that were chosen, each with those of the parameters that it has."""
    if not methods and parameters:
        raise UsageError(
            f"--{next(iter(parameters))} belongs to a method; choose one with --method"
        )
    # `--seed` is the training's, and the method's if it has one.
    given = {**training, **parameters}
    chosen = {name: make_method(name, **taken_by(name, given)) for name in methods or ()}
    for key in parameters:
        if not any(taken_by(name, {key: None}) for name in chosen):
            raise UsageError(f"none of {', '.join(chosen)} has a parameter {key}")
    return chosen or standard_methods()


def _question(done: Carried) -> str:
    """A question that can be asked, about a fact that the best run has not seen."""
    best = done.runs[done.comparison.rows[0].name]
    fact = next(best.graph.rows("test"))
    asked = [str(best.path), fact.subject, fact.predicate, "?"]
    when = fact.begin or fact.end
    return shlex.join(["splime", "ask", *asked, *(["--at", when] if when else [])])
