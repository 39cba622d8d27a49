"""Small graphs: asked with weights from other sources, and by models that are trained on them."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.pretrain import SOURCES, near
from experiments.tables import ResultTable, mrr
from splime.datasets import DATASETS, load
from splime.errors import UsageError
from splime.evaluation.protocols import EvaluationOptions, evaluate_scoring
from splime.graph import Facts, TemporalGraph
from splime.io.files import read_json, write_json
from splime.methods import Timestamp
from splime.paths.shipped import LATEST, load_weights
from splime.progress import Progress, silent
from splime.runs import Run, train
from splime.runs.graph_run import GraphRun
from splime.splitting import split_graph

FILE = "small.json"
TITLES = {
    "demo": "demo",
    "icews14": "ICEWS14",
    "wikidata12k": "Wikidata12k",
    "yago11k": "YAGO11k",
}
SIZES = [400, 750, 1_400, 2_700, 5_000]
"""Facts of the parts of each dataset."""
UNTRAINED, CONTINUED = "without training", "the same weights, trained on it"
TRAINED: Mapping[str, Mapping[str, Any]] = {
    "path model, learned messages": {"model": "path", "messages": "learned"},
    "ComplEx on timestamps": {"model": "complex"},
    "TNTComplEx": {"model": "tntcomplex"},
}
"""With the settings that splime chooses by itself."""
_OF_ENTITY = 8, 120


def small_graph(dataset: str, facts: int) -> TemporalGraph:
    """About so many facts near each other, of all splits, a tenth each in valid and test."""
    options: Any = {"bucket": None} if "bucket" in DATASETS[dataset].options else {}
    graph = load(dataset, **options)
    taken = near(graph, facts, np.random.default_rng((1, facts)), _OF_ENTITY)
    empty = Facts.empty()
    part = replace(graph, train=taken, valid=empty, test=empty).compact()
    return split_graph(part, "random", seed=0)


def weights_for(dataset: str, files: Sequence[Path]) -> str:
    """Those that have seen nothing of the dataset's source; for demo the shipped ones."""
    for name in (LATEST, *map(str, files)):
        sources = load_weights(name).about["trained_on"]
        if not any(dataset in SOURCES[source] for source in sources):
            return name
    raise UsageError(f"all these weights were trained on the source of {dataset}")


def measure(dataset: str, files: Sequence[Path], progress: Progress = silent) -> dict[str, Any]:
    """MRR on test of every small graph of a dataset, by every model, and seconds."""
    name = weights_for(dataset, files)
    weights = load_weights(name)
    record: dict[str, Any] = {"trained_on": weights.about["trained_on"]}
    record |= weights.about["trained"]["completion"]
    models = {CONTINUED: {"model": "path", "messages": "counted", "weights": name}, **TRAINED}
    graphs = record["graphs"] = {}
    for place, size in enumerate(SIZES):
        graph = small_graph(dataset, size)
        found = {UNTRAINED: _measured(GraphRun(graph, weights=weights, device="cpu"))}
        for title, settings in models.items():
            method = Timestamp() if settings["model"] == "complex" else None
            started = time.process_time()
            with tempfile.TemporaryDirectory() as folder:
                run = train(graph, method, Path(folder) / "run", device="cpu", **settings)
                seconds = time.process_time() - started
                found[title] = _measured(run) | {"cpu_seconds": round(seconds, 1)}
            progress(f"{dataset}, {len(graph):,} facts: {title}", place + 1, len(SIZES))
        graphs[str(len(graph))] = found
    return record


def _measured(run: Run) -> dict[str, float]:
    found = evaluate_scoring(run.scoring(), "fact", EvaluationOptions()).metrics
    return {name: round(found[name]["both"].mrr, 6) for name in ("exact", "overlap")}


def store(folder: Path, dataset: str, record: Mapping[str, Any]) -> None:
    """Keep what was measured of a dataset."""
    path = folder / FILE
    write_json(path, {**(read_json(path) if path.exists() else {}), dataset: dict(record)})


def tables(folder: Path) -> list[ResultTable]:
    """The mean of the graphs of each dataset and of all, and on how many a model is the best."""
    path = folder / FILE
    records: Mapping[str, Any] = read_json(path) if path.exists() else {}
    graphs = {name: [*records[name]["graphs"].values()] for name in TITLES if name in records}
    every = [found for of in graphs.values() for found in of]
    rows = []
    for title in (UNTRAINED, CONTINUED, *TRAINED) if every else ():
        means = [_mean(of, title) for of in graphs.values()]
        best = sum(found[title]["exact"] == max(_exact(found)) for found in every)
        seconds = [found[title].get("cpu_seconds", 0.0) for found in every]
        spent = f"{statistics.fmean(seconds):.0f}" if any(seconds) else "–"
        overall = (mrr(_mean(every, title)), mrr(_mean(every, title, "overlap")))
        rows.append((title, *overall, *map(mrr, means), str(best), spent))
    columns = (
        "",
        "MRR",
        "MRR, overlap",
        *(TITLES[name] for name in graphs),
        "first",
        "CPU seconds",
    )
    about = (
        f"Parts of {SIZES[0]} to {SIZES[-1]:,} facts of each dataset, {len(every)} graphs, a tenth"
        " of each in test; means over graphs. First: on how many graphs a model has the highest"
        " MRR. Weights have seen nothing of a dataset's source. CPU seconds: of a training, mean."
    )
    return [ResultTable("Small graphs", columns, rows, [about])]


def _exact(found: Mapping[str, Any]) -> list[float]:
    return [of["exact"] for of in found.values()]


def _mean(graphs: Sequence[Mapping[str, Any]], title: str, name: str = "exact") -> float:
    return statistics.fmean(found[title][name] for found in graphs)
