"""Which facts are like those that were made wrong, and not like the others."""

from __future__ import annotations

import numpy as np

from splime.analysis.regression import RIDGE, Scale, fit_logistic, with_ones
from splime.evaluation.metrics import Floats
from splime.graph import Facts, Ids
from splime.query.doubting.asked import WAYS, AskedFacts
from splime.times import Ints

PRIOR = 0.01
"""How many of the facts are supposed to be wrong in each way."""
_FITTED, _BLOCK = 20_000, 1 << 14
"""Stated facts that the regressions are fitted on, at most; facts that are judged at a time."""
_FEW, _FOLDS = 5_000, 5
"""Of fewer facts a regression would learn those that it is to judge by heart, so each is judged by
one that was fitted without it."""
_RIDGE = 1.0
"""Of these regressions: of few facts one may be as sure of what it has not seen as of the rest."""
_SMOOTH, _COMPARED = 20.0, 7
"""How near what is usual for a predicate is to what is usual for all; of how many numbers."""


class Judge:
    """How much more likely facts are among wrong ones than among those that are stated."""

    def __init__(
        self, said: Floats, predicate: Ids, way: Ints, predicates: int, ridge: float = 10 * RIDGE
    ) -> None:
        random = np.random.default_rng(0)
        stated = np.flatnonzero(way < 0)
        stated = np.sort(random.permutation(stated)[:_FITTED])
        rows = np.concatenate([stated, np.flatnonzero(way >= 0)])
        said, predicate, way = said[rows], predicate[rows], way[rows]
        count = np.bincount(predicate[way < 0], minlength=predicates)
        every = said[way < 0].mean(0)
        self._usual = np.tile(_SMOOTH * every, (len(count), 1))
        np.add.at(self._usual, predicate[way < 0], said[way < 0])
        self._usual = (self._usual / (count + _SMOOTH)[:, None])[:, :_COMPARED]
        self._scales: list[Scale] = []
        for _ in range(2):
            self._scales.append(Scale.of(self._features(said, predicate)[way < 0]))
        x, self._lines = with_ones(self._features(said, predicate)), {}
        for number in np.unique(way[way >= 0]).tolist():
            chosen = (way < 0) | (way == number)
            right = way[chosen] == number
            weight = np.where(right, 1 / right.sum(), 1 / max((~right).sum(), 1))
            self._lines[number] = fit_logistic(x[chosen], right, weight, ridge)

    def _features(self, said: Floats, predicate: Ids) -> Floats:
        """What is said, also beside what is usual for the predicate, and products of all pairs.

        As far as scales are known, each of which comes from what the ones before it gave.
        """
        x = np.concatenate([said, said[:, :_COMPARED] - self._usual[predicate]], axis=1)
        if not self._scales:
            return x
        x = self._scales[0].apply(x)
        one, other = np.triu_indices(x.shape[1])
        products: Floats = x[:, one] * x[:, other]
        if len(self._scales) == 1:
            return products
        return np.concatenate([x, self._scales[1].apply(products)], axis=1)

    def probabilities(self, said: Floats, predicate: Ids) -> Floats:
        """A column for each way: how probably a fact is wrong, if `PRIOR` of them are so."""
        found = np.zeros((len(said), len(WAYS)))
        for start in range(0, len(said), _BLOCK):
            some = slice(start, start + _BLOCK)
            x = with_ones(self._features(said[some], predicate[some]))
            for way, line in self._lines.items():
                found[some, way] = PRIOR * np.exp((x @ line).clip(-30, 30))
        return np.asarray(found / (1 + found.sum(1, keepdims=True)))


def said_of(rows: Floats, times: Floats, facts: Facts, degree: Ints) -> Floats:
    """What the others say of facts: numbers for `Judge`, from `ANSWERED` and of their times."""
    of_object, best_object, _, of_subject, best_subject, _ = rows.T
    of_time, best_time, _, fits = times.T
    beside = of_object - best_object, of_subject - best_subject
    return np.stack(
        [
            of_object,
            beside[0],
            of_subject,
            beside[1],
            of_time,
            of_time - best_time,
            fits,
            np.log1p(degree[facts.subject]),
            np.log1p(degree[facts.object]),
            np.minimum(of_object, of_subject),
            np.minimum(*beside),
        ],
        axis=1,
    )


def judge(said: Floats, asked: AskedFacts, rows: Ints, predicates: int) -> Floats:
    """How probably the facts in some rows of what was asked are wrong: a column for each way."""
    predicate, way = asked.facts.predicate, asked.way
    folds = _FOLDS if len(rows) < _FEW else 1
    fold, found = asked.statement % folds, np.zeros((len(rows), len(WAYS)))
    for number in range(folds):
        seen, here = (fold != number) | (folds == 1), rows[fold[rows] == number]
        ridge = 10 * RIDGE if folds == 1 else _RIDGE
        fitted = Judge(said[seen], predicate[seen], way[seen], predicates, ridge)
        found[fold[rows] == number] = fitted.probabilities(said[here], predicate[here])
    return found
