"""What the score of a query is made of: its parts, their weights, and how they become one score.

A part is a scope that the query's interval lies in; where entities are cut, it is a timestamp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import torch

from splime.arrays import expand, grouped
from splime.errors import UsageError, nearest
from splime.scoring.scorer import Ask, Ids, check_nan
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
    """The scoped predicates of facts, in the order of the facts and of time."""

    start: Ints
    """Where the parts of each fact begin."""
    count: Ints
    predicate: Ints
    weight: Ints


def scope_parts(triples: Triples, facts: int, fallback: Ints, how: Aggregate) -> ScopeParts:
    """The parts of facts whose entities are not cut.

    Parts that are the same scope, because of a fallback, are one with the sum of their weights.
    """
    fact, predicate = triples.fact, fallback[triples.predicate]
    weight = triples.overlap.astype(np.int64)
    if how == "ends":
        new = np.ones(len(fact), bool)
        np.not_equal(fact[1:], fact[:-1], out=new[1:])
        ends = new | np.append(new[1:], True)
        fact, predicate = fact[ends], predicate[ends]
    if how != "mean":
        weight = np.ones(len(fact), np.int64)
    new = np.ones(len(fact), bool)
    new[1:] = (fact[1:] != fact[:-1]) | (predicate[1:] != predicate[:-1])
    at = np.flatnonzero(new)
    count = np.bincount(fact[at], minlength=facts)
    return ScopeParts(count.cumsum() - count, count, predicate[at], np.add.reduceat(weight, at))


def time_costs(begin: Ints, end: Ints, how: Aggregate) -> Ints:
    """How many parts `time_parts` gives each interval."""
    count = end - begin + 1
    return np.minimum(count, 2) if how == "ends" else count


def time_parts(begin: Ints, end: Ints, how: Aggregate) -> tuple[Ints, Ints]:
    """The intervals and timestamps of all parts, where entities are cut.

    >>> [column.tolist() for column in time_parts(np.array([3, 5]), np.array([5, 5]), "mean")]
    [[0, 0, 0, 1], [3, 4, 5, 5]]
    >>> [column.tolist() for column in time_parts(np.array([3, 5]), np.array([5, 5]), "ends")]
    [[0, 0, 1], [3, 5, 5]]
    """
    count = time_costs(begin, end, how)
    step = np.maximum(end - begin, 1) if how == "ends" else np.ones(len(begin), np.int64)
    interval, within = expand(np.zeros(len(begin), np.int64), count)
    return interval, begin[interval] + step[interval] * within


class Parts(NamedTuple):
    """Parts of some queries: the pairs of ids to ask for, as `Ask` takes them, and weights."""

    query: Ints
    entity: Ids
    other: Ids
    weight: Ints
    time: Ints | None = None
    """The timestamp of each part, where the columns of candidates depend on it."""

    def take(self, rows: Ints) -> Parts:
        """Some of them, by positions."""
        return Parts(*(None if column is None else column[rows] for column in self))  # type: ignore[arg-type]


def aggregated(
    ask: Ask,
    parts: Parts,
    queries: int,
    how: Aggregate,
    *,
    room: int,
    columns: Callable[[int], torch.Tensor] | None = None,
) -> torch.Tensor:
    """A row of scores for each query, from `room` rows of parts at a time.

    Means are not divided by the sum of the weights: it is the same for all candidates of a query.
    Parts of a query are added one by one in the order of time, so the result does not depend on
    `room`. `columns` gives the column of each candidate at a timestamp.
    """
    # Scoped predicates of one source are numbered in the order of time.
    keys = (parts.query, parts.entity, parts.other)
    order = np.lexsort(keys if parts.time is None else (*keys, parts.time))
    total: torch.Tensor | None = None
    for start in range(0, len(order), room):
        some = parts.take(order[start : start + room])
        row, asked = grouped((some.entity, some.other))
        scores = ask(some.entity[asked], some.other[asked])
        if total is None:
            width = scores.shape[1] if columns is None else len(columns(0))
            total = _empty_total(scores, (queries, width), how)
        for members in _layers(_occurrence(some.query) if some.time is None else some.time):
            rows = torch.as_tensor(row[members]).to(scores.device)
            if columns is None or some.time is None:
                values = scores.index_select(0, rows)
            else:
                values = scores[rows[:, None], columns(int(some.time[members[0]]))]
            _add(total, some.query[members], values, some.weight[members], how)
    assert total is not None, "every query has a part"
    check_nan(total)
    return total


def by_cells(
    scores: torch.Tensor, row: Ints, cell: Ints, parts: ScopeParts, how: Aggregate
) -> torch.Tensor:
    """One score for each cell of a table of parts, from a row of scores over scoped predicates.

    Means are divided: cells differ in the sum of their weights where cuts lie at timestamps.
    """
    whose, at = expand(parts.start[cell], parts.count[cell])
    place = row[whose] * scores.shape[1] + parts.predicate[at]
    flat = scores.reshape(-1)
    total = _empty_total(scores, (len(cell),), how)
    for members in _layers(at - parts.start[cell][whose]):
        values = flat[torch.as_tensor(place[members]).to(scores.device)]
        _add(total, whose[members], values, parts.weight[at[members]], how)
    if how in MEANS:
        weight = np.add.reduceat(parts.weight, parts.start)[cell]
        total /= torch.as_tensor(weight, dtype=total.dtype).to(scores.device)
    check_nan(total)
    return total


def _empty_total(scores: torch.Tensor, shape: tuple[int, ...], how: Aggregate) -> torch.Tensor:
    """What parts are added to; half precision would be too coarse for it."""
    dtype = torch.promote_types(scores.dtype, torch.float32)
    return scores.new_full(shape, -torch.inf if how == "max" else 0.0, dtype=dtype)


def _occurrence(numbers: Ints) -> Ints:
    """How many equal numbers stand before each one: 7, 3, 7, 7 gives 0, 0, 1, 2."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    before = np.empty(len(numbers), np.int64)
    before[order] = np.arange(len(numbers)) - np.searchsorted(ordered, ordered)
    return before


def _layers(layer: Ints) -> list[Ints]:
    """Positions by layer; in a layer every query has one part at most."""
    order = np.argsort(layer, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(layer[order])) + 1)


def _add(
    total: torch.Tensor, into: Ints, values: torch.Tensor, weight: Ints, how: Aggregate
) -> None:
    """Take one more part into account, at different places of the total."""
    places = torch.as_tensor(into).to(total.device)
    values = values.to(total.dtype)
    if how == "max":
        total[places] = torch.maximum(total[places], values)
        return
    if (weight != 1).any():
        factor = torch.as_tensor(weight, dtype=total.dtype).to(total.device)
        values *= factor.view(-1, *[1] * (values.ndim - 1))  # a copy of the scores, not theirs
    total.index_add_(0, places, values)
