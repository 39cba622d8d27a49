"""Splitting as the paper's Algorithm 2 prints it: facts that touch a cut go to both sides.

By the rule of the running text, which is the library's, a fact that only ends or begins at the cut
stays on its side. This is here to see which of the two is behind the paper's figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from splime.graph import Facts, TemporalGraph
from splime.timeline import Timeline
from splime.times import Ints
from splime.vocabulary import Vocabulary

NAME = "algorithm 2"
"""What cases call it, in the place of a method."""


class Piece(NamedTuple):
    """What a predicate holds between two cuts: facts, with what is left of their time."""

    begin: Ints
    end: Ints
    fact: Ints

    @property
    def can_be_split(self) -> bool:
        """The rule of the paper's code, as for `methods.split`."""
        wide = self.end.max() - self.begin.min() >= 3
        return bool(wide) and len(np.unique(self.begin)) > 2 and len(np.unique(self.end)) > 2

    def split(self, at: int) -> tuple[Piece, Piece]:
        """Both sides of a cut."""
        left, right = self.begin <= at, self.end >= at
        return (
            Piece(self.begin[left], np.minimum(self.end[left], at), self.fact[left]),
            Piece(np.maximum(self.begin[right], at), self.end[right], self.fact[right]),
        )


def algorithm_2(
    graph: TemporalGraph,
    *,
    by: Literal["time", "count", "random"] = "time",
    grow: float | None = None,
    predicates: int = 0,
    seed: int = 0,
) -> TemporalGraph:
    """The static graph of all pieces, as a graph in which everything holds at the same time.

    Cuts are learned from all splits, until there are `grow` times as many predicates, or an
    absolute number of them.
    """
    facts = graph.facts()
    begin, end = (
        graph.timeline.index(ticks).astype(np.int64) for ticks in (facts.begin, facts.end)
    )
    by_predicate = [
        np.flatnonzero(facts.predicate == name) for name in range(len(graph.predicates))
    ]
    pieces = [Piece(begin[rows], end[rows], rows) for rows in by_predicate if len(rows)]
    wanted = predicates if grow is None else math.ceil(round(grow * len(pieces), 9))
    if by == "random":
        pieces = _split_at_random(pieces, wanted, seed)
    else:
        pieces = _split_the_largest(pieces, middle if by == "time" else balance, wanted)
    return _as_graph(graph, facts, pieces)


def _split_the_largest(
    pieces: list[Piece], where: Callable[[Piece], int], wanted: int
) -> list[Piece]:
    sizes = [len(piece.fact) if piece.can_be_split else 0 for piece in pieces]
    while len(pieces) < wanted:
        largest = max(range(len(pieces)), key=sizes.__getitem__)  # the first of equal ones
        piece = pieces.pop(largest)
        if not sizes.pop(largest):
            raise ValueError("no piece can be split any more")
        for part in piece.split(where(piece)):
            pieces.append(part)
            sizes.append(len(part.fact) if part.can_be_split else 0)
    return pieces


def _split_at_random(pieces: list[Piece], wanted: int, seed: int) -> list[Piece]:
    rng = np.random.default_rng(seed)
    while len(pieces) < wanted:
        drawn = int(rng.integers(len(pieces)))
        first, last = int(pieces[drawn].begin.min()), int(pieces[drawn].end.max())
        if first < last:
            left, right = pieces[drawn].split(int(rng.integers(first, last + 1)))
            pieces[drawn] = left
            pieces.append(right)
    return pieces


def middle(piece: Piece) -> int:
    """The middle of the time of a piece."""
    return int((int(piece.begin.min()) + int(piece.end.max())) / 2)


def balance(piece: Piece) -> int:
    """Where as many facts have ended as are still to begin; the middle where nothing else is."""
    times = np.unique(np.concatenate([piece.begin, piece.end]))
    times = times[(times != piece.begin.min()) & (times != piece.end.max())]
    if not len(times):
        return middle(piece)
    ended = np.searchsorted(np.sort(piece.end), times, side="right")
    to_begin = len(piece.begin) - np.searchsorted(np.sort(piece.begin), times)
    return int(times[np.argmin(np.abs(ended - to_begin))])


def _as_graph(graph: TemporalGraph, facts: Facts, pieces: list[Piece]) -> TemporalGraph:
    fact = np.concatenate([piece.fact for piece in pieces])
    number = np.repeat(np.arange(len(pieces), dtype=np.int32), [len(one.fact) for one in pieces])
    order = np.argsort(fact, kind="stable")
    fact, number = fact[order], number[order]
    tick = np.full(1, graph.timeline.first)
    splits: list[Facts] = []
    start = 0
    for _, own in graph.splits():
        rows = (fact >= start) & (fact < start + len(own))
        when = np.full(int(rows.sum()), tick[0])
        splits.append(
            replace(
                facts.take(fact[rows]),
                predicate=number[rows],
                begin=when,
                end=when.copy(),
                unknown=np.zeros(len(when), np.uint8),
            )
        )
        start += len(own)
    train, valid, test = splits
    names = [graph.predicates[facts.predicate[piece.fact[0]]] for piece in pieces]
    return replace(
        graph,
        train=train,
        valid=valid,
        test=test,
        predicates=Vocabulary(
            [f"{at:06} {name}" for at, name in enumerate(names)], kind="predicate"
        ),
        timeline=Timeline(graph.timeline.granularity, tick, tick.copy()),
    )
