"""What the score of a query is made of: the scopes that serve its interval, and their weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from splime.errors import UsageError, nearest
from splime.static import Triples
from splime.times import Ints

Aggregate: TypeAlias = Literal["mean", "ends", "max", "sum"]
"""How scores of parts become one: their mean weighted by overlap, the mean of the first and the
last, the highest, or their sum."""
MEANS = ("mean", "ends")
"""Those that are to be divided by the sum of the weights."""


def check_aggregate(how: str) -> None:
    """An error for an aggregation that does not exist."""
    known = get_args(Aggregate)
    if how not in known:
        raise UsageError(
            f"aggregate is one of {', '.join(known)}, not {how!r}.{nearest(how, known)}"
        )


@dataclass(frozen=True)
class ScopeParts:
    """The scoped predicates that serve facts, in the order of the facts and of time."""

    start: Ints
    """Where the parts of each fact begin."""
    count: Ints
    predicate: Ints
    weight: Ints


def scope_parts(triples: Triples, facts: int, instead: Ints, how: Aggregate) -> ScopeParts:
    """The parts of facts whose entities are not cut; `instead` stands in for unseen scopes.

    Parts that are the same scope then are one, with the sum of their weights.
    """
    fact, predicate = triples.fact, instead[triples.predicate]
    weight = triples.overlap.astype(np.int64)
    if how == "ends":
        first = np.ones(len(fact), bool)
        np.not_equal(fact[1:], fact[:-1], out=first[1:])
        ends = first | np.append(first[1:], True)
        fact, predicate = fact[ends], predicate[ends]
    if how != "mean":
        weight = np.ones(len(fact), np.int64)
    new = np.ones(len(fact), bool)
    new[1:] = (fact[1:] != fact[:-1]) | (predicate[1:] != predicate[:-1])
    at = np.flatnonzero(new)
    weight = np.add.reduceat(weight, at)
    count = np.bincount(fact[at], minlength=facts)
    start = count.cumsum() - count
    return ScopeParts(start, count, predicate[at], weight)


def time_costs(begin: Ints, end: Ints, how: Aggregate) -> Ints:
    """How many parts `time_parts` gives each interval."""
    count = end - begin + 1
    return np.minimum(count, 2) if how == "ends" else count


def time_parts(begin: Ints, end: Ints, how: Aggregate) -> tuple[Ints, Ints]:
    """The timestamps that are the parts of intervals where entities are cut, and whose they are.

    >>> [column.tolist() for column in time_parts(np.array([3, 5]), np.array([5, 5]), "mean")]
    [[0, 0, 0, 1], [3, 4, 5, 5]]
    >>> [column.tolist() for column in time_parts(np.array([3, 5]), np.array([5, 5]), "ends")]
    [[0, 0, 1], [3, 5, 5]]
    """
    count = time_costs(begin, end, how)
    step = np.maximum(end - begin, 1) if how == "ends" else np.ones(len(begin), np.int64)
    whose = np.repeat(np.arange(len(begin)), count)
    within = np.arange(len(whose)) - (count.cumsum() - count)[whose]
    return whose, begin[whose] + step[whose] * within
