"""What ranks amount to: metrics, confidence intervals, differences beyond chance, evaluations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splime.arrays import grouped
from splime.errors import DataError, UsageError
from splime.graph import BEGIN_UNKNOWN, Facts, Ids, TemporalGraph
from splime.scoring.scoping import keyed
from splime.shown import Shown, Tabular
from splime.times import Ints, format_ticks

Floats: TypeAlias = npt.NDArray[np.float64]
Intervals: TypeAlias = dict[str, tuple[float, float]]
"""The low and high end of each metric of `COMPARED`."""

FEWEST = 30
"""With fewer facts there are no intervals and no p-values. Resamples of few facts barely differ: of
pairs that do not differ, 5 % may seem to; with 30 facts it is that, with 10 facts 9 %, with a
single one nearly all (docs/comparing.md)."""
PERIODS = 5
# Numbers drawn at a time.
_DRAWN = 1 << 21
# A difference below it comes from rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Metric:
    """All that is known of a metric: it is the mean over queries of a function of their ranks."""

    heading: str
    of_ranks: Callable[[Floats], npt.NDArray[Any]]
    format: Callable[[float], str]
    higher_is_better: bool = True
    compared: bool = True
    """Whether it has intervals and tests, and a column where runs are compared."""

    def text(self, value: float) -> str:
        """A value as tables show it; a dash where an older evaluation does not have it."""
        return "–" if math.isnan(value) else self.format(value)


def _metric(*about: Any, **more: Any) -> Any:
    return field(default=math.nan, metadata={"metric": Metric(*about, **more)})


def _hits(k: int) -> Any:
    return _metric(f"Hits@{k}", lambda ranks: ranks <= k, lambda value: f"{100 * value:.1f}")


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """The metrics of some queries; hits are fractions.

    A metric is declared by its field here, and nowhere else. In evaluations that were stored before
    it was declared it is NaN.

    >>> Metrics.of(np.array([1.0, 4.0]))
    Metrics(mrr=0.625, mr=2.5, hits1=0.5, hits3=0.5, hits10=1.0, queries=2)
    """

    mrr: float = _metric("MRR", lambda ranks: 1 / ranks, "{:.3f}".format)
    """The mean reciprocal rank."""
    mr: float = _metric(
        "rank", lambda ranks: ranks, "{:,.1f}".format, higher_is_better=False, compared=False
    )
    """The mean rank."""
    hits1: float = _hits(1)
    hits3: float = _hits(3)
    hits10: float = _hits(10)
    queries: int

    @classmethod
    def of(cls, ranks: Floats) -> Metrics:
        """Of ranks in any shape."""
        flat = np.ravel(ranks)
        if not len(flat):
            raise UsageError("there are no ranks to make metrics from")
        return by_group(flat[:, None], np.zeros(len(flat), np.int64), [""])[""]

    def text(self, name: str) -> str:
        """The value of a metric as tables show it."""
        return METRICS[name].text(getattr(self, name))


METRICS: Mapping[str, Metric] = {
    one.name: one.metadata["metric"] for one in fields(Metrics) if one.metadata
}
COMPARED: Mapping[str, Metric] = {name: one for name, one in METRICS.items() if one.compared}


def by_group(ranks: Floats, group: Ints, names: Sequence[str]) -> dict[str, Metrics]:
    """The metrics of the rows of each group, in the order of the names, without empty groups."""
    queries = np.bincount(group, minlength=len(names)) * ranks.shape[1]
    means = {
        name: np.bincount(group, metric.of_ranks(ranks).sum(axis=1), minlength=len(names))
        / np.maximum(queries, 1)
        for name, metric in METRICS.items()
    }
    return {
        name: Metrics(**{metric: float(of[at]) for metric, of in means.items()}, queries=int(count))
        for at, (name, count) in enumerate(zip(names, queries, strict=True))
        if count
    }


class Stratum(NamedTuple):
    """A way to divide facts: the group of each one, and the names of the groups."""

    group: Ints
    names: Sequence[str]


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
) -> Intervals | None:
    """Percentile intervals by bootstrap over facts; the queries of a fact stay together.

    `ranks` has a row for each fact; of fewer than `FEWEST` there are no intervals.

    >>> low, high = bootstrap(np.array([[1.0, 2.0]] * 36 + [[8.0, 90.0]] * 4))["hits1"]
    >>> low < 0.45 < high
    True
    """
    return compare_ranks([ranks], samples=samples, level=level, seed=seed)[0][0]


@dataclass(frozen=True)
class Difference:
    """By how much a metric of the first ranking is higher than that of the second."""

    value: float
    low: float | None = None
    """The ends of its interval; None, as is p, where there are fewer than `FEWEST` facts."""
    high: float | None = None
    p: float | None = None
    """How likely chance alone makes a difference as large, in either direction."""


def compare_ranks(
    ranks: Sequence[Floats],
    *,
    samples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
    pairs: Sequence[tuple[int, int]] | None = None,
) -> tuple[list[Intervals | None], dict[tuple[int, int], dict[str, Difference]]]:
    """The intervals of some rankings of the same facts, and the differences of every pair.

    Each has a row for each fact, in the same order. All come from the same draws: each sample has
    the same facts for all rankings, and the queries of a fact stay together. A p-value is twice the
    share of samples in which a difference is 0 or of the other sign (the ranking itself counts as
    one of them, so p is never 0). `pairs` are the places of those to compare, where it is not every
    pair.

    >>> ranks = np.array([[1.0, 2.0], [5.0, 1.0], [3.0, 9.0]] * 10)
    >>> compare_ranks([ranks, ranks + 2])[1][0, 1]["mrr"].p < 0.001
    True
    >>> compare_ranks([ranks, ranks])[1][0, 1]["mrr"]
    Difference(value=0.0, low=0.0, high=0.0, p=1.0)
    >>> compare_ranks([ranks[:29], ranks[:29]])[1][0, 1]["mrr"]
    Difference(value=0.0, low=None, high=None, p=None)
    """
    check_bootstrap(samples, level)
    of_facts = [_metrics_of_facts(each) for each in ranks]
    sizes = [len(each) for each in of_facts]
    if len({*sizes}) > 1:
        raise UsageError(f"pairs need ranks of the same facts, not of {sizes[0]:,} and others")
    pairs = list(combinations(range(len(ranks)), 2)) if pairs is None else pairs
    # Differences of facts, not of means: where two rankings agree, they are exactly 0.
    columns = np.hstack([*of_facts, *(of_facts[one] - of_facts[other] for one, other in pairs)])
    means = _drawn_means(columns, samples, seed)
    ends = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    tails = np.minimum((means <= _ROUNDING).sum(0), (means >= -_ROUNDING).sum(0))
    p = np.minimum(1.0, 2 * (tails + 1) / (samples + 1))
    # By ranking or pair, and by metric: value, low, high, p.
    table = np.stack([columns.mean(0), *ends, p], axis=1).reshape(-1, len(COMPARED), 4).tolist()
    named = [dict(zip(COMPARED, rows, strict=True)) for rows in table]
    few = sizes[0] < FEWEST
    intervals = [
        None if few else {name: (low, high) for name, (_, low, high, _) in rows.items()}
        for rows in named[: len(ranks)]
    ]
    differences = {
        pair: {name: Difference(*row[:1] if few else row) for name, row in rows.items()}
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
    """A row for each fact, a column for each of `COMPARED`: the means over its queries."""
    ranks = np.asarray(ranks, np.float64)
    ranks = ranks[:, None] if ranks.ndim == 1 else ranks
    if ranks.ndim != 2 or not ranks.size:
        raise UsageError("bootstrap needs ranks: a row for each fact, at least one")
    return np.stack([metric.of_ranks(ranks).mean(1) for metric in COMPARED.values()], axis=1)


def _drawn_means(columns: Floats, samples: int, seed: int) -> Floats:
    """The means of columns over resampled rows, as many as there are: a row for each sample.

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


_TABLE = pa.schema(
    [
        *((name, pa.string()) for name in ("filter", "by", "group")),
        *((name, pa.float64()) for name in METRICS),
        ("queries", pa.int64()),
        *((name, pa.float64()) for name in ("mrr_low", "mrr_high")),
    ]
)
"""The columns of an evaluation as a table."""


@dataclass(frozen=True)
class Sample:
    """Which of many queries were ranked: some facts (or triples), drawn with a seed."""

    queries: int
    of: int
    seed: int


@dataclass(frozen=True)
class Evaluation(Shown, Tabular):
    """Metrics by filter, with how they came about; `to_json` holds all but the ranks."""

    protocol: str
    """`triple`, `fact` or `predicate`."""
    split: str
    filters: tuple[str, ...]
    ties: str
    aggregate: str | None
    """How the scores of a query's parts became one; None where there are no parts."""
    leak_filter: str | None
    """What was removed before ranking; None where nothing is."""
    left_out: dict[str, int]
    """How many facts (or triples) of the split are not ranked, by reason."""
    queries: int
    candidates: int
    timestamps: int
    buckets: bool
    """Whether timestamps stand for more than one date."""
    seconds: float
    metrics: dict[str, dict[str, Metrics]]
    """By filter; `both` pools all queries, `object` and `subject` are the answers asked for."""
    strata: dict[str, dict[str, dict[str, Metrics]]]
    """By filter, way of dividing, and group; over all queries of the group."""
    intervals: dict[str, dict[str, Intervals | None]] = field(default_factory=dict)
    """By filter and side, if requested, and of a sample; None of fewer than `FEWEST`
    facts."""
    sample: Sample | None = None
    """None where all queries were ranked."""
    past: str | None = None
    """Whose facts were known, where only those that begin before the question are: `train`,
    `split` or `all`; None where time sets no limit."""
    ranks: dict[str, Floats] = field(default_factory=dict, repr=False, compare=False)
    """By filter, a row for each fact (or triple); columns are the query for the object and the one
    for the subject, or the one for the predicate. Not in the JSON."""
    facts: Ints = field(default_factory=lambda: np.empty(0, np.int64), repr=False, compare=False)
    """The fact of each row, as its position in the split. Not in the JSON."""

    def __repr__(self) -> str:
        mrr = ", ".join(f"{name} {self.metrics[name]['both'].mrr:.3f}" for name in self.filters)
        return f"Evaluation(protocol {self.protocol}, {self.split}: MRR {mrr})"

    def to_table(self) -> pa.Table:
        """As an Arrow table: the metrics of each filter over all queries, then of each group.

        `by` says how the queries are divided (asked for, train, time, predicate, period); of all
        of them it is null, as are intervals that were not requested.
        """
        rows = []
        for name in self.filters:
            sides, ends = self.metrics[name], self.intervals.get(name, {})
            for group, metrics in sides.items():
                where = {} if group == "both" else {"by": "asked for", "group": group}
                interval = ends.get(group)
                low, high = interval["mrr"] if interval else (None, None)
                limits = {"mrr_low": low, "mrr_high": high}
                rows.append({"filter": name, **where, **vars(metrics), **limits})
            for by, groups in self.strata[name].items():
                for group, metrics in groups.items():
                    rows.append({"filter": name, "by": by, "group": group, **vars(metrics)})
        return pa.Table.from_pylist(rows, schema=_TABLE)

    def to_json(self) -> dict[str, Any]:
        """The same as plain dictionaries, without the ranks."""
        unset = (name for name in ("sample", "past") if getattr(self, name) is None)
        left_out = ("ranks", "facts", *unset)
        names = (each.name for each in fields(self) if each.name not in left_out)
        values: dict[str, Any] = msgspec.to_builtins({name: getattr(self, name) for name in names})
        return values

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Evaluation:
        """The inverse of `to_json`; there are no ranks."""
        try:
            return msgspec.convert(data, cls)
        except msgspec.ValidationError as error:
            raise DataError(f"not an evaluation: {error}") from None


def strata_of(graph: TemporalGraph, facts: Facts, *, forecasts: bool = False) -> dict[str, Stratum]:
    """By whether train has the triple at any time, by kind of time, predicate and period.

    Those of forecasts also by what there was before.
    """
    time = np.where(facts.unknown > 0, 2, facts.begin < facts.end)
    triples, of_train = (keyed("time", each, graph).key for each in (facts, graph.train))
    seen = np.where(np.isin(triples, of_train), 0, 1)
    return {
        **({"before": Stratum(_history(graph, facts), HISTORY)} if forecasts else {}),
        "train": Stratum(seen, ["triple seen in train", "triple unseen in train"]),
        "time": Stratum(time, ["instant", "interval", "open"]),
        "predicate": Stratum(facts.predicate.astype(np.int64), list(graph.predicates)),
        "period": _periods(graph, facts),
    }


HISTORY = ("same triple before", "pair before, otherwise", "new pair", "new entity")
"""What facts that began before a question may have stated of the fact that it asks for."""


def _history(graph: TemporalGraph, facts: Facts) -> Ints:
    """What the facts of all splits that begin before each of some facts have of it."""
    every, size = graph.facts(), len(graph.entities)

    def first(of: Callable[[Facts], list[Ids]]) -> Ints:
        """When the facts with each key began first: for each of the facts that are asked for."""
        keys = [np.concatenate(parts) for parts in zip(of(facts), of(every), strict=True)]
        number = grouped(keys)[0]
        least = np.full(int(number.max(initial=-1)) + 1, np.iinfo(np.int64).max)
        np.minimum.at(least, number[len(facts) :], every.begin)
        return np.asarray(least[number[: len(facts)]])

    def pair(some: Facts) -> list[Ids]:
        return [np.minimum(some.subject, some.object), np.maximum(some.subject, some.object)]

    began = np.full(size, np.iinfo(np.int64).max)
    for column in (every.subject, every.object):
        np.minimum.at(began, column, every.begin)
    known = np.maximum(began[facts.subject], began[facts.object])
    triple = first(lambda some: [some.subject, some.predicate, some.object])
    conditions = [each < facts.begin for each in (triple, first(pair), known)]
    return np.select(conditions, [0, 1, 2], 3)


def _periods(graph: TemporalGraph, facts: Facts) -> Stratum:
    """By the timestamp at which facts begin, in periods of about equally many facts.

    A fact that began at an unknown time counts by its end.
    """
    begin, end = graph.timestamps(facts)
    at = np.where(facts.unknown & BEGIN_UNKNOWN, end, begin)
    count = np.bincount(at)
    held = np.flatnonzero(count)
    # A timestamp lies in the period that the middle one of its facts would lie in.
    middle = count[held].cumsum() - count[held] / 2
    period = np.minimum((middle * PERIODS / len(at)).astype(np.int64), PERIODS - 1)
    period = np.unique(period, return_inverse=True)[1]
    new = np.flatnonzero(np.diff(period, prepend=-1))
    line = graph.timeline
    begins = format_ticks(line.starts[held[new]], line.granularity)
    ends = format_ticks(line.ends[held[np.append(new[1:], len(held)) - 1]], line.granularity)
    names = [b if b == e else f"{b}..{e}" for b, e in zip(begins, ends, strict=True)]
    of_time = np.zeros(len(count), np.int64)
    of_time[held] = period
    return Stratum(of_time[at], names)
