"""The scores of queries that consist of parts, a few rows of parts at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from splime.arrays import expand
from splime.evaluation.groups import grouped, occurrence
from splime.evaluation.parts import MEANS, Aggregate, ScopeParts
from splime.evaluation.scorer import Ask, Ids, no_nan
from splime.times import Ints


class Parts(NamedTuple):
    """Pairs of ids to ask for, of some queries."""

    query: Ints
    first: Ids
    second: Ids
    weight: Ints
    time: Ints | None
    """The timestamp of the part, where the columns of candidates depend on it."""

    def take(self, rows: Ints) -> Parts:
        """Some of them, by positions."""
        time = None if self.time is None else self.time[rows]
        return Parts(self.query[rows], self.first[rows], self.second[rows], self.weight[rows], time)


class Queries(NamedTuple):
    """The distinct queries of some facts, and how they are scored."""

    number: Ints
    """The query of every fact."""
    cost: Ints
    """How many rows are scored for each query."""
    weight: Ints
    """What the scores of each query are to be divided by to be means; 1 if they are no means."""
    score: Callable[[int, int], torch.Tensor]
    """The scores of all candidates for the queries from one number up to another."""
    block: int
    """How many queries fit into a block."""


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

    Means are not divided by the weights' sum: it is the same for all candidates of a query. Parts
    of a query are added one by one in the order of time, so the result does not depend on `room`.
    `columns` tells the column of each candidate at a timestamp.
    """
    # Scoped predicates of one source are numbered in the order of time.
    keys = (parts.query, parts.first, parts.second)
    order = np.lexsort(keys if parts.time is None else (*keys, parts.time))
    total: torch.Tensor | None = None
    for start in range(0, len(order), room):
        some = parts.take(order[start : start + room])
        row, asked = grouped((some.first, some.second))
        scores = ask(some.first[asked], some.second[asked])
        if total is None:
            width = scores.shape[1] if columns is None else len(columns(0))
            total = _nothing(scores, (queries, width), how)
        for members in _layers(occurrence(some.query) if some.time is None else some.time):
            rows = torch.as_tensor(row[members]).to(scores.device)
            if columns is None or some.time is None:
                values = scores.index_select(0, rows)
            else:
                values = scores[rows[:, None], columns(int(some.time[members[0]]))]
            _add(total, some.query[members], values, some.weight[members], how)
    assert total is not None, "every query has a part"
    no_nan(total)
    return total


def by_cells(
    scores: torch.Tensor, row: Ints, cell: Ints, parts: ScopeParts, how: Aggregate
) -> torch.Tensor:
    """Of each cell of a parts table one score, from a row of scores over scoped predicates.

    Means are divided: cells differ in the sum of their weights where cuts lie at timestamps.
    """
    whose, at = expand(parts.start[cell], parts.count[cell])
    place = row[whose] * scores.shape[1] + parts.predicate[at]
    flat = scores.reshape(-1)
    total = _nothing(scores, (len(cell),), how)
    for members in _layers(at - parts.start[cell][whose]):
        values = flat[torch.as_tensor(place[members]).to(scores.device)]
        _add(total, whose[members], values, parts.weight[at[members]], how)
    if how in MEANS:
        weight = np.add.reduceat(parts.weight, parts.start)[cell]
        total /= torch.as_tensor(weight, dtype=total.dtype).to(scores.device)
    no_nan(total)
    return total


def _nothing(scores: torch.Tensor, shape: tuple[int, ...], how: Aggregate) -> torch.Tensor:
    """What parts are added to; half precision would be too coarse for it."""
    dtype = torch.promote_types(scores.dtype, torch.float32)
    return scores.new_full(shape, -torch.inf if how == "max" else 0.0, dtype=dtype)


def _layers(layer: Ints) -> list[Ints]:
    """Positions by layer; in a layer everything has one part at most."""
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
