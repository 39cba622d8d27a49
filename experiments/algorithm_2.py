"""Splitting as the paper's Algorithm 2 prints it: facts that touch a cut go to both sides.

By the rule of the running text, which is the library's, a fact that only ends or begins at the cut
stays on its side. This is here to see which of the two is behind the paper's figures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from splime.counts import Counts
from splime.graph import TemporalGraph
from splime.methods.split import ScopeCounts, grown
from splime.timeline import Timeline
from splime.vocabulary import Vocabulary

NAME = "algorithm 2"
"""What cases call it, in the place of a method."""


class TouchingScope(ScopeCounts):
    """A scope that shares the timestamps at its ends with its neighbours, and their facts."""

    def split(self, at: int) -> tuple[ScopeCounts, ScopeCounts]:
        """Both sides of a cut; instants matter to the other rule only, and stay as they are."""
        before, (begins, ends, instants), behind = self.parted(at)
        began, ended = int(before[0].sum()), int(before[1].sum())
        left = (begins, began + begins - ended, instants)
        right = (began - ended + begins, ends, instants)
        return self.sides(at, before, left, right, behind)


def algorithm_2(
    graph: TemporalGraph,
    *,
    by: Literal["time", "count", "random"] = "time",
    grow: float | None = None,
    predicates: int = 0,
    seed: int = 0,
) -> TemporalGraph:
    """The static graph of all scopes, as a graph in which everything holds at the same time.

    Cuts are learned from all splits, until there are `grow` times as many predicates, or an
    absolute number of them.
    """
    facts = graph.facts()
    begin, end = graph.timestamps(facts)
    counts = Counts.of(facts.predicate, begin, end, len(graph.predicates), len(graph.timeline))
    scopes: list[ScopeCounts] = [*TouchingScope.uncut(counts)]
    wanted = predicates if grow is None else grown(len(scopes), grow)
    if by == "random":
        scopes = _split_at_random(scopes, wanted, seed)
    else:
        where = ScopeCounts.middle if by == "time" else ScopeCounts.balance
        scopes = _split_the_largest(scopes, where, wanted)
    return _as_graph(graph, scopes)


def _split_the_largest(
    scopes: list[ScopeCounts], where: Callable[[ScopeCounts], int], wanted: int
) -> list[ScopeCounts]:
    sizes = [scope.facts if scope.can_be_split else 0 for scope in scopes]
    while len(scopes) < wanted:
        largest = max(range(len(scopes)), key=sizes.__getitem__)  # the first of equal ones
        scope = scopes.pop(largest)
        if not sizes.pop(largest):
            raise ValueError("no scope can be split any more")
        sides = scope.split(where(scope))
        scopes += sides
        sizes += [side.facts if side.can_be_split else 0 for side in sides]
    return scopes


def _split_at_random(scopes: list[ScopeCounts], wanted: int, seed: int) -> list[ScopeCounts]:
    rng = np.random.default_rng(seed)
    while len(scopes) < wanted:
        drawn = int(rng.integers(len(scopes)))
        scope = scopes[drawn]
        if scope.first < scope.last:
            scopes[drawn], right = scope.split(int(rng.integers(scope.first, scope.last + 1)))
            scopes.append(right)
    return scopes


def _as_graph(graph: TemporalGraph, scopes: list[ScopeCounts]) -> TemporalGraph:
    """The facts that meet each scope, under its number."""
    first, last = np.array([(scope.first, scope.last) for scope in scopes]).T
    source = np.array([scope.source for scope in scopes])
    tick = np.full(1, graph.timeline.first)
    splits: dict[str, Any] = {}
    for split, facts in graph.splits():
        begin, end = (column[:, None] for column in graph.timestamps(facts))
        meets = (facts.predicate[:, None] == source) & (begin <= last) & (end >= first)
        fact, number = np.nonzero(meets)
        when = np.full(len(fact), tick[0])
        splits[split] = replace(
            facts.take(fact),
            predicate=number.astype(np.int32),
            begin=when,
            end=when.copy(),
            unknown=np.zeros(len(fact), np.uint8),
        )
    names = [f"{at:06} {graph.predicates[scope.source]}" for at, scope in enumerate(scopes)]
    return replace(
        graph,
        **splits,
        predicates=Vocabulary(names, kind="predicate"),
        timeline=Timeline(graph.timeline.granularity, tick, tick.copy()),
    )
