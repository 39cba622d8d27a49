"""Splitting as the paper's Algorithm 2 prints it: facts that touch a cut go to both sides.

By the rule of the running text, which is the library's, a fact that only ends or begins at the cut
stays on its side. This is here to see which of the two is behind the paper's figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from splime.counts import Counts
from splime.graph import TemporalGraph
from splime.methods.split import ScopeCounts as Piece
from splime.timeline import Timeline
from splime.vocabulary import Vocabulary

NAME = "algorithm 2"
"""What cases call it, in the place of a method."""


class TouchingPiece(Piece):
    """A piece that shares the timestamps at its ends with its neighbours, and their facts."""

    def split(self, at: int) -> tuple[Piece, Piece]:
        """Both sides of a cut; instants matter to the other rule only, and stay as they are."""
        cut = at - self.left
        begins, ends = self.begins[: cut + 1], self.ends[: cut + 1].copy()
        ends[cut] = begins.sum() - ends[:cut].sum()
        left = TouchingPiece(
            self.source, self.left, begins, ends, self.instants[: cut + 1], int(begins.sum())
        )
        begins, ends = self.begins[cut:].copy(), self.ends[cut:]
        begins[0] = ends.sum() - begins[1:].sum()
        right = TouchingPiece(self.source, at, begins, ends, self.instants[cut:], int(ends.sum()))
        return left, right


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
    begin, end = graph.timestamps(facts)
    counts = Counts.of(facts.predicate, begin, end, len(graph.predicates), len(graph.timeline))
    pieces: list[Piece] = [*TouchingPiece.uncut(counts)]
    wanted = predicates if grow is None else math.ceil(round(grow * len(pieces), 9))
    if by == "random":
        pieces = _split_at_random(pieces, wanted, seed)
    else:
        where = Piece.middle if by == "time" else Piece.balance
        pieces = _split_the_largest(pieces, where, wanted)
    return _as_graph(graph, pieces)


def _split_the_largest(
    pieces: list[Piece], where: Callable[[Piece], int], wanted: int
) -> list[Piece]:
    sizes = [piece.facts if piece.can_be_split else 0 for piece in pieces]
    while len(pieces) < wanted:
        largest = max(range(len(pieces)), key=sizes.__getitem__)  # the first of equal ones
        piece = pieces.pop(largest)
        if not sizes.pop(largest):
            raise ValueError("no piece can be split any more")
        parts = piece.split(where(piece))
        pieces += parts
        sizes += [part.facts if part.can_be_split else 0 for part in parts]
    return pieces


def _split_at_random(pieces: list[Piece], wanted: int, seed: int) -> list[Piece]:
    rng = np.random.default_rng(seed)
    while len(pieces) < wanted:
        drawn = int(rng.integers(len(pieces)))
        piece = pieces[drawn]
        if piece.first < piece.last:
            pieces[drawn], right = piece.split(int(rng.integers(piece.first, piece.last + 1)))
            pieces.append(right)
    return pieces


def _as_graph(graph: TemporalGraph, pieces: list[Piece]) -> TemporalGraph:
    """The facts that meet each piece, under its number."""
    splits = []
    tick = np.full(1, graph.timeline.first)
    for _, facts in graph.splits():
        begin, end = graph.timestamps(facts)
        rows = [
            np.flatnonzero(
                (facts.predicate == piece.source)
                & (begin < piece.left + len(piece.begins))
                & (end >= piece.left)
            )
            for piece in pieces
        ]
        number = np.repeat(np.arange(len(pieces), dtype=np.int32), [len(own) for own in rows])
        fact = np.concatenate(rows)
        order = np.argsort(fact, kind="stable")
        when = np.full(len(fact), tick[0])
        splits.append(
            replace(
                facts.take(fact[order]),
                predicate=number[order],
                begin=when,
                end=when.copy(),
                unknown=np.zeros(len(fact), np.uint8),
            )
        )
    train, valid, test = splits
    names = [f"{at:06} {graph.predicates[piece.source]}" for at, piece in enumerate(pieces)]
    return replace(
        graph,
        train=train,
        valid=valid,
        test=test,
        predicates=Vocabulary(names, kind="predicate"),
        timeline=Timeline(graph.timeline.granularity, tick, tick.copy()),
    )
