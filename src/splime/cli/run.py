"""`splime run`: the whole way into one folder."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from splime.cli import source
from splime.cli.console import console
from splime.cli.parameters import method_options, setting_options, taken_by, with_options
from splime.cli.train import Device, Engine, torch_needed
from splime.cli.watching import Watching
from splime.embedding.settings import SETTINGS
from splime.errors import UsageError
from splime.methods import METHODS, Method, make_method
from splime.progress import progress_bar

if TYPE_CHECKING:
    from splime.graph import TemporalGraph
    from splime.plans.plan import Carried, Plan

_METHODS = {name: option for name, option in method_options().items() if name not in SETTINGS}


@with_options({**source.READING, **setting_options(), **_METHODS})
def run(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA|PLAN.toml",
            help="A dataset, file or folder as for `splime train`; or a plan, a TOML file that"
            " says all that the options say, for each run.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for everything.")],
    method: Annotated[
        list[str] | None,
        typer.Option(
            help=f"How to choose the cuts: {', '.join(METHODS)}. May be given several times, each"
            " becomes a run. Default: all of them, with moderate parameters."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="The static model, see `splime models`. Default: complex.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="Settings by name, see `splime models`. Default: strong.")
    ] = None,
    engine: Engine = "splime",
    device: Device = "auto",
    **given: Any,
) -> None:
    """Inspect, cut, train, evaluate, compare and report, into one folder.

    The folder then has plan.toml (what was done; `splime run DIR/plan.toml` does it again),
    data.json, a run for each method in runs/, comparison.md and .json, and report.html. The same
    command resumes what was interrupted.

    Example: splime run demo --method vanilla --method split --grow 5 --epochs 20 --out demo-run
    """
    torch_needed()
    from splime.plans import carry_out
    from splime.report.comparison import comparison_table, in_short
    from splime.runs import Interrupted

    given |= {"model": model, "preset": preset, "engine": None if engine == "splime" else engine}
    plan, graph = _planned(data, method, {k: v for k, v in given.items() if v is not None})
    try:
        with progress_bar() as update:
            watching = partial(_watching, update)
            done = carry_out(
                plan, out, graph=graph, device=device, progress=update, watching=watching
            )
    except Interrupted as stopped:
        typer.secho(str(stopped), err=True)
        raise typer.Exit(stopped.exit_code) from None
    show = console()
    for part in comparison_table(done.comparison):
        show.print(part)
    show.print(in_short(done.comparison))
    show.print(f"everything, with pictures: {done.report}", soft_wrap=True)
    show.print(f"ask it: {_question(done)}", soft_wrap=True)


def _question(done: Carried) -> str:
    """A question that can be asked, about a fact that the best run has not seen."""
    best = done.runs[done.comparison.rows[0].name]
    fact = next(best.graph.rows("test"))
    asked = [str(best.path), fact.subject, fact.predicate, "?"]
    when = fact.begin or fact.end
    return shlex.join(["splime", "ask", *asked, *(["--at", when] if when else [])])


def _watching(update: Any, name: str) -> Watching:
    return Watching(update, f"training, {name}")


def _planned(
    data: str, methods: list[str] | None, given: dict[str, Any]
) -> tuple[Plan, TemporalGraph | None]:
    """The plan of a file, or of the options; and the graph, if it had to be loaded for that."""
    from splime.plans import Plan, PlannedRun, read_plan, standard_methods

    if data.lower().endswith(".toml"):
        if methods or given:
            wrong = "--method" if methods else f"--{next(iter(given)).removeprefix('set_')}"
            raise UsageError(f"a plan says everything: leave out {wrong}, or write it into {data}")
        return read_plan(data), None
    named = ("model", "preset", "engine")
    training: dict[str, Any] = {name: given.pop(name) for name in named if name in given}
    training |= {n: given.pop(f"set_{n}") for n in SETTINGS if f"set_{n}" in given}
    reading = source.reading_options(given)
    if methods is None and given:
        raise UsageError(f"--{next(iter(given))} belongs to a method; choose one with --method")
    chosen: dict[str, Method] = {}
    for name in methods or ():
        # `--seed` is the training's, and the method's if it has one.
        chosen[name] = make_method(name, **taken_by(name, {**training, **given}))
    for key in given:
        if not any(taken_by(name, {key: None}) for name in chosen):
            raise UsageError(f"none of {', '.join(chosen)} has a parameter {key}")
    graph = source.load_graph(data, reading)
    chosen = chosen or standard_methods()
    runs = [PlannedRun(name, one) for name, one in chosen.items()]
    return Plan(data, runs, reading, training), graph
