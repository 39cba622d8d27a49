"""Whether embeddings move smoothly over time: how far neighbours in time are, beside others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from splime.runs.projection import Vectors, learned
from splime.runs.run import Run

LEAST = 4
"""Scopes that a predicate needs for a figure: with 4 there are 3 pairs of neighbours and 3 others;
with 3, a single pair would decide."""


class Distances(NamedTuple):
    """Mean distances between the scopes of one predicate."""

    scopes: int
    neighbours: float
    """Between scopes that follow each other in time."""
    others: float
    """Between all other scopes."""

    @property
    def ratio(self) -> float:
        """Neighbours over others: 1 where time does not matter, less where it does.

        >>> Distances(4, neighbours=1.0, others=2.0).ratio
        0.5
        """
        return self.neighbours / self.others if self.others else 1.0


@dataclass(frozen=True)
class Smoothness:
    """How smooth the embeddings of a run are over time, predicate by predicate.

    With v_1 … v_n the vectors of a predicate's n scopes in the order of time, and |·| the Euclidean
    length, its ratio is

        mean of |v_i - v_j| over |i - j| = 1   /   mean of |v_i - v_j| over |i - j| > 1

    and the overall figure is the mean of the ratios, weighted by n.
    """

    predicates: dict[str, Distances]
    """Of the predicates with at least 4 scopes."""

    @property
    def overall(self) -> float | None:
        """Over all predicates; None where none has enough scopes.

        >>> Smoothness({"p": Distances(4, 1, 2), "q": Distances(8, 2, 2)}).overall
        0.8333333333333334
        """
        weight = sum(each.scopes for each in self.predicates.values())
        total = sum(each.scopes * each.ratio for each in self.predicates.values())
        return total / weight if weight else None


def smoothness(run: Run) -> Smoothness:
    """How much closer neighbours in time are than others, over the embeddings of a run.

    A training with the setting `smooth` pulls neighbours together itself; compare runs that have
    it in common.
    """
    scopes, vectors = learned(run)
    pieces = run.segmentation.predicates
    source = pieces.sources[scopes]
    first = np.flatnonzero(np.diff(source, prepend=-1))
    return Smoothness(
        {
            pieces.names[int(source[start])]: distances(rows)
            for start, rows in zip(first, np.split(vectors, first[1:]), strict=True)
            if len(rows) >= LEAST
        }
    )


def distances(vectors: Vectors) -> Distances:
    """The mean distances of at least 3 vectors that stand in the order of time.

    >>> distances(np.array([[0.0], [1.0], [2.0], [3.0]]))
    Distances(scopes=4, neighbours=1.0, others=2.333...)
    """
    from scipy.spatial.distance import pdist  # type: ignore[import-untyped, unused-ignore]

    count = len(vectors)
    pairs = pdist(vectors)
    near = np.linalg.norm(np.diff(vectors, axis=0), axis=1)
    others = (pairs.sum() - near.sum()) / (len(pairs) - len(near))
    return Distances(count, float(near.mean()), max(0.0, float(others)))
