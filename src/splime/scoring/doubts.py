"""What a model cannot know about a question: names and times that train does not have."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, Facts
from splime.scoring.scoping import NAMES, Kind, Scoping
from splime.scoring.scorer import Ids
from splime.times import Bools, Ints, format_ticks

FEWEST = 10
"""A predicate with fewer facts in train is one that the model hardly knows."""


class Doubts:
    """What train has of every name, and which questions and answers go beyond it."""

    def __init__(self, scoping: Scoping) -> None:
        graph, train = scoping.graph, scoping.graph.train
        self._scoping = scoping
        ends = np.concatenate([train.subject, train.object])
        self._facts = {
            "entity": np.bincount(ends, minlength=len(graph.entities)),
            "predicate": np.bincount(train.predicate, minlength=len(graph.predicates)),
        }
        # The first and last timestamp at which train has facts of each predicate, as given: what an
        # unknown begin or end was filled with says nothing.
        train = train.take(train.unknown != BEGIN_UNKNOWN | END_UNKNOWN)
        begin, end = graph.timestamps(train)
        begin, end = (
            np.where(train.unknown & BEGIN_UNKNOWN, end, begin),
            np.where(train.unknown & END_UNKNOWN, begin, end),
        )
        self._first = np.full(len(graph.predicates), len(graph.timeline))
        self._last = np.full(len(graph.predicates), -1)
        np.minimum.at(self._first, train.predicate, begin)
        np.maximum.at(self._last, train.predicate, end)

    def names(self, kind: str, ids: Ids) -> Bools:
        """Which names (of predicates, else of entities) train does not, or hardly, have."""
        if kind == "predicate":
            return np.asarray(self._facts["predicate"][ids] < FEWEST)
        return np.asarray(self._facts["entity"][ids] == 0)

    def answers(self, kind: Kind, ids: Ids) -> Bools:
        """Which answers to questions of a kind are such names."""
        return np.zeros(len(ids), bool) if kind == "time" else self.names(kind, ids)

    def asked(self, kind: Kind, facts: Facts) -> Bools:
        """Which questions give such a name, or lie wholly outside of the time that train covers."""
        given = [self.names(name, getattr(facts, name)) for name in NAMES if name != kind]
        return np.asarray(np.any([*given, self.outside(kind, facts)], axis=0))

    def outside(self, kind: Kind, facts: Facts) -> Bools:
        """Which questions lie wholly outside of the time that train covers."""
        if kind == "time":
            return np.zeros(len(facts), bool)
        begin, end = self._scoping.graph.timestamps(facts)
        first, last = self._covered(kind, facts.predicate)
        return np.asarray(((end < first) | (begin > last)) & (first <= last))

    def _covered(self, kind: Kind, predicates: Ids) -> tuple[Ints, Ints]:
        """The time of train of each predicate; of all together, where they are what is asked."""
        if kind != "predicate":
            return self._first[predicates], self._last[predicates]
        whole = np.zeros_like(predicates, np.int64)
        return whole + self._first.min(), whole + self._last.max()

    def about(self, kind: str, number: int, called: str = "") -> str:
        """What train has of such a name, as part of a sentence."""
        count = int(self._facts["predicate" if kind == "predicate" else "entity"][number])
        few = f", fewer than {FEWEST}" if count else ""
        name = called or self._scoping.names(kind)[number]
        return f"train has {count or 'no'} fact{'s' * (count > 1)} of {name}{few}"

    def remarks(self, kind: Kind, ids: Ids) -> list[str | None]:
        """What train has of each answer that is such a name."""
        return [
            self.about(kind, number, "the answer") if doubtful else None
            for number, doubtful in zip(ids.tolist(), self.answers(kind, ids), strict=True)
        ]

    def reasons(self, kind: Kind, facts: Facts) -> list[str]:
        """Why each question goes beyond train; empty if it does not."""
        texts = [""] * len(facts)
        for row in np.flatnonzero(self.asked(kind, facts)).tolist():
            one = facts.take(np.array([row]))
            given = [(name, getattr(one, name)) for name in NAMES if name != kind]
            parts = [self.about(name, int(ids[0])) for name, ids in given if self.names(name, ids)]
            if self.outside(kind, one):
                parts.append(self.when(kind, one))
            texts[row] = "; ".join(dict.fromkeys(parts))
        return texts

    def when(self, kind: Kind, question: Facts) -> str:
        """The time that train covers, and what stands in for the time of a question beyond it."""
        graph, scopes = self._scoping.graph, self._scoping.static.predicates
        covered = np.concatenate(self._covered(kind, question.predicate))
        ends = graph.timeline.starts[covered[:1]], graph.timeline.ends[covered[1:]]
        begin, end = format_ticks(np.concatenate(ends), graph.timeline.granularity)
        if kind == "predicate":
            return f"train has facts only from {begin} to {end}, and the nearest scopes stand in"
        name = graph.predicates[int(question.predicate[0])]
        low, high = scopes.find(question.predicate, *graph.timestamps(question))
        used = np.unique(self._scoping.predicate_fallback[low[0] : high[0] + 1])
        stands_in = f"{' and '.join(scopes.labels.take(pa.array(used)).to_pylist())} stands in"
        if not len(scopes.cuts_of(int(question.predicate[0]))):
            stands_in = "this run has not cut it, so to it that time is like any other"
        return f"train has facts of {name} only from {begin} to {end}, and {stands_in}"
