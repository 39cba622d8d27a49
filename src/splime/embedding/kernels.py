"""What a GPU does best in one kernel: distances, the self-adversarial loss, smoothness, optimizers.

Each is a plain formula elsewhere, which is what processors use and what the tests compare with:
`distances._L1` and `distances._Moduli`, `losses.self_adversarial`, `objective.smoothness`, and
`torch.optim`. Written out of torch's parts, a step of the paper's TransE is some 90 small kernels;
most of it is waiting. And large tables are gone through a dozen times instead of thrice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
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


@triton.jit
def _self_adversarial(
    positive, negative, loss, of_positive, of_negative, k, by_row, margin, temperature,
    LEARNED: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The loss of one positive, and its gradients."""
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, WIDTH)
    f = tl.load(negative + row * by_row + j, j < k, float("-inf"))
    # The difference first: between equal scores it is 0, however large they are.
    weight = tl.exp(temperature * (f - tl.max(f, axis=0)))
    weight = weight / tl.sum(weight, axis=0)
    x = margin + f
    small = tl.exp(-tl.abs(x))
    cost = tl.maximum(x, 0.0) + tl.log(1.0 + small)
    wrong = tl.sum(weight * cost, axis=0)
    slope = weight * tl.where(x > 0, 1.0 / (1.0 + small), small / (1.0 + small))
    if LEARNED:
        slope += temperature * weight * (cost - wrong)
    tl.store(of_negative + row * k + j, slope, j < k)
    y = margin + tl.load(positive + row)
    small_y = tl.exp(-tl.abs(y))
    tl.store(loss + row, wrong + tl.maximum(-y, 0.0) + tl.log(1.0 + small_y))
    at_y = tl.where(y > 0, small_y / (1.0 + small_y), 1.0 / (1.0 + small_y))
    tl.store(of_positive + row, -at_y)


class _SelfAdversarial(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        positive: Tensor,
        negative: Tensor,
        margin: float,
        temperature: float,
        learned: bool,
    ) -> Tensor:
        positive, negative = positive.contiguous(), negative.contiguous()
        n, k = negative.shape
        loss, of_positive = torch.empty_like(positive), torch.empty_like(positive)
        of_negative = torch.empty_like(negative)
        _self_adversarial[(n,)](
            positive, negative, loss, of_positive, of_negative, k, k, margin, temperature,
            LEARNED=learned, WIDTH=triton.next_power_of_2(k),
        )  # fmt: skip
        ctx.save_for_backward(of_positive, of_negative)
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        of_positive, of_negative = ctx.saved_tensors
        gradient = gradients[0]
        return of_positive * gradient, of_negative * gradient.unsqueeze(1), None, None, None


def self_adversarial(
    positive: Tensor, negative: Tensor, margin: float, temperature: float, learned: bool
) -> Tensor:
    """The loss of `losses.self_adversarial`."""
    return _SelfAdversarial.apply(positive, negative, margin, temperature, learned)


@triton.jit
def _adam(
    table, gradient, mean, square, step, size, rate, tiny,
    BETA1: tl.constexpr, BETA2: tl.constexpr, LOG1: tl.constexpr, LOG2: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """One step, as torch.optim.Adam takes it."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    taken = tl.load(step).to(tl.float64)
    first = (1.0 - tl.exp(taken * LOG1)).to(tl.float32)
    second = (1.0 - tl.exp(taken * LOG2)).to(tl.float32)
    g = tl.load(gradient + at, inside, 0.0)
    m = tl.load(mean + at, inside, 0.0)
    v = tl.load(square + at, inside, 0.0)
    m = m + (1.0 - BETA1) * (g - m)
    v = BETA2 * v + (1.0 - BETA2) * g * g
    tl.store(mean + at, m, inside)
    tl.store(square + at, v, inside)
    change = rate / first * m / (tl.sqrt(v) / tl.sqrt(second) + tiny)
    tl.store(table + at, tl.load(table + at, inside, 0.0) - change, inside)


class Adam(torch.optim.Optimizer):
    """Adam with a grid that fills the GPU; torch's fused one runs on 20 of its 132 processors."""

    def __init__(self, tables: list[Tensor], lr: float) -> None:
        super().__init__(tables, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # noqa: ARG002
        """Take a step."""
        for table, rate in _with_gradients(self):
            state = self.state[table]
            if not state:
                state["step"] = torch.zeros((), device=table.device)
                state["exp_avg"] = torch.zeros_like(table)
                state["exp_avg_sq"] = torch.zeros_like(table)
            state["step"] += 1
            _adam[triton.cdiv(table.numel(), _BLOCK),](
                table, table.grad.contiguous(), state["exp_avg"], state["exp_avg_sq"],
                state["step"], table.numel(), rate, 1e-8,
                BETA1=0.9, BETA2=0.999, LOG1=math.log(0.9), LOG2=math.log(0.999), BLOCK=_BLOCK,
            )  # fmt: skip


_BLOCK = 1024


def _with_gradients(optimizer: torch.optim.Optimizer) -> Iterator[tuple[Any, float]]:
    """The tables that a step changes, with the learning rate."""
    for group in optimizer.param_groups:
        for table in group["params"]:
            if table.grad is not None:
                yield table, group["lr"]


@triton.jit
def _adagrad(table, gradient, total, size, rate, tiny, BLOCK: tl.constexpr):
    """One step, as torch.optim.Adagrad takes it."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    g = tl.load(gradient + at, inside, 0.0)
    s = tl.load(total + at, inside, 0.0) + g * g
    tl.store(total + at, s, inside)
    change = rate * g / (tl.sqrt(s) + tiny)
    tl.store(table + at, tl.load(table + at, inside, 0.0) - change, inside)


class Adagrad(torch.optim.Optimizer):
    """Adagrad that reads and writes everything once; torch's goes through tables a dozen times."""

    def __init__(self, tables: list[Tensor], lr: float) -> None:
        super().__init__(tables, {"lr": lr})
        for table in tables:
            self.state[table]["sum"] = torch.zeros_like(table)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # noqa: ARG002
        """Take a step."""
        for table, rate in _with_gradients(self):
            _adagrad[triton.cdiv(table.numel(), _BLOCK),](
                table, table.grad.contiguous(), self.state[table]["sum"], table.numel(), rate,
                1e-10, BLOCK=_BLOCK,
            )  # fmt: skip


@triton.jit
def _changes(
    vectors, follows, result, scale, n, d, GRADIENT: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Σ (change to a row)² of each block of columns, or the gradient of the sum of all of them."""
    row = tl.program_id(0).to(tl.int64)
    k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside, at = k < d, vectors + row * d + k
    x = tl.load(at, inside, 0.0)
    before = tl.load(follows + row - 1, row > 0, 0.0)
    back = x - tl.load(at - d, inside & (row > 0), 0.0)
    if GRADIENT:
        after = tl.load(follows + row, row < n - 1, 0.0)
        ahead = tl.load(at + d, inside & (row < n - 1), 0.0) - x
        slope = 2.0 * tl.load(scale) * (before * back - after * ahead)
        tl.store(result + row * d + k, slope, inside)
    else:
        blocks = tl.num_programs(1)
        tl.store(result + row * blocks + tl.program_id(1), before * tl.sum(back * back, axis=0))


class _Changes(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor, follows: Tensor) -> Tensor:
        vectors = vectors.contiguous()
        ctx.save_for_backward(vectors, follows)
        n, d = vectors.shape
        grid = (n, triton.cdiv(d, _BLOCK))
        sums = vectors.new_empty(grid)
        _changes[grid](vectors, follows, sums, sums, n, d, GRADIENT=False, BLOCK=_BLOCK)
        return sums.sum()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        vectors, follows = ctx.saved_tensors
        n, d = vectors.shape
        result = torch.empty_like(vectors)
        grid = (n, triton.cdiv(d, _BLOCK))
        _changes[grid](vectors, follows, result, gradients[0], n, d, GRADIENT=True, BLOCK=_BLOCK)
        return result, None


def squared_changes(vectors: Tensor, follows: Tensor) -> Tensor:
    """The sum of `objective.smoothness`, with squares and without drift."""
    return _Changes.apply(vectors, follows)
