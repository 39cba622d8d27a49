"""Everything that the page about runs shows, computed before anything is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from splime.analysis.comparing import Comparison, compare, run_names
from splime.analysis.embeddings import smoothness
from splime.datasets import Inspection, inspect
from splime.evaluation import Evaluation
from splime.methods import ChangePointSplit, RandomSplit, change_method
from splime.methods.changepoint import Costs, change_costs
from splime.progress import Progress, silent
from splime.runs import Run, evaluate
from splime.runs.evaluating import kept


@dataclass(frozen=True)
class Findings:
    """What there is to show of runs on the same facts."""

    runs: dict[str, Run]
    """By their names, best first, as all dictionaries below."""
    comparison: Comparison
    evaluations: dict[str, Evaluation]
    """By protocol fact on test."""
    inspection: Inspection
    smoothness: dict[str, float | None]
    """None where predicates have too few scopes, or another library has the vectors."""
    mapped: list[str]
    """The best run that cut predicates at random, and the best one that cut otherwise; none where
    no run cut any."""


def gather(runs: Sequence[Run], *, progress: Progress = silent) -> Findings:
    """Compute the content of a report; missing evaluations are made and kept."""
    comparison = compare(runs, progress=progress)
    by_name = dict(zip(run_names(runs), runs, strict=True))
    ranked = {row.name: by_name[row.name] for row in comparison.rows}
    cut = [name for name, run in ranked.items() if run.is_cut and run.entry.entity_vectors]
    random = [name for name in cut if isinstance(ranked[name].method, RandomSplit)]
    others = [name for name in cut if name not in random]
    return Findings(
        runs=ranked,
        comparison=comparison,
        evaluations={name: kept(run) or evaluate(run) for name, run in ranked.items()},
        inspection=inspect(runs[0].graph),
        smoothness={
            name: smoothness(run).overall if run.entry.entity_vectors else None
            for name, run in ranked.items()
        },
        mapped=[name for name in cut if name in (*others[:1], *random[:1])],
    )


def costs_of(run: Run) -> tuple[ChangePointSplit, dict[str, Costs]]:
    """The method that chose a run's change points, and what those of each predicate cost."""
    method = change_method(run.segmentation)
    return method, change_costs(run.graph, method)
