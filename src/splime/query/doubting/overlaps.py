"""Predicates that have one object at a time, learned from the facts, and facts against that."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from splime.arrays import grouped
from splime.graph import Facts
from splime.paths.processor import compiled
from splime.times import Bools, Ints

_MOST = 0.1
"""The share of a predicate's facts that may overlap others of the subject."""
_RARE, _FEWEST = 0.2, 5.0
"""Overlaps are rarer than so many times what chance would give, which gives so many at least."""
_SOME = 50
"""Facts of a predicate whose subjects have one object at all."""
ONE_AT_A_TIME, ONE = 1, 2
"""How many objects the subjects of a predicate have."""


class Overlaps(NamedTuple):
    """Facts of predicates with one object at a time that hold at once with another one."""

    fact: Ints
    other: Ints
    """A fact of the same subject and predicate, with another object."""
    usual: np.ndarray[tuple[int], np.dtype[np.float64]]
    """The share of the predicate's facts that overlap others."""
    single: Ints
    """Of each predicate: `ONE` or `ONE_AT_A_TIME` if subjects nearly always have that; else 0."""

    @property
    def predicates(self) -> Ints:
        """Those with one object at a time."""
        return np.flatnonzero(self.single)


@compiled
def _partners(group, target, begin, end, partner):  # type: ignore[no-untyped-def]
    """Of each fact one that it overlaps, and the pairs of each group; in order of group, begin."""
    pairs = np.zeros(len(group), np.int64)
    for i in range(len(group)):
        for j in range(i + 1, len(group)):
            if group[j] != group[i] or (begin[j] >= end[i] and begin[j] > begin[i]):
                break
            if target[i] == target[j]:
                continue
            pairs[i] += 1
            if partner[i] < 0:
                partner[i] = j
            if partner[j] < 0:
                partner[j] = i
            if pairs[i] > 64:
                break
    return pairs


def find_overlaps(facts: Facts, predicates: int) -> Overlaps:
    """The facts that overlap others of their subject where a predicate has one object at a time.

    Where the end of one is the begin of the next they do not overlap.
    """
    dated = np.flatnonzero(~facts.timeless)
    known = facts.take(dated)
    begin, end = known.known_times()
    group, first = grouped([known.predicate, known.subject])
    order = np.lexsort((end, begin, group))
    partner = np.full(len(order), -1, np.int64)
    columns = (group, known.object.astype(np.int64), begin, end)
    pairs = _partners(*(column[order] for column in columns), partner)
    own, predicate = known.predicate[order], known.predicate[first]
    single, usual = _once(known, predicates), np.zeros(predicates)
    size = np.bincount(group, minlength=len(first)).astype(float)
    for one in np.unique(own).tolist():
        inside = own == one
        count = inside.sum()
        share = float(((size[predicate == one] / count) ** 2).sum())
        by_chance = share * _overlapping(begin[order][inside], end[order][inside])
        usual[one] = (partner[inside] >= 0).mean()
        rare = pairs[inside].sum() <= _RARE * by_chance and by_chance >= _FEWEST
        if usual[one] > _MOST:
            single[one] = 0
        elif rare and not single[one]:
            single[one] = ONE_AT_A_TIME
    at: Bools = (partner >= 0) & (single[own] > 0)
    numbers = dated[order]
    return Overlaps(numbers[at], numbers[partner[at]], usual[own[at]], single)


def _once(facts: Facts, predicates: int) -> Ints:
    """`ONE` where subjects have several objects far less often than if facts fell on them."""
    pairs = np.unique(np.stack([facts.predicate, facts.subject, facts.object], 1), axis=0)
    subjects, count = np.unique(pairs[:, :2], axis=0, return_counts=True)
    of, distinct = (np.bincount(rows[:, 0], minlength=predicates) for rows in (pairs, subjects))
    twice = np.bincount(subjects[:, 0], count * (count - 1) / 2, predicates)
    by_chance = of**2 / 2 / np.maximum(distinct, 1)
    return np.where((of >= _SOME) & (twice <= _RARE * by_chance), ONE, 0)


def _overlapping(begin: Ints, end: Ints) -> float:
    """How many pairs of facts hold at once, whatever their subjects."""
    ordered, count = np.sort(begin), len(begin)
    after = count - np.searchsorted(ordered, np.maximum(end, begin + 1))
    return count * (count - 1) / 2 - float(after.sum())
