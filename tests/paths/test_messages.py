"""Sums and updates: the plain formulas against loops, the fast ones against the plain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from splime.graph import Facts
from splime.paths import messages
from splime.paths.facts import DirectedFacts
from splime.paths.messages import Layers
from splime.paths.relative import LEFT_OUT


def make_facts(rows: list[tuple[int, int, int, int]], entities: int, predicates: int) -> Any:
    """Facts of (subject, predicate, object, time)."""
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    ids = (column.astype(np.int32) for column in columns[:3])
    facts = Facts(*ids, columns[3], columns[3].copy(), np.zeros(len(rows), np.uint8))
    return DirectedFacts.of(facts, entities, predicates)


# Few entities, so that there are isolated ones, parallel facts and facts from an entity to itself.
facts_of = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 2), st.integers(0, 6), st.integers(0, 3)),
    max_size=25,
)


def inputs(
    facts: DirectedFacts, seed: int, width: int = 16, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Random h, table, scopes and weights for three questions and four scopes."""
    random = torch.Generator().manual_seed(seed)
    h = torch.randn(facts.entities, 3, width, generator=random, dtype=dtype)
    table = torch.randn(2 * facts.predicates, 3, 4, width, generator=random, dtype=dtype)
    scopes = torch.randint(0, 5, (len(facts.times.begin), 3), generator=random)
    scopes = scopes.where(scopes < 4, LEFT_OUT).to(torch.uint8)
    weights = torch.randn(2 * facts.facts, generator=random, dtype=dtype)
    weights = weights * (torch.rand(2 * facts.facts, generator=random) < 0.7)
    return h.requires_grad_(), table.requires_grad_(), scopes, weights


@given(rows=facts_of, seed=st.integers(0, 1000))
@settings(max_examples=30)
def test_the_plain_sum_is_the_sum(rows: list[Any], seed: int) -> None:
    facts = make_facts(rows, 8, 3)
    h, table, scopes, weights = (x.detach() for x in inputs(facts, seed, 2))
    expected = torch.zeros_like(h)
    ordered = sorted({time for *_, time in rows})
    for number, (s, p, o, time) in enumerate(rows):
        for source, predicate, target, directed in (
            (s, p, o, number),
            (o, p + 3, s, number + len(rows)),
        ):
            for question in range(3):
                scope = int(scopes[ordered.index(time), question])
                if scope != LEFT_OUT:
                    message = table[predicate, question, scope] * h[source, question]
                    expected[target, question] += weights[directed] * message
    result = messages.plain_aggregate(h, table, scopes, weights, facts)
    torch.testing.assert_close(result, expected)


def test_gradients_of_the_plain_sum() -> None:
    facts = make_facts([(0, 0, 1, 0), (1, 1, 2, 1), (1, 1, 2, 2), (2, 0, 2, 0), (3, 1, 0, 1)], 5, 2)
    h, table, scopes, weights = inputs(facts, 0, 2, torch.float64)
    weights.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda *x: messages.plain_aggregate(x[0], x[1], scopes, x[2], facts), (h, table, weights)
    )


@given(rows=facts_of, seed=st.integers(0, 1000), width=st.sampled_from([16, 32]))
@settings(max_examples=40)
def test_the_fast_sum_is_the_plain_one(rows: list[Any], seed: int, width: int) -> None:
    facts = make_facts(rows, 8, 3)
    h, table, scopes, weights = inputs(facts, seed, width)
    result = messages.aggregate(h, table, scopes, weights, facts)
    expected = messages.plain_aggregate(h, table, scopes, weights, facts)
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)
    gradient = torch.randn(result.shape, generator=torch.Generator().manual_seed(seed))
    own = torch.autograd.grad(result, (h, table), gradient)
    plain = torch.autograd.grad(expected, (h, table), gradient)
    torch.testing.assert_close(own, plain, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("width", [16, 32])
def test_the_fast_update_is_the_plain_one(width: int, layer: int, dropout: float) -> None:
    random = torch.Generator().manual_seed(width + layer)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random).requires_grad_()

    h, a = normal(11, 3, width), normal(11, 3, width)
    layers = Layers(
        normal(2, width, 2 * width), normal(2, width), normal(2, width), normal(2, width)
    )
    seed, gradient = torch.tensor(2**31 + 5), normal(11, 3, width).detach()
    result = messages.update(h, a, layers, layer, dropout, seed)
    expected = messages.plain_update(h, a, layers, layer, dropout, seed)
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)
    own, plain = (torch.autograd.grad(x, (h, a, *layers), gradient) for x in (result, expected))
    torch.testing.assert_close(own, plain, rtol=1e-3, atol=1e-4)


def test_fast_scores_are_the_plain_ones() -> None:
    random = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random).requires_grad_()

    given = (normal(13, 3, 16), normal(32, 16), normal(3, 32), normal(32))
    result, expected = messages.scores(*given), messages.plain_scores(*given)
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)
    gradient = normal(13, 3).detach()
    own, plain = (torch.autograd.grad(x, given, gradient) for x in (result, expected))
    torch.testing.assert_close(own, plain, rtol=1e-4, atol=1e-4)


def test_dropout_keeps_the_share_it_should_and_differs_by_seed_and_layer() -> None:
    shape = torch.Size((100, 10, 16))
    masks = [
        messages.kept(shape, 0.3, torch.tensor(seed), layer)
        for seed, layer in ((0, 1), (1, 1), (0, 2))
    ]
    for mask in masks:
        assert abs(float(mask.float().mean()) - 0.7) < 0.01
    for one, other in ((0, 1), (0, 2), (1, 2)):
        both = float((masks[one] & masks[other]).float().mean())
        assert abs(both - 0.49) < 0.02


def test_the_result_does_not_depend_on_the_number_of_threads() -> None:
    random = np.random.default_rng(0)
    rows = random.integers(0, [40, 3, 40, 4], (300, 4)).tolist()
    facts = make_facts([tuple(row) for row in rows], 40, 3)
    h, table, scopes, weights = inputs(facts, 0)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            result = messages.aggregate(h, table, scopes, weights, facts)
            results.append([result, *torch.autograd.grad(result.square().sum(), (h, table))])
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
