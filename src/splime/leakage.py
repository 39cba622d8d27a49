"""Test leakage: what of valid and test is known from train once the time is stripped.

Section "Test Leakage in Current Literature" of the paper: stripping the time makes facts equal
that were not, inside a split and between splits, and a static model is then tested on triples that
it was trained on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from splime.errors import UsageError, nearest
from splime.graph import SPLITS, Facts, TemporalGraph
from splime.times import Bools, Granularity, Ints

Triples: TypeAlias = npt.NDArray[np.integer]
"""Rows of subject, predicate and object ids."""
LeakFilter: TypeAlias = Literal["none", "intra", "inter", "both"]
FILTERS: tuple[LeakFilter, ...] = get_args(LeakFilter)

_DISTANCES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class Share:
    """A count, and of how many."""

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
    """How far away in time the nearest train fact with the same triple is."""

    facts: int
    """Facts whose triple is known from train."""
    median: float | None
    within: Mapping[int, int]
    """Distance in units of the granularity, and how many facts have a recurrence that near."""


@dataclass(frozen=True)
class LeakReport:
    """What the paper counts in its table of duplicates, and more of the kind."""

    granularity: Granularity
    duplicates: Mapping[str, Share]
    """Per split: rows minus distinct triples, of the rows."""
    in_train: Mapping[str, Share]
    """Valid, test: distinct triples that are in train, of the distinct triples."""
    pair_in_train: Mapping[str, Share]
    """Distinct triples whose subject and object some predicate links in train."""
    reversed_in_train: Mapping[str, Share]
    """Distinct triples of which train holds the same with subject and object exchanged."""
    fact_in_train: Mapping[str, Share]
    """Facts that are in train with the very same time."""
    recurrence: Mapping[str, Recurrence]

    def to_json(self) -> dict[str, Any]:
        """The same as plain dictionaries."""
        return asdict(self)


@dataclass(frozen=True)
class Filtered:
    """Which triples a leak filter keeps, and how many it removed from each split."""

    kind: LeakFilter
    keep: Mapping[str, Bools]
    removed: Mapping[str, int]

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} of {split}" for split, count in self.removed.items())
        return f"filter {self.kind} removed {counts}"


def report(graph: TemporalGraph) -> LeakReport:
    """Count what of valid and test is known from train.

    >>> import splime
    >>> graph = splime.read({"train": [("Obama", "visited", "NL", 2014)],
    ...                      "test": [("Obama", "visited", "NL", 2018)]})
    >>> leaks = report(graph)
    >>> str(leaks.in_train["test"]), leaks.recurrence["test"].median
    ('1 (100.00 %)', 4.0)
    """
    keys = _keys_by_split([triples_of(facts) for _, facts in graph.splits()])
    train = triples_of(graph.train)
    in_train, pairs, turned, facts_known, recurrences = {}, {}, {}, {}, {}
    for split in ("valid", "test"):
        facts: Facts = getattr(graph, split)
        distinct = np.unique(keys[split], return_index=True)[1]
        triples = triples_of(facts)[distinct]
        known = np.isin(keys[split], keys["train"])
        in_train[split] = Share(int(known[distinct].sum()), len(distinct))
        pairs[split] = Share(int(_known(triples[:, [0, 2]], train[:, [0, 2]]).sum()), len(distinct))
        # (a, knows, a) is its own reverse and would be counted as the triple itself.
        reverse = _known(triples[:, ::-1], train) & (triples[:, 0] != triples[:, 2])
        turned[split] = Share(int(reverse.sum()), len(distinct))
        distance = nearest_recurrence(facts, graph.train, keys[split], keys["train"])
        facts_known[split] = Share(_same_facts(facts, graph.train), len(facts))
        recurrences[split] = Recurrence(
            len(distance),
            float(np.median(distance)) if len(distance) else None,
            {at: int((distance <= at).sum()) for at in _DISTANCES},
        )
    duplicates = {
        split: Share(len(key) - len(np.unique(key)), len(key)) for split, key in keys.items()
    }
    return LeakReport(
        graph.timeline.granularity, duplicates, in_train, pairs, turned, facts_known, recurrences
    )


def filter_triples(train: Triples, valid: Triples, test: Triples, kind: LeakFilter) -> Filtered:
    """Apply one of the paper's filters to any triples, vanilla or transformed.

    `intra` keeps each triple once in every split, `inter` removes from valid and test what is in
    train, `both` does both.

    >>> train, test = np.array([[0, 0, 1], [0, 0, 1]]), np.array([[0, 0, 1], [1, 0, 1]])
    >>> print(filter_triples(train, test[:0], test, "inter"))
    filter inter removed 0 of train, 0 of valid, 1 of test
    """
    if kind not in FILTERS:
        known = ", ".join(FILTERS)
        raise UsageError(f"unknown filter {kind!r}; it is one of {known}.{nearest(kind, FILTERS)}")
    keys = _keys_by_split([train, valid, test])
    keep: dict[str, Bools] = {split: np.ones(len(key), bool) for split, key in keys.items()}
    if kind in ("inter", "both"):
        for split in ("valid", "test"):
            keep[split] &= ~np.isin(keys[split], keys["train"])
    if kind in ("intra", "both"):
        for split, key in keys.items():
            first = np.zeros(len(key), bool)
            first[np.unique(key, return_index=True)[1]] = True
            keep[split] &= first
    return Filtered(kind, keep, {split: int((~mask).sum()) for split, mask in keep.items()})


def filter_graph(graph: TemporalGraph, kind: LeakFilter) -> tuple[TemporalGraph, Filtered]:
    """Apply a filter to the vanilla triples of a graph."""
    train, valid, test = (triples_of(facts) for _, facts in graph.splits())
    filtered = filter_triples(train, valid, test, kind)
    return graph.keep(filtered.keep), filtered


def triples_of(facts: Facts) -> Triples:
    """Facts with their time stripped: rows of subject, predicate and object."""
    return np.stack([facts.subject, facts.predicate, facts.object], axis=1)


def nearest_recurrence(facts: Facts, train: Facts, keys: Ints, train_keys: Ints) -> Ints:
    """The distance in ticks to the nearest train fact of the same triple; 0 if they overlap.

    Only facts whose triple occurs in train have one; the others are left out.
    """
    known = np.isin(keys, train_keys)
    begin, end, key = facts.begin[known], facts.end[known], keys[known]
    if not len(key):
        return np.empty(0, np.int64)
    order = np.lexsort((train.begin, train_keys))
    group, starts, ends = train_keys[order], train.begin[order], train.end[order]
    # Time and triple in one number: binary searches then stay inside the triple's own facts.
    low = min(int(starts.min()), int(begin.min()))
    span = max(int(ends.max()), int(end.max())) - low + 2
    group, key = _ranks(group, key)
    latest_end = np.maximum.accumulate(group * span + (ends - low)) - group * span
    place = np.searchsorted(group * span + (starts - low), key * span + (end - low), side="right")
    before, after = place - 1, np.minimum(place, len(group) - 1)
    far = np.iinfo(np.int64).max
    has_before = (before >= 0) & (group[before] == key)
    has_after = (place < len(group)) & (group[after] == key)
    gap_before = np.where(has_before, np.maximum(begin - low - latest_end[before], 0), far)
    gap_after = np.where(has_after, starts[after] - end, far)
    return np.minimum(gap_before, gap_after)


def _ranks(group: Ints, key: Ints) -> tuple[Ints, Ints]:
    """Small consecutive numbers for keys, so that products with a time span fit."""
    distinct = np.unique(group)
    return np.searchsorted(distinct, group), np.searchsorted(distinct, key)


def _keys_by_split(tables: list[Triples]) -> dict[str, Ints]:
    return dict(zip(map(str, SPLITS), _keys(tables), strict=True))


def _keys(tables: list[Triples]) -> list[Ints]:
    """One integer for every row, equal where rows are, across all tables."""
    columns = np.concatenate(tables).astype(np.int64).T
    if not columns.shape[1]:
        return [np.empty(0, np.int64) for _ in tables]
    key = columns[0]
    for column in columns[1:]:
        size = int(column.max()) + 1
        if (int(key.max()) + 1) * size >= 1 << 63:
            key = np.unique(key, return_inverse=True)[1]
        key = key * size + column
    return np.split(key, np.cumsum([len(table) for table in tables])[:-1])


def _known(rows: Triples, train: Triples) -> Bools:
    """Which rows occur in train."""
    mine, known = _keys([rows, train])
    return np.isin(mine, known)


def _same_facts(facts: Facts, train: Facts) -> int:
    """How many facts occur in train with the same times as given."""
    tables = [np.stack([c.astype(np.int64) for c in f.columns()], axis=1) for f in (facts, train)]
    low = min((int(table[:, 3:5].min()) for table in tables if len(table)), default=0)
    for table in tables:
        table[:, 3:5] -= low  # keys are made of numbers from 0
    return int(_known(*tables).sum())
