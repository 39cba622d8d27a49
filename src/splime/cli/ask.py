"""`splime ask`: who, what, which predicate, when, and what is near, at a time."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from splime.cli import options
from splime.cli.console import show, show_json
from splime.errors import UsageError
from splime.progress import progress_bar

if TYPE_CHECKING:
    from splime.query import Answers, Evidence
    from splime.times import Granularity

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
Limit = Annotated[int, options.option("N", "How many answers. Default: 10.")]
Known = Annotated[str, options.name("Answers that the graph states at that time: mark or drop.")]
Best = Annotated[
    int | None,
    options.option(
        "N",
        "Which predicate, as in the paper: of the N best scoped predicates, those at that time.",
    ),
]
Aggregate = Annotated[
    str | None,
    options.name(
        "How scores of several scopes become one: mean, ends, begin, max or sum. Default: as the"
        " run was trained."
    ),
]
Near = Annotated[str | None, options.name("Names with vectors near this one.", panel=_MANY)]
Kind = Annotated[str | None, options.name("near: entity or predicate.", panel=_MANY)]
Questions = Annotated[
    Path | None,
    options.file(
        "Many questions: a .tsv, .csv or .parquet with the columns subject, predicate, object, and"
        " at (or begin and end).",
        panel=_MANY,
    ),
]
Out = Annotated[
    Path | None, options.file("The file of their answers: .tsv, .json or .parquet.", panel=_MANY)
]
Why = Annotated[
    bool,
    Option("--why", help="Also show the facts behind the best answer (path model)."),
]


@options.with_options
def ask(
    run: options.RunFolder,
    subject: Name = None,
    predicate: Name = None,
    object: Name = None,
    at: At = None,
    during: During = None,
    limit: Limit = 10,
    known: Known = "mark",
    best: Best = None,
    aggregate: Aggregate = None,
    near: Near = None,
    kind: Kind = None,
    file: Questions = None,
    out: Out = None,
    why: Why = False,
    plot: Annotated[Path | None, options.picture("the facts of --why on a time axis")] = None,
    device: options.Device = "auto",
    as_json: options.AsJson = False,
    *,
    facts: dict[str, Any],
) -> None:
    """Ask a trained run; write ? (or _) for the answer.

    - what: splime ask run "Sara Finnby" livesIn "?" --at 1982

    - who: splime ask run "?" livesIn Melcourt --during 1980..1989

    - which predicate: splime ask run "Sara Finnby" "?" Melcourt --at 1982

    - when: splime ask run "Sara Finnby" livesIn Melcourt

    - why: splime ask run "Sara Finnby" livesIn "?" --at 1982 --why

    - with new facts: splime ask run Newcomer livesIn "?" --at 1982 --facts newer.tsv

    - near: splime ask run --near livesIn --at 1982

    - names that begin with -: splime ask run --at 1982 -- -name livesIn "?"; what is called ? or _
    itself is written \\? or \\_

    - many: splime ask run --file questions.tsv --out answers.parquet
    """
    from splime.query import Query, write_answers
    from splime.query.questions import ASKED, read_during

    names = [_unmarked(name) for name in (subject, predicate, object) if name is not None]
    has_time = at is not None or during is not None
    _check(names, near, file, out, has_time=has_time, as_json=as_json, why=why, plot=plot)
    question: dict[str, Any] = dict(zip(_NAMES, names, strict=False))  # or none
    when: dict[str, Any] = {"at": at, "during": None if during is None else read_during(during)}
    chosen: dict[str, Any] = {"limit": limit, "known": known, "best": best}
    query = Query(options.open_run(run, device, facts), aggregate=aggregate)  # type: ignore[arg-type]
    if file is not None and out is not None:
        with progress_bar() as progress:
            count = write_answers(query.answer_blocks(file, progress=progress, **chosen), out)
        show(f"{count:,} answers written to {out}")
        return
    if near is not None:
        answers = query.near(near, **when, kind=kind, limit=limit)
    else:
        asks_when = ASKED not in names and not has_time
        answers = query.ask(**question, time=ASKED if asks_when else None, **when, **chosen)
    evidence = None
    if why:
        if not answers.rows:
            raise UsageError("--why explains the best answer, and there is none")
        evidence = query.why(**question, answer=answers[0].name, **when)
    _show(answers, evidence, plot, query.run.graph.timeline.granularity, as_json=as_json)
    if near is None and not as_json and query.trust is not None:
        show(str(query.trust))


def _unmarked(name: str) -> str:
    """A name with `_` as `?`, which asks; and what is called `_`, written `\\_`, as it is."""
    from splime.query.questions import ASKED

    return ASKED if name == _MARK else re.sub(rf"^\\(\\*{_MARK})$", r"\1", name)


def _check(
    names: list[str],
    near: str | None,
    file: Path | None,
    out: Path | None,
    *,
    has_time: bool,
    as_json: bool,
    why: bool,
    plot: Path | None,
) -> None:
    """Refuse options that exclude each other."""
    from splime.query.many import check_out

    ways = [bool(names), near is not None, file is not None]
    if sum(ways) != 1 or (names and len(names) != 3):
        raise UsageError(
            "ask with SUBJECT PREDICATE OBJECT, with --near NAME, or with --file FILE --out FILE"
        )
    if (file is None) != (out is None):
        raise UsageError("--file, the questions, and --out, their answers, go together")
    if out is not None:
        if as_json:
            raise UsageError("the answers go to --out; call it .json for JSON")
        if has_time:
            raise UsageError("questions of a file have their own times; leave out --at, --during")
        check_out(out)
    if why and not names:
        raise UsageError("--why explains the answer to one question that asks who or what")
    if plot is not None and not why:
        raise UsageError("--plot draws what --why shows; give both")


def _show(
    answers: Answers,
    evidence: Evidence | None,
    plot: Path | None,
    granularity: Granularity,
    *,
    as_json: bool,
) -> None:
    from splime.reporting.answers import answer_parts, evidence_parts
    from splime.reporting.plots import plot_evidence
    from splime.reporting.style import save_picture

    if plot is not None and evidence is not None:
        save_picture(plot_evidence(evidence, granularity), plot)
    if as_json:
        more = {} if evidence is None else {"evidence": evidence.to_json()}
        show_json({**answers.to_json(), **more})
        return
    show(*answer_parts(answers), *(() if evidence is None else evidence_parts(evidence)))
