"""An answer with all that one should know of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from splime.errors import UsageError
from splime.query.answers import Answers, ThereIsOne
from splime.query.evidence import Evidence
from splime.query.query import Query
from splime.query.questions import ASKED
from splime.times import When


@dataclass(frozen=True)
class Explained:
    """Answers, their evidence, and how far to trust them, which may take longer than the answer."""

    query: Query
    asked: Mapping[str, Any]
    """The names, and the time."""
    answers: Answers
    evidence: Evidence | None
    """Of the best answer, if it is asked for."""

    @cached_property
    def there_is_one(self) -> ThereIsOne | None:
        """Whether the graph states such a fact at all."""
        return self.query.there_is_one(**self.asked)

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        parts = {"evidence": self.evidence, "trust": self.query.trust}
        one = self.there_is_one
        return (
            self.answers.to_json()
            | {"there_is_one": None if one is None else one._asdict()}
            | {name: part.to_json() for name, part in parts.items() if part is not None}
        )


def explain(
    query: Query,
    subject: str,
    predicate: str,
    object: str,
    time: str | None = None,
    *,
    at: When | None = None,
    during: tuple[When, When] | None = None,
    why: bool = False,
    **options: Any,
) -> Explained:
    """Ask a question and, with `why`, for the facts behind the best answer."""
    asked = {"subject": subject, "predicate": predicate, "object": object}
    asked |= {"at": at, "during": during}  # type: ignore[dict-item]
    if at is None and during is None and ASKED not in (subject, predicate, object):
        time = ASKED
    answers = query.ask(**asked, time=time, **options)  # type: ignore[arg-type]
    if why and not answers.rows:
        raise UsageError("there is no answer to explain")
    evidence = query.why(**asked, answer=answers[0].name) if why else None  # type: ignore[arg-type]
    return Explained(query, asked, answers, evidence)
