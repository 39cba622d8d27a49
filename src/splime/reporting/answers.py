"""Answers as tables, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import exp

import pyarrow as pa
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from splime.query import Answer, Answers, Evidence
from splime.query.answers import percent
from splime.reporting.tables import make_table
from splime.scoring.scoping import NAMES

_LEAST = {"answer": 24, "question": 32}
"""The width up to which columns of text are not broken."""
_SHOWN = 20
"""Answers to many questions that are printed."""


def answer_parts(answers: Answers) -> Iterator[RenderableType]:
    """The question, a table of the answers, and what one should know to read them."""
    question, rows = answers.question, answers.rows
    yield Text(question.text, style="bold")
    if not rows:
        yield Text("no answers")
    elif question.kind == "time":
        yield timeline_table(answers)
    else:
        yield ranking_table(answers)
    if rows and rows[0].scopes and question.kind in ("object", "subject"):
        # The same for all answers.
        yield Text(f"scored by {_scope(rows[0])}", style="dim")
    for remark in answers.remarks:
        doubtful = bool(answers.doubt) and answers.doubt in remark
        yield Text(remark, style="" if doubtful else "dim")


def many_parts(answers: pa.Table, most: int = _SHOWN) -> Iterator[RenderableType]:
    """The answers to the questions of a file, the first ones."""
    if not len(answers):
        yield Text("no answers")
        return
    rows = answers.slice(0, most).to_pylist()
    first = [row["rank"] == 1 for row in rows]
    columns = {
        "#": [str(row["question"]) * new for row, new in zip(rows, first, strict=True)],
        "question": [_asked(row) * new for row, new in zip(rows, first, strict=True)],
        "": [str(row["rank"]) for row in rows],
        "answer": [_answer(row) for row in rows],
        "score": [f"{row['score']:.4g}" for row in rows],
        "probability": [
            "" if row["probability"] is None else percent(row["probability"]) for row in rows
        ],
        "known": [row["known"] or "" for row in rows],
        "remark": [row["remark"] or "" for row in rows],
    }
    yield _table(columns, ["dim" if row["known"] else "" for row in rows])
    if any(columns["probability"]):
        yield Text("a probability is one if there is such a fact", style="dim")
    if len(answers) > most:
        yield Text(f"the first {most} of {len(answers):,}; --out FILE writes all", style="dim")


def _asked(row: Mapping[str, str | None]) -> str:
    """The question of a row; one without a time is about the whole time of the graph."""
    names, begin, end = " ".join(str(row[name]) for name in NAMES), row["begin"], row["end"]
    when = "" if begin is None else f" at {begin}" if begin == end else f" from {begin} to {end}"
    return names + when


def _answer(row: Mapping[str, str | None]) -> str:
    """The answer of a row; to a question when, it is a time."""
    if row["begin"] is not None:
        return str(row["answer"])
    begin, end = row["scope_begin"], row["scope_end"]
    return f"{begin}" if begin == end else f"{begin}..{end}"


def evidence_parts(evidence: Evidence, title: str = "") -> Iterator[RenderableType]:
    """The chains of facts that an answer rests on, a fact in a line."""
    title = title or f"why {evidence.answer}"
    if not evidence.reasons:
        yield Text(f"{title}: no chain of facts leads there")
        return
    columns = ("fact", "when", "seen from the question")
    table = make_table("", "adds", *columns, words=columns)
    table.title = Text(f"{title}: the facts that it rests on")
    for reason in evidence.reasons:
        for number, step in enumerate(reason.steps):
            adds = "" if number else f"{reason.contribution:.3g}"
            names, last = Text(" ".join(step.fact[:3])), number + 1 == len(reason.steps)
            table.add_row(adds, names, step.when, Text(step.scope), end_section=last)
    yield table


def ranking_table(answers: Answers) -> Table:
    """The answers from the best to the worst; what is known is dim, what train lacks is said."""
    columns = _columns(answers.rows)
    if answers.question.kind not in ("predicate", "near"):
        del columns["scope"]  # the same for all answers
    return _table(columns, ["dim" if row.known else "" for row in answers])


def brief_table(answers: Answers, title: str, truth: str | None) -> Table:
    """The answers from the best to the worst, without scores; right ones are bold.

    Right is the truth, and what else test states; of times it is what any fact states.
    """
    columns = _columns(answers.rows)
    shown = {name: columns[name] for name in ("", "answer", "probability", "known", "remark")}
    splits = ("train", "valid", "test") if truth is None else ("test",)
    stated = [
        row.known is not None and row.known.dated and row.known.split in splits for row in answers
    ]
    right = [row.name == truth or known for row, known in zip(answers, stated, strict=True)]
    return _table(shown, ["bold" if bold else "" for bold in right], title)


def timeline_table(answers: Answers) -> Table:
    """The scopes in the order of time; bars show how likely they are beside the best one."""
    rows = answers.timeline()
    columns = _columns([row._replace(scopes=(row.name,)) for row in rows])
    shown = {
        "scope": columns["scope"],
        "": ["█" * max(1, round(12 * part)) for part in beside_best(answers)],
        "rank": ["best" if row.rank == 1 else str(row.rank) for row in rows],
        **{name: columns[name] for name in ("score", "probability", "known")},
    }
    return _table(shown, ["bold" if row.rank == 1 else "" for row in rows])


def beside_best(answers: Answers) -> list[float]:
    """How likely each answer is beside the best one, in the order of time."""
    high = max((row.score for row in answers), default=0.0)
    return [exp((row.score - high) / (answers.temperature or 1)) for row in answers.timeline()]


def _columns(rows: Sequence[Answer]) -> dict[str, list[str]]:
    return {
        "": [str(row.rank) for row in rows],
        "answer": [row.name for row in rows],
        "score": [f"{row.score:.4g}" for row in rows],
        "probability": [
            "" if row.probability is None else percent(row.probability) for row in rows
        ],
        "scope": [_scope(row) for row in rows],
        "known": [str(row.known or "") for row in rows],
        "remark": [row.remark or "" for row in rows],
    }


def _table(columns: Mapping[str, Sequence[str]], styles: Sequence[str], title: str = "") -> Table:
    """Columns as a table, without those that are empty; text is aligned left."""
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    table = make_table(title, *shown, words=("question", "answer", "scope", "known", "remark"))
    table.title = Text(title) if title else None
    for name, column in zip(shown, table.columns, strict=True):
        column.no_wrap = name not in ("question", "answer", "known", "remark")
        if name in _LEAST:
            column.min_width = min(_LEAST[name], max(map(len, shown[name])))
    for style, *cells in zip(styles, *shown.values(), strict=True):
        table.add_row(*(Text(cell, style=style) for cell in cells))
    return table


def _scope(row: Answer) -> str:
    """The scope that scored the answer, or how many did, with their dates."""
    name = "".join(row.scopes) if len(row.scopes) <= 1 else f"{len(row.scopes)} scopes"
    dates = f"{row.begin}" if row.begin == row.end else f"{row.begin} to {row.end}"
    return name if f"[{row.begin}" in name or not name else f"{name}, {dates}"
