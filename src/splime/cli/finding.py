"""What a model or counts find in a graph: `splime predict`, `doubts`, `backtest` and `rules`."""

from __future__ import annotations

from collections.abc import Sized
from pathlib import Path
from typing import Annotated, Any

from typer import Argument

from splime.cli import options
from splime.cli.console import Result, draw, written
from splime.errors import UsageError, counted
from splime.progress import progress_bar

_SHOWN = 20
"""What is looked for where nothing is written: as much as is printed."""
_TABLE = options.file("The file to write: .csv, .parquet or .jsonl.")

Source = Annotated[
    str,
    Argument(metavar="DATA", help="A file, a folder of files or the name of a dataset."),
]


def _check_out(given: dict[str, Any]) -> None:
    """An error for the wrong kind of file before the work; without a file, a limit."""
    from splime.query.predicted import check_suffix

    if "out" in given:
        check_suffix(Path(given["out"]))
    else:
        given.setdefault("limit", _SHOWN)


def _result(found: Sized, noun: str, out: str | None = None, **_: Any) -> Result:
    return Result(found, after=[f"{counted(len(found), noun)} written to {out}"] if out else [])


@options.with_options(
    out=_TABLE,
    predicate=options.some("Only facts of these predicates."),
    entity=options.some("Only facts of these subjects."),
    at=options.option("TIME", "The time: 1985, 2014-05-03. Default: the last one of the graph."),
    next=options.option(
        "TIME", "Forecast what begins within this time after the graph's: 7, week, 2 months."
    ),
    new=options.flag("--new", "Only facts that the graph never states."),
    least=Annotated[
        float | None,
        options.option("P", "Only facts at least this probable: 0.8. Default: 0."),
    ],
    limit=options.number("The most facts to list. Default: 1000 with --out, else 20."),
)
def predict(
    run: options.RunFolder,
    *,
    given: dict[str, Any],
    device: options.Device = "auto",
    facts: dict[str, Any],
) -> Result:
    """Predict the most probable facts that a graph does not state.

    The probability of a fact is that of its object, if there is such a fact (or one more), times
    the probability that the graph states one. The same command resumes an interrupted one.

    Examples: splime predict demo --predicate livesIn --at 1990 --out missing.csv; splime predict
    demo --next 2
    """
    from splime.query.predicting import predict as predict_facts

    _check_out(given)
    opened = options.open_run(run, device, facts)
    with progress_bar(shorter="--predicate A, --entity A, --limit N, --least P") as progress:
        found = predict_facts(opened, progress=progress, **given)
    return _result(found, "fact", **given)


@options.with_options(
    out=_TABLE,
    kind=Annotated[
        str | None,
        options.names(
            help="Only these kinds: object, subject, predicate, time, overlap, name.",
        ),
    ],
    predicate=options.some("Only facts of these predicates."),
    entity=options.some("Only facts of these entities."),
    limit=options.number("The most facts to list. Default: 1000 with --out, else 20."),
    evidence=options.flag("--why", "Also show the facts against it."),
)
def doubts(
    run: options.RunFolder,
    *,
    given: dict[str, Any],
    device: options.Device = "auto",
    facts: dict[str, Any],
) -> Result:
    """List the facts that look wrong, the most doubtful first.

    Each fact is hidden and recovered from the others. Found are wrong objects, subjects, predicates
    and times, objects that exclude each other, and two names of one entity. The same command
    resumes an interrupted one.

    Example: splime doubts facts.csv --why --out doubts.csv
    """
    from splime.query.doubting import doubts as find_doubts

    _check_out(given)
    opened = options.open_run(run, device, facts)
    with progress_bar() as progress:
        found = find_doubts(opened, progress=progress, **given)
    return _result(found, "doubt", **given)


@options.with_options(
    every=options.option(
        "TIME",
        "How long a window is: day, week, month, quarter, year, 2 weeks, or a number in the"
        " unit of the graph. Default: ten windows.",
    ),
    questions=options.number("The most questions in a window. Default: 400."),
    out=options.file("The .json file to write; the same command resumes what was interrupted."),
    begin=options.option(
        "TIME",
        "Where the first window begins. Default: after three quarters of the facts.",
        None,
        "--from",
    ),
)
def backtest(
    source: Source,
    *,
    given: dict[str, Any],
    plot: Annotated[Path | None, options.picture("metrics and probabilities over time")] = None,
    device: options.Device = "auto",
    reading: dict[str, Any],
) -> Result:
    """Make forecasts as they would have been made, and compare them with what happened.

    In each window of time only the facts that began before it are known. The model without training
    is compared with two baselines: what held lately or often (recurrency), and the latest fact.

    Example: splime backtest demo --from 2010 --every year --plot backtest.png
    """
    from splime.analysis.backtest import backtest as run_backtest
    from splime.reporting.plots import plot_backtest

    shorter = "--questions 50, a later --from, a longer --every"
    with progress_bar(shorter=shorter) as progress:
        found = run_backtest(source, device=device, progress=progress, **given, **reading)
    draw(plot, plot_backtest, found)
    return Result(found, after=written(windows=given.get("out"), over_time=plot))


@options.with_options(
    support=options.number("The least number of known facts that lead to the answer. Default: 5."),
    limit=options.number(
        "Rules of each kind for a question. Default: 10; 3 where all predicates are listed."
    ),
    examples=options.number("Examples of each rule to show: facts with their dates."),
)
def rules(
    source: Annotated[
        str,
        Argument(
            metavar="DATA|RUN",
            help="A file, a folder of files or a dataset; or a run of the path model.",
        ),
    ],
    predicate: Annotated[
        str | None,
        Argument(metavar="PREDICATE", help="Only rules of this predicate. Default: a few of each."),
    ] = None,
    *,
    given: dict[str, Any],
    plot: Annotated[
        Path | None, options.picture("how often facts before and after lead to the answer")
    ] = None,
    reading: dict[str, Any],
) -> Result:
    """List rules of a graph: which known facts lead to an answer, when, and how often.

    A rule counts how often a known fact, or a chain of two, leads to the answer to a question about
    a predicate. Chains are counted if you name a predicate.

    Example: splime rules demo visited --examples 2 --plot visited.png
    """
    from splime.analysis.rules import rules as find_rules
    from splime.reporting.plots import plot_rules

    if plot is not None and predicate is None:
        raise UsageError("--plot draws the rules of one predicate: name it after the source")
    with progress_bar(shorter="the rules of one predicate") as progress:
        found = find_rules(source, predicate, progress=progress, **given, **reading)
    draw(plot, plot_rules, found)
    return Result(found, after=written(before_and_after=plot))
