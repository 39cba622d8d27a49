"""`splime ask`: who, what, which relation, when, and what is near, at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from splime.cli.console import console
from splime.cli.evaluate import RunFolder
from splime.cli.train import Device, torch_needed
from splime.errors import UsageError
from splime.progress import progress_bar

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from splime.query import Answer, Answers, Query

_MANY = "Many questions, and names that are near"
_BAR = 12
_NAME = 24
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
    for part in _parts(answers):
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


def _parts(answers: Answers) -> Iterator[RenderableType]:
    """The question, a table of the answers, and what one should know to read them."""
    from rich.text import Text

    question, rows = answers.question, answers.rows
    yield Text(question.text, style="bold")
    if rows:
        yield _timeline(answers) if question.kind == "time" else _ranking(answers)
    else:
        yield Text("no answers")
    if rows and question.kind in ("object", "subject"):
        # The same for all answers.
        yield Text(f"scored by {_scope(rows[0])}", style="dim")
    for remark in answers.remarks:
        yield Text(remark, style="dim")


def _ranking(answers: Answers) -> Table:
    """The answers from the best to the worst."""
    of_scopes = answers.question.kind in ("predicate", "near")
    columns = {
        "": [str(row.rank) for row in answers],
        "answer": [row.name for row in answers],
        "score": [f"{row.score:.4g}" for row in answers],
        "probability": [_percent(row) for row in answers],
        "scope": [_scope(row) if of_scopes else "" for row in answers],
        "known": [str(row.known or "") for row in answers],
    }
    return _table(columns, ["dim" if row.known else "" for row in answers])


def _timeline(answers: Answers) -> Table:
    """The scopes in the order of time; bars show how likely they are beside the best one."""
    rows = answers.timeline()
    high = max(row.score for row in rows)
    parts = [exp((row.score - high) / (answers.temperature or 1)) for row in rows]
    columns = {
        "scope": [_scope(row._replace(scopes=(row.name,))) for row in rows],
        "": ["█" * max(1, round(_BAR * part)) for part in parts],
        "rank": ["best" if row.rank == 1 else str(row.rank) for row in rows],
        "score": [f"{row.score:.4g}" for row in rows],
        "probability": [_percent(row) for row in rows],
        "known": [str(row.known or "") for row in rows],
    }
    return _table(columns, ["bold" if row.rank == 1 else "" for row in rows])


def _table(columns: dict[str, list[str]], styles: list[str]) -> Table:
    """Columns as a table, without those that are empty; text stands to the left."""
    from rich.text import Text

    from splime.report.tables import make_table

    shown = {name: cells for name, cells in columns.items() if any(cells)}
    table = make_table("", *shown, words=("answer", "scope", "known"))
    table.title = None
    for name, column in zip(shown, table.columns, strict=True):
        column.no_wrap = name not in ("answer", "known")
        if name == "answer":
            column.min_width = min(_NAME, max(map(len, shown[name])))
    for style, *cells in zip(styles, *shown.values(), strict=True):
        table.add_row(*(Text(cell, style=style) for cell in cells))
    return table


def _percent(row: Answer) -> str:
    from splime.query.answers import percent

    return "" if row.probability is None else percent(row.probability)


def _dates(row: Answer) -> str:
    return f"{row.begin}" if row.begin == row.end else f"{row.begin} to {row.end}"


def _scope(row: Answer) -> str:
    """The scope that served, or how many did, with their dates."""
    name = "".join(row.scopes) if len(row.scopes) <= 1 else f"{len(row.scopes)} scopes"
    return name if f"[{row.begin}" in name or not name else f"{name}, {_dates(row)}"
