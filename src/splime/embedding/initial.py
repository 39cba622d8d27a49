"""The numbers that embeddings begin with."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Generator, Tensor


def xavier_normal(rows: int, width: int, spread: float, generator: Generator) -> Tensor:  # noqa: ARG001
    """Normal, with variance 2 / (rows + width): Xavier's rule for the whole table."""
    return torch.randn(rows, width, generator=generator) * math.sqrt(2 / (rows + width))


def xavier_uniform(rows: int, width: int, spread: float, generator: Generator) -> Tensor:  # noqa: ARG001
    """Uniform with the same variance."""
    return _uniform(rows, width, math.sqrt(6 / (rows + width)), generator)


def uniform(rows: int, width: int, spread: float, generator: Generator) -> Tensor:
    """Uniform between -spread and spread, as Sun et al. begin."""
    return _uniform(rows, width, spread, generator)


def small_normal(rows: int, width: int, spread: float, generator: Generator) -> Tensor:  # noqa: ARG001
    """Normal with a standard deviation of 0.001, as Lacroix et al. begin ComplEx."""
    return torch.randn(rows, width, generator=generator) * 1e-3


def _uniform(rows: int, width: int, most: float, generator: Generator) -> Tensor:
    return (torch.rand(rows, width, generator=generator) * 2 - 1) * most


INITIALISERS: Mapping[str, Callable[[int, int, float, Generator], Tensor]] = {
    "xavier_normal": xavier_normal,
    "xavier_uniform": xavier_uniform,
    "uniform": uniform,
    "small_normal": small_normal,
}


def make_weights(
    name: str, rows: int, width: int, generator: Generator, *, spread: float = 1.0
) -> Tensor:
    """Rows of first vectors; `spread` is for initialisers that do not choose their own."""
    return INITIALISERS[name](rows, width, spread, generator)
