"""How probable it is that a graph states a fact of an entity and a predicate at a time at all.

A question such as `Ada livesIn ? at 1985` supposes that there is an answer. Whether there is one is
estimated from counts of the graph, by a logistic regression over moments: an entity at a timestamp.
In each, a fact of a predicate is stated or not; the facts that hold then are hidden, one by one, so
that what is said of a moment is how often a graph like this one states a fact, or one more, in such
a moment. What was counted of an entity is never used for that entity.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from splime.analysis.regression import Scale, fit_logistic, logistic, with_ones
from splime.arrays import distinct, expand
from splime.evaluation.metrics import Floats
from splime.graph import TemporalGraph
from splime.times import Bools, Ints, When

OTHER_TIMES, ALL = "entities with such a fact at another time", "all"
"""What estimates are checked for."""
_MOMENTS = 1 << 16
"""That are counted at most; a sample with a fixed seed in larger graphs."""
_ROWS = 1 << 15
"""Stated and not stated ones that the regression is fitted on, at most."""
_KINDS, _TOGETHER = 1 << 22, 1 << 25
"""Kinds of facts that the entities of moments, or of what the regression is fitted on, have at
most; and those counted beside facts that hold. With thousands of predicates there are fewer
moments."""
_BLOCK, _AT_ONCE = 1 << 14, 1 << 20
"""Estimates at a time, and the kinds of facts of their entities, about."""
_FOLDS = 4
"""Of entities; those of one fold are estimated with the counts of the others."""
_DRAWN = 4
"""Predicates that an entity does not have, for each moment."""
_TIMES = 8
"""At which an interval is looked at."""
_VISIBLE = 3
"""From so many facts that hold on, one more is as probable."""
_EDGES = np.array((1, 2, 4, 8, 16, 64))
_BINS = len(_EDGES) + 2
"""Of the distance to the nearest fact on one side: none, 1, 2, 3 to 4, …"""
_CELLS = (_VISIBLE + 1) * _BINS * _BINS
_SEEN = slice(3, 6)
"""The features that say whether there are facts before, after and now."""
_SMOOTH = 2.0
_FEWEST, _NEAR = 20, 20.0
"""Stated rows from which a kind of question has its own regression, and how near the common one."""
_PARTS = 10

_Sparse: TypeAlias = Any
"""A sparse matrix of scipy."""


class ReliabilityBin(NamedTuple):
    """Estimates that are about the same."""

    questions: int
    probability: float
    """Their mean."""
    stated: float
    """The share in which the graph states a fact."""


class Check(NamedTuple):
    """Estimates for entities that were not used to make them, beside what the graph states."""

    questions: int
    brier: float
    """The mean squared error."""
    base: float
    """And that of always saying how often facts are stated."""
    bins: list[ReliabilityBin]

    def __str__(self) -> str:
        return f"Brier score {self.brier:.4f} on {self.questions:,} held out (base {self.base:.4f})"

    @classmethod
    def of(cls, estimate: Floats, stated: Bools, weight: Floats) -> Check | None:
        """From estimates and what is stated; None where there are none."""
        if not len(estimate) or not weight.sum() > 0:
            return None
        weight = weight / weight.sum()
        share = float(weight @ stated)
        number = np.minimum((estimate * _PARTS).astype(int), _PARTS - 1)
        bins = []
        for inside in (number == one for one in range(_PARTS)):
            if (total := weight[inside].sum()) > 0:
                said, found = (weight[inside] @ each[inside] / total for each in (estimate, stated))
                bins.append(ReliabilityBin(int(inside.sum()), float(said), float(found)))
        brier = float(weight @ (estimate - stated) ** 2)
        return cls(len(estimate), brier, share * (1 - share), bins)


class _Around(NamedTuple):
    """How many facts hold at a time, and how far the nearest before and after are; 0 is none."""

    now: Ints
    before: Ints
    after: Ints


@dataclass(frozen=True, eq=False)
class _Groups:
    """The times of facts in groups."""

    offsets: Ints
    begins: Ints
    """Of each group in order, each with the number of its group."""
    ends: Ints
    size: int

    @classmethod
    def of(cls, group: Ints, groups: int, begin: Ints, end: Ints, size: int) -> _Groups:
        offsets = np.append(0, np.bincount(group, minlength=groups).cumsum())
        return cls(offsets, np.sort(group * size + begin), np.sort(group * size + end), size)

    def around(self, group: Ints, at: Ints) -> _Around:
        """The facts of groups at timestamps."""
        at = group * self.size + at
        begun = np.searchsorted(self.begins, at, side="right")
        ended = np.searchsorted(self.ends, at, side="left")
        last, next_ = (np.append(column, 0) for column in (self.ends, self.begins))
        before = np.where(ended > self.offsets[group], at - last[ended - 1], 0)
        after = np.where(begun < self.offsets[group + 1], next_[begun] - at, 0)
        return _Around(begun - ended, before, after)


class _Cases(NamedTuple):
    """Entities, predicates and timestamps that are estimated."""

    entity: Ints
    predicate: Ints
    at: Ints
    visible: Ints
    """How many facts are seen to hold."""

    def take(self, rows: Any) -> _Cases:
        return _Cases(*(column[rows] for column in self))


class _Moments(NamedTuple):
    entity: Ints
    at: Ints
    weight: Floats
    """How many moments of the graph each stands for, beside the others."""

    def take(self, rows: Any) -> _Moments:
        return _Moments(*(column[rows] for column in self))


class Existence:
    """Estimates whether a graph states a fact of an entity and a predicate at a time.

    Args:
        graph: whose facts of all splits count as stated.
        kind: what would be asked for: the `object` of a subject's fact, or the `subject`.

    >>> import splime
    >>> graph = splime.load("demo")
    >>> stated = Existence(graph)
    >>> stated.one("Sara Finnby", "livesIn", 1982) > stated.one("Sara Finnby", "diedIn", 1951)
    True
    """

    def __init__(self, graph: TemporalGraph, kind: str = "object") -> None:
        self.graph, self._times = graph, len(graph.timeline)
        self._predicates, entities = len(graph.predicates), len(graph.entities)
        facts = graph.facts()
        begin, end = (time.astype(np.int64) for time in graph.timestamps(facts))
        given, other = (name.astype(np.int64) for name in (facts.subject, facts.object))
        if kind == "subject":
            given, other = other, given
        own = facts.predicate.astype(np.int64)
        both = np.concatenate([given, other]) * 2 * self._predicates
        both += np.concatenate([own, own + self._predicates])
        self._pairs, number = np.unique(both, return_inverse=True)
        twice = [np.tile(time, 2) for time in (begin, end)]
        self._of_pair = _Groups.of(number, len(self._pairs), twice[0], twice[1], self._times)
        self._of_predicate = _Groups.of(own, self._predicates, begin, end, self._times)
        owner = self._pairs // (2 * self._predicates)
        self._starts = np.searchsorted(owner, np.arange(entities + 1))
        self._many = np.diff(self._starts)
        random = np.random.default_rng(0)
        self._fold = random.permutation(entities) % _FOLDS
        self._spans = np.concatenate([given, other]), *twice
        self._count(random)

    # What is counted

    def _draw(self, random: np.random.Generator) -> _Moments:
        """All moments, or a sample: half of them where facts hold, and weighed accordingly."""
        entities, times = len(self._fold), self._times
        total, (owner, begin, end) = entities * times, self._spans
        if total <= _MOMENTS or not len(owner):
            every = np.arange(min(total, _MOMENTS))
            return _Moments(every // times, every % times, np.ones(len(every)))
        length = (end - begin + 1).astype(float)
        chosen = random.choice(len(owner), _MOMENTS // 2, p=length / length.sum())
        inside = begin[chosen] + (random.random(len(chosen)) * length[chosen]).astype(np.int64)
        anywhere = random.integers(0, total, _MOMENTS - len(chosen))
        entity = np.concatenate([owner[chosen], anywhere // times])
        at = np.concatenate([inside, anywhere % times])
        holding = _Groups.of(owner, entities, begin, end, times).around(entity, at).now
        return _Moments(entity, at, 2 / (1 + holding * total / length.sum()))

    def _count(self, random: np.random.Generator) -> None:
        """Count what moments have, in each fold of entities and in all others."""
        from scipy.sparse import csr_matrix

        moments, predicates = self._draw(random), self._predicates
        moments = moments.take(_few(self._many[moments.entity], _KINDS, random))
        row, kind, around = self._look(moments)
        held = (kind < predicates) & (around.now > 0)
        together = self._many[moments.entity] * np.bincount(row, held, len(moments.entity))
        if together.sum() > _TOGETHER:
            moments = moments.take(_few(together, _TOGETHER, random))
            row, kind, around = self._look(moments)
            held = (kind < predicates) & (around.now > 0)
        size, weight, fold = len(moments.entity), moments.weight, self._fold[moments.entity]
        ones = np.ones(len(row))
        states = csr_matrix((ones, (row, _state(kind, around))), (size, 8 * predicates))
        stated = csr_matrix((ones[held], (row[held], kind[held])), (size, predicates))
        weighed = stated.multiply(weight[:, None]).tocsr()
        parts = [states[fold == one].T @ weighed[fold == one] for one in range(_FOLDS)]
        self._with: list[_Sparse] = [(sum(parts) - part).tocsr() for part in parts]
        sizes = np.array([states[fold == one].T @ weight[fold == one] for one in range(_FOLDS)])
        self._of_state = sizes.sum(0) - sizes
        # Not by fold: among the rows of a predicate it would only tell the folds apart.
        self._share = (np.asarray(weighed.sum(0))[0] + 0.5) / (weight.sum() + 1)
        # The facts of a predicate that hold are hidden one by one.
        forward = np.flatnonzero(kind < predicates)
        now = around.now[forward]
        item, visible = expand(np.zeros(len(now), np.int64), np.minimum(now, _VISIBLE) + 1)
        some = forward[item]
        of = row[some]
        rows = _Cases(moments.entity[of], kind[some], moments.at[of], visible)
        cell = _cell(visible, around.before[some], around.after[some])
        more, weights = now[item] > visible, weight[of]
        self._cells = self._count_cells(moments, rows, cell, more, weights)
        self._fit(random, moments, rows, more, weights)

    def _count_cells(
        self, moments: _Moments, rows: _Cases, cell: Ints, more: Bools, weights: Floats
    ) -> list[tuple[_Sparse, Floats]]:
        """How many rows there are outside of each fold, and how many state one more.

        By predicate and cell, and by cell alone.
        """
        from scipy.sparse import coo_matrix, csr_matrix

        predicates, of_row = self._predicates, self._fold[rows.entity]
        # An entity that has no fact of a predicate at any time is in the first cell.
        every = np.bincount(self._fold[moments.entity], moments.weight, minlength=_FOLDS)
        once = rows.visible == 0
        pairs = of_row[once] * predicates + rows.predicate[once]
        had = np.bincount(pairs, weights[once], minlength=_FOLDS * predicates)
        never = np.repeat(every, predicates) - had
        first, folds = np.arange(predicates) * _CELLS, np.repeat(np.arange(_FOLDS), predicates)
        key = np.concatenate([rows.predicate * _CELLS + cell, np.tile(first, _FOLDS)])
        fold = np.concatenate([of_row, folds])
        found = []
        for values in (np.append(weights, never), np.append(weights * more, 0 * never)):
            total = np.bincount(fold * _CELLS + key % _CELLS, values, _FOLDS * _CELLS)
            total = total.reshape(_FOLDS, _CELLS)
            table = coo_matrix((values, (fold, key)), (_FOLDS, predicates * _CELLS)).tocsr()
            found.append((csr_matrix(1 - np.eye(_FOLDS)) @ table, total.sum(0) - total))
        return found

    def _kinds(self, entity: Ints) -> tuple[Ints, Ints]:
        """The pairs of entity and predicate that each entity has, both ways: row, pair."""
        return expand(self._starts[entity], self._many[entity])

    def _look(self, moments: _Moments) -> tuple[Ints, Ints, _Around]:
        """The kinds of facts that the entities have, and where those lie: row, kind, around."""
        row, pair = self._kinds(moments.entity)
        kind = self._pairs[pair] % (2 * self._predicates)
        return row, kind, self._of_pair.around(pair, moments.at[row])

    def _own(self, entity: Ints, predicate: Ints, at: Ints) -> _Around:
        """The facts of an entity and a predicate around a timestamp."""
        key = entity * 2 * self._predicates + predicate
        place = np.searchsorted(self._pairs, key).clip(max=len(self._pairs) - 1)
        found = self._of_pair.around(place, at)
        return _Around(*(np.where(self._pairs[place] == key, column, 0) for column in found))

    # What is estimated from it

    def _features(self, rows: _Cases) -> Floats:
        """A row of numbers for each entity, predicate and timestamp."""
        entity, predicate, at, visible = rows
        fold, own = self._fold[entity], self._own(entity, predicate, at)
        cell = _cell(visible, own.before, own.after)
        (many, all_many), (some, all_some) = self._cells
        key = predicate * _CELLS + cell
        general = (all_some[fold, cell] + _SMOOTH * 0.1) / (all_many[fold, cell] + _SMOOTH)
        rate = (_entries(some, fold, key) + _SMOOTH * general) / (
            _entries(many, fold, key) + _SMOOTH
        )
        holding = self._of_predicate.around(predicate, at).now - own.now
        density = np.log((holding + 1) / (self._share[predicate] * len(self._fold) + 1))
        return np.stack(
            [
                _logit(rate),
                _logit(self._share[predicate]),
                density,
                own.before > 0,
                own.after > 0,
                np.minimum(visible, _VISIBLE),
                np.log1p(own.before),
                np.log1p(own.after),
                *self._others(rows, fold),
            ],
            axis=1,
        )

    def _others(self, rows: _Cases, fold: Ints) -> list[Floats]:
        """What the other facts of the entities say: of each row the same numbers."""
        row, pair = self._kinds(rows.entity)
        kind = self._pairs[pair] % (2 * self._predicates)
        other = kind != rows.predicate[row]
        row, pair, kind = row[other], pair[other], kind[other]
        around = self._of_pair.around(pair, rows.at[row])
        state, of_row, asked = _state(kind, around), fold[row], rows.predicate[row]
        stated = np.empty(len(row))
        for one in range(_FOLDS):
            inside = of_row == one
            stated[inside] = _entries(self._with[one], state[inside], asked[inside])
        chance = self._of_state[of_row, state] * self._share[asked]
        lift = np.log((stated + _SMOOTH) / (chance + _SMOOTH))
        size = len(rows.entity)
        count = np.maximum(np.bincount(row, minlength=size), 1)
        low, high = np.zeros(size), np.zeros(size)
        np.minimum.at(low, row, lift)
        np.maximum.at(high, row, lift)
        nearest = []
        for gap in around[1:]:
            least = np.full(size, self._times, np.int64)
            np.minimum.at(least, row[gap > 0], gap[gap > 0])
            nearest += [np.log1p(least), least == self._times]
        holds = np.bincount(row, around.now > 0, minlength=size)
        mean = np.bincount(row, lift, minlength=size) / count
        return [mean, low, high, np.log1p(holds), *nearest]

    def _fit(
        self,
        random: np.random.Generator,
        moments: _Moments,
        rows: _Cases,
        more: Bools,
        weights: Floats,
    ) -> None:
        """Fit the regression: without a fold of entities to check it, then on all of them."""
        # Beside those that an entity has at some time, some that it never has.
        drawn = min(_DRAWN, self._predicates)
        entity, at = np.repeat(moments.entity, drawn), np.repeat(moments.at, drawn)
        predicate = random.integers(0, max(self._predicates, 1), len(entity))
        key = entity * 2 * self._predicates + predicate
        lacks = ~np.isin(key, self._pairs)
        never = _Cases(entity, predicate, at, np.zeros_like(at)).take(lacks)
        rare = np.repeat(moments.weight, drawn)[lacks] * self._predicates / drawn
        rows = _Cases(*(np.concatenate(both) for both in zip(rows, never, strict=True)))
        more = np.concatenate([more, np.zeros(len(rare), bool)])
        weights = np.concatenate([weights, rare])
        kept = []
        for part in (np.flatnonzero(more), np.flatnonzero(~more)):
            if len(part) > _ROWS:
                weights[part] *= len(part) / _ROWS
                part = random.choice(part, _ROWS, replace=False)
            kept.append(part)
        chosen = np.sort(np.concatenate(kept))
        chosen = chosen[_few(self._many[rows.entity[chosen]], _KINDS, random)]
        rows, more, weights = rows.take(chosen), more[chosen], weights[chosen]
        x = self._in_blocks(rows)
        self._scale = Scale.of(x)
        seen = (x[:, _SEEN] > 0).any(axis=1)
        x = with_ones(self._scale.apply(x))
        held_out = self._fold[rows.entity] == 0
        self._lines = self._regress(x, _question(rows), more, weights * ~held_out)
        said = self._said(x, _question(rows))
        self.checks = {
            name: Check.of(said[part], more[part], weights[part])
            for name, part in (
                (OTHER_TIMES, held_out & seen),
                (ALL, held_out),
            )
        }
        self._lines = self._regress(x, _question(rows), more, weights)

    def _regress(self, x: Floats, question: Ints, more: Bools, weights: Floats) -> Floats:
        """The weights for each kind of question, near those for all where it has few rows."""
        every = fit_logistic(x, more, weights)
        lines = np.tile(every, (2 * self._predicates, 1))
        order = np.argsort(question, kind="stable")
        ends = np.searchsorted(question[order], np.arange(len(lines) + 1))
        for number in range(len(lines)):
            own = order[ends[number] : ends[number + 1]]
            own = own[weights[own] > 0]
            if (right := int(more[own].sum())) >= _FEWEST:
                some = (x[own], more[own], weights[own])
                lines[number] = fit_logistic(*some, ridge=_NEAR / right, near=every)
        return lines

    def _said(self, x: Floats, question: Ints) -> Floats:
        return logistic(np.einsum("ij,ij->i", x, self._lines[question]))

    def _in_blocks(self, rows: _Cases) -> Floats:
        kinds = self._many[rows.entity].cumsum()
        block = np.arange(len(kinds)) // _BLOCK + kinds // _AT_ONCE
        starts = np.append(0, np.flatnonzero(np.diff(block)) + 1)
        ends = np.append(starts[1:], len(kinds))
        parts = [
            self._features(rows.take(slice(*ends)))
            for ends in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        return np.concatenate(parts)

    def estimate(self, entity: Ints, predicate: Ints, begin: int, end: int) -> Floats:
        """How probable a fact, or one more, is from one tick to another, at the likeliest time."""
        first, last = self.graph.timeline.index(np.array([begin, end])).tolist()
        times = np.unique(np.linspace(first, last, min(_TIMES, last - first + 1)).astype(np.int64))
        best = np.zeros(len(entity))
        for time in times:
            best = np.maximum(best, self._now(entity, predicate, np.full(len(entity), time))[0])
        return best

    def over_time(self, entity: int, predicate: int, at: Ints) -> tuple[Floats, Ints]:
        """How probable a fact, or one more, is at some timestamps, and how many hold then."""
        return self._now(np.full(len(at), entity), np.full(len(at), predicate), at)

    def _now(self, entity: Ints, predicate: Ints, at: Ints) -> tuple[Floats, Ints]:
        visible = self._own(entity, predicate, at).now
        rows = _Cases(entity, predicate, at, visible)
        x = with_ones(self._scale.apply(self._in_blocks(rows)))
        return self._said(x, _question(rows)), visible

    @property
    def works(self) -> bool:
        """Whether estimates are better than how often facts are stated."""
        check = self.checks[ALL]
        return check is not None and check.brier < check.base

    def holding(self, entity: int, predicate: int, begin: int, end: int) -> int:
        """How many facts of an entity and a predicate hold from one tick to another, at most."""
        first, last = self.graph.timeline.index(np.array([begin, end])).tolist()
        at = np.arange(first, last + 1)
        entities, predicates = np.full(len(at), entity), np.full(len(at), predicate)
        return int(self._own(entities, predicates, at).now.max())

    def one(self, entity: str, predicate: str, at: When) -> float:
        """The same for one question, by names and a date."""
        of = self.graph.entities.id(entity), self.graph.predicates.id(predicate)
        given, asked = (np.array([number], np.int64) for number in of)
        return float(self.estimate(given, asked, *self.graph.timeline.interval(at, at))[0])

    def candidates(self, entity: Ints, begin: int, end: int) -> tuple[Ints, Ints]:
        """The predicates that entities like each of some have at such times: entity, predicate."""
        from scipy.sparse import csr_matrix

        middle = int(self.graph.timeline.index(np.array([(begin + end) // 2]))[0])
        row, pair = self._kinds(entity)
        kind = self._pairs[pair] % (2 * self._predicates)
        state = _state(kind, self._of_pair.around(pair, np.full(len(row), middle)))
        shape = len(entity), 8 * self._predicates
        states = csr_matrix((np.ones(len(row), bool), (row, state)), shape)
        row_, predicate = (states @ self._ever).nonzero()
        forward = kind < self._predicates
        key = np.concatenate(
            [row_ * self._predicates + predicate, row[forward] * self._predicates + kind[forward]]
        )
        key = distinct(key.astype(np.int64))
        return entity[key // self._predicates], key % self._predicates

    @cached_property
    def _ever(self) -> _Sparse:
        """Which predicates are ever stated where an entity has a kind of fact."""
        every: _Sparse = sum(self._with)
        return (every > 0).tocsr()


def _entries(table: _Sparse, rows: Ints, columns: Ints) -> Floats:
    """Some entries of a sparse matrix; scipy gives none where none are asked for."""
    return np.asarray(table[rows, columns])[0] if len(rows) else np.zeros(0)


def _few(cost: Ints, most: int, random: np.random.Generator) -> Any:
    """All places, or so many drawn at random that together they cost about so much."""
    if (total := int(cost.sum())) <= most:
        return slice(None)
    return np.sort(random.choice(len(cost), len(cost) * most // total, replace=False))


def _question(rows: _Cases) -> Ints:
    """A number for a predicate, and whether it is asked for a fact or for one more."""
    return 2 * rows.predicate + (rows.visible > 0)


def _state(kind: Ints, around: _Around) -> Ints:
    """A number for a kind of facts and where they lie: holding, over, to come, or both."""
    return 4 * kind + np.where(around.now > 0, 0, (around.before > 0) + 2 * (around.after > 0))


def _cell(visible: Ints, before: Ints, after: Ints) -> Ints:
    """A number for how many facts hold, and how far the nearest others are."""
    bins = [np.where(gap > 0, np.searchsorted(_EDGES, gap) + 1, 0) for gap in (before, after)]
    return np.asarray((np.minimum(visible, _VISIBLE) * _BINS + bins[0]) * _BINS + bins[1])


def _logit(share: Floats) -> Floats:
    share = share.clip(1e-6, 1 - 1e-6)
    return np.asarray(np.log(share / (1 - share)))
