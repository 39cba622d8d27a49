"""What the facts of a graph state already of the answers to queries and questions."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from splime.arrays import changes, expand
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, SPLITS, Facts, TemporalGraph
from splime.times import Bools, Ints, format_ticks

Kind: TypeAlias = Literal["object", "subject", "predicate", "time"]
"""What a question asks for: what, who, which relation, when."""
KINDS: tuple[Kind, ...] = get_args(Kind)
NAMES = ("subject", "predicate", "object")


class Keyed(NamedTuple):
    """Facts by what they answer: all that a query gives as one number, the answer, and the time."""

    key: Ints
    id: Ints
    begin: Ints
    end: Ints

    def take(self, rows: Ints) -> Keyed:
        """Some of them, by positions."""
        return Keyed(*(column[rows] for column in self))


def keyed(kind: Kind, facts: Facts, graph: TemporalGraph) -> Keyed:
    """Facts as answers of one kind, by their times as given.

    An unknown begin or end is infinitely far.
    """
    far = np.iinfo(np.int64)
    begin = np.where(facts.unknown & BEGIN_UNKNOWN, far.min, facts.begin)
    end = np.where(facts.unknown & END_UNKNOWN, far.max, facts.end)
    key = np.zeros(len(facts), np.int64)
    for name in NAMES:
        if name != kind:
            names = graph.predicates if name == "predicate" else graph.entities
            key = key * len(names) + getattr(facts, name)
    ids = np.zeros_like(key) if kind == "time" else getattr(facts, kind).astype(np.int64)
    return Keyed(key, ids, begin, end)


class KnownFact(NamedTuple):
    """The fact that states an answer: its split, and when it holds; None is an unknown time."""

    split: str
    begin: str | None
    end: str | None

    def __str__(self) -> str:
        begin, end = self.begin or "?", self.end or "?"
        return f"{self.split} {begin}" if begin == end else f"{self.split} {begin}..{end}"


class KnownAnswers(NamedTuple):
    """Pairs of a question and an answer that a fact states."""

    question: Ints
    id: Ints
    fact: Ints
    """Position among the facts of all splits."""
    learned: Bools
    """Whether it is a fact of train: the model has seen it."""

    @classmethod
    def none(cls) -> KnownAnswers:
        """Where nothing is known."""
        empty = np.empty(0, np.int64)
        return cls(empty, empty, empty, np.empty(0, bool))


class KnownFacts:
    """The facts of all splits, looked up by what questions give."""

    def __init__(self, graph: TemporalGraph) -> None:
        self.graph, self.facts = graph, graph.facts()
        self._upto = np.cumsum([len(facts) for _, facts in graph.splits()])
        self._indexes: dict[Kind, tuple[Keyed, Ints]] = {}

    def pairs(self, kind: Kind, asked: Facts) -> tuple[Ints, Ints]:
        """Questions, and facts that state an answer which overlaps their time; ends are open."""
        if kind not in self._indexes:
            facts = keyed(kind, self.facts, self.graph)
            order = np.argsort(facts.key, kind="stable")
            self._indexes[kind] = facts.take(order), order
        known, order = self._indexes[kind]
        key = keyed(kind, asked, self.graph).key
        low = np.searchsorted(known.key, key, side="left")
        question, at = expand(low, np.searchsorted(known.key, key, side="right") - low)
        overlap = known.begin[at] <= asked.end[question]
        overlap &= known.end[at] >= asked.begin[question]
        return question[overlap], order[at[overlap]]

    def answers(self, kind: Kind, asked: Facts) -> KnownAnswers:
        """The known answers, each once to a question, with the earliest fact that states it.

        Facts of train go before others.
        """
        question, fact = self.pairs(kind, asked)
        ids = getattr(self.facts, kind)[fact].astype(np.int64)
        order = np.lexsort((fact, self.facts.begin[fact], ~self.learned(fact), ids, question))
        return self.once(question[order], ids[order], fact[order])

    def once(self, question: Ints, ids: Ints, fact: Ints) -> KnownAnswers:
        """Sorted answers without those that repeat the one before."""
        new = changes(question, ids)
        return KnownAnswers(question[new], ids[new], fact[new], self.learned(fact[new]))

    def learned(self, facts: Ints) -> Bools:
        """Which facts, given by their positions, are of train."""
        of_train: Bools = facts < self._upto[0]
        return of_train

    def describe(self, facts: Ints) -> list[KnownFact | None]:
        """Some facts for people; -1 is none."""
        granularity = self.graph.timeline.granularity
        own = self.facts.take(np.maximum(facts, 0))
        rows = zip(
            facts.tolist(),
            np.searchsorted(self._upto, facts, side="right").tolist(),
            format_ticks(own.begin, granularity),
            format_ticks(own.end, granularity),
            own.unknown.tolist(),
            strict=True,
        )
        return [
            None
            if fact < 0
            else KnownFact(
                SPLITS[split],
                None if unknown & BEGIN_UNKNOWN else begin,
                None if unknown & END_UNKNOWN else end,
            )
            for fact, split, begin, end, unknown in rows
        ]
