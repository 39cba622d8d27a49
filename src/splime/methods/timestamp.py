"""A predicate for every timestamp (the paper's Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from splime.methods.base import Advance, Known, Method
from splime.segmentation import covering_cuts
from splime.times import Ints


@dataclass(frozen=True, kw_only=True)
class Timestamp(Method):
    """Cuts between every two neighbouring timestamps at which facts hold."""

    def choose(self, known: Known, *, advance: Advance | None = None) -> list[Ints]:  # noqa: ARG002
        """Every timestamp at which a fact holds, in a piece of its own."""
        return [covering_cuts(np.flatnonzero(row)) for row in known.counts.holding]
