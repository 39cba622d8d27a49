"""Everything that the page about runs shows, computed before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from splime import leakage
from splime.analysis.comparing import Comparison, compare, run_names
from splime.analysis.embeddings import Projection, project, smoothness
from splime.errors import SplimeError, UsageError
from splime.evaluation import Evaluation
from splime.methods import ChangePointSplit, RandomSplit
from splime.methods.costs import Costs, change_costs, change_method
from splime.progress import Progress, silent
from splime.runs import Run, evaluate
from splime.runs.evaluating import kept
from splime.statistics import Statistics, describe

T = TypeVar("T")
Outcome: TypeAlias = T | SplimeError
"""A result, or the error that says why there is none."""


@dataclass(frozen=True)
class Findings:
    """What there is to show of runs on the same facts."""

    runs: dict[str, Run]
    """By their names, best first; so is everything below."""
    comparison: Comparison
    evaluations: dict[str, Evaluation]
    """By protocol fact on test."""
    statistics: Statistics
    leaks: leakage.LeakReport
    costs: dict[str, Outcome[tuple[ChangePointSplit, dict[str, Costs]]]]
    """The costs of change points, of the runs that have them, with the method that chose them."""
    smoothness: dict[str, float | None]
    """None where predicates have too few scopes, or another library has the vectors."""
    projections: Outcome[list[Projection]]
    """Of the best run that cut predicates at random, and of the best one that cut otherwise; empty
    where no run cut any."""


def gather(runs: Sequence[Run], *, progress: Progress = silent) -> Findings:
    """Compute what there is to show of runs; what is not evaluated yet is evaluated and kept."""
    if not runs:
        raise UsageError("a report needs at least one run")
    comparison = compare(runs, progress=progress)
    by_name = dict(zip(run_names(runs), runs, strict=True))
    ranked = {row.name: by_name[row.name] for row in comparison.rows}
    cut = [run for run in ranked.values() if run.is_cut and run.engine == "splime"]
    random = [run for run in cut if _is_of(run, RandomSplit)]
    others = [run for run in cut if run not in random]
    shown = [run for run in cut if run in (*others[:1], *random[:1])]
    return Findings(
        runs=ranked,
        comparison=comparison,
        evaluations={name: kept(run) or evaluate(run) for name, run in ranked.items()},
        statistics=describe(runs[0].graph),
        leaks=leakage.report(runs[0].graph),
        costs={
            name: _attempt(costs_of, run)
            for name, run in ranked.items()
            if _is_of(run, ChangePointSplit)
        },
        smoothness={
            name: smoothness(run).overall if run.engine == "splime" else None
            for name, run in ranked.items()
        },
        projections=_attempt(lambda: [project(run) for run in shown]),
    )


def costs_of(run: Run) -> tuple[ChangePointSplit, dict[str, Costs]]:
    """What the change points of a run cost, with the method that chose them."""
    method = change_method(run.segmentation)
    return method, change_costs(run.graph, method)


def _is_of(run: Run, method: type) -> bool:
    return bool(run.config["method"]["name"] == method.__name__)


def _attempt(compute: Callable[..., T], *given: object) -> Outcome[T]:
    try:
        return compute(*given)
    except SplimeError as error:
        return error
