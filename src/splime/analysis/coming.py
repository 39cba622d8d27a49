"""How probable it is that a subject has a fact of a predicate that begins in the coming time.

A logistic regression over pairs of subject and predicate that had a fact before, fitted on
stretches of time as long as the coming one: what was known of a pair, and whether a fact began.
"""

from __future__ import annotations

import numpy as np

from splime.analysis.existence import ALL, Check
from splime.analysis.regression import Scale, fit_logistic, logistic, with_ones
from splime.arrays import grouped
from splime.errors import UsageError
from splime.evaluation.metrics import Floats
from splime.graph import BEGIN_UNKNOWN, TemporalGraph
from splime.times import Bools, Ints

_WINDOWS = 5
"""Stretches of the past that it is fitted on, at most; the last one also checks it."""


class Coming:
    """Estimates for the ticks from `begin` to `end`, which follow those of the graph."""

    def __init__(self, graph: TemporalGraph, begin: int, end: int) -> None:
        facts = graph.train.take((graph.train.unknown & BEGIN_UNKNOWN) == 0)
        self._facts = facts = facts.take(np.argsort(facts.begin, kind="stable"))
        self._predicates, self._span = len(graph.predicates), end - begin + 1
        self._pair, rows = grouped([facts.subject, facts.predicate])
        self._subject = facts.subject[rows].astype(np.int64)
        self._predicate = facts.predicate[rows].astype(np.int64)
        first = int(facts.begin.min(initial=begin))
        starts = [begin - self._span * number for number in range(_WINDOWS, 0, -1)]
        past = [self._at(start) for start in starts if start > first]
        if not past:
            raise UsageError(
                f"all facts begin within {self._span:,} of the graph's units of time, so nothing"
                " shows what comes in as long a time; choose a shorter one"
            )
        self.checks: dict[str, Check | None] = {ALL: None}
        if len(past) > 1:
            _, x, began = past[-1]
            said = self._said(past[:-1], x)
            self.checks[ALL] = Check.of(said, began, np.ones(len(began)))
        pairs, now, _ = self._at(begin)
        self._estimate = np.zeros(len(rows))
        self._estimate[pairs] = self._said(past, now)
        key = self._subject * self._predicates + self._predicate
        self._order = np.argsort(key)
        self._keys = key[self._order]

    def _at(self, tick: int) -> tuple[Ints, Floats, Bools]:
        """The pairs with a fact before a tick, what was known of each, and whether one began."""
        facts, pair, size = self._facts, self._pair, len(self._subject)
        ticks = tick + self._span * np.array([-2, -1, 0, 1])
        before, lately, now, then = np.searchsorted(facts.begin, ticks).tolist()
        count = np.bincount(pair[:now], minlength=size)
        last, first = np.full(size, facts.begin[0]), np.full(size, tick)
        np.maximum.at(last, pair[:now], facts.begin[:now])
        np.minimum.at(first, pair[:now], facts.begin[:now])
        holds = np.bincount(pair[:now], facts.end[:now] >= tick, size) > 0
        recent, earlier = (
            np.bincount(pair[low:high], minlength=size)
            for low, high in ((lately, now), (before, lately))
        )
        active = np.bincount(facts.subject[lately:now], minlength=int(self._subject.max()) + 1)
        having, again = (
            np.bincount(self._predicate, each > 0, self._predicates) for each in (count, recent)
        )
        rate = (again + 0.5) / (having + 1)
        began = np.bincount(pair[now:then], minlength=size) > 0
        numbers = [
            np.log1p(count),
            np.log1p((tick - last) / self._span),
            np.log(np.maximum(count, 1) * self._span / (tick - first + 1)),
            holds,
            np.log1p(recent),
            np.log1p(earlier),
            np.log1p(active[self._subject]),
            np.log(rate / (1 - rate))[self._predicate],
        ]
        rows = np.flatnonzero(count)
        return rows, np.stack(numbers, 1)[rows], began[rows]

    @staticmethod
    def _said(past: list[tuple[Ints, Floats, Bools]], x: Floats) -> Floats:
        """What a regression on some stretches of time says of other rows."""
        known, began = (np.concatenate([one[at] for one in past]) for at in (1, 2))
        scale = Scale.of(known)
        line = fit_logistic(with_ones(scale.apply(known)), began, np.ones(len(known)))
        return logistic(with_ones(scale.apply(x)) @ line)

    def estimate(self, entity: Ints, predicate: Ints, begin: int, end: int) -> Floats:
        """How probable a fact is that begins in the coming time; 0 for pairs without one before."""
        key = entity * self._predicates + predicate
        at = np.searchsorted(self._keys, key).clip(max=len(self._keys) - 1)
        return np.where(self._keys[at] == key, self._estimate[self._order[at]], 0.0)

    def candidates(self, entity: Ints, begin: int, end: int) -> tuple[Ints, Ints]:
        """The predicates that some entities had before: entity, predicate."""
        rows = np.flatnonzero(np.isin(self._subject, entity))
        return self._subject[rows], self._predicate[rows]
