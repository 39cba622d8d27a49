"""The path model: fast against plain, and what it promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from splime.errors import UsageError
from splime.paths import messages
from splime.paths.facts import DirectedFacts
from splime.paths.model import LearnedPathModel
from splime.paths.relative import EventScopes, Times
from splime.training.registry import make_settings
from tests.paths.test_messages import facts_of, make_facts

FIRST_LAYER = messages.first_layer
RELATIVE = EventScopes("step", (1, 2))


def questions(count: int, seed: int = 0) -> tuple[Tensor, Tensor, Times]:
    """Given entities, predicates (both ways) and times."""
    random = np.random.default_rng(seed)
    at = torch.from_numpy(random.integers(0, 4, count))
    given = torch.from_numpy(random.integers(0, 8, count))
    predicates = torch.from_numpy(random.integers(0, 6, count))
    return given, predicates, Times(at, at, torch.zeros_like(at))


def make_model(**settings: Any) -> LearnedPathModel:
    model = LearnedPathModel(3, len(RELATIVE), **{"layers": 3, "width": 16, **settings})
    random = torch.Generator().manual_seed(1)
    for part in (model.gate_weight, model.gate_bias, model.norm_bias):  # which begin at 0
        part.data = 0.3 * torch.randn(part.shape, generator=random)
    return model


def both(model: LearnedPathModel, facts: DirectedFacts, asked: Any, weights: Tensor) -> Any:
    """Scores and gradients, fast and plain."""
    given, predicates, times = asked
    scopes = facts.scopes(RELATIVE, times)
    seed = torch.tensor(7)
    for plain in (False, True):
        start = model.start(predicates)
        scores = model(facts, given, start, scopes, weights, seed=seed, plain=plain)
        loss = torch.nn.functional.cross_entropy(scores, (given + 1) % facts.entities)
        yield scores, *torch.autograd.grad(loss, list(model.parameters()))


@given(rows=facts_of, seed=st.integers(0, 1000), past=st.booleans())
@settings(max_examples=25)
def test_the_fast_model_is_the_plain_one(rows: list[Any], seed: int, past: bool) -> None:
    facts = make_facts(rows, 8, 3)
    weights = (
        torch.rand(2 * facts.facts, generator=torch.Generator().manual_seed(seed)) < 0.8
    ) * 1.0
    model = make_model(seed=seed)
    relative = EventScopes("step", (1, 2), past=past)
    given_, predicates, times = questions(5, seed)
    scopes = facts.scopes(relative, times)
    with torch.no_grad():
        fast, plain = (
            model(facts, given_, model.start(predicates), scopes, weights, plain=p)
            for p in (False, True)
        )
    torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dropout", [0.0, 0.2])
@pytest.mark.parametrize("aggregation", ["sum", "mean"])
@pytest.mark.parametrize("layers", [1, 3])
def test_gradients_of_the_fast_model(dropout: float, aggregation: Any, layers: int) -> None:
    rows = np.random.default_rng(3).integers(0, [8, 3, 8, 4], (14, 4)).tolist()
    facts = make_facts([tuple(row) for row in rows], 40, 3)  # most entities have no facts
    model = make_model(dropout=dropout, aggregation=aggregation, layers=layers).train()
    weights = facts.weights(torch.tensor([0, 5]))
    fast, plain = both(model, facts, questions(6), weights)
    torch.testing.assert_close(fast, plain, rtol=1e-3, atol=1e-5)


def test_the_first_layer_is_left_alone_where_it_saves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    star = make_facts([(0, i % 3, i, i % 4) for i in range(8)] * 3, 8, 3)
    sparse = make_facts([(i, 0, i + 1, i % 4) for i in range(7)], 80, 3)
    model = make_model(layers=1)
    for facts, taken in ((star, False), (sparse, True)):
        given, predicates, times = questions(4)
        given = given if taken else torch.zeros_like(given)
        scopes, calls = facts.scopes(RELATIVE, times), []

        def watched(*inputs: Any) -> Any:
            calls.append(FIRST_LAYER(*inputs))  # noqa: B023
            return calls[-1]  # noqa: B023

        monkeypatch.setattr(messages, "first_layer", watched)
        start = model.start(predicates)
        fast, plain = (model(facts, given, start, scopes, plain=p) for p in (False, True))
        assert [call is not None for call in calls] == [taken]
        torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-4)


def test_a_masked_fact_is_as_if_it_were_not_there() -> None:
    rows = [(0, 0, 1, 0), (1, 1, 2, 1), (2, 2, 3, 2), (0, 1, 3, 3)]
    model = make_model().eval()
    whole, less = make_facts(rows, 8, 3), make_facts(rows[:2] + rows[3:], 8, 3)
    given, predicates, times = questions(4)
    start = model.start(predicates)
    masked = model(
        whole, given, start, whole.scopes(RELATIVE, times), whole.weights(torch.tensor([2]))
    )
    without = model(less, given, start, less.scopes(RELATIVE, times))
    torch.testing.assert_close(masked, without, rtol=1e-4, atol=1e-5)


def test_questions_do_not_depend_on_each_other() -> None:
    facts = make_facts([(0, 0, 1, 0), (1, 1, 2, 1), (2, 2, 3, 2), (0, 1, 3, 3)], 8, 3)
    model = make_model().eval()
    given, predicates, times = questions(5)
    together = model(facts, given, model.start(predicates), facts.scopes(RELATIVE, times))
    for number in range(5):
        at = torch.tensor([number])
        start, scopes = model.start(predicates[at]), facts.scopes(RELATIVE, times.take(at))
        alone = model(facts, given[at], start, scopes)
        torch.testing.assert_close(alone[0], together[number], rtol=1e-5, atol=1e-5)


def test_a_seed_decides_the_parameters_and_names_are_plain() -> None:
    one, same, other = make_model(seed=3), make_model(seed=3), make_model(seed=4)
    states = [model.state_dict() for model in (one, same, other)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not torch.equal(states[0]["base"], states[2]["base"])
    assert all(name.replace("_", "").isalpha() for name in states[0])
    copy = make_model(seed=9)
    copy.load_state_dict(states[0])
    facts = make_facts([(0, 0, 1, 0)], 8, 3)
    given, predicates, times = questions(3)
    scopes = facts.scopes(RELATIVE, times)
    first, second = (model(facts, given, model.start(predicates), scopes) for model in (one, copy))
    assert torch.equal(first, second)


@pytest.mark.parametrize(
    "values",
    [{"dimension": 20}, {"layers": 0}, {"dropout": 1.0}, {"aggregation": "median"}, {"reach": 0}],
)
def test_settings_that_make_no_sense(values: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        make_settings("path", **values)
