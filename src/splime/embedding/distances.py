"""How query vectors are compared with candidate vectors: every query with every candidate.

Queries are `(n, d)`. Candidates are `(m, d)`, shared by all queries, or `(n, m, d)`, where each
query has its own. Either way the result is `(n, m)`, and with shared candidates nothing of the size
`n x m x d` is ever in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import torch
from torch import Tensor

Pair: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""A score of queries and candidates, whose last axis is a vector."""

# Differences of a block of queries to all candidates are held at once, up to this many numbers:
# few enough to stay in the cache of a processor, enough to keep a GPU busy.
_BLOCK = {"cpu": 1 << 19, "cuda": 1 << 26}
# Queries and candidates whose distances are added up together.
_TILE = 512, 1024


def dot(query: Tensor, candidates: Tensor) -> Tensor:
    """Inner products."""
    if candidates.dim() == 3:
        return (candidates @ query.unsqueeze(2)).squeeze(2)
    return query @ candidates.T


def l1(query: Tensor, candidates: Tensor) -> Tensor:
    """Sums of absolute differences."""
    if candidates.dim() == 3:
        return (query.unsqueeze(1) - candidates).abs().sum(2)
    if query.is_cuda and query.dtype == torch.float32:
        from splime.embedding.kernels import pairwise_l1

        return pairwise_l1(query, candidates)
    distances: Tensor = _L1.apply(query, candidates)  # type: ignore[no-untyped-call]
    return distances


class _L1(torch.autograd.Function):
    """Coordinate by coordinate, added up in tiles that stay in the cache of a processor.

    That takes half as long as `torch.cdist`, whose gradient is the faster one.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, candidates: Tensor) -> Tensor:
        ctx.save_for_backward(query, candidates)
        (rows, width), columns = query.shape, len(candidates)
        result = query.new_zeros(rows, columns)
        by_query, by_candidate = query.T.contiguous(), candidates.T.contiguous()
        for top in range(0, rows, _TILE[0]):
            for left in range(0, columns, _TILE[1]):
                tile = result[top : top + _TILE[0], left : left + _TILE[1]]
                total, apart = torch.zeros_like(tile), torch.empty_like(tile)
                q = by_query[:, top : top + _TILE[0]].unsqueeze(2)
                x = by_candidate[:, left : left + _TILE[1]]
                for k in range(width):
                    torch.sub(q[k], x[k], out=apart)
                    total += apart.abs_()
                tile.copy_(total)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        query, candidates = ctx.saved_tensors
        gradient, nothing = gradients[0].contiguous(), gradients[0].new_empty(0)
        backward = torch.ops.aten._cdist_backward  # of norm 1, which does not need the distances
        of_query = backward(gradient, query, candidates, 1.0, nothing)
        return of_query, backward(gradient.T.contiguous(), candidates, query, 1.0, nothing)


def l2(query: Tensor, candidates: Tensor) -> Tensor:
    """Euclidean distances."""
    if candidates.dim() == 3:
        return norm(query.unsqueeze(1) - candidates, 2)
    return root(squared(query, candidates))


def norm(vectors: Tensor, power: int) -> Tensor:
    """The lengths of vectors by a norm."""
    lengths: Tensor = torch.linalg.vector_norm(vectors, power, dim=-1)
    return lengths


def root(squares: Tensor) -> Tensor:
    """Square roots, with a derivative at 0, and of what rounding made negative."""
    return squares.clamp_min(_TINY).sqrt()


_TINY = 1e-24


def squared(query: Tensor, candidates: Tensor) -> Tensor:
    """Squared Euclidean distances, from inner products."""
    lengths = query.square().sum(-1, keepdim=True) + candidates.square().sum(-1)
    return lengths - 2 * dot(query, candidates)


def moduli(query: Tensor, candidates: Tensor) -> Tensor:
    """Sums of the moduli of complex differences; real parts stand first, imaginary ones second."""
    if candidates.dim() == 3:
        return complex_sizes(query.unsqueeze(1) - candidates).sum(-1)
    if query.is_cuda and query.dtype == torch.float32:
        from splime.embedding.kernels import pairwise_moduli

        return pairwise_moduli(query, candidates)
    distances: Tensor = _Moduli.apply(query, candidates)  # type: ignore[no-untyped-call]
    return distances


def complex_sizes(vectors: Tensor) -> Tensor:
    """The moduli of complex vectors, with a derivative at 0."""
    real, imaginary = vectors.chunk(2, dim=-1)
    return root(real.square() + imaginary.square())


class _Moduli(torch.autograd.Function):
    """Block by block of queries; backward makes the differences again instead of keeping them.

    Real and imaginary parts lie apart and are worked on in place: what takes time is memory.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, candidates: Tensor) -> Tensor:
        ctx.save_for_backward(query, candidates)
        result = query.new_empty(len(query), len(candidates))
        for rows, real, imaginary in _differences(query, candidates):
            squares = real.square_().addcmul_(imaginary, imaginary)
            torch.sum(squares.clamp_min_(_TINY).sqrt_(), 2, out=result[rows])
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        query, candidates = ctx.saved_tensors
        of_query, of_candidates = torch.empty_like(query), torch.zeros_like(candidates)
        half = query.shape[1] // 2
        for rows, real, imaginary in _differences(query, candidates):
            scale = real.square().addcmul_(imaginary, imaginary).clamp_min_(_TINY).rsqrt_()
            scale *= gradients[0][rows].unsqueeze(2)
            for part, columns in ((real, slice(half)), (imaginary, slice(half, None))):
                part *= scale
                of_query[rows, columns] = part.sum(1)
                of_candidates[:, columns] -= part.sum(0)
        return of_query, of_candidates


def pairwise(function: Pair, query: Tensor, candidates: Tensor) -> Tensor:
    """A function of a query and a candidate, both `(…, ·)`, for each pair of them.

    Like distances, but slower: it is for formulas that no matrix product and no norm can express.
    """
    if candidates.dim() == 3:
        return function(query.unsqueeze(1), candidates)
    scores: Tensor = _Pairwise.apply(function, query, candidates)  # type: ignore[no-untyped-call]
    return scores


class _Pairwise(torch.autograd.Function):
    """Block by block of queries; backward computes each block again, with its gradients."""

    @staticmethod
    def forward(ctx: Any, function: Pair, query: Tensor, candidates: Tensor) -> Tensor:
        ctx.save_for_backward(query, candidates)
        ctx.function = function
        result = query.new_empty(len(query), len(candidates))
        for rows in _blocks(query, candidates):
            result[rows] = function(query[rows].unsqueeze(1), candidates)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor, Tensor]:
        query, candidates = (tensor.detach() for tensor in ctx.saved_tensors)
        of_query, of_candidates = torch.empty_like(query), torch.zeros_like(candidates)
        for rows in _blocks(query, candidates):
            with torch.enable_grad():
                ours = query[rows].requires_grad_()
                theirs = candidates.clone().requires_grad_()
                scores = ctx.function(ours.unsqueeze(1), theirs)
            of_query[rows], more = torch.autograd.grad(scores, (ours, theirs), gradients[0][rows])
            of_candidates += more
        return None, of_query, of_candidates


def _blocks(query: Tensor, candidates: Tensor) -> Iterator[slice]:
    """Rows of queries whose differences to all candidates are held at once."""
    size = max(1, _BLOCK[query.device.type] // max(1, candidates.numel()))
    return (slice(start, start + size) for start in range(0, len(query), size))


def _differences(query: Tensor, candidates: Tensor) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Blocks of rows with the real and the imaginary parts of the differences to all candidates."""
    parts = [
        (ours.contiguous().unsqueeze(1), theirs.contiguous())
        for ours, theirs in zip(query.chunk(2, 1), candidates.chunk(2, 1), strict=True)
    ]
    for rows in _blocks(query, candidates):
        real, imaginary = (ours[rows] - theirs for ours, theirs in parts)
        yield rows, real, imaginary
