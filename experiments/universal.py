"""Graphs that are asked without training: weights from other sources, measured and stored."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.pretrain import SOURCES, Pretraining
from experiments.rows import METRICS, PATHS, Results
from experiments.running import load_graph
from experiments.tables import ResultTable, mrr
from splime.device import choose_device
from splime.errors import UsageError
from splime.evaluation.protocols import EvaluationOptions, evaluate_scoring
from splime.graph import SplitName
from splime.io.files import read_json, write_json
from splime.paths.shipped import FORECAST, Weights, read_weights
from splime.progress import Progress, silent
from splime.runs.graph_run import GraphRun
from splime.tensors import save_tensors

FILE = "universal.json"
PUBLISHED: Mapping[str, float] = {"icews14": 0.651, "yago11k": 0.241, "wikidata12k": 0.349}
"""The best published MRR of models that were trained on the dataset (TPAR)."""
_TITLES = {"icews14": "ICEWS14", "yago11k": "YAGO11k", "wikidata12k": "Wikidata12k", "demo": "demo"}


def make_weights(
    path: Path, pretraining: Pretraining, version: str, progress: Progress = silent
) -> None:
    """Train weights, and write them with what they were trained on, beside those of the other kind.

    Weights of both kinds in a file are trained on the same sources.
    """
    model = pretraining.run(progress)
    trained_on = {
        source: list(names) or "synthetic graphs with random laws"
        for source, names in SOURCES.items()
        if source not in pretraining.without
    }
    tensors, kind = dict(model.state_dict()), "forecasts" if pretraining.forecasts else "completion"
    trained = {kind: {"steps": pretraining.steps, "seed": pretraining.seed}}
    if pretraining.forecasts:
        tensors = {FORECAST + name: tensor for name, tensor in tensors.items()}
    if path.exists():
        other = read_weights(path)
        if other.about["trained_on"] != trained_on:
            raise UsageError(f"{path}: its weights are of other sources; write to another file")
        tensors, trained = {**other.tensors, **tensors}, {**other.about["trained"], **trained}
    about = {
        "version": version,
        "settings": {"layers": pretraining.layers, "dimension": pretraining.width},
        "trained_on": trained_on,
        "trained": trained,
        "command": "python -m experiments pretrain",
        "measured": "docs/untrained.md: from weights without the source that is asked about",
        "not_meant_for": "decisions about people without a person who checks the evidence",
    }
    save_tensors(path, tensors, about)


def measure(weights: Weights, dataset: str, questions: int | str = "all") -> dict[str, Any]:
    """MRR and more on valid and test; an error where the weights were trained on the source."""
    for source in weights.about["trained_on"]:
        if dataset in SOURCES[source]:
            raise UsageError(f"the weights were trained on {source}, which has {dataset}")
    graph = load_graph(dataset, "point")
    run = GraphRun(graph, weights=weights)
    record: dict[str, Any] = {"dataset": dataset, "trained_on": weights.about["trained_on"]}
    record |= weights.about["trained"]["completion"]
    splits: tuple[SplitName, ...] = ("valid", "test")
    for split in splits:
        options = EvaluationOptions(split=split, questions=questions)  # type: ignore[arg-type]
        evaluation = evaluate_scoring(run.scoring(), "fact", options)
        record[split] = {
            name: {"mrr": one.mrr, "hits1": one.hits1, "hits3": one.hits3, "hits10": one.hits10}
            for name, one in ((name, of["both"]) for name, of in evaluation.metrics.items())
        }
    record["questions"] = questions
    record["device"] = choose_device("auto").type
    return record


def store(folder: Path, record: Mapping[str, Any]) -> None:
    """Keep a record in the place of an earlier one of the same dataset, sources, steps and seed."""
    path = folder / FILE
    records = read_json(path) if path.exists() else {}
    weights = f"{', '.join(record['trained_on'])}, {record['steps']} steps, seed {record['seed']}"
    write_json(path, {**records, f"{record['dataset']}, from {weights}": dict(record)})


def tables(folder: Path) -> list[ResultTable]:
    """What is stored."""
    path = folder / FILE
    records: Mapping[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    rows = []
    for record in sorted(records.values(), key=lambda one: (one["dataset"], one["steps"])):
        test = record["test"]
        rows.append(
            (
                _TITLES.get(record["dataset"], record["dataset"]) + _sampled(record),
                ", ".join(record["trained_on"]),
                f"{record['steps']:,}",
                *(mrr(test["exact"][name]) for name in ("mrr", "hits1", "hits3", "hits10")),
                mrr(test["overlap"]["mrr"]),
                mrr(record["valid"]["exact"]["mrr"]),
                mrr(PUBLISHED.get(record["dataset"])),
            )
        )
    columns = ("asked about", "trained on", "steps", "MRR", "Hits@1", "Hits@3", "Hits@10")
    more = ("MRR, overlap", "MRR, valid", "best published, trained")
    note = (
        "New sources: nothing of the source that is asked about was trained on, in any edition. The"
        " shipped weights had 20,000 steps; those with fewer are of an earlier version."
    )
    untrained = ResultTable("Asked without training", (*columns, *more), rows, [note], words=2)
    return [untrained, _trained(folder)]


def _trained(folder: Path) -> ResultTable:
    """The rows of the study `paths` with counted messages, learned from train alone."""
    results, rows = Results(folder / "paths.json"), []
    for dataset, published in PUBLISHED.items():
        for row in PATHS[dataset]:
            first = row.cases[0]
            ran = [results[case] for case in row.cases if case in results]
            if first.training.get("messages") != "counted" or not ran:
                continue
            exact, overlap = (results.average(row.cases, name) for name in ("exact", "overlap"))
            spread = "" if exact.deviation is None else f" ± {mrr(exact.deviation)}"
            metrics = [mrr(exact.mean[name]) for name in METRICS]
            metrics[0] += spread
            valid = statistics.fmean(record["valid"] for record in ran)
            size = f"{ran[0]['parameters']:,}"
            more = (mrr(overlap.mean["mrr"]), mrr(valid), mrr(published))
            rows.append((_TITLES[dataset], row.title, size, str(len(ran)), *metrics, *more))
    columns = ("dataset", "model", "parameters", "trainings", "MRR", "Hits@1", "Hits@3", "Hits@10")
    more = ("MRR, overlap", "MRR, valid", "best published")
    return ResultTable("Trained on the graph, from new weights", (*columns, *more), rows, [], 2)


def _sampled(record: Mapping[str, Any]) -> str:
    questions = record["questions"]
    return "" if questions == "all" else f", {questions:,} questions"


def without(sources: Sequence[str]) -> Sequence[str]:
    """Sources to leave out; an error for one that there is not."""
    for name in sources:
        if name not in SOURCES:
            raise UsageError(f"there is no source {name!r}; there are {', '.join(SOURCES)}")
    return sources
