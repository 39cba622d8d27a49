"""Split facts into train, valid and test."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np

from splime.errors import UsageError, counted
from splime.graph import Facts, TemporalGraph
from splime.reading import UNSEEN_IN_TRAIN, Reading, RowExample
from splime.times import Granularity, Ints, format_ticks

HowToSplit: TypeAlias = Literal["random", "time", "none"]
_EXAMPLES = 3


def split_graph(
    graph: TemporalGraph,
    how: HowToSplit = "random",
    *,
    valid: float = 0.1,
    test: float = 0.1,
    seed: int = 0,
    allow_unseen: bool = False,
) -> TemporalGraph:
    """Split all facts of a graph again.

    `random` draws valid and test with a seed. `time` puts the facts that begin last into test and
    those before them into valid; facts that begin at the same time stay together. Unless
    `allow_unseen`, valid and test have no entity or predicate that train does not have: `random`
    keeps enough facts in train; `time` drops such facts, and the reading counts them.

    >>> import splime
    >>> later = split_graph(splime.load("demo"), "time")
    >>> later.train.begin.max() <= later.test.begin.min()
    np.True_
    """
    check_shares(valid, test)
    facts = graph.facts()
    if how != "none" and not len(facts):
        raise UsageError("there are no facts to split")
    if how == "none":
        return replace(graph, train=facts, valid=Facts.empty(), test=Facts.empty())
    if how == "random":
        if seed < 0:
            raise UsageError(f"the seed of a split is 0 or more, not {seed}")
        return _random(graph, facts, valid, test, seed, allow_unseen)
    if how == "time":
        return _by_time(graph, facts, valid, test, allow_unseen)
    raise UsageError(f"unknown way to split {how!r}; it is random, time or none")


def _random(
    graph: TemporalGraph, facts: Facts, valid: float, test: float, seed: int, allow_unseen: bool
) -> TemporalGraph:
    order = np.random.default_rng(seed).permutation(len(facts))
    free = order
    if not allow_unseen:
        # The first fact of each name stays in train: assigned in reverse, it overwrites the others.
        names = np.stack([facts.subject, facts.object, facts.predicate + len(graph.entities)], 1)
        stays = np.full(len(graph.entities) + len(graph.predicates), -1)
        stays[names[order[::-1]].ravel()] = np.repeat(order[::-1], 3)
        free = order[~np.isin(order, stays)]
    least = int(len(facts) > 4)  # then a split with a share gets at least one fact
    tests, valids = (max(round(share * len(facts)), least * (share > 0)) for share in (test, valid))
    both = tests + valids
    test_rows, valid_rows = np.sort(free[:tests]), np.sort(free[tests:both])
    in_train = np.ones(len(facts), bool)
    in_train[test_rows] = in_train[valid_rows] = False
    remark = f"split at random with seed {seed}: valid {valid:g}, test {test:g}"
    if len(free) < both:
        remark += (
            f"; only {len(free):,} of {counted(both, 'fact')} could leave train without taking the"
            " last mention of an entity or predicate with them"
        )
    train, valid_facts, test_facts = map(facts.take, (in_train, valid_rows, test_rows))
    reading = _remarked(graph.reading, remark)
    return replace(graph, train=train, valid=valid_facts, test=test_facts, reading=reading)


def time_limits(
    ticks: Ints, begins: Ints, granularity: Granularity, valid: float, test: float
) -> tuple[int, int]:
    """The first ticks of valid and test, from the number of facts that begin at each tick."""
    check_shares(valid, test)
    upto = np.cumsum(begins)
    # An empty share begins after the last fact.
    starts = np.append(ticks, ticks[-1] + 1)
    valid_from, test_from = (
        int(starts[np.searchsorted(upto, round(share * upto[-1]), side="right")])
        for share in (1 - test - valid, 1 - test)
    )
    if not begins[ticks < valid_from].any():
        at = format_ticks(np.array([valid_from]), granularity)[0]
        raise UsageError(
            f"cannot split by time: too many facts begin at {at}, the first time of the graph;"
            " split at random, or choose smaller shares of valid and test"
        )
    return valid_from, test_from


def check_shares(valid: float, test: float) -> None:
    """An error if shares of valid and test leave nothing for train."""
    if not (0 <= valid < 1 and 0 <= test < 1 and valid + test < 1):
        raise UsageError(
            f"the shares of valid ({valid}) and test ({test}) must leave facts for train"
        )


def _by_time(
    graph: TemporalGraph, facts: Facts, valid: float, test: float, allow_unseen: bool
) -> TemporalGraph:
    ticks, begins = np.unique(facts.begin, return_counts=True)
    granularity = graph.timeline.granularity
    valid_from, test_from = time_limits(ticks, begins, granularity, valid, test)
    in_train, in_test = facts.begin < valid_from, facts.begin >= test_from
    in_valid = ~in_train & ~in_test
    begins_at = [
        f"{name} begins at {format_ticks(facts.begin[rows].min(keepdims=True), granularity)[0]}"
        for name, rows in (("valid", in_valid), ("test", in_test))
        if rows.any()
    ]
    remark = "split by time" + (f": {', '.join(begins_at)}" if begins_at else "")
    reading = _remarked(graph.reading, remark)
    train = facts.take(in_train)
    if not allow_unseen:
        seen = facts.named_in(train)
        reading = _dropped(reading, graph, facts.take(~seen & ~in_train))
        parts = {"valid": in_valid, "test": in_test}
        emptied = tuple(name for name, rows in parts.items() if rows.any() and not seen[rows].any())
        reading = replace(reading, emptied=emptied)
        in_valid &= seen
        in_test &= seen
    valid_facts, test_facts = facts.take(in_valid), facts.take(in_test)
    split = replace(graph, train=train, valid=valid_facts, test=test_facts, reading=reading)
    return split.compact()


def _remarked(reading: Reading, remark: str) -> Reading:
    return replace(reading, remarks=(*reading.remarks, remark))


def _dropped(reading: Reading, graph: TemporalGraph, lost: Facts) -> Reading:
    """The reading, with the facts that a split by time dropped from its first source."""
    if not len(lost):
        return reading
    examples = tuple(
        RowExample("valid or test", tuple(text or "" for text in fact), UNSEEN_IN_TRAIN)
        for fact in replace(graph, train=lost).rows("train", limit=_EXAMPLES)
    )
    sources = reading.sources
    if sources:
        counts = {**sources[0].dropped, UNSEEN_IN_TRAIN: len(lost)}
        source = replace(sources[0], kept=sources[0].kept - len(lost), dropped=counts)
        sources = (source, *sources[1:])
    return replace(reading, sources=sources, examples=(*reading.examples, *examples))
