"""What change points cost: the total cost of a predicate's segments as the search joins them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from splime.errors import SplimeError, UsageError
from splime.graph import TemporalGraph
from splime.methods.bottomup import bottom_up, rbf_gram
from splime.methods.changepoint import ChangePointSplit
from splime.methods.proximity import Floats
from splime.methods.signatures import signatures
from splime.segmentation import Segmentation
from splime.times import Ints


@dataclass(frozen=True, eq=False)
class Costs:
    """The total cost after every union, and how many change points the method keeps."""

    changes: Ints
    """Numbers of change points, from the most to 0."""
    costs: Floats
    """The total cost of the segments with so many."""
    chosen: int

    @property
    def cost(self) -> float:
        """The cost with the chosen number."""
        return float(self.costs[self.changes == self.chosen][0])


def change_costs(graph: TemporalGraph, method: ChangePointSplit) -> dict[str, Costs]:
    """The costs of every predicate that has facts, from the search that the method itself makes.

    >>> import splime
    >>> rows = [("a", "p", "b", 1990, 1993), ("c", "p", "d", 1994, 1997)]
    >>> method = ChangePointSplit(changes=1)
    >>> costs = change_costs(splime.read(rows, split="none", granularity="year"), method)["p"]
    >>> costs.changes.tolist(), costs.costs.round(2).tolist(), costs.chosen
    ([3, 2, 1, 0], [0.0, 0.01, 0.02, 1.27], 1)
    """
    facts = graph.train if method.fit_on == "train" else graph.facts()
    begin, end = graph.timestamps(facts)
    order = np.argsort(facts.predicate, kind="stable")
    stops = np.cumsum(np.bincount(facts.predicate, minlength=len(graph.predicates)))
    found = {}
    for name, rows in zip(graph.predicates, np.split(order, stops[:-1]), strict=True):
        if len(rows):
            linked = signatures(
                begin[rows],
                end[rows],
                facts.subject[rows],
                facts.object[rows],
                proximity=method.proximity,
                closed=method.closed,
            )
            found[name] = _costs(rbf_gram(linked.scores), method)
    return found


def _costs(gram: Floats, method: ChangePointSplit) -> Costs:
    steps: list[tuple[int, float]] = []
    bottom_up(
        gram,
        changes=0,
        min_size=method.min_size,
        told=lambda changes, cost: steps.append((changes, cost)),
    )
    chosen = bottom_up(
        gram,
        epsilon=method.epsilon,
        penalty=method.penalty,
        changes=method.changes,
        min_size=method.min_size,
    )
    changes, costs = zip(*steps, strict=True)
    return Costs(np.array(changes, np.int64), np.array(costs), len(chosen))


def change_method(segmentation: Segmentation) -> ChangePointSplit:
    """The change point method that made cuts, as the segmentation remembers it."""
    parameters: Mapping[str, object] = segmentation.method
    name = parameters.get("method", "an unknown method")
    if name != ChangePointSplit.__name__:
        raise UsageError(f"only changepoint has costs of change points; these cuts are of {name}")
    given = {key: value for key, value in parameters.items() if key != "method"}
    try:
        method = ChangePointSplit(**given)  # type: ignore[arg-type]
    except (TypeError, SplimeError) as error:
        raise UsageError(f"the cuts tell of a method that cannot be: {error}") from None
    if method.target == "entities":
        raise UsageError("the change points of these cuts are of entities, not of predicates")
    return method
