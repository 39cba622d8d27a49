"""No cuts: the time is stripped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from splime.methods.base import Known, Method
from splime.progress import Progress, silent
from splime.times import Ints


@dataclass(frozen=True, kw_only=True)
class Vanilla(Method):
    """The baseline of the paper: predicates stay as they are, time is lost."""

    name = "vanilla"

    def choose(self, known: Known, *, progress: Progress = silent) -> list[Ints]:  # noqa: ARG002
        """No cuts for any source."""
        return [np.empty(0, np.int64) for _ in known.counts.totals]
