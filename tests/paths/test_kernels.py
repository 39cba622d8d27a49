"""The kernels for GPUs against the plain formulas.

They run where there is a GPU, and with TRITON_INTERPRET=1 where there is only Triton.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch

from splime.paths import messages
from splime.paths.model import LearnedPathModel
from splime.paths.relative import EventScopes, Times
from tests.paths.test_messages import (
    assert_scores,
    assert_sums,
    assert_tables,
    assert_update,
    inputs,
    make_facts,
)
from tests.paths.test_model import make_model
from tests.paths.test_nearest import assert_reads

pytest.importorskip("triton", reason="Triton is not installed; it comes with PyTorch for GPUs")
GPU = torch.cuda.is_available()
if not GPU and os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("there is no GPU, and TRITON_INTERPRET is not 1", allow_module_level=True)

kernels = import_module("splime.paths.kernels")  # which imports Triton
DEVICE = "cuda" if GPU else "cpu"
# Matrix products on a GPU are of numbers with 10 bits (tf32), and messages have 8.
EXACT = 0.1 if GPU else 1e-4
MESSAGES = 2e-2


@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("rows", [0, 5, 90])
def test_sums(rows: int, width: int) -> None:
    # Sums of 90 facts cross the borders between programs; some predicates have no facts.
    values = np.random.default_rng(rows).integers(0, [6, 3, 6, 4], (rows, 4)).tolist()
    facts = make_facts([tuple(row) for row in values], 8, 4).to(DEVICE)
    given = [x.to(DEVICE) for x in inputs(facts, 0, width)]
    rounded = [x.detach().bfloat16().float().requires_grad_() for x in given[:2]]
    assert_sums(kernels, facts, (*rounded, *given[2:]), MESSAGES)


def test_tables() -> None:
    assert_tables(kernels, DEVICE, MESSAGES)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("layer", [0, 1])
def test_updates(layer: int, dropout: float) -> None:
    assert_update(kernels, DEVICE, 32, layer, dropout, EXACT)


def test_scores() -> None:
    assert_scores(kernels, DEVICE, EXACT)


@pytest.mark.parametrize(("dropout", "aggregation"), [(0.0, "sum"), (0.2, "sum"), (0.2, "mean")])
def test_a_step_of_the_model(dropout: float, aggregation: Any, monkeypatch: Any) -> None:
    # Rounded numbers fall on the other side of a relu now and then: here they are not rounded.
    monkeypatch.setattr(kernels, "_SMALL", torch.float32)
    if not GPU:
        monkeypatch.setattr(messages, "fast", lambda _: kernels)
        monkeypatch.setattr(messages, "first_layer", lambda *_: None)
    values = np.random.default_rng(0).integers(0, [9, 2, 9, 4], (40, 4)).tolist()
    facts = make_facts([tuple(row) for row in values], 11, 2).to(DEVICE)
    relative = EventScopes("step", (1, 2))
    at = torch.tensor([0, 2, 3], device=DEVICE)
    scopes = facts.scopes(relative, Times(at, at, torch.zeros_like(at)))
    settings: Any = {"layers": 3, "width": 16, "dropout": dropout, "aggregation": aggregation}
    model = LearnedPathModel(2, len(relative), **settings).to(DEVICE).train()
    seed, results = torch.tensor(3, device=DEVICE), []
    for plain in (False, True):
        scores = model(
            facts, at, model.start(at), scopes, facts.weights(at), seed=seed, plain=plain
        )
        loss = torch.nn.functional.cross_entropy(scores, at)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        results.append([scores.detach(), torch.cat([part.flatten() for part in gradients])])
    for fast, plain in zip(*results, strict=True):
        assert float((fast - plain).norm() / plain.norm()) < (0.1 if GPU else 1e-4)


@pytest.mark.parametrize("aggregation", ["sum", "mean"])
def test_a_bound_on_what_is_read(aggregation: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(kernels, "_SMALL", torch.float32)
    if not GPU:
        monkeypatch.setattr(messages, "fast", lambda _: kernels)
        monkeypatch.setattr(messages, "first_layer", lambda *_: None)
    model = make_model(aggregation=aggregation, reach=9).to(DEVICE)
    assert_reads(model, model.start, DEVICE, 0.1 if GPU else 1e-4)
