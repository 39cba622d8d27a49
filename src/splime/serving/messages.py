"""What programs may ask, and the answers that they get: types that check requests, and are told in
the descriptions of the service and of its tools."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_type_hints

import pyarrow as pa
from msgspec import DecodeError, Meta, Struct, defstruct

from splime.analysis.calibration import Calibration
from splime.analysis.existence import Check, ReliabilityBin
from splime.errors import UsageError
from splime.graph import Fact
from splime.query.answers import Answer, ThereIsOne
from splime.query.many import SCHEMA
from splime.query.predicting import Prediction
from splime.query.questions import Question
from splime.scoring.scoping import KnownFact

Entity = Annotated[str, Meta(description="The name of an entity; ? asks for it.")]
Predicate = Annotated[str, Meta(description="The name of a predicate; ? asks for it.")]
Time = Annotated[str | int, Meta(description="A date: 1985, 2014-05, 2014-05-03.")]
Names = Annotated[list[str], Meta(max_length=1000, description="Only facts with these names.")]
Limit = Annotated[int, Meta(ge=1, le=1000, description="How many answers at most.")]
Known = Annotated[
    Literal["mark", "drop"], Meta(description="Answers that the graph states at that time.")
]
Best = Annotated[
    int, Meta(ge=1, description="Which predicate, as in the paper: of so many best scopes.")
]


class BareQuestion(Struct, forbid_unknown_fields=True, kw_only=True):
    """A question, with ? for what is asked for."""

    subject: Entity
    predicate: Predicate
    object: Entity

    @property
    def names(self) -> tuple[str, str, str]:
        """Subject, predicate and object."""
        return self.subject, self.predicate, self.object


class TimedQuestion(BareQuestion):
    """A question about a time: at, or begin and end; without one, the whole time of the graph, or
    where three names are given, when."""

    at: Time | None = None
    begin: Time | None = None
    end: Time | None = None

    @property
    def during(self) -> tuple[str | int, str | int] | None:
        """The begin and end of the time."""
        if self.at is not None and self.begin is None and self.end is None:
            return self.at, self.at
        if self.at is not None or (self.begin is None) != (self.end is None):
            raise UsageError("a time is given as at, or as begin and end")
        return None if self.begin is None or self.end is None else (self.begin, self.end)


class Ask(TimedQuestion):
    """A question with one ?: who, what or which predicate; with none and no time: when."""

    limit: Limit = 10
    known: Known = "mark"
    best: Best | None = None
    why: Annotated[bool, Meta(description="Also the facts behind the best answer.")] = False


class AskMany(Struct, forbid_unknown_fields=True, kw_only=True):
    """Many questions, as in a file of `splime ask --file`."""

    questions: Annotated[list[TimedQuestion], Meta(min_length=1, max_length=1000)]
    limit: Limit = 10
    known: Known = "mark"
    best: Best | None = None

    def table(self) -> pa.Table:
        """The questions as a table."""
        times = [one.during or (None, None) for one in self.questions]
        columns: dict[str, Any] = {
            name: [getattr(one, name) for one in self.questions]
            for name in BareQuestion.__struct_fields__
        }
        for name, column in zip(("begin", "end"), zip(*times, strict=True), strict=True):
            columns[name] = [None if each is None else str(each) for each in column]
        return pa.table({name: pa.array(each, pa.string()) for name, each in columns.items()})


class When(BareQuestion):
    """Three names, of which it is asked when they held."""

    limit: Limit = 10


class Why(TimedQuestion):
    """A question that asks who or what, and the answer to explain."""

    answer: Annotated[str | None, Meta(description="Default: the best one.")] = None
    most: Annotated[int, Meta(ge=1, le=100, description="How many chains of facts.")] = 5


class Predict(Struct, forbid_unknown_fields=True, kw_only=True):
    """Which facts are looked for."""

    predicate: Names | None = None
    entity: Names | None = None
    at: Annotated[Time | None, Meta(description="Default: the last time of the graph.")] = None
    next: Annotated[
        str | int | None,
        Meta(description="Forecast so much time after the graph's: 7, week, 2 months."),
    ] = None
    new: Annotated[bool, Meta(description="Only facts that hold at no other time.")] = False
    least: Annotated[float, Meta(ge=0, le=1, description="Only facts at least as probable.")] = 0.0
    limit: Limit = 20
    evidence: Annotated[bool, Meta(description="Whether to look for the facts behind them.")] = True


def explained(error: DecodeError | UnicodeDecodeError) -> str:
    """What is wrong with a request.

    >>> explained(DecodeError("Expected `int` >= 1 - at `$.limit`"))
    'limit: expected `int` >= 1'
    """
    what, _, where = str(error).partition(" - at `$")
    return f"{where.strip('.`') or 'the request'}: {what[:1].lower()}{what[1:]}"


def _object(kind: Any, **other: Any) -> Any:
    """A named tuple as the object that it becomes in JSON."""
    return defstruct(kind.__name__, [*{**get_type_hints(kind), **other}.items()])


def _column(field: pa.Field) -> tuple[str, Any]:
    kinds = {pa.int64(): int, pa.float32(): float | None}
    return field.name, kinds.get(field.type, str | None)


def _struct(name: str, **fields: Any) -> Any:
    return defstruct(name, [*fields.items()])


_Known: Any = _object(KnownFact)
_Answer: Any = _object(Answer, known=_Known | None)
_Fact: Any = _object(Fact, scope=str)
_Reason: Any = _struct("Reason", contribution=float, facts=list[_Fact])
_Bin: Any = _object(ReliabilityBin)
_Check: Any = _object(Check, bins=list[_Bin])
_Prediction: Any = _object(Prediction)
_Row: Any = _struct("AnswerRow", **dict(map(_column, SCHEMA)))
FoundAnswers: Any = _struct(
    "Answers",
    question=Question,
    answers=list[_Answer],
    temperature=float | None,
    remarks=list[str],
    there_is_one=_object(ThereIsOne) | None,
)
FoundMany: Any = _struct("ManyAnswers", answers=list[_Row])
FoundEvidence: Any = _struct("Evidence", question=Question, answer=str, reasons=list[_Reason])
FoundFacts: Any = _struct(
    "Predictions",
    time=str,
    questions=int,
    facts=list[_Prediction],
    probability_of_objects=Calibration,
    stated_in_this_table=dict[str, _Check],
)


class Health(Struct):
    """That questions are answered, and from which facts."""

    status: str
    version: str
    name: str
    facts: int


class Error(Struct):
    """What is wrong with a request, or with the service."""

    error: str
