"""The softmax loss: each query has one answer among all entities (1-vs-all)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, pad

from splime.axes import Range
from splime.embedding.losses.base import Loss
from splime.settings import Settings


def softmax(scores: Tensor, target: Tensor, settings: Settings) -> Tensor:  # noqa: ARG001
    """Cross-entropy of the right entity."""
    return cross_entropy(scores, target, reduction="none")


def softmax_loss(
    query: Tensor, candidates: Tensor, target: Tensor, which: Tensor | None = None
) -> Tensor:
    """Cross-entropy of inner products with all candidates: Σ over the targets.

    Where queries have several targets, `which` tells the query of each one, in ascending order, and
    its scores are made once. The probabilities are made in the place of the scores, block by block,
    and their gradients at once: one matrix of `block x candidates` is all the memory it needs.
    """
    loss: Tensor = _Softmax.apply(query, candidates, target, which)  # type: ignore[no-untyped-call]
    return loss


# Scores that are held at once: on a processor few enough to stay in its cache, but not so few rows
# that the matrix products suffer, as long as that takes no more than 256 MB.
_ROWS = {"cpu": 1 << 21, "cuda": 1 << 27}
_LEAST_ROWS, _MOST = 256, 1 << 26
# Matrix products on a GPU are twice as fast where their rows begin at multiples of 32 bytes.
_MULTIPLE = {"cpu": 1, "cuda": 8}


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, candidates: Tensor, target: Tensor, which: Tensor | None
    ) -> Tensor:
        count = len(candidates)
        if more := -count % _MULTIPLE[query.device.type]:
            candidates = pad(candidates, (0, 0, 0, more))
        of_query, of_candidates = torch.empty_like(query), torch.empty_like(candidates)
        loss = query.new_zeros(())
        columns = len(candidates)
        size = max(1, _ROWS[query.device.type] // columns, min(_LEAST_ROWS, _MOST // columns))
        for start in range(0, len(query), size):
            rows = slice(start, min(start + size, len(query)))
            row, answers = _answers(rows, target, which)
            cells = row * len(candidates) + answers
            scores = query[rows] @ candidates.T
            scores[:, count:] = -torch.inf
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
            of_candidates.addmm_(scores.T, query[rows], beta=int(start > 0))
        ctx.save_for_backward(of_query, of_candidates[:count])
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        of_query, of_candidates = ctx.saved_tensors
        return of_query * gradients[0], of_candidates * gradients[0], None, None


def _answers(rows: slice, target: Tensor, which: Tensor | None) -> tuple[Tensor, Tensor]:
    """The targets of some queries, and the row of the query that each one answers."""
    if which is None:
        return torch.arange(rows.stop - rows.start, device=target.device), target[rows]
    ends = torch.searchsorted(which, torch.tensor([rows.start, rows.stop], device=which.device))
    some = slice(int(ends[0]), int(ends[1]))
    return which[some] - rows.start, target[some]


SOFTMAX = Loss(
    "softmax",
    "cross-entropy over all entities (1-vs-all)",
    "all",
    softmax,
    ("corrupt",),
    {"n3": Range(0.001, 0.3, log=True)},
    of_products=softmax_loss,
)
