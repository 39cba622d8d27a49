"""Ranking in blocks of queries: the loop that all protocols share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TypeAlias

import numpy as np
import torch

from splime.evaluation.filters import Known
from splime.evaluation.metrics import Floats
from splime.evaluation.ranking import Ties, count, rank
from splime.times import Ints

Progress: TypeAlias = Callable[[int, int], None]
"""Takes how many queries are done, and how many there are."""
Estimate: TypeAlias = Callable[[float], None]
"""Takes the seconds that all queries will take, judged by a few."""

_TRIAL = 64


@dataclass(frozen=True)
class Side:
    """Answers to rank against the distinct queries that they answer."""

    query: Ints
    """The query of every answer."""
    target: Ints
    score: Callable[[int, int], torch.Tensor]
    """The scores of all candidates for the queries from one number up to another."""
    cost: Ints
    """How many rows are scored for each query."""
    known: Callable[[Ints], Known]
    """What is known of answers, given by their positions in the wanted order."""
    block: int
    """How many queries fit into a block."""
    never: Ints | None = None
    """Columns of the scores that are no candidates."""


def rank_sides(
    sides: Sequence[Side],
    *,
    levels: int,
    ties: Ties,
    device: torch.device,
    progress: Progress | None,
    estimate: Estimate | None,
) -> Floats:
    """The ranks of all answers, by level, answer and side."""
    done, total = 0, sum(len(side.query) for side in sides)
    ranks = np.empty((levels, len(sides[0].query), len(sides)))

    def more(answers: int) -> None:
        nonlocal done
        done += answers
        if progress is not None:
            progress(done, total)

    if estimate is not None:
        estimate(_seconds(sides, levels, device))
    for column, side in enumerate(sides):
        _Ranking(side, levels, device).run(ranks[:, :, column], ties, more)
    return ranks


class _Ranking:
    """One side, with its answers in the order of its queries."""

    def __init__(self, side: Side, levels: int, device: torch.device) -> None:
        self.side, self.levels = side, levels
        self.order = np.argsort(side.query, kind="stable")
        self.query, self.target = side.query[self.order], side.target[self.order]
        self.known = side.known(self.order)
        self.never = None
        if side.never is not None and len(side.never):
            self.never = torch.as_tensor(side.never).to(device)

    def run(self, ranks: Floats, ties: Ties, more: Callable[[int], None]) -> None:
        """Fill in the ranks of all answers."""
        for first in range(0, len(self.side.cost), self.side.block):
            last = min(first + self.side.block, len(self.side.cost))
            start, better, equal = self.block(first, last)
            ranks[:, self.order[start : start + better.shape[1]]] = rank(better, equal, ties)
            more(better.shape[1])

    def block(self, first: int, last: int) -> tuple[int, Ints, Ints]:
        """The first answer to some queries; and how many candidates are better, or equal."""
        start, stop = np.searchsorted(self.query, (first, last)).tolist()
        scores = self.side.score(first, last)
        row, target = self.query[start:stop] - first, self.target[start:stop]
        excluded = self.known.of(start, stop)
        counts = count(scores, row, target, excluded, levels=self.levels, never=self.never)
        return start, *counts


def _seconds(sides: Sequence[Side], levels: int, device: torch.device) -> float:
    """How long all will take, judged by a few queries from the middle of the first side."""
    side = sides[0]
    some = min(_TRIAL, side.block, len(side.cost))
    first = (len(side.cost) - some) // 2
    trial = _Ranking(side, levels, device)
    for _ in range(2):  # once to warm up
        begin = perf_counter()
        trial.block(first, first + some)
        seconds = perf_counter() - begin
    rows = int(side.cost[first : first + some].sum())
    return seconds * sum(int(each.cost.sum()) for each in sides) / rows
