"""TIMEPLEX's gadgets: numbers worked out elsewhere, and training with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import splime
from splime.embedding.gadgets import GADGETS, Gadget, Pairs, Recurrent
from splime.errors import UsageError
from splime.methods import at_every_timestamp
from splime.runs import Interrupted, Run
from splime.static import StaticGraph, apply
from splime.training.registry import make_settings
from tests.runs.small import StopAfter, small_graph, small_run

ROWS = [
    (0, 0, 2, 1950), (0, 1, 3, 1975), (1, 0, 2, 1960), (1, 1, 3, 1990), (0, 1, 3, 1985),
    (1, 1, 3, 1992), (1, 1, 3, 1999),
]  # fmt: skip


@pytest.fixture(scope="module")
def static() -> StaticGraph:
    rows = [(f"e{s}", f"p{p}", f"e{o}", year) for s, p, o, year in ROWS]
    # 1978 is only in test.
    splits = {"train": rows, "test": [("e0", "p1", "e3", 1978)]}
    graph = splime.read(splits, granularity="year")
    return apply(at_every_timestamp(splime.Timestamp().fit(graph), graph), graph)


def scope(static: StaticGraph, predicate: int, year: str) -> torch.Tensor:
    times = static.graph.timeline.labels()
    return torch.tensor([predicate * len(times) + times.index(year)])


def test_pairs(static: StaticGraph) -> None:
    gadget = Pairs(static)
    gadget.strength.fill_(1.0)
    assert float(gadget.mean[0, 0, 1]) == pytest.approx(-32.2)
    assert float(gadget.variance[0, 0, 1]) == pytest.approx(22.16, abs=1e-4)
    asked = scope(static, 1, "1978")
    subjects = gadget.all_entities(0, torch.tensor([3]), asked)[0]
    expected = [0.48682828, -0.14654442, -0.2, -0.2]
    assert subjects.tolist() == pytest.approx(expected, abs=1e-6)
    objects = gadget.all_entities(1, torch.tensor([0]), asked)[0]
    assert float(objects[3].detach()) == pytest.approx(0.40004971, abs=1e-6)


def test_recurrent(static: StaticGraph) -> None:
    """With the right gaps: the public program subtracts the wrong neighbour."""
    gadget = Recurrent(static)
    gadget.strength.fill_(1.0)
    assert float(gadget.mean[1]) == pytest.approx(19 / 3)
    assert float(gadget.variance[1]) == pytest.approx(10.8889, abs=1e-4)
    scores = gadget.all_entities(0, torch.tensor([3]), scope(static, 1, "1978"))[0]
    assert scores.tolist() == pytest.approx([0.50037304, 0.12889548, 0, 0], abs=1e-6)
    # At the time of a fact the nearest other one counts.
    there = gadget.all_entities(0, torch.tensor([3]), scope(static, 1, "1975"))[0]
    away = gadget.all_entities(0, torch.tensor([3]), scope(static, 1, "1985"))[0]
    assert float(there[0].detach()) == float(away[0].detach()) != 0


@pytest.mark.parametrize("name", GADGETS)
def test_scores_of_scopes_are_those_of_entities(name: str, static: StaticGraph) -> None:
    gadget: Gadget = GADGETS[name](static)
    gadget.strength.fill_(2.0)
    pairs = [(0, 3), (1, 2), (2, 0), (3, 3)]
    s, o = torch.tensor(pairs).T
    found = gadget.all_scopes(s, o)
    for row, (subject, object_) in enumerate(pairs):
        for number in range(len(static.predicates)):
            at = torch.tensor([number])
            expected = gadget.all_entities(0, o[row : row + 1], at)[0, subject]
            expected = expected + gadget.all_entities(1, s[row : row + 1], at)[0, object_]
            torch.testing.assert_close(found[row, number], expected)


def test_a_fact_does_not_answer_itself(static: StaticGraph) -> None:
    gadget = Pairs(static)
    gadget.strength.fill_(1.0)
    asked, given = scope(static, 1, "1975"), torch.tensor([3])
    whole = gadget.all_entities(0, given, asked)[0]
    without = gadget.all_entities(0, given, asked, torch.tensor([0]))[0]
    assert torch.equal(whole[1:], without[1:])
    # By the other two facts of entity 0: 25 years before, and 10 after.
    far = [torch.exp(-torch.tensor((gap - m) ** 2 / (2 * v)))
           for gap, m, v in ((-25, -32.2, 22.16), (10, 0, 36))]  # fmt: skip
    assert float(without[0].detach()) == pytest.approx(float(sum(far)) / 2 - 0.2, abs=1e-5)


@pytest.mark.parametrize("gadget", GADGETS)
@pytest.mark.parametrize("reciprocal", [False, True])
def test_training(gadget: str, reciprocal: bool, tmp_path: Path) -> None:
    """The vectors stay what they were when the gadget begins; a break changes nothing."""
    values: dict[str, Any] = {
        **{"model": "timeplex", "gadget": gadget, "reciprocal": reciprocal, "epochs": 7},
        **{"validate_every": 0, "batch_size": 40, "smooth": 0.1},
    }
    graph = small_graph()
    whole = small_run(graph, tmp_path / "whole", None, **values)
    base = small_run(graph, tmp_path / "base", None, **{**values, "gadget": None, "epochs": 2})
    assert torch.equal(whole.tensors["entities"], base.tensors["entities"])
    assert float(whole.tensors["gadget.strength"]) == GADGETS[gadget].full
    untrained = GADGETS[gadget](whole.static)
    first = dict(untrained.named_parameters())["weight"].detach()
    assert not torch.equal(whole.tensors["gadget"], first)
    with pytest.raises(Interrupted):
        small_run(graph, tmp_path / "stopped", None, watch=StopAfter(11), **values)
    resumed = small_run(graph, tmp_path / "stopped", None, **values)
    one, other = ((run.path / "model.safetensors").read_bytes() for run in (whole, resumed))
    assert one == other
    # Scores are those of the vectors and of the gadget.
    run = Run(whole.path)
    x, p = torch.tensor([0, 3]), torch.tensor([5, 20])
    plain = run.model.compare(
        run.model.object_query(run.model.entities(x), run.model.predicates(p)),
        run.model.entities.vectors(),
    )
    assert run.model.gadget is not None
    torch.testing.assert_close(
        run.scorer.objects(x, p), plain + run.model.gadget.all_entities(1, x, p)
    )
    if reciprocal:
        inverse = p + len(run.static.predicates)
        back = run.scorer.objects(x, inverse) - run.model.gadget.all_entities(0, x, p)
        plain = run.model.compare(
            run.model.object_query(run.model.entities(x), run.model.predicates(inverse)),
            run.model.entities.vectors(),
        )
        torch.testing.assert_close(back, plain)
    assert 0 < splime.evaluate(run).metrics["exact"]["both"].mrr <= 1
    assert splime.evaluate(run, "predicate").queries > 0


def test_settings_that_do_not_go_with_a_gadget() -> None:
    cases: list[dict[str, Any]] = [{"loss": "bce"}, {"validate_every": 5}, {"each": "ends"}]
    for wrong in cases:
        with pytest.raises(UsageError, match="gadget"):
            make_settings("timeplex", **{"gadget": "pairs", "validate_every": 0, **wrong})
