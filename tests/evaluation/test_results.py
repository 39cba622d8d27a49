from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import splime
from splime.errors import DataError, UsageError
from splime.evaluation import (
    METRICS,
    Evaluation,
    Metrics,
    bootstrap,
    evaluate_facts,
    evaluate_predicates,
    evaluate_triples,
)
from splime.evaluation.metrics import FEWEST
from splime.graph import TemporalGraph
from splime.reporting.results import evaluation_tables
from tests.evaluation.scorers import TableScorer, random_scorer
from tests.report.test_report import printed


@pytest.fixture(scope="module")
def graph() -> TemporalGraph:
    rng = np.random.default_rng(1)
    rows = [
        (f"s{s}", f"p{p}", f"o{o}", 1990 + b, 1990 + b + e)
        for s, p, o, b, e in rng.integers(0, [9, 2, 9, 20, 4], (300, 5)).tolist()
    ]
    return splime.read({"train": rows[:200], "valid": rows[200:240], "test": rows[240:]})


@pytest.fixture(scope="module")
def evaluations(graph: TemporalGraph) -> list[Evaluation]:
    segmentation = splime.Merge(shrink=4).fit(graph)
    scorer = random_scorer(segmentation, len(graph.entities), 0)
    static = splime.apply(segmentation, graph)
    return [
        evaluate_facts(scorer, graph, segmentation, bootstrap=50),
        evaluate_triples(scorer, static, bootstrap=50),
        evaluate_predicates(scorer, graph, segmentation),
    ]


def test_json_there_and_back(evaluations: list[Evaluation]) -> None:
    for evaluation in evaluations:
        data = json.loads(json.dumps(evaluation.to_json(), allow_nan=False))
        assert "ranks" not in data
        again = Evaluation.from_json(data)
        assert again == evaluation
        assert again.to_json() == evaluation.to_json()


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_that_an_older_evaluation_does_not_have(
    evaluations: list[Evaluation], metric: str
) -> None:
    data = evaluations[0].to_json()
    for groups in data["metrics"].values():
        for metrics in groups.values():
            del metrics[metric]
    read = Evaluation.from_json(data)
    assert np.isnan(getattr(read.metrics["exact"]["both"], metric))
    assert read.metrics["exact"]["both"].queries == 120
    assert "–" in printed(*evaluation_tables(read))
    assert len(read.to_table()) == len(evaluations[0].to_table())


def test_metrics_are_declared_once(evaluations: list[Evaluation]) -> None:
    """Tables, headings and intervals follow from the fields of `Metrics`."""
    fact = evaluations[0]
    columns = fact.to_table().column_names
    shown = printed(*evaluation_tables(fact))
    for name, metric in METRICS.items():
        assert name in columns
        assert metric.heading in shown
        assert (name in (fact.intervals["exact"]["both"] or {})) == metric.compared
        ranks = fact.ranks["exact"]
        expected = metric.of_ranks(ranks).mean()
        assert getattr(fact.metrics["exact"]["both"], name) == pytest.approx(expected)
        better, worse = Metrics.of(np.array([1.0])), Metrics.of(np.array([50.0]))
        assert (getattr(better, name) > getattr(worse, name)) == metric.higher_is_better


def test_options_of_other_protocols(graph: TemporalGraph) -> None:
    cuts = splime.Vanilla().fit(graph)
    scorer = random_scorer(cuts, len(graph.entities), 0)
    with pytest.raises(UsageError, match="protocol fact has no option filter"):
        evaluate_facts(scorer, graph, cuts, filter="inter")
    with pytest.raises(UsageError, match="protocol triple has no option aggregate"):
        evaluate_triples(scorer, splime.apply(cuts, graph), aggregate="mean")


def test_what_an_evaluation_says(evaluations: list[Evaluation], graph: TemporalGraph) -> None:
    fact, triple, predicate = evaluations
    assert (fact.protocol, triple.protocol, predicate.protocol) == ("fact", "triple", "predicate")
    assert fact.filters == predicate.filters == ("exact", "overlap", "static")
    assert triple.filters == ("triple",)
    assert (fact.ties, triple.ties) == ("mean", "worst")
    assert (fact.aggregate, triple.aggregate) == ("mean", None)
    assert (fact.leak_filter, triple.leak_filter) == (None, "inter")
    assert set(triple.left_out) == {"leak filter", "repeated", "entity or scope unseen in train"}
    assert fact.queries == 2 * predicate.queries == 120
    assert (fact.candidates, predicate.candidates) == (18, 2)
    assert fact.timestamps == len(graph.timeline)
    assert not fact.buckets
    assert fact.facts.tolist() == list(range(60))
    assert len(triple.facts) == len(triple.ranks["triple"])
    assert list(fact.metrics["exact"]) == ["both", "object", "subject"]
    assert list(predicate.metrics["exact"]) == ["both"]
    for name, sides in fact.intervals.items():
        for side, intervals in sides.items():
            for metric, (low, high) in (intervals or {}).items():
                assert low <= getattr(fact.metrics[name][side], metric) <= high
    assert not predicate.intervals


def test_few_facts_have_no_intervals(graph: TemporalGraph) -> None:
    few = replace(graph, test=graph.test.take(np.arange(FEWEST - 1)))
    segmentation = splime.Vanilla().fit(few)
    scorer = random_scorer(segmentation, len(few.entities), 0)
    evaluation = evaluate_facts(scorer, few, segmentation, bootstrap=50)
    sides = {"both": None, "object": None, "subject": None}
    assert evaluation.to_json()["intervals"] == dict.fromkeys(evaluation.filters, sides)
    assert Evaluation.from_json(evaluation.to_json()) == evaluation
    shown = printed(*evaluation_tables(evaluation))
    assert shown.count("test has only 29 facts: with fewer than 30 facts no interval") == 1
    assert "confidence" not in shown


def test_dropped_rows_are_named() -> None:
    rows = [("a", "p", "b", 1990, 1992), ("a", "p", "c", 1995, 1991), ("a", "p", "c", 1991, 1991)]
    graph = splime.read({"train": rows[:1], "test": rows[1:]})
    segmentation = splime.Vanilla().fit(graph)
    evaluation = evaluate_facts(TableScorer(np.zeros((3, 1, 3))), graph, segmentation)
    assert (evaluation.queries, evaluation.left_out) == (2, {"end before begin": 1})


def test_periods() -> None:
    rows = [("a", "p", "b", 1990 + year, 1995) for year in range(5)]
    graph = splime.read(
        {
            "train": rows,
            "test": [*rows[:4], ("a", "p", "c", 1990, 1990), ("a", "p", "b", None, 1994)],
        }
    )
    scorer = TableScorer(np.zeros((3, 1, 3)))
    strata = evaluate_facts(scorer, graph, splime.Vanilla().fit(graph)).strata["exact"]
    periods = {label: metrics.queries for label, metrics in strata["period"].items()}
    # Unknown begin: counted by the end.
    assert periods == {"1990": 4, "1991..1992": 4, "1993": 2, "1994": 2}
    bucketed = graph.bucket(4)
    strata = evaluate_facts(scorer, bucketed, splime.Vanilla().fit(bucketed)).strata["exact"]
    periods = {label: metrics.queries for label, metrics in strata["period"].items()}
    assert sum(periods.values()) == 12
    labels = bucketed.timeline.labels()
    assert set(periods) <= {*labels, f"{labels[0][:4]}..{labels[-1][-4:]}"}


def test_no_evaluation() -> None:
    with pytest.raises(DataError, match=r"not an evaluation: .*protocol"):
        Evaluation.from_json({})


def test_bootstrap() -> None:
    rng = np.random.default_rng(0)
    ranks = rng.integers(1, 20, (500, 2)).astype(float)
    intervals = bootstrap(ranks, samples=400)
    assert intervals == bootstrap(ranks, samples=400)
    assert intervals != bootstrap(ranks, samples=400, seed=1)
    wide = bootstrap(ranks, samples=400, level=0.99)
    assert intervals is not None
    assert wide is not None
    for metric, (low, high) in intervals.items():
        assert wide[metric][0] <= low < getattr(Metrics.of(ranks), metric) < high <= wide[metric][1]
    # About two standard errors on both sides, of facts and not of queries.
    error = (1 / ranks).mean(1).std() / np.sqrt(500)
    low, high = intervals["mrr"]
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.2)
    assert (bootstrap(np.ones(30)) or {})["hits1"] == (1.0, 1.0)


def test_bootstrap_of_nonsense() -> None:
    with pytest.raises(UsageError, match="at least one"):
        bootstrap(np.empty((0, 2)))
    with pytest.raises(UsageError, match="samples"):
        bootstrap(np.ones((3, 2)), samples=0)
    with pytest.raises(UsageError, match="level"):
        bootstrap(np.ones((3, 2)), level=95)
    with pytest.raises(UsageError, match="no ranks"):
        Metrics.of(np.empty(0))


@pytest.mark.system
def test_filters_and_metrics_need_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None;"
        "import importlib.util as u, splime, types;"
        "p = types.ModuleType('splime.evaluation'); p.__path__ = [sys.argv[1]];"
        "sys.modules['splime.evaluation'] = p;"
        "import splime.evaluation.filters, splime.evaluation.metrics;"
        "assert 'scipy' not in sys.modules and 'pandas' not in sys.modules"
    )
    import splime.evaluation

    folder = splime.evaluation.__path__[0]
    subprocess.run([sys.executable, "-c", code, folder], check=True)
