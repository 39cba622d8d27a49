"""Losses: what a positive's score and those of its negatives cost. One line each in `LOSSES`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from splime.embedding.settings import Settings
from splime.errors import check_name

SOFTMAX = "softmax"
"""The loss that takes all entities as negatives, `softmax_loss`."""

LEFT_OUT = -1e30
"""The score of negatives that are left out: the losses and their gradients do not feel it.

Minus infinity would do, but for a positive whose negatives are all left out, and temperature 0.
"""


def self_adversarial(positive: Tensor, negative: Tensor, settings: Settings) -> Tensor:
    """Sun et al.: -log σ(m + f⁺) - Σ wᵢ log σ(-m - fᵢ⁻), w = softmax(temperature f⁻)."""
    if negative.is_cuda and negative.dtype == torch.float32:
        from splime.embedding import kernels

        learned = settings.weights == "learned"
        return kernels.self_adversarial(
            positive, negative, settings.margin, settings.temperature, learned
        )
    weights = torch.softmax(settings.temperature * negative, dim=1)
    if settings.weights == "fixed":
        weights = weights.detach()
    # softplus(x) = -log σ(-x); unlike log σ it has a derivative of 0 where negatives are left out.
    wrong = (weights * softplus(settings.margin + negative)).sum(1)
    return wrong - logsigmoid(settings.margin + positive)


def margin(positive: Tensor, negative: Tensor, settings: Settings) -> Tensor:
    """Pairwise: Σ max(0, m - f⁺ + fᵢ⁻)."""
    return torch.relu(settings.margin - positive.unsqueeze(1) + negative).sum(1)


def bce(positive: Tensor, negative: Tensor, settings: Settings) -> Tensor:  # noqa: ARG001
    """Binary cross-entropy: -log σ(f⁺) - mean log σ(-f⁻); negatives that are left out add 0."""
    return softplus(-positive) + softplus(negative).mean(1)


Loss = Callable[[Tensor, Tensor, Settings], Tensor]
LOSSES: Mapping[str, Loss | None] = {
    "self_adversarial": self_adversarial,
    "margin": margin,
    "bce": bce,
    SOFTMAX: None,
}


def check_loss(name: str) -> None:
    """An error that suggests the nearest, unless there is such a loss."""
    check_name("loss", name, LOSSES)


def softmax_loss(
    query: Tensor, candidates: Tensor, target: Tensor, which: Tensor | None = None
) -> Tensor:
    """Cross-entropy of inner products with all candidates: Σ over the targets.

    Where queries have several targets, `which` tells the query of each one, in ascending order, and
    its scores are made once. The probabilities are made in the place of the scores, block by block,
    and their gradients at once: one matrix of `block x candidates` is all the memory it needs.
    """
    return _Softmax.apply(query, candidates, target, which)


# Scores that are held at once: on a processor few enough to stay in its cache, but not so few rows
# that the matrix products suffer, as long as that takes no more than 256 MB.
_ROWS = {"cpu": 1 << 21, "cuda": 1 << 27}
_LEAST_ROWS, _MOST = 256, 1 << 26


class _Softmax(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, candidates: Tensor, target: Tensor, which: Tensor | None
    ) -> Tensor:
        of_query, of_candidates = torch.empty_like(query), torch.zeros_like(candidates)
        loss = query.new_zeros(())
        size = _rows_at_once(query.device.type, len(candidates))
        for start in range(0, len(query), size):
            rows = slice(start, min(start + size, len(query)))
            row, answers = _answers(rows, target, which)
            cells = row * len(candidates) + answers
            scores = query[rows] @ candidates.T
            flat = scores.view(-1)
            most = scores.amax(1, keepdim=True)
            loss -= (flat[cells] - most.squeeze(1)[row]).sum()
            scores.sub_(most).exp_()
            total = scores.sum(1, keepdim=True)
            loss += total.log().squeeze(1)[row].sum()
            if which is None:
                scores.div_(total)
            else:
                many = torch.bincount(row, minlength=len(scores)).unsqueeze(1)
                scores.mul_(many / total)
            flat.scatter_add_(0, cells, flat.new_full((), -1.0).expand_as(cells))
            of_query[rows] = scores @ candidates
            of_candidates.addmm_(scores.T, query[rows])
        ctx.save_for_backward(of_query, of_candidates)
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        of_query, of_candidates = ctx.saved_tensors
        return of_query * gradients[0], of_candidates * gradients[0], None, None


def _rows_at_once(device: str, columns: int) -> int:
    return max(1, _ROWS[device] // columns, min(_LEAST_ROWS, _MOST // columns))


def _answers(rows: slice, target: Tensor, which: Tensor | None) -> tuple[Tensor, Tensor]:
    """The targets of some queries, and the row of the query that each one answers."""
    if which is None:
        return torch.arange(rows.stop - rows.start, device=target.device), target[rows]
    ends = torch.searchsorted(which, torch.tensor([rows.start, rows.stop], device=which.device))
    some = slice(int(ends[0]), int(ends[1]))
    return which[some] - rows.start, target[some]
