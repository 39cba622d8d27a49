"""What arrives at every entity along the facts, and what an entity makes of it.

Vectors of entities are [entities, questions, width]; the table of a layer, with the message of each
predicate in each scope, is [2 x predicates, questions, scopes, width]. The plain formulas say what
is computed. `aggregate` and `propagate` compute the same without anything of the size
facts x questions x width: on a processor by `processor`, on a GPU by `kernels`.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from splime.paths.facts import DirectedFacts
from splime.paths.relative import LEFT_OUT

EPSILON = 1e-5
"""Of the layer norm."""


class Layers(NamedTuple):
    """Parameters of an entity's update, a row for each layer."""

    weight: Tensor
    bias: Tensor
    norm_weight: Tensor
    norm_bias: Tensor


def plain_aggregate(
    h: Tensor, table: Tensor, scopes: Tensor, weights: Tensor, facts: DirectedFacts
) -> Tensor:
    """a[v] = Σ weight · h[u] · table[predicate, question, scope], over the facts (u, v)."""
    order = facts.incoming
    scope = scopes[order.time.long()].long()
    seen = weights[order.number.long()].unsqueeze(1) * (scope != LEFT_OUT)
    scope = scope.where(scope != LEFT_OUT, 0)
    questions = torch.arange(h.shape[1], device=h.device)
    message = table[order.predicate.long().unsqueeze(1), questions, scope]
    message = h[order.source.long()] * message * seen.unsqueeze(2)
    return torch.zeros_like(h).index_add(0, order.target.long(), message)


def _change(h: Tensor, a: Tensor, layers: Layers, layer: int) -> Tensor:
    x = F.linear(torch.cat([h, a], -1), layers.weight[layer], layers.bias[layer])
    weight, bias = layers.norm_weight[layer], layers.norm_bias[layer]
    return F.layer_norm(x, x.shape[-1:], weight, bias, EPSILON).relu()


def plain_update(
    h: Tensor, a: Tensor, layers: Layers, layer: int, dropout: float, seed: Tensor
) -> Tensor:
    """h + dropout(relu(layernorm(W [h; a] + b)))."""
    x = _change(h, a, layers, layer)
    if dropout:
        x = x * kept(x.shape, dropout, seed, layer) / (1 - dropout)
    return h + x


def kept(shape: torch.Size, dropout: float, seed: Tensor, layer: int) -> Tensor:
    """Which numbers of a layer dropout keeps: by a hash of their place, so without any state.

    In the first layer all entities share it, for most of them are still alike there.
    """
    if layer == 0:
        shape = torch.Size((1, *shape[1:]))
    x = torch.arange(shape.numel(), device=seed.device) + seed * 0x9E3779B1 + layer * 0x85EBCA6B
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = x & 0xFFFFFFFF
        x = (x ^ (x >> shift)) * factor
    x = x & 0xFFFFFFFF
    return ((x ^ (x >> 16)) >= int(dropout * 2**32)).view(shape)


def plain_scores(h: Tensor, weight: Tensor, own: Tensor, last_weight: Tensor) -> Tensor:
    """last_weight · relu(weight h + own), for each entity and question."""
    return (F.linear(h, weight) + own).relu() @ last_weight


def _fast(device: torch.device) -> ModuleType:
    """The module that computes on a device."""
    if device.type == "cuda":
        from splime.paths import kernels

        return kernels
    from splime.paths import processor

    return processor


class _Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, table: Tensor, scopes: Tensor, weights: Tensor, facts: DirectedFacts
    ) -> Tensor:
        ctx.save_for_backward(h, table, scopes, weights)
        ctx.facts = facts
        out = h.new_zeros(h.shape)
        _fast(h.device).add_messages(out, h, table, scopes, weights, facts.incoming, False)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        h, table, scopes, weights = ctx.saved_tensors
        fast, facts, gradient = _fast(h.device), ctx.facts, gradients[0].contiguous()
        of_h = h.new_zeros(h.shape)
        fast.add_messages(of_h, gradient, table, scopes, weights, facts.outgoing, True)
        of_table = fast.table_gradient(h, gradient, table, scopes, weights, facts)
        return of_h, of_table, None, None, None


def aggregate(
    h: Tensor, table: Tensor, scopes: Tensor, weights: Tensor, facts: DirectedFacts
) -> Tensor:
    """What `plain_aggregate` gives, without gradients for weights."""
    result: Tensor = _Aggregate.apply(h, table, scopes, weights, facts)
    return result


class _Update(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, a: Tensor, seed: Tensor, dropout: float, layer: int, *own: Tensor
    ) -> Tensor:
        ctx.save_for_backward(h, a, seed, *own)
        ctx.dropout, ctx.layer = dropout, layer
        result: Tensor = _fast(h.device).update(h, a, own, dropout, seed, layer)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        h, a, seed, *own = ctx.saved_tensors
        of_h, of_a, of_own = _fast(h.device).update_gradient(
            gradients[0].contiguous(), h, a, tuple(own), ctx.dropout, seed, ctx.layer
        )
        return of_h, of_a, None, None, None, *of_own


def update(
    h: Tensor, a: Tensor, layers: Layers, layer: int, dropout: float, seed: Tensor
) -> Tensor:
    """What `plain_update` gives."""
    own = (part[layer] for part in layers)
    result: Tensor = _Update.apply(h, a, seed, dropout, layer, *own)
    return result


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, own: Tensor, last_weight: Tensor) -> Tensor:
        ctx.save_for_backward(h, weight, own, last_weight)
        result: Tensor = _fast(h.device).scores(h, weight, own, last_weight)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        saved = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        result: tuple[Tensor, ...] = _fast(gradient.device).scores_gradient(gradient, *saved)
        return result


def scores(h: Tensor, weight: Tensor, own: Tensor, last_weight: Tensor) -> Tensor:
    """What `plain_scores` gives."""
    result: Tensor = _Scores.apply(h, weight, own, last_weight)
    return result


def first_layer(
    q: Tensor,
    given: Tensor,
    table: Tensor,
    layers: Layers,
    scopes: Tensor,
    weights: Tensor,
    facts: DirectedFacts,
    dropout: float,
    seed: Tensor,
) -> Tensor | None:
    """The states after the first layer, at the cost of the facts at the given entities.

    No message reaches any other entity, so all others share one state of the question. None where
    this saves nothing, and on a GPU, which would have to wait for the number of facts.
    """
    if q.device.type == "cuda":
        return None
    entities, (questions, width) = facts.entities, q.shape
    starts = facts.outgoing.starts
    counts = (starts[1:] - starts[:-1])[given]
    if int(counts.sum()) > entities * questions // 2:
        return None
    question = torch.arange(questions).repeat_interleave(counts)
    before = counts.cumsum(0) - counts
    at = torch.arange(len(question)) + (starts[given] - before)[question]
    order = facts.outgoing
    scope = scopes[order.time[at].long(), question].long()
    seen = (scope != LEFT_OUT) & (weights[order.number[at].long()] != 0)
    at, question, scope = at[seen], question[seen], scope[seen]
    message = table[order.predicate[at].long(), question, scope] * q[question]
    message = message * weights[order.number[at].long()].unsqueeze(1)
    # The rows that differ: the given entities first, then those that messages reach; and at the
    # end the state of all others.
    own = given * questions + torch.arange(questions)
    places, row = torch.cat([own, order.target[at].long() * questions + question]).unique(
        return_inverse=True
    )
    a = q.new_zeros(len(places), width).index_add(0, row, torch.cat([q, message]))
    h = q.new_zeros(len(places), width).index_copy(0, row[:questions], q)
    nothing = q.new_zeros(questions, width)
    h, a = torch.cat([h, nothing]), torch.cat([a, nothing])
    x = _change(h, a, layers, 0)
    if dropout:
        mask = kept(torch.Size((1, questions, width)), dropout, seed, 0)[0]
        x = x * mask[torch.cat([places % questions, torch.arange(questions)])] / (1 - dropout)
    states = h + x
    others = states[len(places) :].expand(entities, questions, width)
    return (
        others.reshape(entities * questions, width)
        .index_copy(0, places, states[: len(places)])
        .view(entities, questions, width)
    )
