"""A predicate for every timestamp (the paper's Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from splime.methods.base import Known, Method
from splime.progress import Progress, silent
from splime.segmentation import covering_cuts
from splime.times import Ints


@dataclass(frozen=True, kw_only=True)
class Timestamp(Method):
    """Cuts between every two neighbouring timestamps at which facts hold."""

    name = "timestamp"

    def choose(self, known: Known, *, progress: Progress = silent) -> list[Ints]:  # noqa: ARG002
        """A scope for every timestamp at which a fact holds."""
        return [covering_cuts(np.flatnonzero(row)) for row in known.counts.holding]
