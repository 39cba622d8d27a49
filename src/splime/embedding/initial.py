"""The numbers that embeddings begin with."""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

INITIALISERS = ("xavier_normal", "xavier_uniform", "uniform", "small_normal")


def make_weights(
    name: str, rows: int, width: int, generator: Generator, *, spread: float = 1.0
) -> Tensor:
    """Rows of first vectors, by an initialiser.

    Xavier's rule is taken for the whole table: the variance is 2 / (rows + width). `small_normal`
    is how Lacroix et al. begin ComplEx; `uniform` lies between -spread and spread, as Sun et al.
    begin.
    """
    if name.endswith("normal"):
        scale = 1e-3 if name == "small_normal" else math.sqrt(2 / (rows + width))
        return torch.randn(rows, width, generator=generator) * scale
    scale = spread if name == "uniform" else math.sqrt(6 / (rows + width))
    return (torch.rand(rows, width, generator=generator) * 2 - 1) * scale


@torch.no_grad()
def fill_recurrent(generator: Generator | None, *weights: Tensor) -> None:
    """Fill matrices of recurrent networks with numbers up to 1 / √width, unless a file does."""
    for weight in () if generator is None else weights:
        drawn = torch.rand(weight.shape, generator=generator) * 2 - 1
        weight.copy_(drawn / math.sqrt(weight.shape[1]))
