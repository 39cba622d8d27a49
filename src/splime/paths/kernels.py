"""The sums and updates of a path model on a GPU (Triton), as `processor` does them on a processor.

Messages are read as bfloat16 and added up as float32. A layer is one kernel for the table, one for
the messages and one for the update; its gradient is four.
"""

from __future__ import annotations

from contextlib import nullcontext

import torch
import triton
import triton.language as tl
from torch import Tensor

from splime.paths.facts import DirectedFacts, Order

# Facts of a program; numbers of a program's tile of questions x width.
_FACTS, _TILE = 32, 1024
# Facts of a program of the table's gradient, and those that it multiplies at once.
_ALIKE, _BLOCK = 512, 32
# Rows of an update, and programs that share the rows where sums over them are needed.
_ROWS, _PROGRAMS = 64, 528
_EPSILON = 1e-5
# Of what messages read.
_SMALL = torch.bfloat16


@triton.jit
def _messages(
    out, h, table, scopes, weights, targets, sources, predicates, times, numbers,
    facts, questions, kinds,
    FACTS: tl.constexpr, QUESTIONS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Neighbouring facts by target: the sum is written where the target changes."""
    first = tl.program_id(0) * FACTS
    last = tl.minimum(first + FACTS, facts)
    b = tl.program_id(1) * QUESTIONS + tl.arange(0, QUESTIONS)
    d = tl.arange(0, WIDTH)
    asked = b < questions
    within = b[:, None] * WIDTH + d[None, :]
    size = questions * WIDTH
    total = tl.zeros((QUESTIONS, WIDTH), tl.float32)
    current = tl.load(targets + first)
    for i in range(first, last):
        target = tl.load(targets + i)
        if target != current:
            tl.atomic_add(out + current.to(tl.int64) * size + within, total, asked[:, None])
            total = tl.zeros((QUESTIONS, WIDTH), tl.float32)
            current = target
        source = tl.load(sources + i).to(tl.int64)
        weight = tl.load(weights + tl.load(numbers + i))
        if weight != 0:
            predicate = tl.load(predicates + i).to(tl.int64)
            time = tl.load(times + i).to(tl.int64)
            k = tl.load(scopes + time * questions + b, asked, 255).to(tl.int32)
            seen = (k < 255)[:, None]
            at = (predicate * questions + b) * kinds + k
            x = tl.load(h + source * size + within, seen, 0.0).to(tl.float32)
            m = tl.load(table + at[:, None] * WIDTH + d[None, :], seen, 0.0).to(tl.float32)
            total += weight * x * m
    tl.atomic_add(out + current.to(tl.int64) * size + within, total, asked[:, None])


@triton.jit
def _table_gradient(
    out, h, gradient, scopes, weights, starts, sources, predicates, targets, times, numbers,
    facts, questions, kinds,
    FACTS: tl.constexpr, BLOCK: tl.constexpr, KINDS: tl.constexpr,
    WIDTH: tl.constexpr,
):  # fmt: skip
    """Neighbouring facts in the order of their predicates, for one question."""
    begin = tl.program_id(0) * FACTS
    last = tl.minimum(begin + FACTS, facts)
    b = tl.program_id(1)
    d, kind = tl.arange(0, WIDTH), tl.arange(0, KINDS)
    size = questions * WIDTH
    while begin < last:
        predicate = tl.load(predicates + begin).to(tl.int64)
        stop = tl.minimum(tl.load(starts + predicate + 1).to(tl.int32), last)
        total = tl.zeros((KINDS, WIDTH), tl.float32)
        for start in range(begin, stop, BLOCK):
            i = start + tl.arange(0, BLOCK)
            inside = i < stop
            source = tl.load(sources + i, inside, 0).to(tl.int64)
            target = tl.load(targets + i, inside, 0).to(tl.int64)
            time = tl.load(times + i, inside, 0).to(tl.int64)
            weight = tl.load(weights + tl.load(numbers + i, inside, 0), inside, 0.0)
            k = tl.load(scopes + time * questions + b, inside, 255).to(tl.int32)
            used = inside & (weight != 0) & (k < 255)
            place = b * WIDTH + d[None, :]
            x = tl.load(h + source[:, None] * size + place, used[:, None], 0.0)
            g = tl.load(gradient + target[:, None] * size + place, used[:, None], 0.0)
            product = x.to(tl.float32) * g.to(tl.float32) * weight[:, None]
            one = ((k[None, :] == kind[:, None]) & used[None, :]).to(tl.float32)
            total += tl.dot(one, product)
        at = (predicate * questions + b) * kinds + kind
        tl.atomic_add(out + at[:, None] * WIDTH + d[None, :], total, (kind < kinds)[:, None])
        begin = stop


@triton.jit
def _tables(
    out, base, gate, shift, predicates, questions, kinds, part,
    KINDS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The table of one predicate, for a part of the questions."""
    predicate = tl.program_id(0).to(tl.int64)
    kind, d = tl.arange(0, KINDS), tl.arange(0, WIDTH)
    known = (kind < kinds)[:, None]
    within = kind[:, None] * WIDTH + d[None, :]
    size = kinds * WIDTH
    x = tl.load(base + predicate * size + within, known, 0.0)
    first = tl.program_id(1) * part
    for b in range(first, tl.minimum(first + part, questions)):
        factor = 1.0 + tl.load(gate + b * size + within, known, 0.0)
        plus = tl.load(shift + (b * predicates + predicate) * WIDTH + d)
        result = x * factor + plus[None, :]
        tl.store(
            out + (predicate * questions + b) * size + within,
            result.to(out.dtype.element_ty),
            known,
        )


@triton.jit
def _tables_gradient(
    of_base, of_shift, gradient, gate, predicates, questions, kinds,
    KINDS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Of one predicate."""
    predicate = tl.program_id(0).to(tl.int64)
    kind, d = tl.arange(0, KINDS), tl.arange(0, WIDTH)
    known = (kind < kinds)[:, None]
    within = kind[:, None] * WIDTH + d[None, :]
    size = kinds * WIDTH
    total = tl.zeros((KINDS, WIDTH), tl.float32)
    for b in range(questions):
        factor = 1.0 + tl.load(gate + b * size + within, known, 0.0)
        g = tl.load(gradient + (predicate * questions + b) * size + within, known, 0.0)
        total += g * factor
        tl.store(of_shift + (b * predicates + predicate) * WIDTH + d, tl.sum(g, 0))
    tl.store(of_base + predicate * size + within, total, known)


@triton.jit
def _gate_gradient(
    of_gate, gradient, base, predicates, questions, kinds, part,
    KINDS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Of one question, summed over a part of the predicates."""
    b = tl.program_id(0).to(tl.int64)
    kind, d = tl.arange(0, KINDS), tl.arange(0, WIDTH)
    known = (kind < kinds)[:, None]
    within = kind[:, None] * WIDTH + d[None, :]
    size = kinds * WIDTH
    total = tl.zeros((KINDS, WIDTH), tl.float32)
    first = tl.program_id(1) * part
    for predicate in range(first, tl.minimum(first + part, predicates)):
        g = tl.load(gradient + (predicate * questions + b) * size + within, known, 0.0)
        total += g * tl.load(base + predicate * size + within, known, 0.0)
    tl.atomic_add(of_gate + b * size + within, total, known)


@triton.jit
def _kept(row, d, seed, salt, least, period, WIDTH: tl.constexpr):
    """Which numbers dropout keeps (`messages.kept`)."""
    place = (tl.load(seed) * 0x9E3779B1 + salt).to(tl.uint32)
    x = ((row % period)[:, None] * WIDTH + d[None, :]).to(tl.uint32) + place
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    x = x ^ (x >> 16)
    return x >= least.to(tl.uint32)


@triton.jit
def _update(
    out, compact, h, a, weight, bias, norm_weight, norm_bias, seed, salt, least, scale, period,
    rows, DROP: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr, EPSILON: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, WIDTH)
    inside = (row < rows)[:, None]
    at = row[:, None] * WIDTH + d[None, :]
    state = tl.load(h + at, inside, 0.0)
    # The weights of h, and after them those of a: [inputs, outputs].
    turned = d[None, :] * (2 * WIDTH) + d[:, None]
    x = tl.dot(state, tl.load(weight + turned))
    x += tl.dot(tl.load(a + at, inside, 0.0), tl.load(weight + turned + WIDTH))
    x += tl.load(bias + d)[None, :]
    x -= tl.sum(x, 1)[:, None] / WIDTH
    x *= 1.0 / tl.sqrt(tl.sum(x * x, 1) / WIDTH + EPSILON)[:, None]
    x = tl.maximum(x * tl.load(norm_weight + d)[None, :] + tl.load(norm_bias + d)[None, :], 0.0)
    if DROP:
        x = tl.where(_kept(row, d, seed, salt, least, period, WIDTH), x * scale, 0.0)
    state += x
    tl.store(out + at, state, inside)
    tl.store(compact + at, state.to(compact.dtype.element_ty), inside)


@triton.jit
def _update_gradient(
    of_h, of_a, sums, gradient, h, a, weight, bias, norm_weight, norm_bias,
    seed, salt, least, scale, period, rows,
    DROP: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr, EPSILON: tl.constexpr,
):  # fmt: skip
    """Every program takes some blocks of rows, and writes its sums for the parameters."""
    d = tl.arange(0, WIDTH)
    straight = d[:, None] * (2 * WIDTH) + d[None, :]  # [outputs, inputs]
    turned = d[None, :] * (2 * WIDTH) + d[:, None]
    gamma, beta = tl.load(norm_weight + d)[None, :], tl.load(norm_bias + d)[None, :]
    of_weight_h = tl.zeros((WIDTH, WIDTH), tl.float32)
    of_weight_a = tl.zeros((WIDTH, WIDTH), tl.float32)
    of_bias = tl.zeros((WIDTH,), tl.float32)
    of_gamma = tl.zeros((WIDTH,), tl.float32)
    of_beta = tl.zeros((WIDTH,), tl.float32)
    for first in range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
        row = first + tl.arange(0, ROWS).to(tl.int64)
        inside = (row < rows)[:, None]
        at = row[:, None] * WIDTH + d[None, :]
        state, arrived = tl.load(h + at, inside, 0.0), tl.load(a + at, inside, 0.0)
        x = tl.dot(state, tl.load(weight + turned))
        x += tl.dot(arrived, tl.load(weight + turned + WIDTH))
        x += tl.load(bias + d)[None, :]
        x -= tl.sum(x, 1)[:, None] / WIDTH
        inverse = 1.0 / tl.sqrt(tl.sum(x * x, 1) / WIDTH + EPSILON)[:, None]
        x *= inverse
        whole = tl.load(gradient + at, inside, 0.0)
        g = tl.where(x * gamma + beta > 0, whole, 0.0)
        if DROP:
            g = tl.where(_kept(row, d, seed, salt, least, period, WIDTH), g * scale, 0.0)
        of_gamma += tl.sum(g * x, 0)
        of_beta += tl.sum(g, 0)
        g *= gamma
        g -= tl.sum(g, 1)[:, None] / WIDTH + x * (tl.sum(g * x, 1)[:, None] / WIDTH)
        g *= inverse
        of_bias += tl.sum(g, 0)
        of_weight_h += tl.dot(tl.trans(g), state)
        of_weight_a += tl.dot(tl.trans(g), arrived)
        to_h = whole + tl.dot(g, tl.load(weight + straight))
        to_a = tl.dot(g, tl.load(weight + straight + WIDTH))
        tl.store(of_h + at, to_h, inside)
        tl.store(of_a + at, to_a.to(of_a.dtype.element_ty), inside)
    own = sums + tl.program_id(0) * (2 * WIDTH * WIDTH + 3 * WIDTH)
    tl.store(own + straight, of_weight_h)
    tl.store(own + straight + WIDTH, of_weight_a)
    own += 2 * WIDTH * WIDTH
    tl.store(own + d, of_bias)
    tl.store(own + WIDTH + d, of_gamma)
    tl.store(own + 2 * WIDTH + d, of_beta)


@triton.jit
def _scores(
    out, h, weight, own, last_weight, entities, questions,
    ROWS: tl.constexpr, WIDTH: tl.constexpr, HIDDEN: tl.constexpr,
):  # fmt: skip
    """Of one question, for a block of entities; `weight` is [hidden, width]."""
    b = tl.program_id(1)
    v = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    d, e = tl.arange(0, WIDTH), tl.arange(0, HIDDEN)
    inside = v < entities
    at = (v.to(tl.int64)[:, None] * questions + b) * WIDTH + d[None, :]
    x = tl.dot(
        tl.load(h + at, inside[:, None], 0.0), tl.load(weight + e[None, :] * WIDTH + d[:, None])
    )
    x = tl.maximum(x + tl.load(own + b * HIDDEN + e)[None, :], 0.0)
    score = tl.sum(x * tl.load(last_weight + e)[None, :], 1)
    tl.store(out + b.to(tl.int64) * entities + v, score, inside)


@triton.jit
def _scores_gradient(
    of_h, sums, of_own, gradient, h, weight, own, last_weight, entities, questions,
    ROWS: tl.constexpr, WIDTH: tl.constexpr, HIDDEN: tl.constexpr,
):  # fmt: skip
    """Of one question, for some blocks of entities, with the sums over them."""
    part, b = tl.program_id(0), tl.program_id(1)
    parts = tl.num_programs(0)
    d, e = tl.arange(0, WIDTH), tl.arange(0, HIDDEN)
    straight = e[:, None] * WIDTH + d[None, :]
    end, plus = tl.load(last_weight + e)[None, :], tl.load(own + b * HIDDEN + e)[None, :]
    of_weight = tl.zeros((HIDDEN, WIDTH), tl.float32)
    of_last = tl.zeros((HIDDEN,), tl.float32)
    of_plus = tl.zeros((HIDDEN,), tl.float32)
    for first in range(part * ROWS, entities, parts * ROWS):
        v = first + tl.arange(0, ROWS)
        inside = v < entities
        at = (v.to(tl.int64)[:, None] * questions + b) * WIDTH + d[None, :]
        state = tl.load(h + at, inside[:, None], 0.0)
        x = tl.dot(state, tl.load(weight + e[None, :] * WIDTH + d[:, None])) + plus
        g = tl.load(gradient + b.to(tl.int64) * entities + v, inside, 0.0)[:, None]
        of_last += tl.sum(g * tl.maximum(x, 0.0), 0)
        g = tl.where(x > 0, g * end, 0.0)
        of_plus += tl.sum(g, 0)
        of_weight += tl.dot(tl.trans(g), state)
        tl.store(of_h + at, tl.dot(g, tl.load(weight + straight)), inside[:, None])
    program = part * questions + b
    sums += program * (HIDDEN * WIDTH + HIDDEN)
    tl.store(sums + straight, of_weight)
    tl.store(sums + HIDDEN * WIDTH + e, of_last)
    tl.store(of_own + program * HIDDEN + e, of_plus)


at_work = nullcontext
"""As `processor.at_work`."""


def compact(h: Tensor) -> Tensor:
    """What messages read."""
    return h.to(_SMALL)


def empty(like: Tensor, *shape: int) -> Tensor:
    """As `processor.empty`."""
    return like.new_empty(shape)


def add_messages(
    out: Tensor, h: Tensor, table: Tensor, scopes: Tensor, weights: Tensor, order: Order, back: bool
) -> None:
    """As `processor.add_messages`."""
    questions, width = h.shape[1:]
    targets, sources = (order.source, order.target) if back else (order.target, order.source)
    count = len(targets)
    if not count:
        return
    tile = min(triton.next_power_of_2(questions), max(_TILE // width, 1))
    _messages[triton.cdiv(count, _FACTS), triton.cdiv(questions, tile)](
        out, h, table, scopes, weights, targets, sources, order.predicate, order.time,
        order.number, count, questions, table.shape[2],
        FACTS=_FACTS, QUESTIONS=tile, WIDTH=width, num_warps=4,
    )  # fmt: skip


def _kinds(count: int) -> int:
    """Rows of a tile of scopes; tensor cores need 16."""
    return max(16, triton.next_power_of_2(count))


def table(base: Tensor, gate: Tensor, shift: Tensor) -> Tensor:
    """As `processor.table`."""
    (predicates, kinds, width), questions = base.shape, len(gate)
    out = base.new_empty(predicates, questions, kinds, width, dtype=_SMALL)
    part = 8
    _tables[predicates, triton.cdiv(questions, part)](
        out, base.contiguous(), gate.contiguous(), shift.contiguous(), predicates, questions, kinds,
        part, KINDS=_kinds(kinds), WIDTH=width,
    )  # fmt: skip
    return out


def table_parts(gradient: Tensor, base: Tensor, gate: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """As `processor.table_parts`."""
    (predicates, kinds, width), questions = base.shape, len(gate)
    base, gate = base.contiguous(), gate.contiguous()
    of_base, of_gate = torch.empty_like(base), torch.zeros_like(gate)
    of_shift = base.new_empty(questions, predicates, width)
    size = {"KINDS": _kinds(kinds), "WIDTH": width}
    _tables_gradient[(predicates,)](
        of_base, of_shift, gradient, gate, predicates, questions, kinds, **size
    )
    part = triton.cdiv(predicates, 16)
    _gate_gradient[questions, triton.cdiv(predicates, part)](
        of_gate, gradient, base, predicates, questions, kinds, part, **size
    )
    return of_base, of_gate, of_shift


def table_gradient(
    h: Tensor,
    gradient: Tensor,
    table: Tensor,
    scopes: Tensor,
    weights: Tensor,
    facts: DirectedFacts,
) -> Tensor:
    """As `processor.table_gradient`."""
    out = torch.zeros(table.shape, device=h.device)
    order, (questions, width), count = facts.alike, h.shape[1:], 2 * facts.facts
    if count:
        _table_gradient[triton.cdiv(count, _ALIKE), questions](
            out, h, gradient, scopes, weights, order.starts, order.source, order.predicate,
            order.target, order.time, order.number, count, questions, table.shape[2],
            FACTS=_ALIKE, BLOCK=_BLOCK, KINDS=_kinds(table.shape[2]), WIDTH=width, num_warps=2,
        )  # fmt: skip
    return out


def _rows(width: int) -> int:
    """Rows of a block of a gradient, which must fit into a processor's shared memory."""
    return _ROWS if width < 64 else _ROWS // 2


def _dropping(h: Tensor, dropout: float, layer: int) -> tuple[int, int, float, int, int]:
    rows = h.shape[0] * h.shape[1]
    period = h.shape[1] if layer == 0 else rows
    return layer * 0x85EBCA6B & 0xFFFFFFFF, int(dropout * 2**32), 1 / (1 - dropout), period, rows


def update(
    h: Tensor, a: Tensor, parameters: tuple[Tensor, ...], dropout: float, seed: Tensor, layer: int
) -> tuple[Tensor, Tensor]:
    """As `processor.update`."""
    out, small = torch.empty_like(h), torch.empty_like(h, dtype=_SMALL)
    rest = _dropping(h, dropout, layer)
    _update[(triton.cdiv(rest[-1], _ROWS),)](
        out, small, h, a, *parameters, seed, *rest,
        DROP=dropout > 0, ROWS=_ROWS, WIDTH=h.shape[2], EPSILON=_EPSILON, num_warps=4,
    )  # fmt: skip
    return out, small


def update_gradient(
    gradient: Tensor,
    h: Tensor,
    a: Tensor,
    parameters: tuple[Tensor, ...],
    dropout: float,
    seed: Tensor,
    layer: int,
) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """As `processor.update_gradient`."""
    of_h, of_a = torch.empty_like(h), torch.empty_like(h, dtype=_SMALL)
    rest, width = _dropping(h, dropout, layer), h.shape[2]
    programs = min(_PROGRAMS, triton.cdiv(rest[-1], _rows(width)))
    sums = h.new_empty(programs, 2 * width * width + 3 * width)
    _update_gradient[(programs,)](
        of_h, of_a, sums, gradient, h, a, *parameters, seed, *rest,
        DROP=dropout > 0, ROWS=_rows(width), WIDTH=width, EPSILON=_EPSILON,
        num_warps=4, num_stages=1,
    )  # fmt: skip
    of_weight, *others = sums.sum(0).split([2 * width * width, width, width, width])
    return of_h, of_a, (of_weight.view(width, 2 * width), *others)


def scores(h: Tensor, weight: Tensor, own: Tensor, last_weight: Tensor) -> Tensor:
    """As `processor.scores`."""
    entities, questions, width = h.shape
    out = h.new_empty(questions, entities)
    _scores[triton.cdiv(entities, _ROWS), questions](
        out, h, weight.contiguous(), own, last_weight, entities, questions,
        ROWS=_ROWS, WIDTH=width, HIDDEN=len(weight), num_warps=4,
    )  # fmt: skip
    return out


def scores_gradient(
    gradient: Tensor, h: Tensor, weight: Tensor, own: Tensor, last_weight: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """As `processor.scores_gradient`."""
    entities, questions, width = h.shape
    hidden = len(weight)
    parts = min(triton.cdiv(_PROGRAMS, questions), triton.cdiv(entities, _rows(width)))
    of_h = torch.empty_like(h)
    sums = h.new_empty(parts * questions, hidden * width + hidden)
    of_own = h.new_empty(parts, questions, hidden)
    _scores_gradient[parts, questions](
        of_h, sums, of_own, gradient, h, weight.contiguous(), own, last_weight, entities, questions,
        ROWS=_rows(width), WIDTH=width, HIDDEN=hidden, num_warps=4, num_stages=1,
    )  # fmt: skip
    of_weight, of_last = sums.sum(0).split([hidden * width, hidden])
    return of_h, of_weight.view(hidden, width), of_own.sum(0), of_last
