"""How far figures could be off by the choice of facts: the bootstrap."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from splime.errors import UsageError
from splime.evaluation.metrics import HITS, Floats

Intervals: TypeAlias = dict[str, tuple[float, float]]
"""The low and high end of mrr, hits1, hits3 and hits10."""

FIGURES = ("mrr", *(f"hits{k}" for k in HITS))
"""What is drawn again: the figures that are means over facts."""

# Numbers drawn at a time.
_DRAWN = 1 << 21


def bootstrap(
    ranks: Floats, *, samples: int = 1000, level: float = 0.95, seed: int = 0
) -> Intervals:
    """Percentile intervals from facts drawn again and again; the queries of a fact stay together.

    `ranks` has a row for each fact.

    >>> low, high = bootstrap(np.array([[1.0, 2.0]] * 9 + [[8.0, 90.0]]))["hits1"]
    >>> low < 0.45 < high
    True
    """
    check_bootstrap(samples, level)
    means = drawn_means(figures_of_facts(ranks), samples, seed)
    low, high = ends(means, level)
    return {name: (float(low[at]), float(high[at])) for at, name in enumerate(FIGURES)}


def check_bootstrap(samples: int, level: float) -> None:
    """An error unless intervals can be made with these."""
    if samples < 1:
        raise UsageError(f"samples must be at least 1, not {samples}")
    if not 0 < level < 1:
        raise UsageError(f"level must lie between 0 and 1, such as 0.95, not {level}")


def figures_of_facts(ranks: Floats) -> Floats:
    """A row for each fact, a column for each of `FIGURES`: the means over its queries."""
    ranks = np.asarray(ranks, np.float64)
    ranks = ranks[:, None] if ranks.ndim == 1 else ranks
    if ranks.ndim != 2 or not ranks.size:
        raise UsageError("bootstrap needs ranks: a row for each fact, at least one")
    return np.stack([(1 / ranks).mean(1), *((ranks <= k).mean(1) for k in HITS)], axis=1)


def drawn_means(figures: Floats, samples: int, seed: int) -> Floats:
    """The means of columns over as many rows as there are, drawn again and again: a row each.

    Which rows are drawn follows from their number and the seed alone.
    """
    rng = np.random.default_rng(seed)
    size = len(figures)
    step = max(1, _DRAWN // size)
    means = np.empty((samples, figures.shape[1]))
    for start in range(0, samples, step):
        count = min(step, samples - start)
        drawn = rng.integers(0, size, (count, size)) + np.arange(count)[:, None] * size
        times = np.bincount(drawn.ravel(), minlength=count * size).reshape(count, size)
        means[start : start + count] = times @ figures / size
    return means


def ends(means: Floats, level: float) -> tuple[Floats, Floats]:
    """The ends between which this share of the means of each column lies."""
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high
