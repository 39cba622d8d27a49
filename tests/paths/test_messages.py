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
from splime.paths.messages import Layers, LearnedMessages
from splime.paths.relative import LEFT_OUT


def make_facts(rows: list[tuple[int, int, int, int]], entities: int, predicates: int) -> Any:
    """Facts of (subject, predicate, object, time)."""
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    ids: Any = (column.astype(np.int32) for column in columns[:3])
    facts = Facts(
        next(ids),
        next(ids),
        next(ids),
        columns[3],
        columns[3].copy(),
        np.zeros(len(rows), np.uint8),
    )
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
    result = messages.plain_aggregate(h, table, scopes, weights, facts.incoming)
    torch.testing.assert_close(result, expected)


def test_gradients_of_the_plain_sum() -> None:
    facts = make_facts([(0, 0, 1, 0), (1, 1, 2, 1), (1, 1, 2, 2), (2, 0, 2, 0), (3, 1, 0, 1)], 5, 2)
    h, table, scopes, weights = inputs(facts, 0, 2, torch.float64)
    weights.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda *x: messages.plain_aggregate(x[0], x[1], scopes, x[2], facts.incoming),
        (h, table, weights),
    )


@given(rows=facts_of, seed=st.integers(0, 1000), width=st.sampled_from([16, 32]))
def test_the_fast_sum_is_the_plain_one(rows: list[Any], seed: int, width: int) -> None:
    facts = make_facts(rows, 8, 3)
    assert_sums(messages.fast(torch.device("cpu")), facts, inputs(facts, seed, width), 1e-5)


def assert_near(result: Any, expected: Any, tolerance: float) -> None:
    """Relatively, by the norm: rounded numbers fall on the other side of a relu now and then."""
    for mine, plain in zip(result, expected, strict=True):
        assert mine.shape == plain.shape
        apart, size = (mine.float() - plain.detach()).norm(), plain.detach().norm()
        assert float(apart) <= tolerance * (float(size) + 1e-3)


def assert_sums(on: Any, facts: DirectedFacts, given: Any, tolerance: float) -> None:
    """The sums of a module, and their gradients, against the plain formula."""
    h, table, scopes, weights = given
    expected = messages.plain_aggregate(h, table, scopes, weights, facts.incoming)
    gradient = torch.randn(h.shape, generator=torch.Generator().manual_seed(1)).to(h.device)
    plain = torch.autograd.grad(expected, (h, table), gradient)
    h, table, gradient = (on.compact(x.detach()) for x in (h, table, gradient))
    result, of_h = (torch.ones(h.shape, device=h.device) for _ in range(2))  # it adds
    on.add_messages(result, h, table, scopes, weights, facts.incoming, False)
    on.add_messages(of_h, gradient, table, scopes, weights, facts.outgoing, True)
    of_table = on.table_gradient(h, gradient, table, scopes, weights, facts)
    assert_near((result - 1, of_h - 1, of_table), (expected, *plain), tolerance)


def test_the_fast_table_is_the_plain_one() -> None:
    assert_tables(messages.fast(torch.device("cpu")), "cpu", 1e-5)


def assert_tables(on: Any, device: str, tolerance: float) -> None:
    """The table of a module, and its gradients, against the plain formula."""
    random = torch.Generator().manual_seed(0)
    base, gate, shift, gradient = (
        torch.randn(shape, generator=random).to(device)
        for shape in ((6, 5, 16), (3, 5, 16), (3, 6, 16), (6, 3, 5, 16))
    )
    parts = [part.unsqueeze(0).requires_grad_() for part in (base, gate, shift)]
    expected = LearnedMessages(*parts).plain_table(0)
    plain = torch.autograd.grad(expected, parts, gradient)
    assert_near([on.table(base, gate, shift)], [expected], tolerance)
    assert_near(on.table_parts(gradient, base, gate), [part[0] for part in plain], 1e-4)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("width", [16, 32])
def test_the_fast_update_is_the_plain_one(width: int, layer: int, dropout: float) -> None:
    on = messages.fast(torch.device("cpu"))
    assert_update(on, "cpu", width, layer, dropout, 1e-4)


def assert_update(
    on: Any, device: str, width: int, layer: int, dropout: float, tolerance: float
) -> None:
    """The update of a module, and its gradients, against the plain formula."""
    random = torch.Generator().manual_seed(width + layer)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random).to(device).requires_grad_()

    h, a = normal(41, 3, width), normal(41, 3, width)
    own = (normal(2, width, 2 * width), normal(2, width), normal(2, width), normal(2, width))
    seed, gradient = torch.tensor(2**31 + 5, device=device), normal(41, 3, width).detach()
    expected = messages.plain_update(
        h, a, Layers(LearnedMessages(h, h, h), *own), layer, dropout, seed
    )
    of_h, of_a, *of_own = torch.autograd.grad(expected, (h, a, *own), gradient)
    given = (h.detach(), a.detach(), tuple(part[layer].detach() for part in own))
    result, small = on.update(*given, dropout, seed, layer)
    assert_near([result], [expected], tolerance)
    assert_near([small], [expected], max(tolerance, 1e-2))
    mine_h, mine_a, mine = on.update_gradient(gradient, *given, dropout, seed, layer)
    assert_near([mine_h, *mine], [of_h, *(part[layer] for part in of_own)], tolerance)
    assert_near([mine_a], [of_a], tolerance if mine_a.dtype == torch.float32 else 1e-2 + tolerance)


def test_fast_scores_are_the_plain_ones() -> None:
    assert_scores(messages.fast(torch.device("cpu")), "cpu", 1e-4)


def assert_scores(on: Any, device: str, tolerance: float) -> None:
    """The scores of a module, and their gradients, against the plain formula."""
    random = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random).to(device).requires_grad_()

    given = (normal(133, 3, 16), normal(32, 16), normal(3, 32), normal(32))
    expected, gradient = messages.plain_scores(*given), normal(3, 133).detach()
    plain = torch.autograd.grad(expected, given, gradient)
    values = [value.detach() for value in given]
    assert_near([on.scores(*values)], [expected], tolerance)
    assert_near(on.scores_gradient(gradient, *values), plain, tolerance)


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


def test_the_results_do_not_depend_on_the_number_of_threads() -> None:
    rows = np.random.default_rng(0).integers(0, [40, 3, 40, 4], (300, 4)).tolist()
    facts = make_facts([tuple(row) for row in rows], 40, 3)
    h, table, scopes, weights = (x.detach() for x in inputs(facts, 0))
    own = tuple(torch.ones(shape) for shape in ((16, 32), (16,), (16,), (16,)))
    scoring = (torch.ones(32, 16), torch.ones(3, 32), torch.ones(32))
    on, before, results = messages.fast(h.device), torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            a = torch.zeros_like(h)
            on.add_messages(a, h, table, scopes, weights, facts.incoming, False)
            of_h, of_a, of_own = on.update_gradient(a, h, a, own, 0.1, torch.tensor(0), 1)
            result = [a, of_h, of_a, *of_own, *on.update(h, a, own, 0.1, torch.tensor(0), 1)]
            result += on.scores_gradient(on.scores(h, *scoring), h, *scoring)
            results.append([*result, on.table_gradient(h, a, table, scopes, weights, facts)])
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


def test_at_work_the_threads_are_those_of_the_kernels() -> None:
    """Torch computes alone, and has them back afterwards, also after an error."""
    on, before, seen = messages.fast(torch.device("cpu")), torch.get_num_threads(), []

    def work(deeper: bool) -> None:
        with on.at_work():
            if deeper:
                work(False)
            seen.append(torch.get_num_threads())
            raise KeyError

    try:
        torch.set_num_threads(3)
        with pytest.raises(KeyError):
            work(True)
        with pytest.raises(KeyError):
            work(False)
        assert [*seen, torch.get_num_threads()] == [1, 1, 3]
    finally:
        torch.set_num_threads(before)


def test_at_work_an_array_is_used_again_only_if_nobody_has_it() -> None:
    on, like = messages.fast(torch.device("cpu")), torch.zeros(1)
    with on.at_work():
        one = on.empty(like, 30, 2)
        part, place = one[3:5].numpy(), one.data_ptr()
        part[:] = 7
        del one
        others = [on.empty(like, 60).fill_(0) for _ in range(3)]  # a part of it is still in use
        assert place not in [each.data_ptr() for each in others]
        assert (part == 7).all()
        del part
        again = on.empty(like, 5, 11)
        assert again.data_ptr() == place
        assert on.empty(like, 25).data_ptr() != place
        del again
        assert on.empty(like, 1000).data_ptr() != place  # it is too small
        assert on.empty(like, 2).data_ptr() != place  # or too large
        with on.at_work():
            assert on.empty(like, 60).data_ptr() != place  # a block has its own
        assert on.empty(like, 60).data_ptr() == place
