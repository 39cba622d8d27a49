"""Compare runs: figures with intervals, and which differences are larger than chance."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splime.errors import UsageError, check_name
from splime.evaluation import Evaluation, Metrics
from splime.evaluation.filters import TIMED
from splime.evaluation.metrics import (
    METRICS,
    Difference,
    Floats,
    Intervals,
    check_bootstrap,
    compare_ranks,
    holm,
)
from splime.graph import SplitName, check_split
from splime.leakage import FILTERS
from splime.methods import restore_method
from splime.progress import Progress, silent
from splime.runs.comparison import Comparison, Pair, Row
from splime.runs.evaluating import PROTOCOLS, evaluate, kept
from splime.runs.names import run_names
from splime.runs.run import Run
from splime.runs.same_facts import common_order
from splime.times import Ints

__all__ = ["Comparison", "Pair", "Row", "compare"]


def compare(
    runs: Iterable[Run | str | Path],
    protocol: str = "fact",
    *,
    split: SplitName = "test",
    filter: str | None = None,
    samples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
    device: str = "auto",
    progress: Progress = silent,
    warn: Callable[[str], None] = warnings.warn,
) -> Comparison:
    """Compare runs that were asked the same, by the ranks of every query (paired bootstrap).

    Evaluations that the folders keep are used, others are made and kept. Runs whose facts of the
    split differ are an error; buckets, cuts and models may differ.

    Args:
        runs: runs, or their folders.
        protocol: fact, triple or predicate. By protocol triple every transform has a test set of
            its own; then only runs with the same cuts are compared.
        split: valid or test.
        filter: exact (the default), overlap or static; of protocol triple the leak filter.
        samples: how often facts are drawn again.
        level: of the intervals; 1 - level is what the corrected p-values are compared with.
        seed: of the draws.
        device: where to evaluate.
        progress: takes how many queries are evaluated, of how many.
        warn: is told where figures cannot be kept.
    """
    check_name("protocol", protocol, PROTOCOLS)
    check_split(split)
    triple = protocol == "triple"
    filter = filter or ("inter" if triple else TIMED[0])
    check_name("filter", filter, FILTERS if triple else TIMED)
    opened = [run if isinstance(run, Run) else Run(run, device=device) for run in runs]
    names = run_names(opened)
    _check_samples(len(opened), samples, level)
    options = {"filter": filter} if triple else {}
    found = []
    for number, run in enumerate(opened):
        before = kept(run, protocol, split=split, **options)
        part = _part(progress, number, len(opened))
        found.append(
            before or evaluate(run, protocol, split=split, warn=warn, progress=part, **options)
        )
    orders: list[Ints | None] = [None] * len(opened)
    remarks: list[str] = []
    if not triple:
        orders, remarks = common_order(opened, names, split)
    answered = [
        _Answered(*each, "triple" if triple else filter)
        for each in zip(opened, names, found, orders, strict=True)
    ]
    sets = _test_sets(answered)
    if len(sets) > 1:
        remarks.append(_SEVERAL)
    rows: list[Row] = []
    tested: list[tuple[str, str, dict[str, Difference]]] = []
    for number, members in enumerate(sets):
        intervals, differences = compare_ranks(
            [one.ranks for one in members], samples=samples, level=level, seed=seed
        )
        rows += [one.row(number, own) for one, own in zip(members, intervals, strict=True)]
        tested += [
            (members[first].name, members[second].name, each)
            for (first, second), each in differences.items()
        ]
    return Comparison(
        protocol=protocol,
        split=split,
        filter=filter,
        ties=found[0].ties,
        candidates=[members[0].found.candidates for members in sets],
        test_sets=[len(members[0].ranks) for members in sets],
        samples=samples,
        level=level,
        rows=rows,
        pairs=_corrected(tested),
        remarks=remarks,
    )


_SEVERAL = (
    "protocol triple gives every transform a test set of its own: only runs of the same test set"
    " are compared (protocol fact compares all)"
)


@dataclass(frozen=True)
class _Answered:
    """A run and what it answered."""

    run: Run
    name: str
    found: Evaluation
    order: Ints | None
    filter: str

    @property
    def ranks(self) -> Floats:
        """A row for each fact, in the order that all runs share."""
        ranks = self.found.ranks[self.filter]
        return ranks if self.order is None else ranks[self.order]

    @property
    def metrics(self) -> Metrics:
        return self.found.metrics[self.filter]["both"]

    def asked(self) -> tuple[object, ...]:
        """What tells its test set from others."""
        if self.found.protocol != "triple":
            return ()
        config = self.run.config
        return config["data"]["sha256"], config["cuts"]["sha256"], self.run.settings.distinct

    def row(self, test_set: int, intervals: Intervals) -> Row:
        config, about = self.run.config, self.run.about
        method, parameters = _method(self.run)
        return Row(
            name=self.name,
            path=str(self.run.path),
            data=config["data"]["name"],
            method=method,
            method_parameters=parameters,
            model=config["settings"]["model"],
            settings={key: value for key, value in config["settings"].items() if key != "model"},
            predicates=config["cuts"]["predicates"],
            parameters=about["parameters"],
            seconds=about["seconds"],
            test_set=test_set,
            metrics=self.metrics,
            intervals=intervals,
        )


def _test_sets(answered: Sequence[_Answered]) -> list[list[_Answered]]:
    """The runs by what they were asked, best first; which must have had the same candidates."""
    sets: dict[object, list[_Answered]] = {}
    for one in sorted(answered, key=lambda one: -one.metrics.mrr):
        first, *_ = sets.setdefault(one.asked(), [one])
        if first is not one:
            sets[one.asked()].append(one)
        if one.found.candidates != first.found.candidates:
            raise UsageError(
                f"{first.name} and {one.name} cannot be compared: one ranks among"
                f" {first.found.candidates:,} candidates, the other among"
                f" {one.found.candidates:,}"
            )
    return list(sets.values())


def _corrected(tested: Sequence[tuple[str, str, dict[str, Difference]]]) -> list[Pair]:
    by_figure = {name: holm([each[name].p for _, _, each in tested]) for name in METRICS}
    return [
        Pair(first, second, each, {name: by_figure[name][at] for name in METRICS})
        for at, (first, second, each) in enumerate(tested)
    ]


def _check_samples(runs: int, samples: int, level: float) -> None:
    """The smallest p that samples can give must still be small when it is corrected."""
    if not runs:
        raise UsageError("there are no runs to compare")
    check_bootstrap(samples, level)
    pairs = runs * (runs - 1) // 2
    needed = math.ceil(2 * pairs / (1 - level))
    if samples < needed:
        raise UsageError(
            f"{samples:,} samples cannot tell any of {pairs:,} pairs apart; {needed:,} can"
            f" (--samples {needed})"
        )


def _method(run: Run) -> tuple[str, dict[str, Any]]:
    """The name of a method as it is given, and its parameters that are not as by default."""
    method = restore_method(run.segmentation.method)
    if method is not None:
        return method.name, method.changed()
    config = run.config["method"]
    return config["name"], {key: value for key, value in config.items() if key != "name"}


def _part(progress: Progress, number: int, parts: int) -> Progress:
    """Progress of one of several evaluations of about the same size."""

    def update(what: str, done: int, total: int | None = None, note: str = "") -> None:
        total = total or 0
        progress(what, number * total + done, parts * total, note)

    return update
