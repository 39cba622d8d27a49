"""Random static graphs for property tests, and graphs with the names that one asks for."""

from __future__ import annotations

from hypothesis import assume, strategies as st

import splime
from splime.errors import UsageError
from splime.graph import TemporalGraph
from splime.methods import Merge, Split, Timestamp, Vanilla
from splime.static import StaticGraph
from tests.graphs import graphs

METHODS = [
    Vanilla(),
    Timestamp(),
    Timestamp(target="both"),
    Split(grow=1.5),
    Split(by="count", grow=1.3),
    Merge(shrink=2),
    Merge(shrink=4, target="entities"),
]


@st.composite
def transformed(draw: st.DrawFn) -> tuple[TemporalGraph, StaticGraph]:
    """A temporal graph, and what some method makes of it."""
    graph = draw(graphs())
    try:
        return graph, draw(st.sampled_from(METHODS)).fit_transform(graph)
    except UsageError:  # there is nothing left to split
        assume(False)
        raise


def named(*labels: str) -> TemporalGraph:
    """A graph with every label as an entity, and with a mark as a predicate."""
    rows = [
        (label, f"{label}!", labels[0], 1990 + 2 * (number % 5), 1996 + number % 9)
        for number, label in enumerate(labels)
    ]
    return splime.read({"train": rows, "valid": rows[::2], "test": rows[:1]}, granularity="year")


def one_fact(time: str = "1990") -> TemporalGraph:
    """A graph without valid and test."""
    return splime.read([("a", "p", "b", time)], split="none")
