"""Figures out of records: of one evaluation, and averaged over seeds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from splime.errors import DataError
from splime.experiments.case import Case
from splime.experiments.results import Results
from splime.experiments.table import mrr, percent

FIGURES = ("mrr", "hits1", "hits3", "hits10")


def cells(figures: Mapping[str, float] | None) -> list[str]:
    """MRR, Hits@1, Hits@3 and Hits@10 for a table; dashes where nothing was run."""
    found = figures or {}
    return [mrr(found.get("mrr")), *(percent(found.get(name)) for name in FIGURES[1:])]


class Average(NamedTuple):
    """Figures averaged over several trainings."""

    mean: Mapping[str, float]
    deviation: float | None
    """The standard deviation of the MRR; None of a single training."""
    trainings: int
    predicates: float


def figures_of(
    results: Results, case: Case, name: str | None = None, **wanted: str
) -> Mapping[str, float] | None:
    """The figures of the evaluation that has the wanted options; None if it was not run.

    `name` is the filter of protocol `fact`; protocol `triple` has one set of figures.
    """
    if case not in results:
        return None
    record = results[case]
    for options, found in zip(case.evaluations, record["figures"], strict=True):
        if all(options.get(key) == value for key, value in wanted.items()):
            try:
                metrics: dict[str, Any] = found["metrics"]
                figures: dict[str, float] = metrics[name] if name else next(iter(metrics.values()))
                return {figure: float(figures[figure]) for figure in FIGURES}
            except (AttributeError, KeyError, TypeError, ValueError, StopIteration) as error:
                raise DataError(
                    f"{results.path}: the record {case.key()!r} has no figures: {error!r}"
                ) from None
    return None


def average(results: Results, cases: Sequence[Case], **wanted: str) -> Average | None:
    """The mean over those of the cases that were run; None if none was."""
    there = [case for case in cases if case in results]
    found = [each for case in there if (each := figures_of(results, case, **wanted)) is not None]
    if not found:
        return None
    values = [each["mrr"] for each in found]
    return Average(
        {name: statistics.fmean(each[name] for each in found) for name in FIGURES},
        statistics.stdev(values) if len(values) > 1 else None,
        len(found),
        statistics.fmean(results[case]["predicates"] for case in there),
    )
