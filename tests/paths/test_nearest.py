"""A bound on the facts that a question reads: which they are, and that nothing else is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor

import splime
from splime.paths.facts import DirectedFacts
from splime.paths.model import PathModel, Starter
from splime.paths.nearest import nearest
from splime.paths.relative import LEFT_OUT, EventScopes, RelativeScopes, Times
from splime.paths.scorer import PathScorer
from splime.runs import evaluate, train
from tests.paths.test_messages import facts_of, make_facts
from tests.paths.test_model import RELATIVE, make_model, questions
from tests.runs.small import small_graph


def literally(
    facts: DirectedFacts, start: int, scopes: Tensor, at: int, weights: Tensor, most: int
) -> list[set[int]]:
    """The facts of each step: all that are at the entities reached before, the nearest at last."""
    ends = list(zip(facts.source.tolist(), facts.target.tolist(), strict=True))[: facts.facts]
    when = [int(facts.times.begin[time]) for time in facts.time.tolist()]
    seen = [
        number
        for number in range(facts.facts)
        if weights[number] != 0 and scopes[facts.time[number]] != LEFT_OUT
    ]
    reached, read, steps = {start}, set[int](), []
    for _ in range(3):
        new = [n for n in seen if n not in read and reached & {*ends[n]}]
        new = sorted(new, key=lambda n: abs(when[n] - at))[: most - len(read)]
        steps.append({*new})
        read |= {*new}
        reached |= {end for n in new for end in ends[n]}
    return steps


@given(rows=facts_of, seed=st.integers(0, 1000), most=st.integers(1, 12), past=st.booleans())
def test_the_nearest_facts_are_read_and_no_others(
    rows: list[Any], seed: int, most: int, past: bool
) -> None:
    facts = make_facts(rows, 8, 3)
    relative = EventScopes("step", (1, 2), past=past)
    given_, predicates, times = questions(4, seed)
    scopes, weights = (
        facts.scopes(relative, times),
        facts.weights(torch.tensor([0] if rows else []).long()),
    )
    near = nearest(facts, given_, scopes, times, weights, 3, most)
    model = make_model(seed=seed, reach=most, aggregation=["sum", "mean"][seed % 2]).eval()
    with torch.no_grad():
        start = model.start(predicates)
        scores = model(facts, given_, start, scopes, weights, times=times)
    of = near.question[near.facts.source.long()]
    for question in range(4):
        chosen = {number % facts.facts for number in near.number[of == question].tolist()}
        begin = int(times.begin[question])
        steps = literally(facts, int(given_[question]), scopes[:, question], begin, weights, most)
        # In the last step several facts may be as near; then how far they are is the same.
        assert set().union(*steps[:-1]) <= chosen or len(chosen) == most
        gap = facts.times.begin[facts.time.long()] - begin
        assert sorted(gap[[*chosen]].abs().tolist()) == sorted(
            gap[[*set().union(*steps)]].abs().tolist()
        )
        own = weights.clone()
        if facts.facts > most:
            own = torch.zeros_like(weights).index_fill(0, near.number[of == question], 1)
        alone = slice(question, question + 1)
        with torch.no_grad():
            start = model.start(predicates[alone])
            plain = model(facts, given_[alone], start, scopes[:, alone], own, plain=True)
        torch.testing.assert_close(scores[alone], plain, rtol=1e-4, atol=1e-4)


READ = [
    (s, p, o, time)
    for s, p, o, time in np.random.default_rng(3).integers(0, [8, 3, 8, 4], (30, 4)).tolist()
]


@pytest.mark.parametrize("aggregation", ["sum", "mean"])
def test_gradients_are_those_of_the_facts_that_are_read(aggregation: Any) -> None:
    model = make_model(aggregation=aggregation, reach=9)
    assert_reads(model, model.start, "cpu", 1e-4)


def assert_reads(
    model: PathModel,
    starter: Starter,
    device: str,
    tolerance: float,
    relative: RelativeScopes = RELATIVE,
) -> None:
    """Scores and gradients with a bound are those of the plain formulas over the facts in reach."""
    facts = make_facts(READ, 12, 3).to(device)
    given, predicates, times = questions(5)
    given, predicates, times = given.to(device), predicates.to(device), times.to(device)
    scopes, wanted = facts.scopes(relative, times), (given + 1) % 12
    every = facts.weights()
    near = nearest(facts, given, scopes, times, every, model.layers, 9)
    of = near.question[near.facts.source.long()]
    results = [model(facts, given, starter(predicates, None), scopes, times=times)]
    alone = []
    for question in range(5):
        weights = torch.zeros_like(every).index_fill(0, near.number[of == question], 1)
        assert int(weights.sum()) == 18
        one = slice(question, question + 1)
        start = starter(predicates[one], None)
        asked = (given[one], start, scopes[:, one], weights)
        alone.append(model(facts, *asked, plain=True))
    results.append(torch.cat(alone))
    parts = []
    for scores in results:
        loss = torch.nn.functional.cross_entropy(scores, wanted)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        parts.append((scores.detach(), torch.cat([part.flatten() for part in gradients])))
    for fast, plain in zip(*parts, strict=True):
        assert float((fast - plain).norm() / plain.norm()) < tolerance


def test_the_mean_divides_by_the_facts_that_arrive() -> None:
    # Two facts arrive at 2; to a question about time 1 that sees the past alone, one of them.
    facts = make_facts([(0, 0, 2, 0), (1, 0, 2, 3), (2, 0, 3, 0)], 5, 1)
    relative = EventScopes("step", (1, 2), past=True)
    times = torch.tensor([1, 9])
    scopes = facts.scopes(relative, Times(times, times, torch.zeros_like(times)))
    assert facts.degrees(facts.weights(), scopes).tolist() == [
        [1, 1], [1, 1], [2, 3], [1, 1], [1, 1]
    ]  # fmt: skip
    without = facts.degrees(facts.weights(torch.tensor([2])), scopes)
    assert without[2].tolist() == [1, 2]


def test_a_run_with_a_bound(tmp_path: Any) -> None:
    graph = small_graph(test=60)
    small: dict[str, Any] = {"model": "path", "layers": 2, "dimension": 16, "batch_size": 20}
    run = train(graph, splime.Vanilla(), tmp_path / "run", **small, epochs=2, reach=15)
    assert splime.Run(tmp_path / "run").settings.reach == 15
    query = splime.Query(run)
    why = query.why("entity 3", "p1", "?", at=1999)
    scorer, given = run.scorer, torch.tensor([graph.entities.id("entity 3")])
    assert isinstance(scorer, PathScorer)
    year = torch.tensor([1999])
    times = Times(year, year, torch.zeros_like(year))
    scopes, weights = scorer.read.scopes(scorer.relative, times), scorer.read.weights()
    near = scorer.model.nearest(scorer.read, given, scopes, times, weights)
    assert near is not None
    numbers = {number % len(graph.train) for number in near.number.tolist()}
    assert len(numbers) == 15
    train_facts = list(graph.rows("train"))
    steps = {step.fact for reason in why.reasons for step in reason.steps}
    assert steps
    assert steps <= {train_facts[number] for number in numbers}
    assert evaluate(run).queries
    mean = train(graph, splime.Vanilla(), tmp_path / "mean", **small, epochs=1, aggregation="mean")
    assert splime.Run(tmp_path / "mean").settings.aggregation == "mean"
    assert mean.history[0].loss != run.history[0].loss
