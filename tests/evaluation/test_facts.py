from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import splime
from splime.errors import UsageError
from splime.evaluation import Evaluation, Metrics, evaluate_facts, evaluate_predicates
from splime.graph import TemporalGraph
from tests.evaluation.oracle import Oracle
from tests.evaluation.scorers import ConstantScorer, TableScorer, random_scorer, segmentations
from tests.graphs import graphs

FILTERS = ("exact", "overlap", "static")
aggregates = st.sampled_from(["mean", "ends", "max", "sum"])
ties = st.sampled_from(["mean", "worst", "best"])


def least_memory(evaluate: Any, *arguments: Any, **options: Any) -> int:
    with pytest.raises(UsageError, match="needs at least") as error:
        evaluate(*arguments, memory=1, **options)
    return int(re.findall(r"at least ([\d,]+)", str(error.value))[0].replace(",", ""))


@given(st.data(), graphs(), aggregates, ties, st.sampled_from(["test", "valid"]))
def test_ranks_equal_plain_loops(
    data: st.DataObject, graph: TemporalGraph, how: Any, tie: Any, split: Any
) -> None:
    if data.draw(st.booleans()):
        graph = graph.bucket(4)
    segmentation = data.draw(segmentations(graph))
    scorer = random_scorer(segmentation, len(graph.entities), data.draw(st.integers(0, 99)))
    oracle = Oracle(graph, segmentation, scorer.score)
    asked = {"split": split, "aggregate": how, "ties": tie}
    for evaluate, sides in (
        (evaluate_facts, ("object", "subject")),
        (evaluate_predicates, ("predicate",)),
    ):
        evaluation = evaluate(scorer, graph, segmentation, **asked)
        least = least_memory(evaluate, scorer, graph, segmentation, **asked)
        small = evaluate(scorer, graph, segmentation, memory=least, **asked)
        for name in FILTERS:
            expected = [oracle.ranks(split, side, name, how, tie) for side in sides]
            assert evaluation.ranks[name].tolist() == np.transpose(expected).tolist()
            assert small.ranks[name].tolist() == evaluation.ranks[name].tolist()
        _check_metrics(evaluation, graph, split)


def _check_metrics(evaluation: Evaluation, graph: TemporalGraph, split: Any) -> None:
    rows = list(graph.rows(split))
    train = {fact[:3] for fact in graph.rows("train")}
    groups: dict[str, list[str]] = {
        "train": ["triple " + "un" * (fact[:3] not in train) + "seen in train" for fact in rows],
        "time": [
            "open"
            if None in (fact.begin, fact.end)
            else "instant"
            if fact.begin == fact.end
            else "interval"
            for fact in rows
        ],
        "predicate": [fact.predicate for fact in rows],
    }
    assert evaluation.queries == len(rows) * evaluation.ranks["exact"].shape[1]
    for name, ranks in evaluation.ranks.items():
        assert evaluation.metrics[name]["both"] == _metrics(ranks.ravel().tolist())
        for kind, of in groups.items():
            assert set(evaluation.strata[name][kind]) == set(of)
            for group, metrics in evaluation.strata[name][kind].items():
                chosen = [row for row, label in enumerate(of) if label == group]
                assert metrics == _metrics(ranks[chosen].ravel().tolist())
        periods = evaluation.strata[name]["period"]
        assert 1 <= len(periods) <= 5
        assert sum(each.queries for each in periods.values()) == evaluation.queries
    if "subject" in evaluation.metrics["exact"]:
        assert evaluation.metrics["exact"]["object"] == _metrics(
            evaluation.ranks["exact"][:, 0].tolist()
        )
        assert evaluation.metrics["exact"]["subject"] == _metrics(
            evaluation.ranks["exact"][:, 1].tolist()
        )


def _metrics(ranks: list[float]) -> Any:
    def near(numbers: list[float]) -> Any:
        return pytest.approx(sum(numbers) / len(numbers))

    one, three, ten = (near([float(rank <= k) for rank in ranks]) for k in (1, 3, 10))
    mrr, mr = near([1 / rank for rank in ranks]), near(ranks)
    return Metrics(mrr=mrr, mr=mr, hits1=one, hits3=three, hits10=ten, queries=len(ranks))


def test_a_long_fact_is_its_parts() -> None:
    rows = [("a", "p", "b", year, year) for year in (1990, 1991, 1992, 1993, 1994)]
    graph = splime.read(
        {"train": rows, "test": [("a", "p", "b", 1990, 1994), ("c", "p", "b", 1, 2)]}
    )
    segmentation = splime.Merge(predicates=2).fit(graph)
    assert [s.name for s in segmentation.scopes_of("p")] == ["p[1990..1991]", "p[1992..1994]"]
    table = np.zeros((3, 2, 3))
    table[0] = [[0, 5, 6], [5, 1, 0]]  # weighted 2 to 3: 15, 13 and 12 fifths for a, b, c
    scorer = TableScorer(table)
    ranks = {
        how: evaluate_facts(scorer, graph, segmentation, aggregate=how).ranks["static"][0, 0]
        for how in ("mean", "ends", "max", "sum")
    }
    assert ranks == {"mean": 2.0, "ends": 1.5, "max": 2.5, "sum": 1.5}


def test_an_unseen_scope_falls_back_to_the_nearest() -> None:
    graph = splime.read(
        {
            "train": [("a", "p", "b", 1990), ("a", "p", "b", 1996), ("a", "q", "b", 1991)],
            "valid": [("a", "p", "b", year) for year in (1992, 1993, 1994)],
            "test": [("a", "p", "b", year) for year in (1992, 1993, 1994)]
            + [("a", "r", "b", 1990)],
        }
    )
    segmentation = splime.Timestamp(fit_on="all").fit(graph)
    table = np.zeros((2, len(segmentation.predicates), 2))
    scopes = {s.name: at for at, p in enumerate("pqr") for s in segmentation.scopes_of(p)}
    labels = segmentation.predicates.labels.to_pylist()
    assert len(scopes) == len(labels)
    table[0, labels.index("p[1990]")] = [0, 1]
    table[0, labels.index("p[1996]")] = [1, 0]
    evaluation = evaluate_facts(TableScorer(table), graph, segmentation)
    # Timestamps are 1990, 1991, 1992, ..., 1996 without 1995: 1993 is as near to both.
    assert evaluation.ranks["static"][:, 0].tolist() == [1.0, 2.0, 2.0, 1.5]


def test_equal_queries_are_scored_once() -> None:
    train = [("a", "p", "b", 1990, 1999), ("b", "p", "a", 1985, 2001)]
    test = [("a", "p", "b", 1991 + year, 1995) for year in range(4)]
    graph = splime.read({"train": train, "test": test})
    vanilla = splime.Vanilla().fit(graph)
    scorer = random_scorer(vanilla, 2, 0)
    evaluate_facts(scorer, graph, vanilla)
    assert scorer.calls == [1, 1, 1, 1], "a probe and a query for each side"
    stamped = splime.Timestamp().fit(graph)
    scorer = random_scorer(stamped, 2, 0)
    evaluate_facts(scorer, graph, stamped)
    asked = len({scope.name for fact in test for scope in stamped.scopes_at("p", *fact[3:])})
    assert scorer.calls == [1, 1, asked, asked], "parts are shared"


def test_progress_changes_nothing() -> None:
    graph = splime.read(
        {
            "train": [("a", "p", "b", 1990, 1999)],
            "test": [("a", "p", "c", 1990, 1992 + year) for year in range(5)],
        }
    )
    segmentation = splime.Timestamp().fit(graph)
    scorer = random_scorer(segmentation, 3, 3)
    steps: list[Any] = []
    for evaluate in (evaluate_facts, evaluate_predicates):
        plain = evaluate(scorer, graph, segmentation)
        least = least_memory(evaluate, scorer, graph, segmentation)
        told = evaluate(
            scorer,
            graph,
            segmentation,
            memory=least,
            progress=lambda *step: steps.append(step[1:]),
        )
        for name in FILTERS:
            assert (told.ranks[name] == plain.ranks[name]).all()
        assert [done for done, _ in steps] == list(range(plain.queries + 1))
        assert {total for _, total in steps} == {plain.queries}
        steps.clear()


def test_a_constant_scorer_gains_nothing() -> None:
    entities = [f"e{number:04}" for number in range(2_000)]
    rng = np.random.default_rng(0)
    rows = [
        (entities[s], "p", entities[o], 1990 + s % 9, 1990 + s % 9 + o % 5)
        for s, o in rng.integers(0, 2_000, (4_000, 2)).tolist()
    ]
    graph = splime.read({"train": rows[:3_500], "test": rows[3_500:]})
    segmentation = splime.Timestamp().fit(graph)
    scorer = ConstantScorer(len(graph.entities), len(segmentation.predicates))
    metrics = evaluate_facts(scorer, graph, segmentation).metrics["static"]["both"]
    assert metrics.mrr == pytest.approx(2 / len(graph.entities), rel=0.02)
    assert metrics.hits10 == 0


@pytest.mark.parametrize(
    ("name", "facts", "left_out"),
    [
        ("wikidata12k", 4_059, {"end before begin": 3}),
        ("yago11k", 2_050, {"end before begin": 1}),
        ("icews14", 8_963, {}),
    ],
)
def test_published_facts(
    published_graphs: dict[str, TemporalGraph], name: str, facts: int, left_out: dict[str, int]
) -> None:
    graph = published_graphs[name]
    segmentation = splime.Vanilla().fit(graph)
    scorer = ConstantScorer(len(graph.entities), len(segmentation.predicates))
    evaluation = evaluate_predicates(scorer, graph, segmentation)
    assert (len(evaluation.facts), evaluation.left_out) == (facts, left_out)
