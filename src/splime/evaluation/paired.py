"""Which differences between rankings of the same facts are larger than chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from splime.errors import UsageError
from splime.evaluation.intervals import (
    FIGURES,
    Intervals,
    check_bootstrap,
    drawn_means,
    ends,
    figures_of_facts,
)
from splime.evaluation.metrics import Floats

# Sums that would be 0 without it are no difference.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Difference:
    """By how much a figure of the first ranking is higher than that of the second."""

    value: float
    low: float
    high: float
    p: float
    """How likely chance alone makes a difference as large, in either direction."""


def paired_bootstrap(
    first: Floats, second: Floats, *, samples: int = 10_000, level: float = 0.95, seed: int = 0
) -> dict[str, Difference]:
    """The differences of mrr, hits1, hits3 and hits10 between two rankings of the same facts.

    Both have a row for each fact, in the same order. Facts are drawn again and again, for both
    rankings the same ones, and the queries of a fact stay together. The p-value is twice the share
    of samples in which the difference is 0 or of the other sign (the ranking itself counts as one
    of them, so p is never 0).

    >>> ranks = np.array([[1.0, 2.0], [5.0, 1.0], [3.0, 9.0], [2.0, 2.0]])
    >>> paired_bootstrap(ranks, ranks + 2)["mrr"].p < 0.001
    True
    >>> paired_bootstrap(ranks, ranks)["mrr"]
    Difference(value=0.0, low=0.0, high=0.0, p=1.0)
    """
    return compare_ranks([first, second], samples=samples, level=level, seed=seed)[1][0, 1]


def compare_ranks(
    ranks: Sequence[Floats], *, samples: int = 10_000, level: float = 0.95, seed: int = 0
) -> tuple[list[Intervals], dict[tuple[int, int], dict[str, Difference]]]:
    """The intervals of some rankings of the same facts, and the differences of every pair.

    All come from the same draws: what `bootstrap` and `paired_bootstrap` give for them one by one.
    """
    check_bootstrap(samples, level)
    figures = [figures_of_facts(each) for each in ranks]
    sizes = [len(each) for each in figures]
    if len({*sizes}) > 1:
        raise UsageError(f"pairs need ranks of the same facts, not of {sizes[0]:,} and others")
    pairs = list(combinations(range(len(ranks)), 2))
    # Differences of facts, not of means: where two rankings agree, they are exactly 0.
    columns = np.hstack([*figures, *(figures[one] - figures[other] for one, other in pairs)])
    means = drawn_means(columns, samples, seed)
    low, high = (_by_figure(end) for end in ends(means, level))
    tails = np.minimum((means <= _ROUNDING).sum(0), (means >= -_ROUNDING).sum(0))
    p = _by_figure(np.minimum(1.0, 2 * (tails + 1) / (samples + 1)))
    value = _by_figure(columns.mean(0))
    intervals = [
        {name: (float(low[at][i]), float(high[at][i])) for i, name in enumerate(FIGURES)}
        for at in range(len(ranks))
    ]
    differences = {
        pair: {
            name: Difference(*(float(table[at][i]) for table in (value, low, high, p)))
            for i, name in enumerate(FIGURES)
        }
        for at, pair in enumerate(pairs, start=len(ranks))
    }
    return intervals, differences


def _by_figure(row: Floats) -> Floats:
    return row.reshape(-1, len(FIGURES))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: p-values that hold for all tests at once.

    >>> holm([0.04, 0.01, 0.03])
    [0.06, 0.03, 0.06]
    """
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[at]))
        corrected[at] = highest
    return corrected
