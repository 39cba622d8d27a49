"""Logistic regression over rows of numbers, of which the first is always 1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from splime.device import one_thread
from splime.evaluation.metrics import Floats
from splime.times import Bools

RIDGE = 1e-3
"""How strongly weights are drawn to 0, beside how often the rarer case is."""
_FAR = 8.0
"""Spreads from the mean beyond which numbers count as that far."""


class Scale(NamedTuple):
    """Mean and spread of each number."""

    mean: Floats
    spread: Floats

    @classmethod
    def of(cls, x: Floats) -> Scale:
        """Those of some rows."""
        return cls(x.mean(0), np.maximum(x.std(0), 1e-6))

    def apply(self, x: Floats) -> Floats:
        """Rows as distances from the mean, in spreads."""
        return np.asarray(((x - self.mean) / self.spread).clip(-_FAR, _FAR))


def with_ones(x: Floats) -> Floats:
    """Rows as a regression needs them, with 1 first."""
    return np.concatenate([np.ones((len(x), 1)), x], axis=1)


def logistic(x: Floats) -> Floats:
    """1 / (1 + exp(-x))."""
    return np.asarray(1 / (1 + np.exp(-x.clip(-30, 30))))


def fit_logistic(
    x: Floats,
    right: Bools,
    weight: Floats,
    ridge: float = RIDGE,
    near: Floats | None = None,
) -> Floats:
    """The weights of a logistic regression, by Newton's method.

    `ridge` draws them to others, `near`; without those to 0, but for the first.
    """
    size = x.shape[1]
    start = np.zeros(size) if near is None else near
    if not weight.sum() > 0:
        return start
    weight = weight / weight.sum()
    pull = np.full(size, ridge)
    pull[0] *= near is not None
    pull = pull * max(float(weight @ right), 1e-9) + 1e-12
    columns = (x, right.astype(float), weight, pull, start)
    with one_thread():
        rows, true, share, drawn, line = (torch.as_tensor(column) for column in columns)
        return _newton(rows, true, share, drawn, line).numpy()


def _newton(
    x: torch.Tensor,
    right: torch.Tensor,
    weight: torch.Tensor,
    ridge: torch.Tensor,
    near: torch.Tensor,
) -> torch.Tensor:
    line, nothing = near, x.new_zeros(())

    def loss(line: torch.Tensor) -> float:
        z = x @ line
        unlikely = torch.logaddexp(z, nothing) - right * z
        return float(weight @ unlikely + ridge @ (line - near) ** 2 / 2)

    for _ in range(30):
        said = (x @ line).clamp(-30, 30).sigmoid()
        gradient = x.T @ (weight * (said - right)) + ridge * (line - near)
        curved = (x * (weight * said * (1 - said))[:, None]).T @ x + ridge.diag()
        step, size, before = torch.linalg.solve(curved, gradient), 1.0, loss(line)
        while loss(line - size * step) > before and size > 1e-6:
            size /= 2
        line = line - size * step
        if float((size * step).abs().max()) < 1e-4:
            break
    return line
