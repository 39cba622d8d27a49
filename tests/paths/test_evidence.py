"""Evidence: gradients against autograd, and chains in a small world where the reason is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from splime.paths.evidence import Passing, chains, evidence, passing
from splime.paths.facts import DirectedFacts
from splime.paths.messages import PathInputs, plain_propagate
from splime.paths.model import LearnedPathModel, PathModel, Start
from splime.paths.relative import EventScopes, Times
from tests.paths.test_messages import facts_of, make_facts
from tests.paths.test_model import RELATIVE, make_model, questions


@given(rows=facts_of, seed=st.integers(0, 1000), past=st.booleans())
@settings(max_examples=10)
def test_gradients_by_layer_add_up_to_those_of_growing_weights(
    rows: list[Any], seed: int, past: bool
) -> None:
    facts = make_facts(rows, 8, 3)
    model = make_model(seed=seed, aggregation=("sum", "mean")[seed % 2]).eval()
    (given_,), predicates, times = questions(1, seed)
    scopes = facts.scopes(EventScopes("step", (1, 2), past=past), times)
    assert_passes(model, facts, int(given_), model.start(predicates), scopes, seed % 8)


def assert_passes(
    model: PathModel, facts: DirectedFacts, given: int, start: Start, scopes: Tensor, answer: int
) -> None:
    """What passes along a fact is its gradient by the plain formulas, all layers together."""
    weights = facts.weights(torch.tensor([0]) if facts.facts else None)
    expected, (q, carried) = torch.zeros_like(weights), start
    share = model.share(facts, weights, scopes)
    for part in (torch.arange(8) + 0.5) / 8:
        grown = (weights * part).requires_grad_()
        fixed = (facts, share, 0.0, torch.tensor(0))
        inputs = (q, torch.tensor([given]), model.layers_of(carried), scopes, grown, *fixed)
        h = plain_propagate(PathInputs(*inputs))
        scores = model.score(h, q, plain=True)
        expected += weights * torch.autograd.grad(scores[0, answer], grown)[0] / 8
    passed = passing(model, facts, given, start, scopes, answer, weights)
    result = torch.zeros_like(weights).index_add(0, passed.number, passed.gradient)
    torch.testing.assert_close(result, expected, rtol=1e-3, atol=1e-5)


def test_what_passes_is_divided_among_the_facts_that_brought_it() -> None:
    # Two ways from 0 to 3: by 1, with two facts to choose from at first, and by 2.
    facts = make_facts([(0, 0, 1, 0), (0, 1, 1, 0), (1, 0, 3, 0), (0, 0, 2, 0), (2, 0, 3, 0)], 5, 2)
    number, layer = torch.tensor([0, 1, 2, 3, 4]), torch.tensor([0, 0, 1, 0, 1])
    passed = Passing(number, layer, torch.tensor([3.0, 1.0, 8.0, 1.0, 2.0]))
    result = [(chain.facts, chain.contribution) for chain in chains(facts, passed, 0, 3)]
    assert result == [((0, 2), 6.0), ((1, 2), 2.0), ((3, 4), 2.0)]
    assert len(chains(facts, passed, 0, 3, most=1)) == 1
    assert chains(facts, passed, 4, 3) == []


def test_layers_are_passed_in_order_and_what_speaks_against_is_left_out() -> None:
    facts = make_facts([(0, 0, 1, 0), (1, 0, 2, 0), (0, 1, 2, 0)], 3, 2)
    late = Passing(torch.tensor([0, 1]), torch.tensor([1, 0]), torch.tensor([1.0, 1.0]))
    assert chains(facts, late, 0, 2) == []
    against = Passing(torch.tensor([2, 2]), torch.tensor([0, 1]), torch.tensor([-1.0, 2.0]))
    (chain,) = chains(facts, against, 0, 2)
    assert (chain.facts, chain.contribution) == ((2,), 2.0)


PEOPLE, FIRMS, TOWNS = 40, 8, 6
WORKS_FOR, BASED_IN, KNOWS, LIVES_IN = range(4)


@pytest.fixture(scope="module")
def world() -> tuple[LearnedPathModel, DirectedFacts, Tensor, Tensor]:
    """People live where the firm they work for at the time is based; acquaintances are noise."""
    random = np.random.default_rng(0)
    rows, lives = [], []
    based = random.integers(0, TOWNS, FIRMS)
    for firm, town in enumerate(based.tolist()):
        rows += [(PEOPLE + firm, BASED_IN, PEOPLE + FIRMS + town, time) for time in range(4)]
    for person in range(PEOPLE):
        for time in range(4):
            firm = int(random.integers(0, FIRMS))
            rows.append((person, WORKS_FOR, PEOPLE + firm, time))
            rows.append((person, KNOWS, int(random.integers(0, PEOPLE)), time))
            lives.append((person, PEOPLE + FIRMS + int(based[firm]), time))
    facts = make_facts(rows, PEOPLE + FIRMS + TOWNS, 4)
    model = LearnedPathModel(4, len(RELATIVE), layers=2, width=16)
    asked = torch.tensor(lives)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(150):
        batch = asked[torch.randperm(120, generator=torch.Generator().manual_seed(step))[:32]]
        scopes = facts.scopes(RELATIVE, at(batch[:, 2]))
        start = model.start(torch.full((32,), LIVES_IN))
        scores = model(facts, batch[:, 0], start, scopes)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(scores, batch[:, 1]).backward()
        optimizer.step()
    return model.eval(), facts, asked[120:], torch.tensor(rows)


def at(times: Tensor) -> Times:
    return Times(times, times, torch.zeros_like(times))


def test_the_best_chain_is_the_reason(world: Any) -> None:
    model, facts, asked, rows = world
    right, start = 0, model.start(torch.tensor([LIVES_IN]))
    for person, town, time in asked.tolist():
        scopes = facts.scopes(RELATIVE, at(torch.tensor([time])))
        best = evidence(model, facts, person, start, scopes, town)[0]
        numbers = [number % facts.facts for number in best.facts]
        steps = rows[numbers].tolist()
        right += [step[1] for step in steps] == [WORKS_FOR, BASED_IN] and steps[0][3] == time
        assert best.contribution > 0
    assert right >= 0.9 * len(asked)


def test_without_its_evidence_an_answer_scores_lower(world: Any) -> None:
    model, facts, asked, _ = world
    random, falls = np.random.default_rng(0), []
    start = model.start(torch.tensor([LIVES_IN]))
    for person, town, time in asked.tolist():
        scopes = facts.scopes(RELATIVE, at(torch.tensor([time])))

        def score(without: list[int]) -> float:
            given = torch.tensor([person])  # noqa: B023
            weights = facts.weights(torch.tensor(without, dtype=torch.int64))
            with torch.no_grad():
                scores = model(facts, given, start, scopes, weights)  # noqa: B023
            return float(scores[0, town])  # noqa: B023

        found = evidence(model, facts, person, start, scopes, town, most=2)
        used = sorted({number % facts.facts for chain in found for number in chain.facts})
        # As many others around the person and the answer.
        touching = (facts.source == person) | (facts.target == town)
        near = sorted({int(n) % facts.facts for n in touching.nonzero()} - set(used))
        others = random.choice(near, min(len(used), len(near)), replace=False).tolist()
        falls.append((score([]) - score(used), score([]) - score(others)))
    own, random_fall = np.array(falls).T
    assert own.mean() > 2 * abs(random_fall.mean())
    assert (own > random_fall).mean() > 0.9
