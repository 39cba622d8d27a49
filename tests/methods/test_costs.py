"""The costs of change points, against the method itself and the formula."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import splime
from splime.errors import UsageError
from splime.graph import TemporalGraph
from splime.methods import ChangePointSplit, change_method
from splime.methods.bottomup import Gram, Limit, Signals, bottom_up, first_segments
from splime.methods.changepoint import change_costs
from splime.methods.signatures import PROXIMITIES, signatures
from splime.segmentation import Segmentation
from tests.methods.test_bottomup import matrix

stops = st.one_of(
    st.fixed_dictionaries({"epsilon": st.floats(0.01, 8)}),
    st.fixed_dictionaries({"penalty": st.floats(0.01, 2)}),
    st.fixed_dictionaries({"changes": st.integers(0, 6)}),
)


@st.composite
def graphs(draw: st.DrawFn) -> TemporalGraph:
    rows = []
    for _ in range(draw(st.integers(1, 25))):
        begin, end = sorted((draw(st.integers(0, 12)), draw(st.integers(0, 12))))
        subject, object_ = draw(st.integers(0, 4)), draw(st.integers(5, 8))
        names = (f"e{subject}", f"p{draw(st.integers(0, 1))}", f"e{object_}")
        rows.append((*names, 1990 + begin, 1990 + end))
    rows.append(("e0", "p0", "e5", 1990, 1991))  # train is never empty
    return splime.read({"train": rows, "test": [("e0", "q", "e5", 1990, 1995)]}, granularity="year")


def literal_costs(graph: TemporalGraph, predicate: str, method: ChangePointSplit) -> dict[int, Any]:
    """The formula of the paper, segment by segment, for every number of change points."""
    chosen = graph.where(predicate=predicate)
    facts = chosen.train if method.fit_on == "train" else chosen.facts()
    begin, end = graph.timestamps(facts)
    linked = signatures(
        begin, end, facts.subject, facts.object, proximity=PROXIMITIES[method.proximity]
    )
    gram = matrix(linked.scores)
    signals = Signals.of_rows(linked.scores)
    searched, first = Gram(signals), first_segments(signals.counts, method.min_size)
    costs = {}
    for wanted in range(len(gram)):
        bounds = [*bottom_up(searched, Limit(changes=wanted), first).starts, len(gram)]
        blocks = [gram[a:b, a:b] for a, b in pairwise(bounds)]
        # Σ |φ(x) - μ|² over the segment is the trace less the mean of its rows' sums.
        costs[len(bounds) - 2] = sum(np.trace(b) - b.sum(axis=1).mean() for b in blocks)
    return costs


@given(graphs(), stops, st.integers(1, 3))
def test_the_limits_do_what_their_help_says(
    graph: TemporalGraph, stop: dict[str, Any], min_size: int
) -> None:
    method = ChangePointSplit(**stop, min_size=min_size)
    tiny = 1e-9
    for predicate, costs in change_costs(graph, method).items():
        literal = literal_costs(graph, predicate, method)
        cost, more = literal[costs.chosen], literal.get(costs.chosen + 1)
        if method.epsilon is not None:
            # Joined until the total has reached epsilon: what is chosen lies above it.
            assert costs.chosen == 0 or cost >= method.epsilon - tiny
            assert more is None or more < method.epsilon + tiny
        elif method.penalty is not None:
            # Joined while that adds less than the penalty.
            assert costs.chosen == 0 or literal[costs.chosen - 1] - cost >= method.penalty - tiny
            assert more is None or cost - more < method.penalty + tiny
        else:
            assert costs.chosen == min(method.changes or 0, max(literal))


@given(graphs(), stops, st.integers(1, 3), st.sampled_from(["train", "all"]))
def test_costs_are_those_of_the_search(
    graph: TemporalGraph, stop: dict[str, Any], min_size: int, fit_on: Any
) -> None:
    method = ChangePointSplit(**stop, min_size=min_size, fit_on=fit_on)
    costs_of, cuts = change_costs(graph, method), method.fit(graph)
    facts = graph.train if fit_on == "train" else graph.facts()
    assert set(costs_of) == {graph.predicates[p] for p in facts.predicate.tolist()}
    for name, costs in costs_of.items():
        assert costs.chosen == len(cuts.scopes_of(name)) - 1
        assert costs.changes.tolist() == list(range(len(costs.changes)))[::-1]
        assert (np.diff(costs.costs) > -1e-9).all()  # joining never makes it cheaper
        expected = literal_costs(graph, name, method)
        assert dict(zip(costs.changes.tolist(), costs.costs.tolist(), strict=True)) == (
            pytest.approx(expected, abs=1e-9)
        )
        assert costs.cost == pytest.approx(expected[costs.chosen], abs=1e-9)


def test_the_demo() -> None:
    graph = splime.load("demo")
    method = ChangePointSplit(proximity="adamic_adar", penalty=3)
    costs = change_costs(graph, method)
    cuts = method.fit(graph)
    assert {n: c.chosen for n, c in costs.items()} == {
        n: len(cuts.scopes_of(n)) - 1 for n in graph.predicates
    }
    assert len(costs["livesIn"].changes) == len(graph.timeline)


def test_the_method_of_cuts() -> None:
    graph = splime.load("demo")
    method = ChangePointSplit(epsilon=5, proximity="jaccard", min_size=2, closed=False)
    cuts = method.fit(graph)
    assert change_method(cuts) == method
    with pytest.raises(UsageError, match=r"only changepoint .* these cuts are of merge"):
        change_method(splime.Merge(shrink=4).fit(graph))
    for wrong, message in (
        ({}, "of an unknown method"),
        ({"method": "ChangePointSplit"}, "wrong parameters: ChangePointSplit needs one of epsilon"),
        ({"method": "ChangePointSplit", "epsilon": "x"}, "wrong parameters: "),
        ({"method": "ChangePointSplit", "epsilons": 5}, "wrong parameters: .*epsilons"),
        ({"method": "ChangePointSplit", "epsilon": 5, "target": "entities"}, "are of entities"),
    ):
        with pytest.raises(UsageError, match=message):
            change_method(Segmentation(cuts.predicates, method=wrong))
