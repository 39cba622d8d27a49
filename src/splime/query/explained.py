"""An answer with all that one should know of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Unpack

from splime.errors import UsageError
from splime.query.answers import Answers, ThereIsOne
from splime.query.evidence import Evidence
from splime.query.query import AskedTime, Asking, Query


@dataclass(frozen=True)
class Explained:
    """Answers, their evidence, and how far to trust them, which may take longer than the answer."""

    query: Query
    names: tuple[str, ...]
    time: AskedTime
    answers: Answers
    evidence: Evidence | None
    """Of the best answer, if it is asked for."""

    @cached_property
    def there_is_one(self) -> ThereIsOne | None:
        """Whether the graph states such a fact at all."""
        return self.query.there_is_one(*self.names[:3], **self.time)

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        parts = {"evidence": self.evidence, "trust": self.query.trust}
        one = self.there_is_one
        return (
            self.answers.to_json()
            | {"there_is_one": None if one is None else one._asdict()}
            | {name: part.to_json() for name, part in parts.items() if part is not None}
        )


def explain(query: Query, *names: str, why: bool = False, **options: Unpack[Asking]) -> Explained:
    """Ask a question and, with `why`, for the facts behind the best answer."""
    answers = query.ask(*names, **options)
    if why and not answers.rows:
        raise UsageError("there is no answer to explain")
    time: AskedTime = {"at": options.get("at"), "during": options.get("during")}
    evidence = query.why(*names[:3], answer=answers[0].name, **time) if why else None
    return Explained(query, names, time, answers, evidence)
