"""Answers for people: names, scores, probabilities, scopes and dates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from splime.query.answering import Found
from splime.query.known import KnownFact, KnownFacts
from splime.query.question import Question


class Answer(NamedTuple):
    """One answer."""

    rank: int
    name: str
    """Of an entity, a predicate, or (when) a scoped predicate."""
    score: float
    probability: float | None
    """None where it cannot be calibrated, and where train states the answer."""
    scopes: tuple[str, ...]
    """The scoped predicates that served, in the order of time."""
    begin: str | None
    """The first date of those scopes."""
    end: str | None
    known: KnownFact | None


@dataclass(frozen=True)
class Answers:
    """The answers to a question, from the best to the worst."""

    question: Question
    rows: list[Answer]
    temperature: float | None = None
    """What scores are divided by before they become probabilities."""
    remarks: tuple[str, ...] = ()
    """What one should know to read them: how probabilities were made, or why there are none."""

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.rows)

    def __getitem__(self, position: int) -> Answer:
        return self.rows[position]

    def __repr__(self) -> str:
        lines = [self.question.text]
        width = max((len(row.name) for row in self.rows), default=0)
        for row in self.rows:
            sure = "" if row.probability is None else f"  {percent(row.probability)}"
            known = "" if row.known is None else f"  known: {row.known}"
            dates = f"  {row.begin}..{row.end}" if self.question.kind == "time" else ""
            lines.append(f"{row.rank:3}  {row.name:{width}}  {row.score:9.4g}{dates}{sure}{known}")
        return "\n".join([*lines, *self.remarks])

    def timeline(self) -> list[Answer]:
        """The answers in the order of time, for a question that asks when."""
        return sorted(self.rows, key=lambda row: [*map(_date, (row.begin, row.end))])

    def to_table(self) -> pa.Table:
        """As an Arrow table: a row for each answer, with the question's number 1."""
        from splime.query.many import SCHEMA

        asked = self.question
        rows = [
            {
                "question": 1,
                "subject": asked.subject,
                "predicate": asked.predicate,
                "object": asked.object,
                "begin": asked.begin,
                "end": asked.end,
                "rank": row.rank,
                "answer": row.name,
                "score": row.score,
                "probability": row.probability,
                "scope": ", ".join(row.scopes) or None,
                "scope_begin": row.begin,
                "scope_end": row.end,
                "known": None if row.known is None else str(row.known),
            }
            for row in self.rows
        ]
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        answers = [
            {**row._asdict(), "known": None if row.known is None else row.known._asdict()}
            for row in self.rows
        ]
        return {
            "question": self.question.to_json(),
            "answers": answers,
            "temperature": self.temperature,
            "remarks": list(self.remarks),
        }


def rows_of_answers(found: Found, known: KnownFacts) -> list[Answer]:
    """The answers to one question."""
    best = found.best
    columns = zip(
        best.rank.tolist(),
        found.names.to_pylist(),
        best.score.tolist(),
        best.probability.tolist(),
        found.scopes.to_pylist(),
        found.begin,
        found.end,
        known.describe(best.fact),
        strict=True,
    )
    return [
        Answer(rank, name, score, None if sure != sure else sure, tuple(scopes), *rest)
        for rank, name, score, sure, scopes, *rest in columns
    ]


def percent(probability: float) -> str:
    """A probability for people.

    >>> percent(0.4242), percent(0.00012)
    ('42.4 %', '< 0.1 %')
    """
    return f"{100 * probability:.1f} %" if probability >= 0.001 else "< 0.1 %"


def _date(text: str | None) -> tuple[int, str]:
    """Years and steps sort as numbers, longer dates as text."""
    try:
        return int(text or 0), ""
    except ValueError:
        return 0, text or ""
