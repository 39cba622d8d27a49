"""A question as people ask it: what is given, what is asked for, and when."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from splime.errors import UsageError
from splime.evaluation.scorer import Ids
from splime.graph import Facts, TemporalGraph
from splime.timeline import Timeline
from splime.times import Ints, When, format_ticks
from splime.vocabulary import Vocabulary

Kind: TypeAlias = Literal["object", "subject", "predicate", "time"]
"""What a question asks for: what, who, which relation, when."""
KINDS: tuple[Kind, ...] = get_args(Kind)
ASKED = "?"
"""Stands where the answer belongs."""
_WORDS = {"object": "What", "subject": "Who", "predicate": "Which predicate", "time": "When"}
_ONE = (
    "a question has one '?': ('Ada', 'livesIn', '?') asks what, ('?', 'livesIn', 'Norport') who,"
    " ('Ada', '?', 'Norport') which predicate, ('Ada', 'livesIn', 'Norport', '?') when"
)


@dataclass(frozen=True)
class Question:
    """What was asked, with its time as dates of the graph."""

    kind: str
    """object, subject, predicate or time; near, where names like another one are looked for."""
    subject: str | None
    predicate: str | None
    object: str | None
    begin: str | None = None
    end: str | None = None
    whole: bool = False
    """Whether no time was given, so that it is the whole time of the graph."""

    @property
    def text(self) -> str:
        """The question in words.

        >>> Question("object", "Ada", "livesIn", "?", "1985", "1985").text
        'What: Ada livesIn ? at 1985'
        """
        if self.kind == "time":
            return f"When: {self.subject} {self.predicate} {self.object}"
        if self.kind == "near":
            return f"Near {self.subject or self.predicate}{self._when()}"
        names = f"{self.subject} {self.predicate} {self.object}"
        return f"{_WORDS[self.kind]}: {names}{self._when()}"

    def _when(self) -> str:
        if self.begin is None:
            return ""
        if self.whole:
            return f", over the whole time of the graph, {self.begin} to {self.end}"
        return (
            f" at {self.begin}" if self.begin == self.end else f" from {self.begin} to {self.end}"
        )

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def read_question(
    graph: TemporalGraph,
    names: tuple[str, str, str],
    time: str | None,
    at: When | None,
    during: tuple[When, When] | None,
) -> tuple[Question, Facts]:
    """A question, and the fact that it asks about, with zeros for what is not known of it."""
    parts = (*names, *([] if time is None else [time]))
    for part in parts:
        if not isinstance(part, str):
            raise UsageError(f"names are text, not {part!r}; {_ONE}")
    if time not in (None, ASKED):
        raise UsageError(
            f"time is '?' to ask when, not {time!r}; a time is given as at= or during="
        )
    if (count := parts.count(ASKED)) != 1:
        raise UsageError(
            f"{'nothing is' if not count else f'{count} things are'} asked for; {_ONE}"
        )
    kind = ("subject", "predicate", "object", "time")[parts.index(ASKED)]
    if kind == "time" and (at is not None or during is not None):
        raise UsageError("a question for the time has no time of its own; leave out at and during")
    vocabularies = (graph.entities, graph.predicates, graph.entities)
    ids = [
        0 if name == ASKED else vocabulary.id(name)
        for name, vocabulary in zip(names, vocabularies, strict=True)
    ]
    first, last = read_time(graph.timeline, at, during)
    begin: str | None
    end: str | None
    begin, end = format_ticks(np.array([first, last]), graph.timeline.granularity)
    if kind == "time":
        begin = end = None
    subject, predicate, object_ = names
    whole = at is None and during is None
    question = Question(kind, subject, predicate, object_, begin, end, whole)
    one, which, other, low, high = (np.array([number]) for number in (*ids, first, last))
    return question, question_facts(one, which, other, low, high)


def question_facts(subject: Ids, predicate: Ids, object: Ids, begin: Ints, end: Ints) -> Facts:
    """Questions as facts, to be cut and scored like any others."""
    one, which, other = (column.astype(np.int32) for column in (subject, predicate, object))
    return Facts(one, which, other, begin, end, np.zeros(len(begin), np.uint8))


def read_time(
    timeline: Timeline, at: When | None, during: tuple[When, When] | None
) -> tuple[int, int]:
    """The first and last tick of a time; of the graph, if none is given."""
    if at is not None and during is not None:
        raise UsageError("give at or during, not both")
    if at is not None:
        return timeline.interval(at, at)
    if during is None:
        return timeline.first, timeline.last
    if isinstance(during, str) or len(during) != 2:
        raise UsageError(f"during is a pair of times, such as (1980, 1989), not {during!r}")
    return timeline.interval(*during)


def read_during(text: str) -> tuple[str, str]:
    """Begin and end, as they are written on the command line.

    >>> read_during("2009..2017")
    ('2009', '2017')
    """
    begin, dots, end = text.partition("..")
    if not (begin.strip() and dots and end.strip()):
        raise UsageError(f"during is written 2009..2017, begin and end, not {text!r}")
    return begin.strip(), end.strip()


def find_name(graph: TemporalGraph, name: str, kind: str | None) -> Vocabulary:
    """Whether a name is that of an entity or of a predicate."""
    kinds = {"entity": graph.entities, "predicate": graph.predicates}
    if kind is not None:
        if kind not in kinds:
            raise UsageError(f"kind is entity or predicate, not {kind!r}")
        kinds[kind].id(name)
        return kinds[kind]
    found = [vocabulary for vocabulary in kinds.values() if name in vocabulary]
    if len(found) == 2:
        raise UsageError(
            f"{name!r} is an entity and a predicate; say which with kind='entity' or"
            " kind='predicate' (--kind)"
        )
    if not found:
        errors = []
        for vocabulary in kinds.values():
            try:
                vocabulary.id(name)
            except UsageError as error:
                errors.append(str(error))
        raise UsageError(" ".join(errors))
    return found[0]
