"""Forecasts on the field's benchmarks: baselines and the model without training, stored."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments.rows import METRICS, PATHS, Results
from experiments.tables import ResultTable, mrr
from splime.datasets import DATASETS, load
from splime.errors import UsageError, counted
from splime.evaluation.protocols import EvaluationOptions, Questions, evaluate_scoring
from splime.graph import TemporalGraph
from splime.io.files import read_json, write_json
from splime.paths.shipped import Weights
from splime.runs.graph_run import GraphRun
from splime.scoring.queries import Scoring
from splime.scoring.timed import TimedScoring
from splime.settings import PROTOCOL_OF, LatestSettings, Past
from splime.training.latest import LatestScorer
from splime.training.recurrency import RecurrencyScorer

FILE = "forecast.json"
PUBLISHED: Mapping[str, Mapping[str, float]] = {
    "icews14-forecast": {"recurrency": 0.372, "LogCL": 0.489},
    "icews18": {"recurrency": 0.287, "LogCL": 0.357},
    "yago": {"recurrency": 0.909, "ECHO": 0.918},
    "wiki": {"recurrency": 0.815, "ECHO": 0.834},
}
"""MRR with a single step: the recurrency baseline of Gastinger et al. (IJCAI 2024), and the best
model whose figure was reproduced or has public code."""
TITLES = {"icews14-forecast": "ICEWS14", "icews18": "ICEWS18", "yago": "YAGO", "wiki": "WIKI"}
BASELINES = ("latest", "recurrency")
WITHOUT_TRAINING = "path, without training"


def scoring_of(
    graph: TemporalGraph, forecaster: str, past: Past, weights: Weights | None
) -> Scoring:
    """What a baseline, or the model without training, scores by."""
    if weights is not None:
        return GraphRun(graph, weights=weights, past=past).scoring()
    settings = LatestSettings(model=forecaster, past=past)
    if forecaster == "latest":
        return TimedScoring(LatestScorer(graph, settings), graph)
    scorer = RecurrencyScorer(graph, settings)
    scorer.choose(graph.valid)
    return TimedScoring(scorer, graph)


def measure(
    dataset: str,
    forecaster: str,
    past: Past = "all",
    *,
    weights: Weights | None = None,
    questions: Questions = "all",
) -> dict[str, Any]:
    """MRR and more on valid and test; an error where weights were trained on the same facts."""
    graph = load(dataset)
    record: dict[str, Any] = {"dataset": dataset, "forecaster": forecaster, "past": past}
    if weights is not None:
        sources = (names for names in weights.about["trained_on"].values() if names)
        seen = {name for names in sources if not isinstance(names, str) for name in names}
        if known := seen & {dataset, *DATASETS[dataset].same_facts}:
            raise UsageError(f"the weights were trained on {', '.join(known)}: the same facts")
        record |= {"trained_on": weights.about["trained_on"], "seed": weights.about["seed"]}
    scoring = scoring_of(graph, forecaster, past, weights)
    started = time.perf_counter()
    for split in ("valid", "test"):
        options = EvaluationOptions(split=split, questions=questions)
        evaluation = evaluate_scoring(scoring, "fact", options)
        both, strata = evaluation.metrics["exact"]["both"], evaluation.strata["exact"]["before"]
        record[split] = {
            **{name: getattr(both, name) for name in ("mrr", "hits1", "hits3", "hits10")},
            "queries": both.queries,
            "before": {name: [one.mrr, one.queries] for name, one in strata.items()},
        }
    return record | {"questions": questions, "seconds": round(time.perf_counter() - started, 1)}


def store(folder: Path, record: Mapping[str, Any]) -> None:
    """Keep a record in the place of an earlier one of the same case."""
    path = folder / FILE
    records = read_json(path) if path.exists() else {}
    key = f"{record['dataset']}, {record['forecaster']}, {PROTOCOL_OF[record['past']]}"
    if "trained_on" in record:
        key += f", from {', '.join(record['trained_on'])}, seed {record['seed']}"
    write_json(path, {**records, key: dict(record)})


def tables(folder: Path) -> list[ResultTable]:
    """What is stored, beside what is published; and by what there was before."""
    path = folder / FILE
    records: list[Any] = [*json.loads(path.read_text()).values()] if path.exists() else []
    rows: list[tuple[str, ...]] = []
    strata: list[tuple[str, ...]] = []
    for dataset in PUBLISHED:
        for name, value in PUBLISHED[dataset].items():
            rows.append((TITLES[dataset], f"{name}, published", "", mrr(value), "", "", "", ""))
        rows += _trained(folder, dataset)
        for one in (each for each in records if each["dataset"] == dataset):
            test, from_ = one["test"], ", ".join(one.get("trained_on", ()))
            sampled = "" if one["questions"] == "all" else f" ({one['questions']:,} questions)"
            forecaster = one["forecaster"] + (f", from {from_}" if from_ else "") + sampled
            protocol = PROTOCOL_OF[one["past"]]
            metrics = (mrr(test[name]) for name in ("mrr", "hits1", "hits3", "hits10"))
            rows.append((TITLES[dataset], forecaster, protocol, *metrics, mrr(one["valid"]["mrr"])))
            cells = (f"{mrr(value)} ({count:,})" for value, count in test["before"].values())
            strata.append((TITLES[dataset], forecaster, protocol, *cells))
    columns = ("dataset", "forecaster", "protocol", "MRR", "Hits@1", "Hits@3", "Hits@10")
    found = [ResultTable("Forecasts", (*columns, "MRR, valid"), rows, [], words=3)]
    if strata:
        kinds = tuple(next(iter(records))["test"]["before"])
        title = "MRR by what earlier facts have (questions)"
        found.append(ResultTable(title, (*columns[:3], *kinds), strata, [], words=3))
    return found


def _trained(folder: Path, dataset: str) -> Iterator[tuple[str, ...]]:
    """The rows of the study `paths` for a dataset, trained on its train, with a single step."""
    results = Results(folder / "paths.json")
    for row in (row for table in PATHS.values() for row in table):
        case = row.cases[0]
        if case.dataset != dataset or case.training["model"] != "path":
            continue
        ran = [results[case] for case in row.cases if case in results]
        if not ran:
            continue
        average = results.average(row.cases, "exact")
        valid = statistics.fmean(record["valid"] for record in ran)
        seeds = counted(len(ran), "training")
        metrics = (mrr(average.mean[name]) for name in METRICS)
        title = f"path, {row.title}, trained ({seeds})"
        yield (TITLES[dataset], title, PROTOCOL_OF["all"], *metrics, mrr(valid))
