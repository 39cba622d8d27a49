"""The kernels for GPUs against the formulas that processors use.

They run where there is a GPU, and with TRITON_INTERPRET=1 where there is only Triton.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch

from splime.embedding.distances import moduli
from splime.embedding.losses import LEFT_OUT
from splime.embedding.losses.sampled import self_adversarial
from splime.embedding.objective import smoothness
from splime.embedding.settings import Settings
from splime.training.trainer import Trainer
from tests.embedding.formulas import as_triples, plain_model

pytest.importorskip("triton", reason="Triton is not installed; it comes with PyTorch for GPUs")
GPU = torch.cuda.is_available()
if not GPU and os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("there is no GPU, and TRITON_INTERPRET is not 1", allow_module_level=True)

kernels = import_module("splime.embedding.kernels")  # which imports Triton
DEVICE = "cuda" if GPU else "cpu"
needs_gpu = pytest.mark.skipif(not GPU, reason="there is no GPU")


def numbers(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator).to(DEVICE).requires_grad_()


def precise(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().cpu().double().requires_grad_()


def assert_close(found: Any, expected: Any) -> None:
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a.cpu().double(), b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize(("n", "m", "d"), [(9, 70, 10), (33, 5, 6), (1, 1, 2), (4, 40, 150)])
def test_distances(n: int, m: int, d: int, is_complex: bool) -> None:
    query, candidates, gradient = numbers(n, d), numbers(m, d), numbers(n, m).detach()
    measure = kernels.pairwise_moduli if is_complex else kernels.pairwise_l1
    found = measure(query, candidates)
    q, x = precise(query), precise(candidates)
    expected = moduli(q, x) if is_complex else (q.unsqueeze(1) - x).abs().sum(-1)
    assert_close([found], [expected])
    assert_close(
        torch.autograd.grad(found, (query, candidates), gradient),
        torch.autograd.grad(expected, (q, x), precise(gradient).detach()),
    )


def test_the_gradient_may_be_a_view() -> None:
    query, candidates = numbers(6, 4), numbers(3, 4)
    found = kernels.pairwise_l1(query, candidates).T.contiguous().T
    whole = torch.cat([found, found], dim=1)
    own = torch.autograd.grad((whole**2).sum(), (query, candidates))
    q, x = precise(query), precise(candidates)
    expected = 2 * (q.unsqueeze(1) - x).abs().sum(-1).square().sum()
    assert_close(own, torch.autograd.grad(expected, (q, x)))


@pytest.mark.parametrize("weights", ["fixed", "learned"])
def test_self_adversarial(weights: Any) -> None:
    settings = Settings(weights=weights, margin=2.0, temperature=0.7)
    positive, scores = numbers(7), numbers(7, 13).detach()
    scores[2, 3] = LEFT_OUT
    scores[4] = LEFT_OUT
    negative = scores.requires_grad_()
    found = kernels.self_adversarial(positive, negative, 2.0, 0.7, weights == "learned")
    p, f = precise(positive), precise(negative)
    expected = self_adversarial(p, f, settings)
    assert_close([found], [expected])
    assert_close(
        torch.autograd.grad(found.sum(), (positive, negative)),
        torch.autograd.grad(expected.sum(), (p, f)),
    )


@pytest.mark.parametrize("name", ["Adam", "Adagrad"])
def test_optimizers_take_the_steps_of_those_of_torch(name: str) -> None:
    ours = torch.nn.Parameter(numbers(50, 30).detach().clone())
    theirs = torch.nn.Parameter(ours.detach().clone())
    own, plain = getattr(kernels, name)([ours], 1e-2), getattr(torch.optim, name)([theirs], lr=1e-2)
    for step in range(20):
        gradient = numbers(50, 30 + step)[:, :30].detach()
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        own.step()
        plain.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("n", "d"), [(7, 5), (2, 1030), (1, 3)])
def test_smoothness(n: int, d: int) -> None:
    vectors = numbers(n, d)
    follows = torch.tensor([1.0, 1.0, 0.0, 1.0, 0.0, 1.0], device=DEVICE)[: n - 1]
    found = 0.3 * kernels.squared_changes(vectors, follows)
    x = precise(vectors)
    expected = 0.3 * smoothness(x, follows.cpu().double()) * follows.cpu().sum().clamp_min(1)
    assert_close([found], [expected])
    assert_close(torch.autograd.grad(found, vectors), torch.autograd.grad(expected, x))


def make_trainer(device: str, **values: Any) -> Trainer:
    triples = np.random.default_rng(0).integers(0, 20, (403, 3))
    settings = Settings(**{"model": "transe", "dimension": 12, "batch_size": 20, **values})
    predicates = 40 if settings.reciprocal else 20
    model = plain_model(settings.model, 20, predicates, settings.dimension, norm=settings.norm)
    return Trainer(model.to(device), as_triples(triples), settings)


CASES: list[dict[str, Any]] = [
    {"negatives": 10},
    {"negatives": 10, "share": "none"},
    {"model": "rotate", "negatives": 10},
    {"model": "complex", "loss": "softmax", "reciprocal": True, "optimizer": "adagrad"},
    {"model": "distmult", "loss": "bce", "optimizer": "sgd", "avoid_known": True},
]


@needs_gpu
@pytest.mark.parametrize("values", CASES)
def test_recorded_steps_are_the_steps(values: dict[str, Any], monkeypatch: Any) -> None:
    from splime.training import cuda

    found = []
    for warm_up in (3, 10**9):
        monkeypatch.setattr(cuda, "_WARM_UP", warm_up)
        trainer = make_trainer("cuda", **values)
        losses = [trainer.run_epoch() for _ in range(3)]
        assert bool(trainer.recordings) == (warm_up == 3)
        found.append((losses, trainer.model.entities.vectors().detach().clone()))
    assert found[0][0] == found[1][0]
    assert torch.equal(found[0][1], found[1][1])


@needs_gpu
@pytest.mark.parametrize("values", CASES)
def test_a_resumed_training_ends_the_same(values: dict[str, Any]) -> None:
    whole = make_trainer("cuda", **values)
    for _ in range(3):
        whole.run_epoch()
    first = make_trainer("cuda", **values)
    first.run_epoch()
    tensors, about = first.state()
    second = make_trainer("cuda", **values)
    second.restore({name: tensor.cpu() for name, tensor in tensors.items()}, about)
    for _ in range(2):
        second.run_epoch()
    assert torch.equal(whole.model.entities.vectors(), second.model.entities.vectors())
    assert torch.equal(whole.model.predicates.vectors(), second.model.predicates.vectors())
