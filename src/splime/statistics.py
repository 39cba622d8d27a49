"""What is in a graph, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from splime.counts import Counts
from splime.graph import TemporalGraph
from splime.times import Granularity, Ints, format_ticks


@dataclass(frozen=True)
class Statistics:
    """The sizes of a graph, and of what kind its facts are."""

    name: str
    entities: int
    predicates: int
    timestamps: int
    granularity: Granularity
    bucketed: bool
    begin: str
    end: str
    rows: Mapping[str, int]
    """Rows as they were read: per split, or of `all` where the source has no splits."""
    facts: Mapping[str, int]
    instant: int
    interval: int
    open: int
    """Facts with an unknown begin or end."""
    unknown_begin: int
    unknown_end: int

    def to_json(self) -> dict[str, Any]:
        """The same as plain lists and dictionaries."""
        return asdict(self)


def describe(graph: TemporalGraph) -> Statistics:
    """Count what is in a graph.

    >>> import splime
    >>> sizes = describe(splime.read([("Ada", "bornIn", "Ulm", 1990)], split="none"))
    >>> sizes.entities, sizes.facts["train"], sizes.instant
    (2, 1, 1)
    """
    facts = graph.facts()
    is_open = facts.unknown != 0
    instant = int(((facts.begin == facts.end) & ~is_open).sum())
    begin, end = format_ticks(
        np.array([graph.timeline.first, graph.timeline.last]), graph.timeline.granularity
    )
    read: dict[str, int] = {}
    for source in graph.reading.sources:
        read[source.split or "all"] = read.get(source.split or "all", 0) + source.rows
    kept: dict[str, int] = {split: len(part) for split, part in graph.splits()}
    return Statistics(
        name=graph.name,
        entities=len(graph.entities),
        predicates=len(graph.predicates),
        timestamps=len(graph.timeline),
        granularity=graph.timeline.granularity,
        bucketed=graph.timeline.bucketed,
        begin=begin,
        end=end,
        rows=read or kept,
        facts=kept,
        instant=instant,
        interval=len(facts) - instant - int(is_open.sum()),
        open=int(is_open.sum()),
        unknown_begin=int((facts.unknown & 1).sum()),
        unknown_end=int((facts.unknown >> 1).sum()),
    )


def facts_over_time(graph: TemporalGraph) -> Ints:
    """How many facts of each predicate hold at each timestamp: `predicates x timestamps`.

    >>> import splime
    >>> graph = splime.read([("a", "p", "b", 1, 3), ("a", "p", "c", 2, 2)], split="none")
    >>> facts_over_time(graph).tolist()
    [[1, 2, 1]]
    """
    facts = graph.facts()
    sizes = len(graph.predicates), len(graph.timeline)
    held = Counts.of(facts.predicate, *graph.timestamps(facts), *sizes).held
    table = np.zeros(sizes, np.int64)
    table[np.repeat(np.arange(sizes[0]), np.diff(held.offsets)), held.time] = held.facts
    return table


def frequent_predicates(graph: TemporalGraph) -> tuple[Ints, Ints]:
    """The predicates by their numbers of facts, most first (the first name on ties); and these.

    >>> import splime
    >>> rows = [("a", "p", "b", 1), ("a", "q", "c", 2), ("c", "q", "a", 2)]
    >>> frequent_predicates(splime.read(rows, split="none"))
    (array([1, 0]), array([1, 2]))
    """
    counts = np.bincount(graph.facts().predicate, minlength=len(graph.predicates))
    return np.argsort(-counts, kind="stable"), counts
