"""A study of seconds: one model on the demo world, saved beside the tests' results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import splime
from splime.experiments.case import Case
from splime.experiments.figures import average
from splime.experiments.results import Results
from splime.experiments.studies import Study
from splime.experiments.table import Table, mrr
from tests.runs.small import SETTINGS, small_graph

TEST = {"protocol": "triple", "split": "test", "filter": "none"}
FACT = {"protocol": "fact", "split": "valid", "aggregate": "ends"}


def small_case(method: str = "vanilla", seed: int = 0, **parameters: object) -> Case:
    """A case on a graph that `save_small` saved."""
    return Case("small", method, parameters, {**SETTINGS, "seed": seed}, (TEST, FACT))


def save_small(folder: Path) -> Path:
    """A folder with the graph of the small cases."""
    folder.mkdir(parents=True, exist_ok=True)
    splime.save(small_graph(), folder / "small-paper.parquet")
    return folder


class Row(NamedTuple):
    dataset: str
    title: str
    method: str

    def cases(self) -> list[Case]:
        grow = {"grow": 2} if self.method == "split" else {}
        return [small_case(self.method, seed, **grow) for seed in (0, 1)]


def rows() -> Iterator[Row]:
    yield Row("small", "Vanilla", "vanilla")
    yield Row("small", "Split", "split")


def tables(results: Results) -> list[Table]:
    lines = []
    for row in rows():
        found = average(results, row.cases(), protocol="triple")
        lines.append((row.title, mrr(found.mean["mrr"] if found else None)))
    return [Table("small", ("method", "MRR"), list(lines), dataset="small")]


STUDY = Study("small", rows, tables, ("small Vanilla",))
