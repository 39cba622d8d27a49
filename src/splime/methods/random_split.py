"""Splits at random (the baseline of the paper)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from splime.errors import UsageError
from splime.methods.base import Advance, Known, Method
from splime.methods.pieces import Piece, whole
from splime.times import Ints


@dataclass(frozen=True, kw_only=True)
class RandomSplit(Method):
    """Choose a predicate at random, then a timestamp of it at random, and cut there.

    Only timestamps that leave facts on both sides are drawn. It goes on until there are
    `predicates` of them.
    """

    predicates: int = field(metadata={"help": "how many predicates to end with"})
    seed: int = field(default=0, metadata={"help": "seed of the draws"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.predicates < 1:
            raise UsageError(f"predicates must be at least 1, not {self.predicates}")

    def choose(self, known: Known, *, advance: Advance | None = None) -> list[Ints]:  # noqa: ARG002
        """Cut pieces drawn from all that can be cut."""
        rng = np.random.default_rng(self.seed)
        cuts: list[list[int]] = [[] for _ in known.counts.totals]
        pieces = [
            whole(known.counts, name) for name in np.flatnonzero(known.counts.totals).tolist()
        ]
        predicates = len(pieces)
        if predicates > self.predicates:
            raise UsageError(
                f"RandomSplit cannot reach {self.predicates:,} predicates: there are"
                f" {predicates:,} already"
            )
        open_ = [(piece, places) for piece in pieces if len(places := _places(piece))]
        while predicates < self.predicates:
            if not open_:
                raise UsageError(
                    f"RandomSplit cannot reach {self.predicates:,} predicates: it came to"
                    f" {predicates:,}, and no cut leaves facts on both sides any more"
                )
            drawn = int(rng.integers(len(open_)))
            piece, places = open_[drawn]
            open_[drawn] = open_[-1]  # the order does not matter, and this is fast
            open_.pop()
            at = int(places[rng.integers(len(places))])
            cuts[piece.name].append(2 * at)
            open_ += [(part, found) for part in piece.split(at) if len(found := _places(part))]
            predicates += 1
        return [np.array(sorted(own), np.int64) for own in cuts]


def _places(piece: Piece) -> Ints:
    """The timestamps at which a cut leaves facts on both sides."""
    # To the left come facts that begin before the cut, and instants at it; to the right those that
    # end after it.
    began = piece.begins.cumsum() - piece.begins + piece.instants
    to_end = piece.facts - piece.ends.cumsum()
    found: Ints = np.flatnonzero((began > 0) & (to_end > 0)) + piece.left
    return found
