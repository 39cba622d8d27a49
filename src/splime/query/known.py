"""What the graph knows already of the answers to questions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from splime.arrays import expand
from splime.evaluation.filters import Questions, timed
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, SPLITS, Facts, TemporalGraph
from splime.query.question import Kind
from splime.times import Bools, Ints, format_ticks


class KnownFact(NamedTuple):
    """Where an answer is known from, and when it holds; None is an unknown time."""

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
        nothing = np.empty(0, np.int64)
        return cls(nothing, nothing, nothing, np.empty(0, bool))


class KnownFacts:
    """The facts of all splits, looked up by what questions give."""

    def __init__(self, graph: TemporalGraph) -> None:
        self.graph, self.facts = graph, graph.facts()
        self._upto = np.cumsum([len(part) for _, part in graph.splits()])
        self._indexes: dict[str, tuple[Questions, Ints]] = {}

    def pairs(self, kind: Kind, asked: Facts) -> tuple[Ints, Ints]:
        """Questions, and facts that state an answer which overlaps their time; ends are open."""
        known, order = self._index(kind)
        key = self._key(kind, asked)
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
        id_ = getattr(self.facts, kind)[fact].astype(np.int64)
        order = np.lexsort((fact, self.facts.begin[fact], ~self.learned(fact), id_, question))
        question, id_, fact = question[order], id_[order], fact[order]
        new = np.ones(len(question), bool)
        new[1:] = (question[1:] != question[:-1]) | (id_[1:] != id_[:-1])
        return KnownAnswers(question[new], id_[new], fact[new], self.learned(fact[new]))

    def learned(self, facts: Ints) -> Bools:
        """Which facts, given by their positions, are of train."""
        found: Bools = facts < self._upto[0]
        return found

    def describe(self, facts: Ints) -> list[KnownFact | None]:
        """Some facts for people; -1 is none."""
        granularity = self.graph.timeline.granularity
        splits = np.searchsorted(self._upto, facts, side="right").tolist()
        own = self.facts.take(np.maximum(facts, 0))
        rows = zip(
            splits,
            format_ticks(own.begin, granularity),
            format_ticks(own.end, granularity),
            own.unknown.tolist(),
            (facts >= 0).tolist(),
            strict=True,
        )
        return [
            KnownFact(
                SPLITS[split],
                None if bits & BEGIN_UNKNOWN else first,
                None if bits & END_UNKNOWN else last,
            )
            if is_known
            else None
            for split, first, last, bits, is_known in rows
        ]

    def _index(self, kind: Kind) -> tuple[Questions, Ints]:
        """The facts in the order of their keys, and their positions."""
        if kind not in self._indexes:
            key = self._key(kind, self.facts)
            order = np.argsort(key, kind="stable")
            facts = self.facts.take(order)
            self._indexes[kind] = timed(key[order], order, facts), order
        return self._indexes[kind]

    def _key(self, kind: Kind, facts: Facts) -> Ints:
        """One number for all that a question gives."""
        entities, predicates = len(self.graph.entities), len(self.graph.predicates)
        sizes = {"subject": entities, "predicate": predicates, "object": entities}
        key: Ints = np.zeros(len(facts), np.int64)
        for name, size in sizes.items():
            if name != kind:
                key = key * size + getattr(facts, name)
        return key
