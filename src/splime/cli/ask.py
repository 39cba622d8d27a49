"""Questions to runs: `splime ask` in the terminal, `splime explore` in the browser."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from splime.cli import options
from splime.cli.console import Result, draw, open_page, show, written
from splime.errors import UsageError, counted
from splime.graph import Fact
from splime.progress import progress_bar, working

if TYPE_CHECKING:
    from splime.query import Query

_MANY = "Many questions, and similar names"
_MARK = "_"
"""The same as `?`, which some shells take for a file name."""


def _name(what: str) -> Any:
    return Argument(metavar=what, help="A name, or ? for the answer.")


def _interval(text: str | None) -> tuple[str, str] | None:
    from splime.query.questions import read_during

    return None if text is None else read_during(text)


@options.with_options(
    at=options.option("TIME", "The time of the question: 1985, 2014-05-03."),
    during=Option(
        metavar="BEGIN..END",
        callback=_interval,
        help="An interval instead: 2009..2017. Default: the whole time of the graph; for a run that"
        " forecasts (--past), the first time after it.",
    ),
    limit=options.number("How many answers. Default: 10."),
    known=options.name("Answers that the graph states at that time: mark or drop."),
    best=options.number(
        "Which predicate, as in the paper: of the N best scoped predicates, those at that time."
    ),
    aggregate=options.Aggregate,
    near=options.name("Names with vectors near this one.", _MANY),
    kind=options.name("near: entity or predicate.", _MANY),
    file=options.file(
        "Many questions: a .tsv, .csv or .parquet with the columns subject, predicate, object,"
        " and at (or begin and end).",
        _MANY,
    ),
    out=options.file(
        "The file of their answers: .tsv, .json or .parquet. Default: the first ones are printed.",
        _MANY,
    ),
)
def ask(
    run: options.RunFolder,
    subject: Annotated[str | None, _name("SUBJECT")] = None,
    predicate: Annotated[str | None, _name("PREDICATE")] = None,
    object: Annotated[str | None, _name("OBJECT")] = None,
    *,
    given: dict[str, Any],
    why: Annotated[
        bool, Option("--why", help="Also show the facts behind the best answer (path model).")
    ] = False,
    plot: Annotated[Path | None, options.picture("the facts of --why on a time axis")] = None,
    device: options.Device = "auto",
    facts: dict[str, Any],
) -> Result:
    """Ask a run, or a graph without training; write ? (or _) for the answer.

    - a file, without training: splime ask facts.csv Ada worksFor "?" --at 2019 --why

    - what: splime ask run "Sara Finnby" livesIn "?" --at 1982

    - who: splime ask run "?" livesIn Melcourt --during 1980..1989

    - which predicate: splime ask run "Sara Finnby" "?" Melcourt --at 1982

    - when: splime ask run "Sara Finnby" livesIn Melcourt

    - why: splime ask run "Sara Finnby" livesIn "?" --at 1982 --why

    - with new facts: splime ask run Newcomer livesIn "?" --at 1982 --facts newer.tsv

    - near: splime ask run --near livesIn --at 1982

    - names that begin with -: splime ask run --at 1982 -- -name livesIn "?"

    - many: splime ask run --file questions.tsv --out answers.parquet
    """
    from splime.query import Query
    from splime.query.explained import explain
    from splime.reporting.plots import plot_evidence

    names = [_unmarked(name) for name in (subject, predicate, object) if name is not None]
    _check(names, given, why=why, plot=plot is not None)
    aggregate = given.pop("aggregate", None)
    query = Query(options.open_run(run, device, facts), aggregate=aggregate)
    if "file" in given:
        return _answer_file(query, **given)
    if "near" in given:
        return Result(query.near(given.pop("near"), **given))
    explained = explain(query, *names, why=why, **given)
    draw(plot, plot_evidence, explained.evidence, query.run.graph.timeline.granularity)
    return Result(explained, after=written(evidence=plot))


def _check(names: Sequence[str], given: Mapping[str, Any], *, why: bool, plot: bool) -> None:
    """What does not go together is an error before the run is opened."""
    from splime.query.many import check_out

    ways = [bool(names), "near" in given, "file" in given]
    refused = {
        "ask with SUBJECT PREDICATE OBJECT, with --near NAME, or with --file FILE": (
            sum(ways) != 1 or len(names) not in (0, 3)
        ),
        "--out is for the answers to the questions of --file": "out" in given and not ways[2],
        "questions of a file have their own times; leave out --at, --during": (
            ways[2] and not given.keys().isdisjoint(("at", "during"))
        ),
        "--why explains the answer to one question that asks who or what": why and not names,
        "--plot draws what --why shows; give both": plot and not why,
        "--kind is for --near": "kind" in given and not ways[1],
    }
    for reason, wrong in refused.items():
        if wrong:
            raise UsageError(reason)
    if ways[1]:
        options.check_only(given, "--near", "near", "kind", "at", "during", "limit", "aggregate")
    if "out" in given:
        check_out(Path(given["out"]))


def _answer_file(query: Query, file: str, out: str | None = None, **chosen: Any) -> Result:
    """Answer many questions, and write or show their answers."""
    from pyarrow import concat_tables

    from splime.query import write_answers
    from splime.reporting.answers import many_parts

    with progress_bar(shorter="fewer questions") as progress:
        answered = query.answer_blocks(file, progress=progress, **chosen)
        if out is not None:
            count = write_answers(answered, Path(out))
            done = f"{counted(count, 'answer')} written to {out}"
            return Result({"answers": count, "out": out}, [done])
        table = concat_tables(answered)
    return Result(table.to_pylist(), many_parts(table))


def question_to(source: str, fact: Fact, *, reading: Sequence[str] = (), why: bool = False) -> str:
    """A command that asks for the object of a fact, ready to be copied."""
    from splime.query.questions import ASKED, quoted

    names = (f"\\{name}" if name == _MARK else quoted(name) for name in fact[:2])
    asked = [source, *names, ASKED]
    more = ["--at", when] if (when := fact.begin or fact.end) else []
    more += [*reading, *(["--why"] if why else [])]
    is_option = any(name.startswith("-") for name in asked)
    return shlex.join(["splime", "ask", *([*more, "--", *asked] if is_option else [*asked, *more])])


def _unmarked(name: str) -> str:
    """A name with `_` as `?`, which asks; and what is called `_`, written `\\_`, as it is."""
    from splime.query.questions import ASKED

    return ASKED if name == _MARK else re.sub(rf"^\\(\\*{_MARK})$", r"\1", name)


def explore(
    runs: Annotated[
        list[str],
        Argument(
            metavar="DATA|RUN…",
            help="A file, a folder of files or a dataset, which is asked without training; the"
            " folders of runs; or both, on the same facts.",
        ),
    ],
    out: Annotated[
        Path | None,
        options.file(
            "Write a page that needs no server instead, with the answers to questions about up to"
            " 100 facts."
        ),
    ] = None,
    port: Annotated[
        int | None,
        options.option("N", "The port. Default: 8765, or a free one if it is taken."),
    ] = None,
    megabytes: Annotated[
        float | None,
        options.option("N", "The largest size of the page of --out. Default: 5."),
    ] = None,
    doubts: Annotated[
        Path | None, options.file("List the facts in this file of splime doubts.")
    ] = None,
    backtest: Annotated[
        Path | None, options.file("Draw this file of splime backtest --out.")
    ] = None,
    device: options.Device = "auto",
    show_page: options.Open = False,
) -> None:
    """Ask a file or runs in the browser, on a page that only this machine can open.

    Runs on the same facts are shown side by side. Ctrl-C ends it. Example: splime explore facts.csv
    """
    from splime.explorer import Explorer, write_explorer
    from splime.explorer.page import MEGABYTES
    from splime.runs import Run

    if out is not None and port is not None:
        raise UsageError("--out writes a page without a server; leave out --port")
    if out is None and megabytes is not None:
        raise UsageError("--megabytes is the size of the page of --out")
    with working("opening the runs …"):
        found = [Run.of(run, device=device) for run in runs]
        explorer = Explorer(found, doubts, backtest, sources=runs)
    if out is not None:
        size = MEGABYTES if megabytes is None else megabytes
        with progress_bar() as progress:
            held = write_explorer(explorer, out, megabytes=size, progress=progress)
        show(f"written to {out}: {held}")
        if show_page:
            open_page(out)
        return
    from splime.explorer.server import Server  # which a page in a file does not need

    with progress_bar() as progress:
        explorer.prepare(progress)
    with Server(explorer, port) as server:
        show(f"open {server.address} in a browser; Ctrl-C ends it")
        if show_page:
            open_page(server.address)
        server.serve_forever()
