"""Whether runs were asked for the same facts, however each of them numbers and orders them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from splime.errors import UsageError
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, SPLITS, SplitName, TemporalGraph
from splime.runs.run import Run
from splime.times import Ints


def common_order(
    runs: Sequence[Run], names: Sequence[str], split: SplitName
) -> tuple[list[Ints | None], list[str]]:
    """For each run the facts of a split in an order that all share, and remarks on other splits.

    None stands for the order of the first run, where all have the same data. Facts are compared as
    given, by names and dates: buckets and what unknown times became do not matter. A fact that only
    one of two runs has is an error.
    """
    checksums = [run.config["data"]["sha256"] for run in runs]
    if len({*checksums}) == 1:
        return [None] * len(runs), []
    orders: dict[str, Ints] = {}
    remarks = []
    first = runs[0].graph
    mine = {each: _rows(first, first, each) for each in SPLITS}
    for run, name, checksum in zip(runs, names, checksums, strict=True):
        if checksum in orders:
            continue
        graph = run.graph
        if graph.timeline.granularity != first.timeline.granularity:
            raise UsageError(
                f"{names[0]} and {name} cannot be compared: their times are by"
                f" {first.timeline.granularity} and by {graph.timeline.granularity}"
            )
        theirs = {each: _rows(graph, first, each) for each in SPLITS}
        orders[checksum] = np.lexsort(theirs[split].T)
        if not _same(mine[split], theirs[split]):
            raise UsageError(
                f"{names[0]} and {name} cannot be compared: their facts of {split} differ"
                f" ({_difference(runs[0], run, split)}); read the data the same way for both"
            )
        others = [each for each in SPLITS if not _same(mine[each], theirs[each])]
        if others:
            remarks.append(
                f"{names[0]} and {name} know different facts in {' and '.join(others)}, so their"
                " filters leave out different answers"
            )
    return [orders[checksum] for checksum in checksums], remarks


def _rows(graph: TemporalGraph, like: TemporalGraph, split: SplitName) -> Ints:
    """A row of numbers for each fact, with the ids of another graph; -1 for names it has not."""
    facts = getattr(graph, split).renumber(
        like.entities.ids(graph.entities.labels), like.predicates.ids(graph.predicates.labels)
    )
    begin = np.where(facts.unknown & BEGIN_UNKNOWN, 0, facts.begin)
    end = np.where(facts.unknown & END_UNKNOWN, 0, facts.end)
    columns = (facts.subject, facts.predicate, facts.object, begin, end, facts.unknown)
    return np.stack([column.astype(np.int64) for column in columns], axis=1)


def _same(mine: Ints, theirs: Ints) -> bool:
    return len(mine) == len(theirs) and np.array_equal(_ordered(mine), _ordered(theirs))


def _ordered(rows: Ints) -> Ints:
    found: Ints = rows[np.lexsort(rows.T)]
    return found


def _difference(first: Run, second: Run, split: SplitName) -> str:
    """What is not the same, shortly."""
    counts = [len(getattr(run.graph, split)) for run in (first, second)]
    if counts[0] != counts[1]:
        return f"{counts[0]:,} and {counts[1]:,} facts"
    fact = next(iter(Counter(second.graph.rows(split)) - Counter(first.graph.rows(split))))
    return f"such as {fact.subject}, {fact.predicate}, {fact.object}, {fact.begin}, {fact.end}"
