"""The numbers that embeddings begin with."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch
from torch import Generator, Tensor

from splime.collective import Rows

Draw: TypeAlias = Callable[[Callable[..., Tensor]], Tensor]
"""Calls a function of torch that draws numbers, for all rows or for those of this worker."""
# Rows that are drawn at once where not all are kept.
_BLOCK = 1 << 16


def xavier_normal(rows: int, width: int, spread: float, draw: Draw) -> Tensor:  # noqa: ARG001
    """Normal, with variance 2 / (rows + width): Xavier's rule for the whole table."""
    return draw(torch.randn) * math.sqrt(2 / (rows + width))


def xavier_uniform(rows: int, width: int, spread: float, draw: Draw) -> Tensor:  # noqa: ARG001
    """Uniform with the same variance."""
    return _uniform(math.sqrt(6 / (rows + width)), draw)


def uniform(rows: int, width: int, spread: float, draw: Draw) -> Tensor:  # noqa: ARG001
    """Uniform between -spread and spread, as Sun et al. begin."""
    return _uniform(spread, draw)


def small_normal(rows: int, width: int, spread: float, draw: Draw) -> Tensor:  # noqa: ARG001
    """Normal with a standard deviation of 0.001, as Lacroix et al. begin ComplEx."""
    return draw(torch.randn) * 1e-3


def _uniform(most: float, draw: Draw) -> Tensor:
    return (draw(torch.rand) * 2 - 1) * most


INITIALISERS: Mapping[str, Callable[[int, int, float, Draw], Tensor]] = {
    "xavier_normal": xavier_normal,
    "xavier_uniform": xavier_uniform,
    "uniform": uniform,
    "small_normal": small_normal,
}


def make_weights(
    name: str,
    rows: int,
    width: int,
    generator: Generator,
    *,
    spread: float = 1.0,
    own: Rows | None = None,
) -> Tensor:
    """Rows of first vectors; `spread` is for initialisers that do not choose their own.

    With `own` only those are kept, and they are the same as without.
    """

    def draw(function: Callable[..., Tensor]) -> Tensor:
        if own is None:
            return function(rows, width, generator=generator)
        kept, start = torch.empty(len(own), width), 0
        while start < rows:
            # Numbers come in groups of 16, and those at the very end are drawn twice: so the last
            # block takes what is too little for one of its own.
            stop = rows if rows - start < 2 * _BLOCK else start + _BLOCK
            drawn = function(stop - start, width, generator=generator)
            low, high = max(start, own.start), min(stop, own.stop)
            if low < high:
                kept[low - own.start : high - own.start] = drawn[low - start : high - start]
            start = stop
        return kept

    return INITIALISERS[name](rows, width, spread, draw)
