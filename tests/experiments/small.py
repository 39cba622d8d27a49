"""A study of seconds: one model on the demo world, saved beside the tests' results."""

from __future__ import annotations

from pathlib import Path

import splime
from experiments import commands
from experiments.rows import Case, Results, TableRow
from experiments.studies import Study
from experiments.tables import ResultTable, mrr
from tests.runs.small import SETTINGS, Called, call, small_graph

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


ROWS = [
    TableRow("small", "Vanilla", [small_case("vanilla", seed) for seed in (0, 1)]),
    TableRow("small", "Split", [small_case("split", seed, grow=2) for seed in (0, 1)]),
]


def tables(results: Results) -> list[ResultTable]:
    lines = [
        (row.title, mrr(results.average(row.cases, protocol="triple").mean.get("mrr")))
        for row in ROWS
    ]
    return [ResultTable("small", ("method", "MRR"), lines, dataset="small")]


STUDY = Study("small", ROWS, tables, ("small Vanilla",))


def call_experiments(*arguments: object) -> Called:
    """`python -m experiments` with arguments, in this process."""
    return call(*arguments, program=commands.main)
