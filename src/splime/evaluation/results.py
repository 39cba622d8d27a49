"""The result of an evaluation: metrics, and everything that one must know to read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import msgspec
import numpy as np

from splime.arrays import grouped
from splime.errors import DataError
from splime.evaluation.metrics import Floats, Intervals, Metrics, Stratum
from splime.graph import BEGIN_UNKNOWN, Facts, TemporalGraph
from splime.leakage import triples_of
from splime.times import Bools, Ints, format_ticks

PERIODS = 5
_ARRAYS = ("ranks", "facts")


@dataclass(frozen=True)
class Evaluation:
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
    """By filter; `both` pools all queries, `object` and `subject` are what was asked for."""
    strata: dict[str, dict[str, dict[str, Metrics]]]
    """By filter, way of dividing, and group; over all queries of the group."""
    intervals: dict[str, dict[str, Intervals]] = field(default_factory=dict)
    """By filter and side, where they were asked for."""
    ranks: dict[str, Floats] = field(default_factory=dict, repr=False, compare=False)
    """By filter, a row for each fact (or triple); columns are the query for the object and the one
    for the subject, or the one for the predicate. Not in the JSON."""
    facts: Ints = field(default_factory=lambda: np.empty(0, np.int64), repr=False, compare=False)
    """The fact of each row, as its position in the split. Not in the JSON."""

    def to_json(self) -> dict[str, Any]:
        """The same as plain dictionaries, without the ranks."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _ARRAYS}
        values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(plain))
        return values

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Evaluation:
        """The inverse of `to_json`; there are no ranks."""
        try:
            return msgspec.convert(data, cls)
        except msgspec.ValidationError as error:
            raise DataError(f"this is no evaluation: {error}") from None


def strata_of(graph: TemporalGraph, facts: Facts) -> dict[str, Stratum]:
    """By whether train has the triple at whatever time, by kind of time, predicate and period."""
    time = np.where(facts.unknown > 0, 2, facts.begin < facts.end)
    return {
        "train": Stratum(np.where(_in_train(graph, facts), 0, 1), ["seen", "unseen"]),
        "time": Stratum(time, ["instant", "interval", "open"]),
        "predicate": Stratum(facts.predicate.astype(np.int64), list(graph.predicates)),
        "period": _periods(graph, facts),
    }


def _in_train(graph: TemporalGraph, facts: Facts) -> Bools:
    both = np.concatenate([triples_of(graph.train), triples_of(facts)])
    number, triple = grouped(list(both.T))
    of_train = np.zeros(len(triple), bool)
    of_train[number[: len(graph.train)]] = True
    return of_train[number[len(graph.train) :]]


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
