"""CPD-based efficient splitting: cuts where the neighbourhood of a predicate changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from splime.arrays import batches, expand
from splime.axes import Range, Values
from splime.errors import UsageError, check_name
from splime.graph import Ids, TemporalGraph
from splime.methods.base import CHOOSING, Known, Method, parameter
from splime.methods.bottomup import (
    Floats,
    SparseGram,
    bottom_up,
    join_equal,
    rbf_gram,
    repeated_grams,
)
from splime.methods.signatures import PROXIMITIES, Integers, Intervals, signatures
from splime.progress import Progress, silent
from splime.times import Ints

# Up to so many timestamps a matrix of all pairs of them is cheap.
_DENSE = 1_000
# Links of sources that are searched together: bounds the memory.
_AT_ONCE = 1 << 18


@dataclass(frozen=True, kw_only=True)
class ChangePointSplit(Method):
    """Cuts at the change points of who is linked to whom, predicate by predicate.

    The signature of a timestamp has the proximity of every pair that the predicate links then;
    bottom-up search with the kernelised mean change finds where signatures change.
    """

    proximity: str = parameter(
        "preferential_attachment",
        "how near two linked entities are: jaccard, adamic_adar or preferential_attachment",
    )
    epsilon: float | None = parameter(
        None,
        "neighbours are joined until their total cost has reached this, so that it ends above it:"
        " the higher, the fewer cuts",
    )
    penalty: float | None = parameter(
        None, "instead of epsilon: neighbours are joined while that adds less than this to the cost"
    )
    changes: int | None = parameter(
        None, "instead of epsilon: change points of every predicate, if its timestamps suffice"
    )
    min_size: int = parameter(1, "fewest timestamps, of those with facts, between change points")
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
        if self.changes is not None and self.changes < 0:
            raise UsageError(f"changes must be 0 or more, not {self.changes}")
        if self.min_size < 1:
            raise UsageError(f"min_size must be at least 1, not {self.min_size}")

    def choose(self, known: Known, *, progress: Progress = silent) -> list[Ints]:
        """The cuts of each source, from the facts it has."""
        order = np.argsort(known.sources, kind="stable")
        source, *columns = (
            column[order]
            for column in (known.sources, known.begin, known.end, known.subject, known.object)
        )
        count = len(known.counts.totals)
        upto = np.searchsorted(source, np.arange(count + 1))
        intervals = Intervals(source, columns[0], columns[1], count)
        links = np.diff(np.append(0, (intervals.last - intervals.first + 1).cumsum())[upto])
        alone = np.diff(intervals.offsets) > _DENSE
        if self.min_size > 1:
            alone[:] = True
        links[alone] = 0
        cuts = [np.empty(0, np.int64)] * count
        for batch in batches(links, _AT_ONCE):
            some = np.flatnonzero(links[batch]) + batch.start
            if len(some):
                _, rows = expand(upto[some], np.diff(upto)[some])
                alone[self._choose_runs(cuts, some, intervals, rows, *columns[2:])] = True
            for one in np.flatnonzero(alone[batch]) + batch.start:
                own = slice(upto[one], upto[one + 1])
                # A change at a timestamp is a cut just before it.
                cuts[one] = 2 * self.change_points(*(column[own] for column in columns)) - 1
            progress(CHOOSING, batch.stop, count)
        return cuts

    def _choose_runs(
        self,
        cuts: list[Ints],
        sources: Ints,
        intervals: Intervals,
        rows: Ints,
        subject: Integers,
        object: Integers,
    ) -> list[int]:
        """The cuts of sources with few intervals, all together; gives back those it cannot cut."""
        runs = intervals.runs(
            rows, sources, subject, object, proximity=self.proximity, closed=self.closed
        )
        inner = (runs.scores @ runs.scores.T).tocsr()
        limit = {name: getattr(self, name) for name in self.one_of}
        first = runs.counts.cumsum() - runs.counts
        row = np.append(0, runs.sizes.cumsum())[first]
        undecided = []
        for number, gram in repeated_grams(inner, runs.sizes, runs.counts):
            source = int(sources[number])
            starts = join_equal(gram, **limit)
            if starts is None:
                undecided.append(source)
                continue
            if len(starts) == len(gram):
                starts = [0, *(gram.at[run] for run in bottom_up(gram, **limit))]
            cuts[source] = 2 * runs.timestamps(row[number] + np.array(starts[1:], np.int64)) - 1
        return undecided

    def change_points(self, *facts: Integers) -> Ints:
        """The timestamps just before which the signatures of a predicate change.

        Its facts are columns: begin, end (timestamps), subject and object.

        >>> facts = [np.array(column) for column in ([0, 4], [3, 7], [5, 8], [6, 9])]
        >>> ChangePointSplit(proximity="jaccard", changes=1).change_points(*facts).tolist()
        [4]
        """
        timestamps, gram = self.gram(*facts)
        return timestamps[self.search_gram(gram)]

    def gram(self, *facts: Integers) -> tuple[Ints, Floats | SparseGram]:
        """The timestamps of a predicate's facts, and how alike its signatures are then."""
        linked = signatures(*facts, proximity=self.proximity, closed=self.closed)
        make = SparseGram if len(linked.timestamps) > _DENSE else rbf_gram
        return linked.timestamps, make(linked.scores)

    def search_gram(self, gram: Floats | SparseGram) -> list[int]:
        """The rows at which a new segment begins."""
        limit = {name: getattr(self, name) for name in self.one_of}
        return bottom_up(gram, **limit, min_size=self.min_size)


def _rows(sources: Ids, count: int) -> list[Ints]:
    """The rows of each source."""
    order = np.argsort(sources, kind="stable")
    return np.split(order, np.cumsum(np.bincount(sources, minlength=count))[:-1])


@dataclass(frozen=True, eq=False)
class Costs:
    """The total cost after every union, and how many change points the method keeps."""

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
    """The costs of every predicate that has facts, from the search that the method itself makes.

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
    for source, rows in enumerate(_rows(facts.predicate, len(graph.predicates))):
        if len(rows):
            _, gram = method.gram(*(column[rows] for column in columns))
            total: dict[int, float] = {}
            bottom_up(gram, changes=0, min_size=method.min_size, joined=total.__setitem__)
            changes, chosen = np.array([*total], np.int64), len(method.search_gram(gram))
            costs[graph.predicates[source]] = Costs(changes, np.array([*total.values()]), chosen)
    return costs
