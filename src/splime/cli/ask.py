"""`splime ask`: who, what, which relation, when, and what is near, at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from splime.cli.console import console
from splime.cli.evaluate import RunFolder
from splime.cli.train import Device, torch_needed
from splime.errors import UsageError
from splime.progress import progress_bar

if TYPE_CHECKING:
    from splime.query import Query

_MANY = "Many questions, and names that are near"
_MARK = "_"
"""Also stands for what is asked: some shells take `?` for a file name."""

Name = Annotated[str | None, typer.Argument(help="A name, or ? for what is asked.")]


def ask(
    run: RunFolder,
    subject: Name = None,
    predicate: Name = None,
    object: Name = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The time that is asked about: 1985, 2014-05-03."),
    ] = None,
    during: Annotated[
        str | None,
        typer.Option(
            metavar="BEGIN..END",
            help="An interval instead: 2009..2017. Without any time: the whole time of the graph.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(help="How many answers.")] = 10,
    known: Annotated[
        str,
        typer.Option(help="Answers that the graph states at that time: mark them, or drop them."),
    ] = "mark",
    best: Annotated[
        int | None,
        typer.Option(
            metavar="25",
            help="Which predicate, the paper's way: of so many best scoped predicates, those at"
            " that time. Default: all predicates, by their scopes at that time.",
        ),
    ] = None,
    aggregate: Annotated[
        str,
        typer.Option(help="How scores of several scopes become one: mean, ends, max or sum."),
    ] = "mean",
    near: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Entities or predicates with vectors like this one's.",
            rich_help_panel=_MANY,
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            help="near: entity or predicate, where both have the name.", rich_help_panel=_MANY
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Many questions: a .tsv, .csv or .parquet with the columns subject, predicate,"
            " object, and at (or begin and end).",
            rich_help_panel=_MANY,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where their answers go: .tsv, .json or .parquet.",
            rich_help_panel=_MANY,
        ),
    ] = None,
    device: Device = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Ask a trained run: the ? (or _) stands where the answer belongs.

    - what: splime ask run "Sara Finnby" livesIn "?" --at 1982

    - who: splime ask run "?" livesIn Melcourt --during 1980..1989

    - which predicate: splime ask run "Sara Finnby" "?" Melcourt --at 1982

    - when: splime ask run "Sara Finnby" livesIn Melcourt

    - near: splime ask run --near livesIn --at 1982

    - many: splime ask run --file questions.tsv --out answers.parquet
    """
    torch_needed()
    from splime.query import Query
    from splime.query.questions import ASKED, read_during
    from splime.report.answers import answer_parts
    from splime.runs import Run

    names = [ASKED if name == _MARK else name for name in (subject, predicate, object)]
    given = [name for name in names if name is not None]
    _check_question(given, near, file, out, as_json)
    when: dict[str, Any] = {"at": at, "during": None if during is None else read_during(during)}
    query = Query(Run(run, device=device), aggregate=aggregate)  # type: ignore[arg-type]
    if file is not None and out is not None:
        if at is not None or during is not None:
            raise UsageError(
                "questions of a file have their own times; leave out --at and --during"
            )
        _ask_file(query, file, out, limit=limit, known=known, best=best)
        return
    if near is not None:
        answers = query.near(near, **when, kind=kind, limit=limit)
    else:
        time = None if ASKED in given or at is not None or during is not None else ASKED
        one, which, other = given
        answers = query.ask(one, which, other, time, **when, limit=limit, known=known, best=best)
    if as_json:
        typer.echo(json.dumps(answers.to_json(), indent=2, ensure_ascii=False))
        return
    screen = console()
    for part in answer_parts(answers):
        screen.print(part)


def _check_question(
    given: list[str], near: str | None, file: Path | None, out: Path | None, as_json: bool
) -> None:
    from splime.query.many import check_out

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
        check_out(out)


def _ask_file(query: Query, file: Path, out: Path, **options: Any) -> None:
    from splime.query import write_answers

    with progress_bar() as update:
        tables = query.answer_blocks(file, progress=update, **options)
        count = write_answers(tables, out)
    console().print(f"{count:,} answers written to {out}", soft_wrap=True)
