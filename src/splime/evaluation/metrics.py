"""What ranks amount to: mean reciprocal rank, mean rank, Hits@k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from splime.errors import UsageError
from splime.times import Ints

Floats: TypeAlias = npt.NDArray[np.float64]

HITS = (1, 3, 10)


@dataclass(frozen=True)
class Metrics:
    """Figures of some queries; hits are fractions.

    >>> Metrics.of(np.array([1.0, 4.0]))
    Metrics(mrr=0.625, mr=2.5, hits1=0.5, hits3=0.5, hits10=1.0, queries=2)
    """

    mrr: float
    """The mean reciprocal rank."""
    mr: float
    """The mean rank."""
    hits1: float
    hits3: float
    hits10: float
    queries: int

    @classmethod
    def of(cls, ranks: Floats) -> Metrics:
        """Of ranks in any shape."""
        flat = np.ravel(ranks)
        if not len(flat):
            raise UsageError("there are no ranks to make figures from")
        return next(iter(by_group(flat[:, None], np.zeros(len(flat), np.int64), [""]).values()))


def by_group(ranks: Floats, group: Ints, names: Sequence[str]) -> dict[str, Metrics]:
    """Figures of the rows of each group, in the order of the names; empty groups are left out."""
    columns = [1 / ranks, ranks, *(ranks <= k for k in HITS)]
    queries = np.bincount(group, minlength=len(names)) * ranks.shape[1]
    sums = [np.bincount(group, column.sum(axis=1), minlength=len(names)) for column in columns]
    figures = (np.stack(sums, axis=1) / np.maximum(queries, 1)[:, None]).tolist()
    rows = zip(names, figures, queries.tolist(), strict=True)
    return {
        name: Metrics(mrr, mr, hits1, hits3, hits10, count)
        for name, (mrr, mr, hits1, hits3, hits10), count in rows
        if count
    }
