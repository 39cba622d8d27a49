"""Rows of the main table run otherwise: what could explain their differences from the paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from splime.experiments import algorithm_2
from splime.experiments.case import Case
from splime.experiments.figures import average, cells
from splime.experiments.main_table import SEEDS, Row, rows
from splime.experiments.readings import Reading
from splime.experiments.results import Results
from splime.experiments.table import Table


class Variation(NamedTuple):
    """A row with one thing switched on."""

    row: Row
    title: str
    changed: list[Case]
    """Its trainings."""
    explains: bool = False
    """Whether the row comes out so."""

    def usual(self) -> list[Case]:
        """The trainings that they are compared with: of random cuts all, since each is drawn."""
        cases = self.row.cases()
        return cases if self.row.method == "random" else cases[: len(self.changed)]


_TRAINING: Mapping[str, Mapping[str, Any]] = {
    "negatives of its own for each positive": {"share": "none"},
    "repeated rows kept": {"distinct": False},
    "margin 1, as printed": {"margin": 1.0},
    "twice the epochs": {"epochs": 400},
    "batches of 250": {"batch_size": 250},
}
_TOUCHING = "Algorithm 2: facts that touch a cut on both sides"
_READINGS: Mapping[Reading, str] = {
    "years": "every year a timestamp",
    "ended": "without facts whose end is unknown",
    "ended-test": "without them in test",
}
_W_VANILLA = ("wikidata12k", "Vanilla")
_W_RANDOM = ("wikidata12k", "Random")
_W_TIME = ("wikidata12k", "Split (time), grow 10")
_Y_TIME = ("yago11k", "Split (time), grow 20")


def variations() -> Iterator[Variation]:
    """Each thing is switched on by itself."""
    named = {(row.dataset, row.title): row for row in rows()}
    for row in (named[name] for name in (_W_VANILLA, _W_TIME, _Y_TIME)):
        for title, change in _TRAINING.items():
            if row.dataset == "yago11k" and "distinct" in change:
                continue  # it has no repeated rows
            case = row.case(0)
            changed = replace(case, training={**case.training, **change})
            yield Variation(row, title, [changed])
    yield _read(named[_W_VANILLA], "ended", SEEDS)
    yield _read(named[_W_VANILLA], "ended-test", explains=True)
    yield _read(named["wikidata12k", "Merge, shrink 4"], "ended")
    yield _read(named[_W_TIME], "years")
    yield _read(named[_Y_TIME], "years")
    yield _touching(named[_W_RANDOM], SEEDS, explains=True)
    for row in named.values():
        if row.method == "split":
            yield _touching(row, explains=row.dataset == "wikidata12k")
    for row in named.values():
        if row.method == "changepoint":
            case = row.case(0)
            text = {**case.parameters, "min_size": 1}
            yield Variation(row, "min_size 1, as printed", [replace(case, parameters=text)])


def _read(
    row: Row, reading: Reading, seeds: tuple[int, ...] = (0,), *, explains: bool = False
) -> Variation:
    changed = [replace(row.case(seed), reading=reading) for seed in seeds]
    return Variation(row, _READINGS[reading], changed, explains)


def _touching(row: Row, seeds: tuple[int, ...] = (0,), *, explains: bool = False) -> Variation:
    by = "random" if row.method == "random" else row.parameters.get("by", "time")
    changed = [
        replace(
            row.case(seed),
            method=algorithm_2.NAME,
            parameters={**row.parameters, "by": by} | ({"seed": seed} if by == "random" else {}),
        )
        for seed in seeds
    ]
    return Variation(row, _TOUCHING, changed, explains)


def table(results: Results) -> Table:
    """Every variation beside its row and the paper."""
    lines: list[tuple[str, ...]] = []
    order = list(rows())
    for variation in sorted(variations(), key=lambda one: order.index(one.row)):
        row = variation.row
        lines.append(
            (
                f"{row.dataset} {row.title}",
                variation.title,
                _figures(results, variation.changed),
                _figures(results, variation.usual()),
                " / ".join(cells(row.printed)),
            )
        )
    columns = ("row", "switched on", "with it", "without it", "paper")
    notes = ["MRR / Hits@1 / 3 / 10. One seed, unless it says how many runs are averaged."]
    return Table("What could explain differences", columns, lines, notes, words=2)


def _figures(results: Results, cases: list[Case]) -> str:
    found = average(results, cases)
    if found is None:
        return "–"
    runs = f" ({found.trainings} runs)" if found.trainings > 1 else ""
    return " / ".join(cells(found.mean)) + runs
