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
from splime.settings import Settings
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
