"""The softmax loss: each query has one answer among all entities (1-vs-all)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, pad

from splime import collective
from splime.axes import Range
from splime.collective import Rows
from splime.embedding.losses.base import Loss
from splime.embedding.settings import Settings


def softmax(scores: Tensor, target: Tensor, settings: Settings) -> Tensor:  # noqa: ARG001
    """Cross-entropy of the right entity."""
    return cross_entropy(scores, target, reduction="none")


def softmax_loss(
    query: Tensor,
    candidates: Tensor,
    target: Tensor,
    which: Tensor | None = None,
    here: Rows | None = None,
) -> Tensor:
    """Cross-entropy of inner products with all candidates: Σ over the targets.

    Where queries have several targets, `which` tells the query of each one, in ascending order, and
    its scores are made once. The probabilities are made in the place of the scores, block by block,
    and their gradients at once: one matrix of `block x candidates` is all the memory it needs.

    With `here` the candidates are those of this worker, and so is the loss: that of the targets
    among them. For each block the workers tell each other one number for each query.
    """
    loss: Tensor = _Softmax.apply(  # type: ignore[no-untyped-call]
        query, candidates, target, which, here
    )
    return loss


def softmax_of_shard(scores: Tensor, target: Tensor, here: Rows) -> Tensor:
    """The same from the scores of this worker's candidates: its share of the sum."""
    loss: Tensor = _SoftmaxOfShard.apply(scores, target, here)  # type: ignore[no-untyped-call]
    return loss


def _everywhere(own: Tensor) -> Tensor:
    """The logarithms of sums of exponentials over all candidates, from those of each worker."""
    return torch.stack(collective.gathered(own)).logsumexp(0)


# Scores that are held at once: on a processor few enough to stay in its cache, but not so few rows
# that the matrix products suffer, as long as that takes no more than 256 MB.
_ROWS = {"cpu": 1 << 21, "cuda": 1 << 27}
_LEAST_ROWS, _MOST = 256, 1 << 26
# Matrix products on a GPU are twice as fast where their rows begin at multiples of 32 bytes.
_MULTIPLE = {"cpu": 1, "cuda": 8}


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        candidates: Tensor,
        target: Tensor,
        which: Tensor | None,
        here: Rows | None,
    ) -> Tensor:
        count = len(candidates)
        if more := -count % _MULTIPLE[query.device.type]:
            candidates = pad(candidates, (0, 0, 0, more))
        of_query, of_candidates = torch.empty_like(query), torch.empty_like(candidates)
        loss = query.new_zeros(())
        columns = len(candidates) if here is None else here.most
        size = _rows_at_once(query.device.type, columns)
        for start in range(0, len(query), size):
            rows = slice(start, min(start + size, len(query)))
            row, answers = _answers(rows, target, which)
            own = row
            if here is not None:
                at, answers = here.own(answers)
                own = row[at]
            cells = own * len(candidates) + answers
            scores = query[rows] @ candidates.T
            scores[:, count:] = -torch.inf
            flat = scores.view(-1)
            most = scores.amax(1, keepdim=True)
            loss -= (flat[cells] - most.squeeze(1)[own]).sum()
            scores.sub_(most).exp_()
            total = scores.sum(1, keepdim=True)
            log_total = total.log()
            if here is not None:
                log_total = _everywhere(most + log_total) - most
                total = log_total.exp()  # infinite where others score far higher: no probability
            loss += log_total.squeeze(1)[own].sum()
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
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        of_query, of_candidates = ctx.saved_tensors
        return of_query * gradients[0], of_candidates * gradients[0], None, None, None


class _SoftmaxOfShard(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, target: Tensor, here: Rows) -> Tensor:
        whole = _everywhere(scores.logsumexp(1, keepdim=True))
        row, column = here.own(target)
        loss = (whole.squeeze(1)[row] - scores[row, column]).sum()
        of_scores = (scores - whole).exp_()
        of_scores[row, column] -= 1
        ctx.save_for_backward(of_scores)
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (of_scores,) = ctx.saved_tensors
        return of_scores * gradients[0], None, None


def _rows_at_once(device: str, columns: int) -> int:
    return max(1, _ROWS[device] // columns, min(_LEAST_ROWS, _MOST // columns))


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
    {"n3": Range(0.001, 0.3, log=True)},
    of_products=softmax_loss,
    of_shard=softmax_of_shard,
)
