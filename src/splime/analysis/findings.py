"""Everything that the page about runs shows, computed before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from splime import leakage
from splime.analysis.comparing import Comparison, compare, run_names
from splime.analysis.embeddings import Projection, project, smoothness
from splime.errors import SplimeError
from splime.evaluation import Evaluation
from splime.graph import TemporalGraph
from splime.methods import ChangePointSplit, RandomSplit, change_method
from splime.methods.changepoint import Costs, change_costs
from splime.progress import Progress, silent
from splime.runs import Run, evaluate
from splime.runs.evaluating import kept
from splime.statistics import Statistics, describe


class ChangeCosts(NamedTuple):
    """What the change points of each predicate cost, and the method that chose them."""

    method: ChangePointSplit
    predicates: dict[str, Costs]


@dataclass(frozen=True)
class Findings:
    """What there is to show of runs on the same facts."""

    runs: dict[str, Run]
    """By their names, best first, as all dictionaries below."""
    comparison: Comparison
    evaluations: dict[str, Evaluation]
    """By protocol fact on test."""
    graph: TemporalGraph
    statistics: Statistics
    leaks: leakage.LeakReport
    costs: dict[str, ChangeCosts | SplimeError]
    """Of the runs that were cut at change points; an error says why there is nothing to draw."""
    smoothness: dict[str, float | None]
    """None where predicates have too few scopes, or another library has the vectors."""
    projections: dict[str, Projection | SplimeError]
    """Of the best run that cut predicates at random, and of the best one that cut otherwise; empty
    where no run cut any."""


def gather(runs: Sequence[Run], *, progress: Progress = silent) -> Findings:
    """Compute the content of a report; missing evaluations are made and kept."""
    comparison = compare(runs, progress=progress)
    by_name = dict(zip(run_names(runs), runs, strict=True))
    ranked = {row.name: by_name[row.name] for row in comparison.rows}
    cut = [name for name, run in ranked.items() if run.is_cut and run.entry.entity_vectors]
    random = [name for name in cut if isinstance(ranked[name].method, RandomSplit)]
    others = [name for name in cut if name not in random]
    shown = [name for name in cut if name in (*others[:1], *random[:1])]
    return Findings(
        runs=ranked,
        comparison=comparison,
        evaluations={name: kept(run) or evaluate(run) for name, run in ranked.items()},
        graph=runs[0].graph,
        statistics=describe(runs[0].graph),
        leaks=leakage.report(runs[0].graph),
        costs={
            name: _attempt(costs_of, run)
            for name, run in ranked.items()
            if isinstance(run.method, ChangePointSplit)
        },
        smoothness={
            name: smoothness(run).overall if run.entry.entity_vectors else None
            for name, run in ranked.items()
        },
        projections={name: _attempt(project, ranked[name]) for name in shown},
    )


def costs_of(run: Run) -> ChangeCosts:
    """What the change points of a run cost."""
    method = change_method(run.segmentation)
    return ChangeCosts(method, change_costs(run.graph, method))


def _attempt(compute: Callable[[Run], Any], run: Run) -> Any:
    try:
        return compute(run)
    except SplimeError as error:
        return error
