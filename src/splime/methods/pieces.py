"""The facts of a name between two cuts at timestamps, as numbers of begins and ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from splime.counts import Counts
from splime.times import Ints


@dataclass(frozen=True, eq=False)
class Piece:
    """How many facts begin and end at each timestamp of a piece, clipped to it."""

    name: int
    left: int
    """The timestamp of the first entry of the tables."""
    begins: Ints
    ends: Ints
    instants: Ints
    facts: int

    @property
    def first(self) -> int:
        """The first timestamp of its facts."""
        return self.left + int(np.argmax(self.begins > 0))

    @property
    def last(self) -> int:
        """The last timestamp of its facts."""
        return self.left + len(self.ends) - 1 - int(np.argmax(self.ends[::-1] > 0))

    @property
    def can_be_split(self) -> bool:
        """What the paper's figures need and its text does not say."""
        return (
            self.last - self.first >= 3
            and int(np.count_nonzero(self.begins)) > 2
            and int(np.count_nonzero(self.ends)) > 2
        )

    def middle(self) -> int:
        """The middle between its first and last timestamp."""
        return (self.first + self.last) // 2

    def balance(self) -> int:
        """Where the facts ended by then and those that begin from then on differ least."""
        candidates = (self.begins > 0) | (self.ends > 0)
        candidates[[self.first - self.left, self.last - self.left]] = False
        if not candidates.any():
            return self.middle()
        ended = self.ends.cumsum()
        to_begin = self.facts - self.begins.cumsum() + self.begins
        difference = np.where(candidates, np.abs(ended - to_begin), self.facts + 1)
        return self.left + int(np.argmin(difference))

    def split(self, at: int) -> tuple[Piece, Piece]:
        """The pieces on both sides of a cut at a timestamp, by the rule."""
        cut = at - self.left
        instants_at = int(self.instants[cut])
        # Longer facts that begin before the cut and end at it or later; those that begin at it or
        # before, and end later.
        crossing = int(self.begins[:cut].sum() - self.ends[:cut].sum())
        leaving = crossing + int(self.begins[cut] - self.ends[cut])
        begins, ends = self.begins[: cut + 1].copy(), self.ends[: cut + 1].copy()
        begins[cut], ends[cut] = instants_at, crossing + instants_at
        left = Piece(
            self.name, self.left, begins, ends, self.instants[: cut + 1], int(begins.sum())
        )
        begins, ends = self.begins[cut:].copy(), self.ends[cut:].copy()
        begins[0], ends[0] = leaving, 0
        instants = self.instants[cut:].copy()
        instants[0] = 0
        right = Piece(self.name, at, begins, ends, instants, int(begins.sum()))
        return left, right


def whole(counts: Counts, name: int) -> Piece:
    """All facts of a name."""
    instants = counts.instants[name]
    begins, ends = counts.begins[name] + instants, counts.ends[name] + instants
    return Piece(name, 0, begins, ends, instants, int(begins.sum()))
