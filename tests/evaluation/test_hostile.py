from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import splime
from splime.errors import SplimeError, UsageError
from splime.evaluation import evaluate_facts, evaluate_predicates, evaluate_triples
from splime.graph import TemporalGraph
from splime.segmentation import Segmentation
from tests.evaluation.scorers import TableScorer

ROWS = [("a", "p", "b", 1990, 1993), ("b", "q", "c", 1991, 1991)]


@pytest.fixture
def graph() -> TemporalGraph:
    return splime.read({"train": ROWS, "valid": ROWS, "test": ROWS})


def ask(kind: str, scorer: Any, graph: TemporalGraph, cuts: Segmentation, **options: Any) -> Any:
    if kind == "triple":
        return evaluate_triples(scorer, splime.apply(cuts, graph), filter="none", **options)
    evaluate = evaluate_facts if kind == "fact" else evaluate_predicates
    return evaluate(scorer, graph, cuts, **options)


kinds = pytest.mark.parametrize("kind", ["fact", "triple", "predicate"])


@kinds
@pytest.mark.parametrize("target", ["predicates", "entities", "both"])
def test_nan_never_goes_unnoticed(kind: str, target: Any, graph: TemporalGraph) -> None:
    cuts = splime.Timestamp(target=target).fit(graph)
    static = splime.apply(cuts, graph)
    size = (len(static.entities), len(static.predicates), len(static.entities))
    row = static.test.array()[-1]
    table = np.zeros(size)
    ask(kind, TableScorer(table), graph, cuts)
    table[tuple(row)] = np.nan
    with pytest.raises(SplimeError, match="NaN"):
        ask(kind, TableScorer(table), graph, cuts)


@kinds
def test_infinities_of_both_signs(kind: str, graph: TemporalGraph) -> None:
    cuts = splime.Timestamp().fit(graph)
    table = np.full((3, len(cuts.predicates), 3), -np.inf)
    assert ask(kind, TableScorer(table), graph, cuts).queries
    table[:, ::2] = np.inf
    if kind == "triple":
        assert ask(kind, TableScorer(table), graph, cuts).queries
    else:
        with pytest.raises(SplimeError, match="inf to -inf"):
            ask(kind, TableScorer(table), graph, cuts)


@kinds
def test_another_models_shape(kind: str, graph: TemporalGraph) -> None:
    cuts = splime.Vanilla().fit(graph)
    with pytest.raises(SplimeError, match="trained on this graph"):
        ask(kind, TableScorer(np.zeros((4, 3, 4))), graph, cuts)
    with pytest.raises(SplimeError, match="int64 of shape"):
        ask(kind, TableScorer(np.zeros((3, 2, 3)), torch.int64), graph, cuts)


@kinds
def test_nothing_to_rank(kind: str) -> None:
    graph = splime.read({"train": ROWS, "test": ROWS})
    cuts = splime.Vanilla().fit(graph)
    with pytest.raises(UsageError, match="valid has no"):
        ask(kind, TableScorer(np.zeros((3, 2, 3))), graph, cuts, split="valid")
    with pytest.raises(UsageError, match=r"split .*'dev'"):
        ask(kind, TableScorer(np.zeros((3, 2, 3))), graph, cuts, split="dev")


@kinds
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ties": "random"}, "mean, worst, best"),
        ({"memory": 3}, "at least"),
        ({"memory": 0}, "number of bytes"),
        ({"memory": "4 GB"}, "memory must be a whole number"),
    ],
)
def test_options(kind: str, options: Any, words: str, graph: TemporalGraph) -> None:
    with pytest.raises(UsageError, match=words):
        ask(kind, TableScorer(np.zeros((3, 2, 3))), graph, splime.Vanilla().fit(graph), **options)


def test_unknown_names(graph: TemporalGraph) -> None:
    cuts = splime.Vanilla().fit(graph)
    scorer = TableScorer(np.zeros((3, 2, 3)))
    with pytest.raises(UsageError, match="Did you mean mean"):
        evaluate_facts(scorer, graph, cuts, aggregate="means")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="Did you mean inter"):
        evaluate_triples(scorer, splime.apply(cuts, graph), filter="inner")  # type: ignore[arg-type]


def test_a_segmentation_of_another_graph(graph: TemporalGraph) -> None:
    other = splime.read({"train": [("x", "p", "y", 1980)], "test": [("x", "p", "y", 1980)]})
    with pytest.raises(UsageError, match="another timeline"):
        evaluate_facts(TableScorer(np.zeros((3, 2, 3))), graph, splime.Vanilla().fit(other))


@kinds
@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB"),
    ],
)
def test_no_memory_left(kind: str, error: Exception, graph: TemporalGraph) -> None:
    class Full(TableScorer):
        def __getattribute__(self, name: str) -> Any:
            if name in ("objects", "subjects", "predicates"):
                raise error
            return super().__getattribute__(name)

    with pytest.raises(SplimeError, match="--memory"):
        ask(kind, Full(np.zeros((3, 2, 3))), graph, splime.Vanilla().fit(graph))


def test_other_errors_of_a_model_are_its_own(graph: TemporalGraph) -> None:
    class Broken(TableScorer):
        def objects(self, *_: Any) -> Any:
            raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="mat1"):
        ask("fact", Broken(np.zeros((3, 2, 3))), graph, splime.Vanilla().fit(graph))


def test_scores_are_not_written_to(graph: TemporalGraph) -> None:
    cuts = splime.Timestamp().fit(graph)
    table = np.arange(9.0 * len(cuts.predicates)).reshape(3, -1, 3)

    class Lent(TableScorer):
        """Gives its own memory away."""

        def objects(self, subject: Any, predicate: Any) -> Any:
            return self.table[0, : len(predicate)].view(len(subject), -1)

    scorer = Lent(table)
    for how in ("mean", "sum", "max", "ends"):
        evaluate_facts(scorer, graph, cuts, aggregate=how)
    assert (scorer.table.numpy() == table).all()
