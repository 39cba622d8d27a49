"""`splime ask`: who, what, which relation, when, and what is near, at a time."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from splime.cli import options
from splime.cli.console import show, show_json
from splime.errors import UsageError
from splime.progress import progress_bar

_many_option = partial(Option, rich_help_panel="Many questions, and names that are near")
_MARK = "_"
"""Also stands for what is asked: some shells take `?` for a file name."""

Name = Annotated[str | None, Argument(help="A name, or ? for what is asked.")]


@options.with_options
def ask(
    run: options.RunFolder,
    subject: Name = None,
    predicate: Name = None,
    object: Name = None,
    at: Annotated[
        str | None, Option(metavar="TIME", help="The time that is asked about: 1985, 2014-05-03.")
    ] = None,
    during: Annotated[
        str | None,
        Option(
            metavar="BEGIN..END",
            help="An interval instead: 2009..2017. Without any time: the whole time of the graph;"
            " of a run that forecasts (--past), the first time after it.",
        ),
    ] = None,
    limit: Annotated[int, Option(help="How many answers.")] = 10,
    known: Annotated[
        str, Option(help="Answers that the graph states at that time: mark them, or drop them.")
    ] = "mark",
    best: Annotated[
        int | None,
        Option(
            metavar="25",
            help="Which predicate, the paper's way: of this number of best scoped predicates,"
            " those at that time. Default: all predicates, by their scopes at that time.",
        ),
    ] = None,
    aggregate: Annotated[
        str | None,
        Option(
            help="How scores of several scopes become one: mean, ends, begin, max or sum. Default:"
            " as the run was trained."
        ),
    ] = None,
    near: Annotated[
        str | None,
        _many_option(metavar="NAME", help="Entities or predicates with vectors like this one's."),
    ] = None,
    kind: Annotated[
        str | None, _many_option(help="near: entity or predicate, where both have the name.")
    ] = None,
    file: Annotated[
        Path | None,
        _many_option(
            metavar="FILE",
            help="Many questions: a .tsv, .csv or .parquet with the columns subject, predicate,"
            " object, and at (or begin and end).",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        _many_option(metavar="FILE", help="Where their answers go: .tsv, .json or .parquet."),
    ] = None,
    why: Annotated[
        bool,
        Option(
            "--why",
            help="Also show the facts that the best answer rests on (a run of the path model).",
        ),
    ] = False,
    facts: options.OtherFacts = None,
    instead: options.Instead = False,
    plot: Annotated[Path | None, options.picture("the facts of --why on a time axis")] = None,
    device: options.Device = "auto",
    as_json: options.AsJson = False,
    *,
    reading_facts: dict[str, Any],
) -> None:
    """Ask a trained run: the ? (or _) stands where the answer belongs.

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
    from splime.query.many import check_out
    from splime.query.questions import ASKED, read_during
    from splime.report.answers import answer_parts, evidence_parts
    from splime.report.plots import plot_evidence
    from splime.report.style import check_picture, save_picture

    names = [name for name in (subject, predicate, object) if name is not None]
    # Like \?, which read_question knows, \_ is what is called _ itself.
    given = [{_MARK: ASKED}.get(name, re.sub(rf"^\\(\\*{_MARK})$", r"\1", name)) for name in names]
    has_time = at is not None or during is not None
    ways = [bool(given), near is not None, file is not None]
    if sum(ways) != 1 or (given and len(given) != 3):
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
    if plot is not None:
        if not why:
            raise UsageError("--plot draws what --why shows; give both")
        check_picture(plot)
    when: dict[str, Any] = {"at": at, "during": None if during is None else read_during(during)}
    opened = options.open_run(run, device, facts, instead, reading_facts)
    query = Query(opened, aggregate=aggregate)  # type: ignore[arg-type]
    how: dict[str, Any] = {"limit": limit, "known": known, "best": best}
    if file is not None and out is not None:
        with progress_bar() as progress:
            count = write_answers(query.answer_blocks(file, progress=progress, **how), out)
        show(f"{count:,} answers written to {out}")
        return
    if near is not None:
        answers = query.near(near, **when, kind=kind, limit=limit)
    else:
        time = None if ASKED in given or has_time else ASKED
        answers = query.ask(given[0], given[1], given[2], time, **when, **how)
    evidence = None
    if why:
        if not given or not answers.rows:
            raise UsageError("--why explains the answer to one question that asks who or what")
        evidence = query.why(given[0], given[1], given[2], answer=answers[0].name, **when)
    if plot is not None and evidence is not None:
        granularity = query.run.graph.timeline.granularity
        save_picture(plot_evidence(evidence, granularity), plot)
    if as_json:
        more = {} if evidence is None else {"evidence": evidence.to_json()}
        show_json({**answers.to_json(), **more})
        return
    show(*answer_parts(answers))
    if evidence is not None:
        show(*evidence_parts(evidence))
