"""Kinds of facts that are worth figures of their own."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from splime.evaluation.groups import grouped
from splime.graph import BEGIN_UNKNOWN, Facts, TemporalGraph
from splime.leakage import triples_of
from splime.times import Bools, Ints, format_ticks

PERIODS = 5


class Stratum(NamedTuple):
    """A way to divide facts: the group of each one, and the names of the groups."""

    group: Ints
    names: list[str]


Strata: TypeAlias = dict[str, Stratum]


def strata_of(graph: TemporalGraph, facts: Facts) -> Strata:
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
    number, first = grouped(list(both.T))
    known = np.zeros(len(first), bool)
    known[number[: len(graph.train)]] = True
    found: Bools = known[number[len(graph.train) :]]
    return found


def _periods(graph: TemporalGraph, facts: Facts) -> Stratum:
    """By the timestamp at which facts begin, in periods of about equally many facts.

    A fact that began at an unknown time counts by its end.
    """
    begin, end = graph.timestamps(facts)
    at = np.where(facts.unknown & BEGIN_UNKNOWN, end, begin)
    count = np.bincount(at)
    held = np.flatnonzero(count)
    upto = count[held].cumsum()
    # A timestamp lies in the period that the middle one of its facts would lie in.
    middle = upto - count[held] / 2
    period = np.minimum((middle * PERIODS / len(at)).astype(np.int64), PERIODS - 1)
    number = np.unique(period, return_inverse=True)[1]
    first = held[np.searchsorted(number, np.arange(number[-1] + 1), side="left")]
    last = held[np.searchsorted(number, np.arange(number[-1] + 1), side="right") - 1]
    line = graph.timeline
    starts = format_ticks(line.starts[first], line.granularity)
    ends = format_ticks(line.ends[last], line.granularity)
    names = [b if b == e else f"{b}..{e}" for b, e in zip(starts, ends, strict=True)]
    of_time = np.zeros(len(count), np.int64)
    of_time[held] = number
    return Stratum(of_time[at], names)
