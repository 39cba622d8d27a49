"""A static graph: triples over scoped predicates, with the facts that they came from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from splime.arrays import changes, expand
from splime.errors import UsageError, counted, nearest
from splime.graph import (
    BEGIN_UNKNOWN,
    END_UNKNOWN,
    Facts,
    Ids,
    SplitName,
    Splits,
    Statements,
    TemporalGraph,
)
from splime.leakage import Filtered, LeakFilter, filter_triples
from splime.segmentation import Scopes, Segmentation
from splime.shown import Shown
from splime.times import Bools, Ints
from splime.vocabulary import Vocabulary

Aggregate: TypeAlias = Literal["mean", "ends", "begin", "max", "sum"]
"""How the scores of a fact's triples are combined: the mean weighted by overlap, the mean of the
first and the last, the first, the highest, or the sum."""


@dataclass(frozen=True, eq=False)
class Triples(Statements):
    """Triples, as columns."""

    fact: Ints
    """The position of the fact in its split."""
    overlap: Ids
    """The number of timestamps at which the fact holds inside the scope."""


@dataclass(frozen=True, eq=False)
class StaticGraph(Splits[Triples], Shown):
    """A temporal graph cut by a segmentation: triples for any static model.

    >>> import splime
    >>> static = splime.Merge(shrink=4).fit_transform(splime.load("demo"))
    >>> next(static.rows("train"))[1]
    'playsFor[1975..1978]'
    """

    segmentation: Segmentation
    graph: TemporalGraph
    """The facts that the triples came from."""

    @property
    def name(self) -> str:
        """The name of the graph."""
        return self.graph.name

    def __repr__(self) -> str:
        sizes = ", ".join(f"{split} {len(triples):,}" for split, triples in self.splits())
        name = f"{self.name}: " if self.name else ""
        return (
            f"StaticGraph({name}{counted(len(self), 'triple')} ({sizes}),"
            f" {len(self.entities):,} entities, {len(self.predicates):,} scoped predicates)"
        )

    @property
    def entities(self) -> Scopes | Vocabulary:
        """The (scoped) entities that the ids of subjects and objects stand for."""
        cut = self.segmentation.entities
        return self.graph.entities if cut is None else cut

    @property
    def predicates(self) -> Scopes:
        """The scoped predicates that the ids of predicates stand for."""
        return self.segmentation.predicates

    def rows(self, split: SplitName) -> Iterator[tuple[str, str, str]]:
        """Triples with their names."""
        triples: Triples = getattr(self, split)
        entities, predicates = self.entities.labels, self.predicates.labels
        for s, p, o in triples.array().tolist():
            yield entities[s].as_py(), predicates[p].as_py(), entities[o].as_py()

    def filter(self, kind: LeakFilter) -> tuple[StaticGraph, Filtered]:
        """Apply one of the leak filters to the transformed triples."""
        train, valid, test = (triples.array() for _, triples in self.splits())
        filtered = filter_triples(train, valid, test, kind)
        return self.keep(filtered.keep), filtered

    def distinct(self) -> tuple[StaticGraph, Filtered]:
        """Every triple once in each split, with the first fact that it came from."""
        return self.filter("intra")

    def without_unseen(self) -> tuple[StaticGraph, dict[str, int]]:
        """Valid and test without triples of entities or scopes that train does not have."""
        masks: dict[str, Bools] = {
            split: triples.named_in(self.train) for split, triples in self.splits()
        }
        return self.keep(masks), {split: int((~mask).sum()) for split, mask in masks.items()}


def first_and_last(
    fact: npt.NDArray[np.integer], unknown: npt.NDArray[np.integer]
) -> tuple[Ints, Bools]:
    """The first and the last triple of each fact, as two columns, and whether they are at its end.

    Where the begin (or the end) is unknown, the other end replaces it; `unknown` has the bits of
    each fact, and `fact` the fact of each triple.

    >>> rows, at_end = first_and_last(np.array([0, 0, 0, 1, 1]), np.array([0, BEGIN_UNKNOWN]))
    >>> rows.tolist(), at_end.tolist()
    ([[0, 2], [4, 4]], [[False, True], [True, True]])
    """
    first = np.flatnonzero(changes(fact))
    rows = np.stack([first, np.append(first[1:], len(fact)) - 1], axis=1)
    at_end = np.tile([False, True], (len(first), 1))
    for side, bit in enumerate((BEGIN_UNKNOWN, END_UNKNOWN)):
        other = unknown[fact[first]] == bit
        rows[other, side] = rows[other, 1 - side]
        at_end[other, side] = at_end[other, 1 - side]
    return rows, at_end


def apply(segmentation: Segmentation, graph: TemporalGraph) -> StaticGraph:
    """Cut the facts of a graph: a triple for every scope in which a fact holds.

    >>> import splime
    >>> graph = splime.load("demo")
    >>> apply(splime.Split(grow=5).fit(graph), graph)
    StaticGraph(demo: 17,991 triples (train 14,339, ...
    """
    _check(segmentation, graph)
    train, valid, test = (cut_facts(segmentation, facts, graph) for _, facts in graph.splits())
    return StaticGraph(train, valid, test, segmentation, graph)


def cut_facts(segmentation: Segmentation, facts: Facts, graph: TemporalGraph) -> Triples:
    """The triples of facts, ordered by fact and time."""
    begin, end = graph.timestamps(facts)
    scopes, entities = segmentation.predicates, segmentation.entities
    if entities is not None:
        keys = (entities, facts.subject), (scopes, facts.predicate), (entities, facts.object)
        return _cut_all(keys, begin, end)
    rows = np.arange(len(facts))
    low, high = scopes.find(facts.predicate, begin, end)
    if (low == high).all():
        return Triples.owning(facts.subject, low, facts.object, rows, end - begin + 1)
    count, scope, overlap = scopes.cut(facts.predicate, begin, end, low, high)
    rows = np.repeat(rows, count)
    return Triples.owning(facts.subject[rows], scope, facts.object[rows], rows, overlap)


def _cut_all(keys: tuple[tuple[Scopes, Ids], ...], begin: Ids, end: Ids) -> Triples:
    """Cut facts at the cuts of their subject, their predicate and their object together.

    A triple begins where its fact begins, and at every cut inside the fact. One number encodes the
    fact, the place and whose cut it is; sorting the numbers orders the triples by time.
    """
    kinds = len(keys) + 1
    width = 2 * len(keys[0][0].timeline) + 2
    starts = [(np.arange(len(begin)) * width + 2 * begin.astype(np.int64)) * kinds]
    lowest = []
    for kind, (scopes, source) in enumerate(keys, start=1):
        low, high = scopes.find(source, begin, end)
        rows, cut = expand(low - source, high - low)
        starts.append((rows * width + scopes.cuts[cut]) * kinds + kind)
        lowest.append(low)
    number = np.concatenate(starts)
    del starts, rows, cut
    number.sort()
    place, kind_of = np.divmod(number, kinds)
    kind_of = kind_of.astype(np.int8)
    last = np.flatnonzero(np.append(place[1:] != place[:-1], True))  # of those at the same place
    rows, left = np.divmod(place[last], width)
    del number, place
    goes_on = rows[1:] == rows[:-1]
    first = np.flatnonzero(np.append(True, ~goes_on))[rows]
    columns = []
    for kind, low in enumerate(lowest, start=1):
        # Each cut that is passed leads to the next scope.
        passed = np.cumsum(kind_of == kind, dtype=np.int32)[last]
        columns.append(low[rows] + passed - passed[first])
    subject, predicate, object_ = columns
    # A triple reaches to the next cut, the last triple of a fact to the end of the fact.
    right = 2 * end[rows].astype(np.int64)
    right[:-1][goes_on] = left[1:][goes_on]
    overlap = (right // 2 - (left + 1) // 2 + 1).astype(np.int32)
    return Triples.owning(subject, predicate, object_, rows, overlap)


def _check(segmentation: Segmentation, graph: TemporalGraph) -> None:
    if segmentation.timeline != graph.timeline:
        raise UsageError(
            f"the segmentation was made for another timeline, {segmentation.timeline}; this graph"
            f" has {graph.timeline}"
        )
    for kinds, scopes, names in (
        ("predicates", segmentation.predicates, graph.predicates),
        ("entities", segmentation.entities, graph.entities),
    ):
        if scopes is not None and scopes.names != names:
            unknown = next((name for name in names if name not in scopes.names), None)
            why = f"it has {len(scopes.names):,} of them, the graph {len(names):,}"
            if unknown is not None:
                hint = nearest(unknown, scopes.names) if len(scopes.names) < 10_000 else ""
                why = f"it does not know {unknown!r}{hint}"
            raise UsageError(f"the segmentation was made for other {kinds}: {why}")
