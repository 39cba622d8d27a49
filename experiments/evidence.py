"""Whether answers rest on the facts shown as evidence: measured on each dataset, stored."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from experiments.running import load_graph
from experiments.tables import ResultTable, percent
from splime.analysis.faithfulness import check_evidence
from splime.device import choose_device
from splime.io.files import read_json, write_json
from splime.methods import make_method
from splime.paths.shipped import load_weights
from splime.progress import Progress, silent
from splime.runs import train
from splime.runs.graph_run import GraphRun

FILE = "evidence.json"
TITLES = {"demo": "demo", "yago11k": "YAGO11k", "wikidata12k": "Wikidata12k", "icews14": "ICEWS14"}


def measure(
    dataset: str, questions: int, *, trained: bool = False, progress: Progress = silent
) -> dict[str, Any]:
    """Check the evidence of first answers about facts of test, by the shipped weights.

    They are as they are shipped, or first trained on the graph with the defaults.
    """
    weights = load_weights()
    seen = dataset in str(weights.about["trained_on"])
    record = {"dataset": dataset, "trained": trained, "seen": seen}
    graph = load_graph(dataset, "point")
    with ExitStack() as stack:
        if trained:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            run = train(graph, make_method("vanilla"), Path(folder) / "run", model="path")
        else:
            run = GraphRun(graph)
        started = time.perf_counter()
        checked = check_evidence(run, questions=questions, progress=progress)
    seconds = round(time.perf_counter() - started, 1)
    device = choose_device("auto").type
    of = {"weights": weights.about["version"], "asked": questions, "of": 2 * len(graph.test)}
    return {**record, **of, **checked.to_json(), "seconds": seconds, "device": device}


def store(folder: Path, record: Mapping[str, Any]) -> None:
    """Keep a record in the place of an earlier one of the same dataset and model."""
    path = folder / FILE
    folder.mkdir(parents=True, exist_ok=True)
    records = read_json(path) if path.exists() else {}
    key = f"{record['dataset']}{', trained' if record['trained'] else ''}"
    write_json(path, {**records, key: dict(record)})


def tables(folder: Path) -> list[ResultTable]:
    """What is stored."""
    path = folder / FILE
    records: Mapping[str, Any] = read_json(path) if path.exists() else {}
    order = [*TITLES]
    rows = []
    for one in sorted(
        records.values(), key=lambda one: (order.index(one["dataset"]), one["trained"])
    ):
        rest, others = one["evidence"], one["others"]
        rows.append(
            (
                TITLES[one["dataset"]] + (", trained on it" if one["trained"] else ""),
                f"{one['questions']:,}",
                f"{one['facts']:.1f}",
                f"{_fall(rest['fall'])} ({_fall(others['fall'])})",
                *(f"{percent(rest[name])} ({percent(others[name])})" for name in ("lost", "alone")),
                f"{one['without']:,}",
            )
        )
    columns = ("asked about", "answers", "facts each", "score falls by", "no longer first, %")
    more = ("still first with them alone, %", "answers without evidence")
    note = "In brackets: with as many other facts at the same entities, drawn at random."
    return [ResultTable("Answers and their evidence", (*columns, *more), rows, [note])]


def _fall(value: float) -> str:
    """Of a score; a rise has a minus, but 0 has none."""
    return f"{round(value, 2) + 0.0:.2f}"
