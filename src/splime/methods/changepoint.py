"""CPD-based splitting: cuts where the neighbourhood of a predicate changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from splime.arrays import batches, expand
from splime.axes import Range, Values
from splime.errors import UsageError, check_name
from splime.graph import TemporalGraph
from splime.methods.base import CHOOSING, FitInput, Method, parameter
from splime.methods.bottomup import (
    Floats,
    Gram,
    Limit,
    Signals,
    bottom_up,
    change_rows,
    first_segments,
)
from splime.methods.signatures import PROXIMITIES, Integers, Intervals, Measure, signatures
from splime.progress import Progress, silent
from splime.times import Ints

# Links of sources searched together: bounds the memory.
_AT_ONCE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class ChangePointSplit(Method):
    """Cuts at the change points of the links of each predicate.

    The signature of a timestamp has the proximity of every pair that the predicate links then;
    bottom-up search with the kernelised mean change finds where signatures change.
    """

    proximity: str = parameter(
        "preferential_attachment",
        "how near two linked entities are: jaccard, adamic_adar or preferential_attachment",
    )
    epsilon: float | None = parameter(
        None,
        "neighbours are joined until the total cost reaches this: the higher, the fewer cuts",
    )
    penalty: float | None = parameter(
        None, "instead of epsilon: neighbours are joined while that adds less than this to the cost"
    )
    changes: int | None = parameter(
        None, "instead of epsilon: change points of every predicate, if it has enough timestamps", 0
    )
    min_size: int = parameter(1, "minimum number of timestamps with facts between change points", 1)
    closed: bool = parameter(
        True, "count an entity among its own neighbours, as for the paper's results"
    )

    name = "changepoint"
    standard = {"epsilon": 5.0}
    search = {"proximity": Values(tuple(PROXIMITIES)), "epsilon": Range(0.5, 50.0, log=True)}
    one_of = ("epsilon", "penalty", "changes")
    needs_facts = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_name("proximity measure", self.proximity, PROXIMITIES)
        for name, limit in (("epsilon", self.epsilon), ("penalty", self.penalty)):
            if limit is not None and not limit > 0:
                raise UsageError(f"{name} must be greater than 0, not {limit}")

    def choose(self, data: FitInput, *, progress: Progress = silent) -> list[Ints]:
        """The cuts of each source, from its facts."""
        order = np.argsort(data.sources, kind="stable")
        source, *columns = (
            column[order]
            for column in (data.sources, data.begin, data.end, data.subject, data.object)
        )
        count = len(data.counts.totals)
        upto = np.searchsorted(source, np.arange(count + 1))
        intervals = Intervals(source, columns[0], columns[1], count)
        links = np.diff(np.append(0, (intervals.last - intervals.first + 1).cumsum())[upto])
        cuts = [np.empty(0, np.int64)] * count
        for batch in batches(links, _AT_ONCE):
            sources = np.flatnonzero(links[batch]) + batch.start
            if len(sources):
                _, facts = expand(upto[sources], np.diff(upto)[sources])
                runs = intervals.runs(facts, sources, *columns[2:], proximity=self.measure)
                signal, rows = change_rows(runs.signals, self.limit, min_size=self.min_size)
                # A change at a timestamp is a cut just before it.
                by_source = np.split(
                    2 * runs.timestamps(rows) - 1, np.searchsorted(signal, range(1, len(sources)))
                )
                for number, of_source in zip(sources.tolist(), by_source, strict=True):
                    cuts[number] = of_source
            progress(CHOOSING, batch.stop, count)
        return cuts

    def change_points(self, *facts: Integers) -> Ints:
        """The timestamps just before which the signatures of a predicate change.

        Its facts are columns: begin, end (timestamps), subject and object.

        >>> facts = [np.array(column) for column in ([0, 4], [3, 7], [5, 8], [6, 9])]
        >>> ChangePointSplit(proximity="jaccard", changes=1).change_points(*facts).tolist()
        [4]
        """
        linked = signatures(*facts, proximity=self.measure)
        _, rows = change_rows(Signals.of_rows(linked.scores), self.limit, min_size=self.min_size)
        return linked.timestamps[rows]

    @property
    def measure(self) -> Measure:
        """The proximity of linked entities."""
        return partial(PROXIMITIES[self.proximity], closed=self.closed)

    @property
    def limit(self) -> Limit:
        """When the search ends."""
        return Limit(self.epsilon, self.penalty, self.changes)


@dataclass(frozen=True, eq=False)
class Costs:
    """The total cost after every union, and the number of change points that the method keeps."""

    changes: Ints
    """Numbers of change points, from the most to 0."""
    costs: Floats
    """The total cost of the segments with that number."""
    chosen: int

    @property
    def cost(self) -> float:
        """The cost with the chosen number."""
        return float(self.costs[self.changes == self.chosen][0])


def change_costs(graph: TemporalGraph, method: ChangePointSplit) -> dict[str, Costs]:
    """The costs of every predicate with facts, from the search of the method.

    >>> import splime
    >>> rows = [("a", "p", "b", 1990, 1993), ("c", "p", "d", 1994, 1997)]
    >>> method = ChangePointSplit(changes=1)
    >>> costs = change_costs(splime.read(rows, split="none", granularity="year"), method)["p"]
    >>> costs.changes.tolist(), costs.costs.round(2).tolist(), costs.chosen
    ([3, 2, 1, 0], [0.0, 0.01, 0.02, 1.27], 1)
    """
    facts = method.facts(graph)
    columns = *graph.timestamps(facts), facts.subject, facts.object
    costs = {}
    for source in np.unique(facts.predicate).tolist():
        of_source = [column[facts.predicate == source] for column in columns]
        linked = signatures(*of_source, proximity=method.measure)
        gram = Gram(Signals.of_rows(linked.scores))
        starts = first_segments(gram.counts, method.min_size)
        gains = bottom_up(gram, Limit(changes=0), starts).gain
        first = gram.near(starts, np.append(starts[1:], gram.counts)).sum()
        costs[graph.predicates[source]] = Costs(
            np.arange(len(gains), -1, -1),
            first + np.append(0, gains.cumsum()),
            len(method.change_points(*of_source)),
        )
    return costs
