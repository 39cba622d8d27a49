"""Test leakage: triples of valid and test that are known from train once time is stripped.

Section "Test Leakage in Current Literature" of the paper: without their times, different facts
become equal triples, within a split and between splits, so a static model is tested on triples that
it was trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from splime.arrays import distinct, expand, in_sorted
from splime.errors import check_name
from splime.graph import SPLITS, Facts, TemporalGraph
from splime.times import Bools, Granularity, Ints

TripleRows: TypeAlias = npt.NDArray[np.integer]
"""Rows of subject, predicate and object ids."""
LeakFilter: TypeAlias = Literal["none", "intra", "inter", "both"]
FILTERS: tuple[LeakFilter, ...] = get_args(LeakFilter)

_DISTANCES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class Share:
    """A count and its total."""

    count: int
    of: int

    @property
    def percent(self) -> float:
        """The share in percent."""
        return 100 * self.count / self.of if self.of else 0.0

    def __str__(self) -> str:
        return f"{self.count:,} ({self.percent:.2f} %)"


@dataclass(frozen=True)
class Recurrence:
    """The distance in time to the nearest train fact with the same triple."""

    facts: int
    """Facts whose triple is known from train."""
    median: float | None
    within: Mapping[int, int]
    """The number of facts with a recurrence within a distance, in units of the granularity."""


@dataclass(frozen=True)
class LeakReport:
    """The counts of the paper's table of duplicates, and related ones."""

    granularity: Granularity
    duplicates: Mapping[str, Share]
    """Per split: rows minus distinct triples, of the rows."""
    in_train: Mapping[str, Share]
    """Valid, test: distinct triples that are in train, of the distinct triples."""
    pair_in_train: Mapping[str, Share]
    """Distinct triples whose subject and object are linked in train by any predicate."""
    reversed_in_train: Mapping[str, Share]
    """Distinct triples that are in train with subject and object exchanged."""
    fact_in_train: Mapping[str, Share]
    """Facts that are in train with the same time."""
    recurrence: Mapping[str, Recurrence]
    self_loops: Mapping[str, Share]
    """Facts whose subject is also the object. All counts have them, except `reversed_in_train`."""

    def to_json(self) -> dict[str, Any]:
        """The same as plain dictionaries."""
        return asdict(self)


@dataclass(frozen=True)
class Filtered:
    """The triples that a leak filter keeps, and the number removed from each split."""

    kind: LeakFilter
    keep: Mapping[str, Bools]
    removed: Mapping[str, int]

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} of {split}" for split, count in self.removed.items())
        return f"filter {self.kind} removed {counts}"


def report(graph: TemporalGraph) -> LeakReport:
    """Count the facts of valid and test that are known from train.

    >>> import splime
    >>> graph = splime.read({"train": [("Obama", "visited", "NL", 2014)],
    ...                      "test": [("Obama", "visited", "NL", 2018)]})
    >>> leaks = report(graph)
    >>> str(leaks.in_train["test"]), leaks.recurrence["test"].median
    ('1 (100.00 %)', 4.0)
    """
    triples = [facts.array() for _, facts in graph.splits()]
    both_ways = _keys([*triples, *(t[:, ::-1] for t in triples)])
    keys, back, pairs = (
        dict(zip(map(str, SPLITS), by_split, strict=True))
        for by_split in (both_ways[:3], both_ways[3:], _keys([t[:, [0, 2]] for t in triples]))
    )
    order = np.argsort(keys["train"], kind="stable")
    train, train_pairs = keys["train"][order], np.sort(pairs["train"])
    in_train, linked, turned, same, recurrences = {}, {}, {}, {}, {}
    for split in ("valid", "test"):
        facts: Facts = getattr(graph, split)
        once = np.unique(keys[split], return_index=True)[1]
        known = in_sorted(keys[split], train)
        in_train[split] = Share(int(known[once].sum()), len(once))
        linked[split] = Share(int(in_sorted(pairs[split][once], train_pairs).sum()), len(once))
        # (a, knows, a) equals its reverse and would be counted as the triple itself.
        apart = facts.subject[once] != facts.object[once]
        reverse = in_sorted(back[split][once], train) & apart
        turned[split] = Share(int(reverse.sum()), len(once))
        # Only train facts of the known triples matter for the rest.
        wanted = distinct(keys[split][known])
        first, stop = (np.searchsorted(train, wanted, side=side) for side in ("left", "right"))
        of_triple, place = expand(first, stop - first)
        recurring, train_facts = facts.take(known), graph.train.take(order[place])
        triple = np.searchsorted(wanted, keys[split][known])
        distance = nearest_recurrence(recurring, train_facts, triple, of_triple)
        same[split] = Share(_same_facts(recurring, train_facts), len(facts))
        recurrences[split] = Recurrence(
            len(distance),
            float(np.median(distance)) if len(distance) else None,
            {at: int((distance <= at).sum()) for at in _DISTANCES},
        )
    duplicates = {
        split: Share(len(key) - len(distinct(key)), len(key)) for split, key in keys.items()
    }
    loops = {
        str(split): Share(int((facts.subject == facts.object).sum()), len(facts))
        for split, facts in graph.splits()
    }
    return LeakReport(
        graph.timeline.granularity, duplicates, in_train, linked, turned, same, recurrences, loops
    )


def filter_triples(
    train: TripleRows, valid: TripleRows, test: TripleRows, kind: LeakFilter
) -> Filtered:
    """Apply one of the paper's filters to any triples, vanilla or transformed.

    `intra` keeps each triple once in every split, `inter` removes triples of train from valid and
    test, `both` does both.

    >>> train, test = np.array([[0, 0, 1], [0, 0, 1]]), np.array([[0, 0, 1], [1, 0, 1]])
    >>> print(filter_triples(train, test[:0], test, "inter"))
    filter inter removed 0 of train, 0 of valid, 1 of test
    """
    check_name("filter", kind, FILTERS)
    keys = dict(zip(map(str, SPLITS), _keys([train, valid, test]), strict=True))
    keep: dict[str, Bools] = {split: np.ones(len(key), bool) for split, key in keys.items()}
    if kind in ("inter", "both"):
        ordered = np.sort(keys["train"])
        for split in ("valid", "test"):
            keep[split] &= ~in_sorted(keys[split], ordered)
    if kind in ("intra", "both"):
        for split, key in keys.items():
            first = np.zeros(len(key), bool)
            first[np.unique(key, return_index=True)[1]] = True
            keep[split] &= first
    return Filtered(kind, keep, {split: int((~mask).sum()) for split, mask in keep.items()})


def filter_graph(graph: TemporalGraph, kind: LeakFilter) -> tuple[TemporalGraph, Filtered]:
    """Apply a filter to the vanilla triples of a graph."""
    train, valid, test = (facts.array() for _, facts in graph.splits())
    filtered = filter_triples(train, valid, test, kind)
    return graph.keep(filtered.keep), filtered


def nearest_recurrence(facts: Facts, train: Facts, triple: Ints, train_triple: Ints) -> Ints:
    """The distance in ticks to the nearest train fact of the same triple; 0 if they overlap.

    Triples are given by numbers from 0; those of the facts must occur in train.
    """
    if not len(facts):
        return np.empty(0, np.int64)
    # Times are compared by their ranks: a triple and a rank fit into one number, and a binary
    # search for it stays within the facts of the triple.
    ticks = distinct(np.concatenate([train.begin, train.end, facts.begin, facts.end]))
    begins, ends, until = (np.searchsorted(ticks, t) for t in (train.begin, train.end, facts.end))
    order = np.lexsort((begins, train_triple))
    group, begins, ends = train_triple[order], begins[order], ends[order]
    latest_end = np.maximum.accumulate(group * len(ticks) + ends) - group * len(ticks)
    place = np.searchsorted(group * len(ticks) + begins, triple * len(ticks) + until, side="right")
    before, after = np.maximum(place - 1, 0), np.minimum(place, len(group) - 1)
    has_before = (place > 0) & (group[before] == triple)
    has_after = (place < len(group)) & (group[after] == triple)
    far = np.iinfo(np.int64).max
    gap_before = np.where(has_before, np.maximum(facts.begin - ticks[latest_end[before]], 0), far)
    gap_after = np.where(has_after, ticks[begins[after]] - facts.end, far)
    return np.minimum(gap_before, gap_after)


def _keys(tables: Sequence[npt.NDArray[np.integer]]) -> list[Ints]:
    """An integer for every row, such that rows are equal if their integers are, in all tables."""
    columns = np.concatenate(tables).astype(np.int64).T
    if not columns.shape[1]:
        return [np.empty(0, np.int64) for _ in tables]
    key = columns[0]
    for column in columns[1:]:
        if (int(key.max()) + 1) * (int(column.max()) + 1) >= 1 << 63:
            # Renumbered, the ids are at most as many as the rows.
            key, column = (np.searchsorted(distinct(ids), ids) for ids in (key, column))
        key = key * (int(column.max()) + 1) + column
    return np.split(key, np.cumsum([len(table) for table in tables])[:-1])


def _same_facts(facts: Facts, train: Facts) -> int:
    """The number of facts that occur in train with the same times."""
    tables = [np.stack([c.astype(np.int64) for c in f.columns()], axis=1) for f in (facts, train)]
    low = min((int(table[:, 3:5].min()) for table in tables if len(table)), default=0)
    for table in tables:
        table[:, 3:5] -= low  # keys are made of numbers from 0
    keys, train_keys = _keys(tables)
    return int(in_sorted(keys, np.sort(train_keys)).sum())
