"""Distances between all pairs of vectors on a GPU (Triton), without their differences in memory.

`distances._L1` and `distances._Moduli` are the same on a processor, which the tests compare with.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_ROWS, _COLUMNS, _WIDTH = 16, 32, 128
# Of gradients: rows of a program, and parts that the sum over the other side is split in, to keep
# the GPU busy; and the warps of a program.
_OWN, _PARTS, _WARPS = 8, 8, 4
# So many coordinates are loaded together.
_ROUNDS = 8


@triton.jit
def _distances(
    query, candidates, distances, n, m, d,
    COMPLEX: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, ROUNDS: tl.constexpr,
):  # fmt: skip
    """Σ |q - x| of all pairs; vectors are columns, so that neighbouring threads read neighbours."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    of_rows, of_columns = i < n, j < m
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, d, ROUNDS):
        for extra in tl.static_range(ROUNDS):
            k = first + extra
            # Outside of the vectors both sides are 0, and so is their difference.
            q = tl.load(query + k * n + i, of_rows & (i * 0 + k < d), 0.0)
            x = tl.load(candidates + k * m + j, of_columns & (j * 0 + k < d), 0.0)
            real = q[:, None] - x[None, :]
            if COMPLEX:
                q = tl.load(query + (k + d) * n + i, of_rows & (i * 0 + k < d), 0.0)
                x = tl.load(candidates + (k + d) * m + j, of_columns & (j * 0 + k < d), 0.0)
                imaginary = q[:, None] - x[None, :]
                total += tl.sqrt(tl.maximum(real * real + imaginary * imaginary, 1e-24))
            else:
                total += tl.abs(real)
    at = i[:, None].to(tl.int64) * m + j[None, :]
    tl.store(distances + at, total, of_rows[:, None] & of_columns[None, :])


@triton.jit
def _gradients(
    own, others, gradient, result, n, m, d, by_own, by_other, part,
    COMPLEX: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Σⱼ gradient[i, j] · (own[i] - others[j]) / |…|, for a part of the j."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    k = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    first = tl.program_id(2) * part
    last = tl.minimum(first + part, m)
    width = d * 2 if COMPLEX else d
    inside = (i[:, None] < n) & (k[None, :] < d)
    at = i[:, None] * width + k[None, :]
    a = tl.load(own + at, inside, 0.0)
    total = tl.zeros((ROWS, WIDTH), tl.float32)
    if COMPLEX:
        a2 = tl.load(own + at + d, inside, 0.0)
        total2 = tl.zeros((ROWS, WIDTH), tl.float32)
    for j in tl.range(first, last, loop_unroll_factor=4):
        g = tl.load(gradient + i * by_own + j * by_other, i < n, 0.0)[:, None]
        real = a - tl.load(others + j * width + k, k < d, 0.0)[None, :]
        if COMPLEX:
            imaginary = a2 - tl.load(others + j * width + d + k, k < d, 0.0)[None, :]
            size = tl.sqrt(tl.maximum(real * real + imaginary * imaginary, 1e-24))
            total += g / size * real
            total2 += g / size * imaginary
        else:
            total += tl.where(real > 0, g, tl.where(real < 0, -g, 0.0))
    at = at + tl.program_id(2).to(tl.int64) * n * width
    tl.store(result + at, total, inside)
    if COMPLEX:
        tl.store(result + at + d, total2, inside)


class _Distances(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, candidates: Tensor, is_complex: bool) -> Tensor:
        ctx.save_for_backward(query, candidates)
        ctx.is_complex = is_complex
        (n, width), m = query.shape, len(candidates)
        distances = query.new_empty(n, m)
        grid = (triton.cdiv(n, _ROWS), triton.cdiv(m, _COLUMNS))
        _distances[grid](
            query.T.contiguous(), candidates.T.contiguous(), distances,
            n, m, width // 2 if is_complex else width,
            COMPLEX=is_complex, ROWS=_ROWS, COLUMNS=_COLUMNS, ROUNDS=_ROUNDS,
        )  # fmt: skip
        return distances

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        query, candidates = ctx.saved_tensors
        query, candidates = query.contiguous(), candidates.contiguous()
        gradient = gradients[0]
        by_query, by_candidate = gradient.stride()
        of_query = _backward(query, candidates, gradient, by_query, by_candidate, ctx.is_complex)
        of_candidates = _backward(
            candidates, query, gradient, by_candidate, by_query, ctx.is_complex
        )
        return of_query, of_candidates, None


def _backward(
    own: Tensor, others: Tensor, gradient: Tensor, by_own: int, by_other: int, is_complex: bool
) -> Tensor:
    (n, width), m = own.shape, len(others)
    d = width // 2 if is_complex else width
    result = own.new_empty(_PARTS, n, width)
    grid = (triton.cdiv(n, _OWN), triton.cdiv(d, _WIDTH), _PARTS)
    _gradients[grid](
        own, others, gradient, result, n, m, d, by_own, by_other, triton.cdiv(m, _PARTS),
        COMPLEX=is_complex, ROWS=_OWN, WIDTH=_WIDTH, num_warps=_WARPS,
    )  # fmt: skip
    return result.sum(0)


def pairwise_l1(query: Tensor, candidates: Tensor) -> Tensor:
    """Sums of absolute differences of every query to every candidate."""
    return _Distances.apply(query, candidates, False)


def pairwise_moduli(query: Tensor, candidates: Tensor) -> Tensor:
    """Sums of moduli of complex differences, likewise."""
    return _Distances.apply(query, candidates, True)
