"""No cuts: the time is stripped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from splime.methods.base import Advance, Known, Method
from splime.times import Ints


@dataclass(frozen=True, kw_only=True)
class Vanilla(Method):
    """The baseline of the paper: predicates stay as they are, time is lost."""

    def choose(self, known: Known, *, advance: Advance | None = None) -> list[Ints]:  # noqa: ARG002
        """No cuts for any name."""
        return [np.empty(0, np.int64) for _ in known.counts.totals]
