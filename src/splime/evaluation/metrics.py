"""What ranks amount to: metrics, their confidence intervals, and differences beyond chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from splime.errors import UsageError
from splime.times import Ints

Floats: TypeAlias = npt.NDArray[np.float64]
Intervals: TypeAlias = dict[str, tuple[float, float]]
"""The low and high end of mrr, hits1, hits3 and hits10."""

HITS = (1, 3, 10)
METRICS = ("mrr", *(f"hits{k}" for k in HITS))
"""The metrics that are means over facts: those that are drawn again."""

# Numbers drawn at a time.
_DRAWN = 1 << 21
# A difference below it comes from rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Metrics:
    """The metrics of some queries; hits are fractions.

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
            raise UsageError("there are no ranks to make metrics from")
        return by_group(flat[:, None], np.zeros(len(flat), np.int64), [""])[""]


def by_group(ranks: Floats, group: Ints, names: Sequence[str]) -> dict[str, Metrics]:
    """The metrics of the rows of each group, in the order of the names, without empty groups."""
    columns = [1 / ranks, ranks, *(ranks <= k for k in HITS)]
    queries = np.bincount(group, minlength=len(names)) * ranks.shape[1]
    sums = [np.bincount(group, column.sum(axis=1), minlength=len(names)) for column in columns]
    means = (np.stack(sums, axis=1) / np.maximum(queries, 1)[:, None]).tolist()
    rows = zip(names, means, queries.tolist(), strict=True)
    return {
        name: Metrics(mrr, mr, hits1, hits3, hits10, count)
        for name, (mrr, mr, hits1, hits3, hits10), count in rows
        if count
    }


class Stratum(NamedTuple):
    """A way to divide facts: the group of each one, and the names of the groups."""

    group: Ints
    names: list[str]


def measured(
    ranks: Mapping[str, Floats], strata: Mapping[str, Stratum], samples: int | None, seed: int
) -> dict[str, Any]:
    """The fields of an evaluation that follow from its ranks."""
    sides = {name: _sides(table) for name, table in ranks.items()}
    values: dict[str, Any] = {
        "metrics": {
            name: {side: Metrics.of(table) for side, table in tables.items()}
            for name, tables in sides.items()
        },
        "strata": {
            name: {kind: by_group(table, *stratum) for kind, stratum in strata.items()}
            for name, table in ranks.items()
        },
        "ranks": dict(ranks),
    }
    if samples:
        values["intervals"] = {
            name: {side: bootstrap(t, samples=samples, seed=seed) for side, t in tables.items()}
            for name, tables in sides.items()
        }
    return values


def _sides(ranks: Floats) -> dict[str, Floats]:
    if ranks.shape[1] == 1:
        return {"both": ranks}
    return {"both": ranks, "object": ranks[:, :1], "subject": ranks[:, 1:]}


def bootstrap(
    ranks: Floats, *, samples: int = 1000, level: float = 0.95, seed: int = 0
) -> Intervals:
    """Percentile intervals from facts drawn again and again; the queries of a fact stay together.

    `ranks` has a row for each fact.

    >>> low, high = bootstrap(np.array([[1.0, 2.0]] * 9 + [[8.0, 90.0]]))["hits1"]
    >>> low < 0.45 < high
    True
    """
    return compare_ranks([ranks], samples=samples, level=level, seed=seed)[0][0]


@dataclass(frozen=True)
class Difference:
    """By how much a metric of the first ranking is higher than that of the second."""

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
    of_facts = [_metrics_of_facts(each) for each in ranks]
    sizes = [len(each) for each in of_facts]
    if len({*sizes}) > 1:
        raise UsageError(f"pairs need ranks of the same facts, not of {sizes[0]:,} and others")
    pairs = list(combinations(range(len(ranks)), 2))
    # Differences of facts, not of means: where two rankings agree, they are exactly 0.
    columns = np.hstack([*of_facts, *(of_facts[one] - of_facts[other] for one, other in pairs)])
    means = _drawn_means(columns, samples, seed)
    ends = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    tails = np.minimum((means <= _ROUNDING).sum(0), (means >= -_ROUNDING).sum(0))
    p = np.minimum(1.0, 2 * (tails + 1) / (samples + 1))
    # By ranking or pair, and by metric: value, low, high, p.
    table = np.stack([columns.mean(0), *ends, p], axis=1).reshape(-1, len(METRICS), 4).tolist()
    named = [dict(zip(METRICS, rows, strict=True)) for rows in table]
    intervals = [
        {name: (low, high) for name, (_, low, high, _) in rows.items()}
        for rows in named[: len(ranks)]
    ]
    differences = {
        pair: {name: Difference(*row) for name, row in rows.items()}
        for pair, rows in zip(pairs, named[len(ranks) :], strict=True)
    }
    return intervals, differences


def check_bootstrap(samples: int, level: float) -> None:
    """An error unless intervals can be made with these."""
    if samples < 1:
        raise UsageError(f"samples must be at least 1, not {samples}")
    if not 0 < level < 1:
        raise UsageError(f"level must lie between 0 and 1, such as 0.95, not {level}")


def _metrics_of_facts(ranks: Floats) -> Floats:
    """A row for each fact, a column for each of `METRICS`: the means over its queries."""
    ranks = np.asarray(ranks, np.float64)
    ranks = ranks[:, None] if ranks.ndim == 1 else ranks
    if ranks.ndim != 2 or not ranks.size:
        raise UsageError("bootstrap needs ranks: a row for each fact, at least one")
    return np.stack([(1 / ranks).mean(1), *((ranks <= k).mean(1) for k in HITS)], axis=1)


def _drawn_means(columns: Floats, samples: int, seed: int) -> Floats:
    """The means of columns over as many rows as there are, drawn again and again: a row each.

    Which rows are drawn follows from their number and the seed alone.
    """
    rng = np.random.default_rng(seed)
    size = len(columns)
    step = max(1, _DRAWN // size)
    means = np.empty((samples, columns.shape[1]))
    for start in range(0, samples, step):
        count = min(step, samples - start)
        drawn = rng.integers(0, size, (count, size)) + np.arange(count)[:, None] * size
        times = np.bincount(drawn.ravel(), minlength=count * size).reshape(count, size)
        means[start : start + count] = times @ columns / size
    return means


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
