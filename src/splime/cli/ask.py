"""Questions to runs: `splime ask` in the terminal, `splime explore` in the browser."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from splime.cli import options
from splime.cli.console import show, show_json
from splime.errors import UsageError, counted
from splime.graph import Fact
from splime.progress import progress_bar, working

if TYPE_CHECKING:
    from splime.query import Query

_MANY = "Many questions, and similar names"
_NAMES = ("subject", "predicate", "object")
_MARK = "_"
"""The same as `?`, which some shells take for a file name."""

Name = Annotated[str | None, Argument(help="A name, or ? for the answer.")]
At = Annotated[str | None, options.option("TIME", "The time of the question: 1985, 2014-05-03.")]
During = Annotated[
    str | None,
    options.option(
        "BEGIN..END",
        "An interval instead: 2009..2017. Default: the whole time of the graph; for a run that"
        " forecasts (--past), the first time after it.",
    ),
]
File = Annotated[
    Path | None,
    options.file(
        "Many questions: a .tsv, .csv or .parquet with the columns subject, predicate, object,"
        " and at (or begin and end).",
        _MANY,
    ),
]
Out = Annotated[
    Path | None,
    options.file(
        "The file of their answers: .tsv, .json or .parquet. Default: the first ones are printed.",
        _MANY,
    ),
]
Why = Annotated[
    bool, Option("--why", help="Also show the facts behind the best answer (path model).")
]


@options.with_options(
    known=options.name("Answers that the graph states at that time: mark or drop."),
    best=options.number(
        "Which predicate, as in the paper: of the N best scoped predicates, those at that time."
    ),
)
def ask(
    run: options.RunFolder,
    subject: Name = None,
    predicate: Name = None,
    object: Name = None,
    at: At = None,
    during: During = None,
    limit: Annotated[int, options.option("N", "How many answers. Default: 10.")] = 10,
    *,
    given: dict[str, Any],
    aggregate: Annotated[str | None, options.Aggregate] = None,
    near: Annotated[str | None, options.name("Names with vectors near this one.", _MANY)] = None,
    kind: Annotated[str | None, options.name("near: entity or predicate.", _MANY)] = None,
    file: File = None,
    out: Out = None,
    why: Why = False,
    plot: Annotated[Path | None, options.picture("the facts of --why on a time axis")] = None,
    device: options.Device = "auto",
    as_json: options.AsJson = False,
    facts: dict[str, Any],
) -> None:
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
    from splime.query.many import check_out
    from splime.query.questions import ASKED, read_during
    from splime.reporting.answers import answer_parts, evidence_parts
    from splime.reporting.plots import plot_evidence
    from splime.reporting.style import save_picture

    names = [_unmarked(name) for name in (subject, predicate, object) if name is not None]
    has_time = at is not None or during is not None
    ways = [bool(names), near is not None, file is not None]
    _refuse(
        {
            "ask with SUBJECT PREDICATE OBJECT, with --near NAME, or with --file FILE": (
                sum(ways) != 1 or len(names) not in (0, 3)
            ),
            "--out is for the answers to the questions of --file": out and not file,
            "the answers go to --out; call it .json for JSON": out and as_json,
            "questions of a file have their own times; leave out --at, --during": file and has_time,
            "--why explains the answer to one question that asks who or what": why and not names,
            "--plot draws what --why shows; give both": plot and not why,
        }
    )
    if out is not None:
        check_out(out)
    when: dict[str, Any] = {"at": at, "during": None if during is None else read_during(during)}
    query = Query(options.open_run(run, device, facts), aggregate=aggregate)  # type: ignore[arg-type]
    if file is not None:
        _answer_file(query, file, out, {"limit": limit, **given}, as_json=as_json)
        return
    question: dict[str, Any] = dict(zip(_NAMES, names, strict=False))  # or none
    if near is not None:
        answers = query.near(near, **when, kind=kind, limit=limit)
    else:
        time = None if has_time or ASKED in names else ASKED
        answers = query.ask(**question, time=time, **when, limit=limit, **given)
    evidence = None
    if why:
        if not answers.rows:
            raise UsageError("--why explains the best answer, and there is none")
        evidence = query.why(**question, answer=answers[0].name, **when)
        if plot is not None:
            save_picture(plot_evidence(evidence, query.run.graph.timeline.granularity), plot)
    if not as_json:  # what is to say of the answer can take longer than the answer
        show(*answer_parts(answers), *(() if evidence is None else evidence_parts(evidence)))
    there = query.there_is_one(**question, **when) if near is None else None
    trust = query.trust if near is None else None
    if as_json:
        parts = {"evidence": evidence, "trust": trust}
        more: dict[str, Any] = {"there_is_one": None if there is None else there._asdict()}
        more |= {name: part.to_json() for name, part in parts.items() if part is not None}
        show_json(answers.to_json() | more)
        return
    for line in (there, trust):
        if line is not None:
            show(str(line))


def _answer_file(
    query: Query, file: Path, out: Path | None, chosen: Mapping[str, Any], *, as_json: bool
) -> None:
    """Answer many questions, and write or show their answers."""
    from pyarrow import concat_tables

    from splime.query import write_answers
    from splime.reporting.answers import many_parts

    with progress_bar(shorter="fewer questions") as progress:
        answered = query.answer_blocks(file, progress=progress, **chosen)
        if out is not None:
            show(f"{counted(write_answers(answered, out), 'answer')} written to {out}")
            return
        table = concat_tables(answered)
    if as_json:
        show_json(table.to_pylist())
    else:
        show(*many_parts(table))


def _refuse(reasons: Mapping[str, object]) -> None:
    """An error for the first reason that holds."""
    for reason, wrong in reasons.items():
        if wrong:
            raise UsageError(reason)


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
            help="A file, a folder of files or the name of a dataset, which is asked without"
            " training; the folders of runs; or both, on the same facts.",
        ),
    ],
    out: Annotated[
        Path | None,
        options.file(
            "Write a page that works without a server instead, with the answers to questions"
            " about up to 100 facts."
        ),
    ] = None,
    port: Annotated[
        int | None,
        options.option("N", "The port. Default: 8765, or a free one if it is taken."),
    ] = None,
    megabytes: Annotated[
        float | None,
        options.option("N", "How large the page of --out may be; it says what was left out."),
    ] = None,
    doubts: Annotated[
        Path | None, options.file("A file that splime doubts has written: list its facts.")
    ] = None,
    backtest: Annotated[
        Path | None, options.file("A file that splime backtest --out has written: draw it.")
    ] = None,
    device: options.Device = "auto",
) -> None:
    """Ask a file or runs in the browser, on a page that only this machine can open.

    Runs on the same facts are shown side by side. It ends with Ctrl-C. Example: splime explore
    facts.csv
    """
    from splime.explorer import Explorer, write_explorer
    from splime.explorer.page import MEGABYTES
    from splime.runs import Run

    if out is not None and port is not None:
        raise UsageError("--out writes a page without a server; leave out --port")
    if out is None and megabytes is not None:
        raise UsageError("--megabytes is the size of the page of --out")
    with working("opening the runs …"):
        opened = [Run.of(run, device=device) for run in runs]
        explorer = Explorer(opened, doubts, backtest, sources=runs)
    if out is not None:
        size = MEGABYTES if megabytes is None else megabytes
        with progress_bar() as progress:
            held = write_explorer(explorer, out, megabytes=size, progress=progress)
        show(f"written to {out}: {held}")
        return
    from splime.explorer.server import Server  # which a page in a file does not need

    with progress_bar() as progress:
        explorer.prepare(progress)
    with Server(explorer, port) as server:
        show(f"open {server.address} in a browser; Ctrl-C ends it")
        server.serve_forever()
