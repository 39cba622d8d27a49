"""The sums and updates of a path model on a processor: numba's kernels, in threads.

Rows are computed whole by one thread, and sums over rows in a fixed number of parts, so that the
result does not depend on how many threads there are.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor

from splime.device import one_thread
from splime.paths.facts import DirectedFacts, Order
from splime.paths.relative import LEFT_OUT
from splime.paths.vectors import drop, load, spread, store, total, where_positive

# Parts of a sum over rows.
_PARTS = 8
_EPSILON = np.float32(1e-5)


def compiled(function: Callable[..., Any]) -> Any:
    """Compiled when it is first called, and kept on disk where there is a place for it."""
    try:
        return njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:  # no folder can be written
        return njit(nogil=True, error_model="numpy")(function)


# The kernels of a width, a constant that vectors need; numba compiles each width for itself. What
# several kernels do, or a long one in turn, is inlined into them.
inlined = njit(inline="always", error_model="numpy")


@cache
def _messages(width: int) -> Any:
    @compiled
    def messages(
        out, h, table, scopes, weights, starts, other, predicate, time, number,
        questions, kinds, first, last,
    ):  # fmt: skip
        for v in range(first, last):
            for i in range(starts[v], starts[v + 1]):
                weight = weights[number[i]]
                if weight == 0:
                    continue
                w = spread(weight, width)
                of_h = np.int64(other[i]) * questions
                of_table = np.int64(predicate[i]) * questions
                of_scope = np.int64(time[i]) * questions
                for b in range(questions):
                    scope = np.int64(scopes[of_scope + b])
                    if scope == LEFT_OUT:
                        continue
                    at = (v * questions + b) * width
                    message = load(table, ((of_table + b) * kinds + scope) * width, width)
                    message = w * message * load(h, (of_h + b) * width, width)
                    store(out, at, load(out, at, width) + message)

    return messages


@cache
def _table_gradient(width: int) -> Any:
    @compiled
    def table_gradient(
        out, h, gradient, scopes, weights, starts, source, target, time, number,
        questions, kinds, first, last,
    ):  # fmt: skip
        for predicate in range(len(starts) - 1):
            of_table = predicate * questions
            for i in range(starts[predicate], starts[predicate + 1]):
                weight = weights[number[i]]
                if weight == 0:
                    continue
                w = spread(weight, width)
                of_h = np.int64(source[i]) * questions
                of_gradient = np.int64(target[i]) * questions
                of_scope = np.int64(time[i]) * questions
                for b in range(first, last):
                    scope = np.int64(scopes[of_scope + b])
                    if scope == LEFT_OUT:
                        continue
                    at = ((of_table + b) * kinds + scope) * width
                    product = load(h, (of_h + b) * width, width)
                    product = w * product * load(gradient, (of_gradient + b) * width, width)
                    store(out, at, load(out, at, width) + product)

    return table_gradient


@cache
def _fact_gradient(width: int) -> Any:
    @compiled
    def fact_gradient(
        out, of_h, h, gradient, table, scopes, weights, source, predicate, target, time, number,
        factors, questions, kinds,
    ):  # fmt: skip
        for i in range(len(source)):
            w = spread(weights[number[i]], width)
            for b in range(questions):
                scope = np.int64(scopes[np.int64(time[i]) * questions + b])
                if scope == LEFT_OUT:
                    continue
                of_table = np.int64(predicate[i]) * questions + b
                at = (np.int64(source[i]) * questions + b) * width
                passed = load(table, (of_table * kinds + scope) * width, width)
                of_target = (np.int64(target[i]) * questions + b) * width
                passed = passed * load(gradient, of_target, width)
                out[i] += factors[b] * total(passed * load(h, at, width))
                store(of_h, at, load(of_h, at, width) + w * passed)

    return fact_gradient


@inlined
def _linear(out, h, a, weight, start, row, last, width):
    """Four rows of W [h; a] + b at a time: a sum would wait for its own last addition.

    `weight` is [2 x width, width]: what each input adds to all outputs. Where there are fewer rows,
    the last one is made again.
    """
    i0, i1 = row * width, min(row + 1, last - 1) * width
    i2, i3 = min(row + 2, last - 1) * width, min(row + 3, last - 1) * width
    x0, x1, x2, x3 = start, start, start, start
    for j in range(width):
        w = load(weight, j * width, width)
        x0 = x0 + spread(h[i0 + j], width) * w
        x1 = x1 + spread(h[i1 + j], width) * w
        x2 = x2 + spread(h[i2 + j], width) * w
        x3 = x3 + spread(h[i3 + j], width) * w
        w = load(weight, (j + width) * width, width)
        x0 = x0 + spread(a[i0 + j], width) * w
        x1 = x1 + spread(a[i1 + j], width) * w
        x2 = x2 + spread(a[i2 + j], width) * w
        x3 = x3 + spread(a[i3 + j], width) * w
    store(out, i3, x3)
    store(out, i2, x2)
    store(out, i1, x1)
    store(out, i0, x0)


@cache
def _update(width: int) -> Any:
    @compiled
    def update(
        out, h, a, weight, bias, norm_weight, norm_bias,
        place, period, least, scale, first, last,
    ):  # fmt: skip
        start = load(bias, 0, width)
        for row in range(first, last, 4):
            _linear(out, h, a, weight, start, row, last, width)
            for at in range(row * width, min(row + 4, last) * width, width):
                x = load(out, at, width)
                x = x - spread(total(x) / np.float32(width), width)
                spread_of = np.float32(1) / np.sqrt(total(x * x) / np.float32(width) + _EPSILON)
                x = x * spread(spread_of, width) * load(norm_weight, 0, width)
                x = x + load(norm_bias, 0, width)
                x = where_positive(x, x)
                if least > 0:
                    x = drop(x, place + at // width % period * width, least)
                    x = x * spread(scale, width)
                store(out, at, load(h, at, width) + x)

    return update


@inlined
def _add_products(of_weight, inputs, gradient, first, last, column, to, width):
    """Four rows of of_weight += inputs x gradient at a time, which stay in registers."""
    s0, s1 = load(of_weight, to, width), load(of_weight, to + width, width)
    s2, s3 = load(of_weight, to + 2 * width, width), load(of_weight, to + 3 * width, width)
    for r in range(first, last):
        g, at = load(gradient, r * width, width), r * width + column
        s0 = s0 + spread(inputs[at], width) * g
        s1 = s1 + spread(inputs[at + 1], width) * g
        s2 = s2 + spread(inputs[at + 2], width) * g
        s3 = s3 + spread(inputs[at + 3], width) * g
    store(of_weight, to, s0)
    store(of_weight, to + width, s1)
    store(of_weight, to + 2 * width, s2)
    store(of_weight, to + 3 * width, s3)


@inlined
def _to_inputs(of_h, of_a, gradient, turned, row, last, width):
    """Two rows of the gradients of h and a, from those of the outputs, which are in of_a."""
    i0, i1 = row * width, min(row + 1, last - 1) * width
    h0, h1 = load(gradient, i0, width), load(gradient, i1, width)
    a0 = a1 = spread(np.float32(0), width)
    for j in range(width):
        n0, n1 = spread(of_a[i0 + j], width), spread(of_a[i1 + j], width)
        w = load(turned, 2 * j * width, width)
        h0, h1 = h0 + n0 * w, h1 + n1 * w
        w = load(turned, (2 * j + 1) * width, width)
        a0, a1 = a0 + n0 * w, a1 + n1 * w
    store(of_h, i1, h1)
    store(of_h, i0, h0)
    store(of_a, i1, a1)
    store(of_a, i0, a0)


@cache
def _update_gradient(width: int) -> Any:
    @compiled
    def update_gradient(
        of_h, of_a, of_weight, of_bias, of_norm_weight, of_norm_bias,
        gradient, h, a, weight, turned, bias, norm_weight, norm_bias,
        place, period, least, scale, first, last,
    ):  # fmt: skip
        # `turned` is [width, 2 x width]: the same weights, by output.
        gamma, beta = load(norm_weight, 0, width), load(norm_bias, 0, width)
        start, nothing = load(bias, 0, width), spread(np.float32(0), width)
        of_gamma, of_beta, of_start = nothing, nothing, nothing
        size = np.float32(width)
        for block in range(first, last, 32):
            end = min(block + 32, last)
            for row in range(block, end, 4):
                _linear(of_a, h, a, weight, start, row, end, width)
            for row in range(block, end):
                at = row * width
                x = load(of_a, at, width)
                x = x - spread(total(x) / size, width)
                inverse = spread(np.float32(1) / np.sqrt(total(x * x) / size + _EPSILON), width)
                x = x * inverse
                g = where_positive(x * gamma + beta, load(gradient, at, width))
                if least > 0:
                    g = drop(g, place + row % period * width, least) * spread(scale, width)
                of_gamma = of_gamma + g * x
                of_beta = of_beta + g
                g = g * gamma
                g = g - spread(total(g) / size, width) - x * spread(total(g * x) / size, width)
                g = g * inverse
                of_start = of_start + g
                store(of_a, at, g)  # to read its numbers one by one
            for j in range(0, width, 4):
                _add_products(of_weight, h, of_a, block, end, j, j * width, width)
            for j in range(0, width, 4):
                _add_products(of_weight, a, of_a, block, end, j, (j + width) * width, width)
            for row in range(block, end, 2):
                _to_inputs(of_h, of_a, gradient, turned, row, end, width)
        store(of_norm_weight, 0, of_gamma)
        store(of_norm_bias, 0, of_beta)
        store(of_bias, 0, of_start)

    return update_gradient


@cache
def _scores(width: int) -> Any:
    hidden = 2 * width

    @compiled
    def scores(out, h, weight, own, last_weight, entities, questions, first, last):
        # `weight` is [width, hidden]; `own` is what a question adds, with the bias.
        for row in range(first, last):
            x = load(own, row % questions * hidden, hidden)
            for j in range(width):
                x = x + spread(h[row * width + j], hidden) * load(weight, j * hidden, hidden)
            at = row % questions * entities + row // questions
            out[at] = total(where_positive(x, x) * load(last_weight, 0, hidden))

    return scores


@cache
def _scores_gradient(width: int) -> Any:
    hidden = 2 * width

    @compiled
    def scores_gradient(
        of_h, of_weight, of_own, of_last_weight, gradient, h, weight, turned, own, last_weight,
        scratch, entities, questions, first, last,
    ):  # fmt: skip
        # `turned` is [hidden, width]; `scratch` has room for the gradients of 32 rows.
        end_weight, nothing = load(last_weight, 0, hidden), spread(np.float32(0), width)
        of_last = spread(np.float32(0), hidden)
        for block in range(first, last, 32):
            end = min(block + 32, last)
            for row in range(block, end):
                g = spread(gradient[row % questions * entities + row // questions], hidden)
                at = row % questions * hidden
                x = load(own, at, hidden)
                for j in range(width):
                    x = x + spread(h[row * width + j], hidden) * load(weight, j * hidden, hidden)
                of_last = of_last + g * where_positive(x, x)
                g = where_positive(x, g * end_weight)
                store(of_own, at, load(of_own, at, hidden) + g)
                store(scratch, (row - block) * hidden, g)
            for j in range(0, width, 2):
                to = j * hidden
                s0, s1 = load(of_weight, to, hidden), load(of_weight, to + hidden, hidden)
                for row in range(block, end):
                    g = load(scratch, (row - block) * hidden, hidden)
                    s0 = s0 + spread(h[row * width + j], hidden) * g
                    s1 = s1 + spread(h[row * width + j + 1], hidden) * g
                store(of_weight, to, s0)
                store(of_weight, to + hidden, s1)
            for row in range(block, end, 4):
                r0, r1 = row - block, min(row + 1, end - 1) - block
                r2, r3 = min(row + 2, end - 1) - block, min(row + 3, end - 1) - block
                x0, x1, x2, x3 = nothing, nothing, nothing, nothing
                for j in range(hidden):
                    w = load(turned, j * width, width)
                    x0 = x0 + spread(scratch[r0 * hidden + j], width) * w
                    x1 = x1 + spread(scratch[r1 * hidden + j], width) * w
                    x2 = x2 + spread(scratch[r2 * hidden + j], width) * w
                    x3 = x3 + spread(scratch[r3 * hidden + j], width) * w
                store(of_h, (block + r3) * width, x3)
                store(of_h, (block + r2) * width, x2)
                store(of_h, (block + r1) * width, x1)
                store(of_h, (block + r0) * width, x0)
        store(of_last_weight, 0, of_last)

    return scores_gradient


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="paths")


class _Work(threading.local):
    """What the kernels have to themselves, while `at_work`."""

    threads: int | None = None
    arrays: list[tuple[np.ndarray[Any, Any], weakref.ref[Any]]] | None = None
    """Each with the part of it that was given away, which is gone once it is unused."""


_work = _Work()


@contextmanager
def at_work() -> Iterator[None]:
    """Give torch's threads to the kernels, and keep large arrays to use them again.

    Torch's own threads wait for their next work by spinning, which takes the processor from those
    of the kernels; and between kernels there is little to do. A new array of this size has new
    pages, and to get them from the system would take a quarter of the time of a step. The arrays of
    a block are free after it.
    """
    before = _work.threads, _work.arrays
    _work.threads, _work.arrays = _threads(), []
    try:
        with one_thread():
            yield
    finally:
        _work.threads, _work.arrays = before


def _threads() -> int:
    return _work.threads or torch.get_num_threads()


def empty(like: Tensor, *shape: int) -> Tensor:  # noqa: ARG001
    """An array where another one is, perhaps one without references."""
    size, arrays = math.prod(shape), [] if _work.arrays is None else _work.arrays
    for place, (array, given) in enumerate(arrays):
        if given() is None and size <= len(array) <= 2 * size:
            del arrays[place]
            break
    else:
        array = np.empty(size, np.float32)
    part = array[:size]
    arrays.append((array, weakref.ref(part)))
    return torch.from_numpy(part).view(shape)


def _each(function: Callable[..., Any], pieces: Iterable[tuple[Any, ...]]) -> None:
    """Call a kernel for each piece, in threads."""
    threads = _threads()
    if threads == 1:
        for piece in pieces:
            function(*piece)
    else:
        list(_pool(threads).map(lambda piece: function(*piece), pieces))


def _flat(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().view(-1).numpy()


def _ranges(count: int, parts: int) -> list[tuple[int, int]]:
    edges = np.linspace(0, count, parts + 1).astype(int).tolist()
    return [(a, b) for a, b in pairwise(edges) if a < b]


def compact(h: Tensor) -> Tensor:
    """What messages read."""
    return h


def table(base: Tensor, gate: Tensor, shift: Tensor) -> Tensor:
    """base · (1 + gate) + shift: [2 x predicates, questions, scopes, width]."""
    out = empty(base, len(base), *gate.shape)
    torch.mul(base.unsqueeze(1), 1 + gate, out=out)
    return out.add_(shift.transpose(0, 1).unsqueeze(2))


def table_parts(gradient: Tensor, base: Tensor, gate: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of base, gate and shift, from that of the table."""
    product = empty(gradient, *gradient.shape)
    of_base = torch.mul(gradient, 1 + gate, out=product).sum(1)
    of_gate = torch.mul(gradient, base.unsqueeze(1), out=product).sum(0)
    return of_base, of_gate, gradient.sum(2).transpose(0, 1)


def add_messages(
    out: Tensor, h: Tensor, table: Tensor, scopes: Tensor, weights: Tensor, order: Order, back: bool
) -> None:
    """out[v] += Σ weight · h[u] · table, over incoming facts; turned round if `back`."""
    starts = order.starts.numpy()
    parts = 4 * _threads()
    # Pieces of entities with about as many facts each.
    edges = np.searchsorted(starts, np.linspace(0, starts[-1], parts + 1)[1:-1])
    edges = np.concatenate([[0], edges, [len(starts) - 1]]).tolist()
    others = order.target if back else order.source
    columns = (others, order.predicate, order.time, order.number)
    fixed = (
        *map(_flat, (out, h, table, scopes, weights)), starts,
        *(column.numpy() for column in columns), h.shape[1], table.shape[2],
    )  # fmt: skip
    _each(
        _messages(h.shape[2]),
        [(*fixed, a, b) for a, b in pairwise(edges) if a < b],
    )


def table_gradient(
    h: Tensor,
    gradient: Tensor,
    table: Tensor,
    scopes: Tensor,
    weights: Tensor,
    facts: DirectedFacts,
) -> Tensor:
    """The gradient of the table, from that of the sums."""
    out, order = empty(table, *table.shape).zero_(), facts.alike
    columns = (order.starts, order.source, order.target, order.time, order.number)
    fixed = (
        *map(_flat, (out, h, gradient, scopes, weights)),
        *(column.numpy() for column in columns), h.shape[1], table.shape[2],
    )  # fmt: skip
    ranges = _ranges(h.shape[1], _threads())
    _each(_table_gradient(h.shape[2]), [(*fixed, a, b) for a, b in ranges])
    return out


def fact_gradient(
    of_h: Tensor,
    h: Tensor,
    gradient: Tensor,
    table: Tensor,
    scopes: Tensor,
    weights: Tensor,
    order: Order,
    factors: Tensor,
) -> Tensor:
    """The gradient by each fact's weight, summed over questions with factors; of_h grows by its."""
    out = h.new_zeros(len(order.number))
    columns = (order.source, order.predicate, order.target, order.time, order.number)
    _fact_gradient(h.shape[2])(
        *map(_flat, (out, of_h, h, gradient, table, scopes, weights, *columns, factors)),
        h.shape[1], table.shape[2],
    )  # fmt: skip
    return out


def _dropping(h: Tensor, dropout: float, seed: Tensor, layer: int) -> tuple[int, int, int, Any]:
    """Where the hash begins and after how many rows again, the least that stays, and its factor."""
    place = (int(seed) * 0x9E3779B1 + layer * 0x85EBCA6B) & 0xFFFFFFFF
    period = h.shape[1] if layer == 0 else h.shape[0] * h.shape[1]
    return place, period, int(dropout * 2**32), np.float32(1 / (1 - dropout))


def update(
    h: Tensor, a: Tensor, parameters: tuple[Tensor, ...], dropout: float, seed: Tensor, layer: int
) -> tuple[Tensor, Tensor]:
    """h + dropout(relu(layernorm(W [h; a] + b))), and the same for messages to read."""
    out = empty(h, *h.shape)
    weight, *rest = parameters
    fixed = (
        *map(_flat, (out, h, a, weight.T, *rest)), *_dropping(h, dropout, seed, layer)
    )  # fmt: skip
    rows = h.shape[0] * h.shape[1]
    kernel = _update(h.shape[2])
    _each(kernel, [(*fixed, x, y) for x, y in _ranges(rows, _threads())])
    return out, out


def update_gradient(
    gradient: Tensor,
    h: Tensor,
    a: Tensor,
    parameters: tuple[Tensor, ...],
    dropout: float,
    seed: Tensor,
    layer: int,
) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """The gradients of h, of a and of the parameters, from that of the updated h."""
    of_h, of_a = empty(h, *h.shape), empty(a, *a.shape)
    weight, *rest = parameters
    sums = [h.new_zeros(_PARTS, *x.shape) for x in (weight.T, *rest)]
    fixed = (
        *map(_flat, (gradient, h, a, weight.T, weight, *rest)), *_dropping(h, dropout, seed, layer),
    )  # fmt: skip
    outs = (_flat(of_h), _flat(of_a))
    ranges = _ranges(h.shape[0] * h.shape[1], _PARTS)
    pieces = [
        (*outs, *(_flat(part[number]) for part in sums), *fixed, *span)
        for number, span in enumerate(ranges)
    ]
    _each(_update_gradient(h.shape[2]), pieces)
    of_weight, *of_rest = (part.sum(0) for part in sums)
    return of_h, of_a, (of_weight.T, *of_rest)


def scores(h: Tensor, weight: Tensor, own: Tensor, last_weight: Tensor) -> Tensor:
    """last_weight · relu(weight h + own), for each question and entity."""
    out = h.new_empty(h.shape[1], h.shape[0])
    fixed = (*map(_flat, (out, h, weight.T, own, last_weight)), *h.shape[:2])
    ranges = _ranges(out.numel(), _threads())
    _each(_scores(h.shape[2]), [(*fixed, a, b) for a, b in ranges])
    return out


def scores_gradient(
    gradient: Tensor, h: Tensor, weight: Tensor, own: Tensor, last_weight: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of all that `scores` is given."""
    of_h = empty(h, *h.shape)
    sums = [h.new_zeros(_PARTS, *x.shape) for x in (weight.T, own, last_weight)]
    scratch = h.new_empty(_PARTS, 32, len(weight))
    fixed = (*map(_flat, (gradient, h, weight.T, weight, own, last_weight)),)
    pieces = [
        (
            _flat(of_h),
            *(_flat(part[n]) for part in sums),
            *fixed,
            _flat(scratch[n]),
            *h.shape[:2],
            *span,
        )
        for n, span in enumerate(_ranges(gradient.numel(), _PARTS))
    ]
    _each(_scores_gradient(h.shape[2]), pieces)
    of_weight, of_own, of_last = (part.sum(0) for part in sums)
    return of_h, of_weight.T, of_own, of_last
