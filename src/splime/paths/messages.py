"""What arrives at every entity along the facts, and what an entity makes of it.

Vectors of entities are [entities, questions, width]; the table of a layer, with the message of each
predicate in each scope, is [2 x predicates, questions, scopes, width]. The plain formulas say what
is computed. `propagate` and `scores` compute the same without anything of the size
facts x questions x width: on a processor by `processor`, on a GPU by `kernels`.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from splime.paths.facts import DirectedFacts, Order
from splime.paths.relative import LEFT_OUT

EPSILON = 1e-5
"""Of the layer norm."""


class LearnedMessages(NamedTuple):
    """Messages that are parameters of predicates and scopes: base · (1 + gate) + shift.

    Each part has a row for each layer.
    """

    base: Tensor
    """[2 x predicates, scopes, width]"""
    gate: Tensor
    """[questions, scopes, width]"""
    shift: Tensor
    """[questions, 2 x predicates, width]"""

    def plain_table(self, layer: int) -> Tensor:
        """The table of a layer."""
        shift = self.shift[layer].transpose(0, 1).unsqueeze(2)
        return self.base[layer].unsqueeze(1) * (1 + self.gate[layer]) + shift

    def table(self, layer: int) -> Tensor:
        """The same, as kernels read it."""
        table: Tensor = fast(self.base.device).table(*(part[layer] for part in self))
        return table

    def gradients(self, layer: int, of_table: Tensor) -> tuple[Tensor | None, ...]:
        """Those of the parts of a layer, from that of its table."""
        parts = fast(of_table.device).table_parts(of_table, self.base[layer], self.gate[layer])
        return tuple(parts)

    def of_facts(self, layer: int, predicate: Tensor, question: Tensor, scope: Tensor) -> Tensor:
        """The messages along some facts for some questions."""
        message = self.base[layer][predicate, scope] * (1 + self.gate[layer][question, scope])
        return message + self.shift[layer][question, predicate]


class CountedMessages(NamedTuple):
    """Messages that are made from counts: a table for each predicate that is asked about."""

    tables: Tensor
    """[layers, tables, 2 x predicates, scopes, width]"""
    table_of: Tensor
    """The number of each question's table."""

    def plain_table(self, layer: int) -> Tensor:
        """The table of a layer."""
        return self.tables[layer][self.table_of].transpose(0, 1)

    def table(self, layer: int) -> Tensor:
        """The same, as kernels read it."""
        table: Tensor = fast(self.tables.device).compact(self.plain_table(layer).contiguous())
        return table

    def gradients(self, layer: int, of_table: Tensor) -> tuple[Tensor | None, ...]:
        """Those of the parts of a layer, from that of its table."""
        of_tables = torch.zeros_like(self.tables[layer])
        return of_tables.index_add_(0, self.table_of, of_table.transpose(0, 1)), None

    def of_facts(self, layer: int, predicate: Tensor, question: Tensor, scope: Tensor) -> Tensor:
        """The messages along some facts for some questions."""
        return self.tables[layer][self.table_of[question], predicate, scope]


Messages: TypeAlias = LearnedMessages | CountedMessages
"""Where messages come from; the rest of the model does not know."""


class Layers(NamedTuple):
    """What the layers need, a row for each layer."""

    messages: Messages
    weight: Tensor
    bias: Tensor
    norm_weight: Tensor
    norm_bias: Tensor

    def of(self, layer: int) -> tuple[Tensor, ...]:
        """What the update of one layer needs."""
        return tuple(part[layer] for part in self[1:])

    def on_processor(self) -> Layers:
        """The same without gradients, where numba can read it."""
        parts = (part.detach().cpu() for part in self.messages)
        return Layers(type(self.messages)(*parts), *(part.detach().cpu() for part in self[1:]))


def plain_aggregate(
    h: Tensor, table: Tensor, scopes: Tensor, weights: Tensor, order: Order
) -> Tensor:
    """a[v] = Σ weight · h[u] · table[predicate, question, scope], over the facts (u, v)."""
    scope = scopes[order.time.long()].long()
    weights = weights[order.number.long()]
    weights = weights if weights.dim() == 2 else weights.unsqueeze(1)  # one for each question
    seen = weights * (scope != LEFT_OUT)
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


class PathInputs(NamedTuple):
    """Questions, and what they are answered from."""

    q: Tensor
    """What is at the given entities before the first layer."""
    given: Tensor
    layers: Layers
    scopes: Tensor
    weights: Tensor
    facts: DirectedFacts
    share: Tensor | None
    """What arrives at an entity is multiplied by it: [entities, questions, 1]."""
    dropout: float
    seed: Tensor


def plain_propagate(inputs: PathInputs) -> Tensor:
    """The states after the last layer, from q at the given entities."""
    q, given, layers, scopes, weights, facts, share, dropout, seed = inputs
    at = (given, torch.arange(len(given), device=given.device))
    start = q.new_zeros(facts.entities, *q.shape).index_put(at, q)
    h = start
    for layer in range(len(layers.weight)):
        table = layers.messages.plain_table(layer)
        a = plain_aggregate(h, table, scopes, weights, facts.incoming)
        a = a if share is None else a * share
        h = plain_update(h, a + start, layers, layer, dropout, seed)
    return h


def plain_scores(h: Tensor, weight: Tensor, own: Tensor, last_weight: Tensor) -> Tensor:
    """last_weight · relu(weight h + own), for each question and entity."""
    return ((F.linear(h, weight) + own).relu() @ last_weight).T


def fast(device: torch.device) -> ModuleType:
    """The module that computes on a device."""
    if device.type == "cuda":
        from splime.paths import kernels

        return kernels
    from splime.paths import processor

    return processor


class _Propagate(torch.autograd.Function):
    """All layers, or those after the first, whose states are given.

    These are rows of [entities x questions] at some places, and then the rows of all others.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor | None,
        places: Tensor | None,
        q: Tensor,
        given: Tensor,
        scopes: Tensor,
        weights: Tensor,
        facts: DirectedFacts,
        share: Tensor | None,
        dropout: float,
        seed: Tensor,
        keep: bool,
        kind: type[Messages],
        *parts: Tensor,
    ) -> Tensor:
        layers, on, first = _layers(kind, parts), fast(q.device), 0 if states is None else 1
        h: Tensor = on.empty(q, facts.entities, scopes.shape[1], q.shape[1])
        at = _columns(given, h)
        if states is None or places is None:
            h.zero_()[at] = q
        else:
            h[:] = states[len(places) :]
            h.view(-1, h.shape[2])[places] = states[: len(places)]
        small = on.compact(h)
        kept: list[tuple[Tensor, ...]] = []
        for layer in range(first, len(layers.weight)):
            seen = _from_given(weights, given, facts) if layer == 0 else weights
            a = on.empty(q, *h.shape).zero_()
            table = layers.messages.table(layer)
            on.add_messages(a, small, table, scopes, seen, facts.incoming, False)
            a = a if share is None else a.mul_(share)
            a[at] += q
            if keep:
                kept.append((h, small, table, a))
            h, small = on.update(h, a, layers.of(layer), dropout, seed, layer)
        ctx.save_for_backward(given, scopes, weights, seed, *parts)
        ctx.kept = kept
        ctx.facts, ctx.share, ctx.dropout, ctx.places = facts, share, dropout, places
        ctx.kind = kind
        return h

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        given, scopes, weights, seed, *parts = ctx.saved_tensors
        facts, layers, of_h = ctx.facts, _layers(ctx.kind, parts), gradients[0].contiguous()
        on, at, first = fast(of_h.device), _columns(given, of_h), 0 if ctx.places is None else 1
        of_q = of_h.new_zeros(len(given), of_h.shape[2])
        of_parts = [torch.zeros_like(part) if part.is_floating_point() else None for part in parts]
        for layer in range(len(layers.weight) - 1, first - 1, -1):
            h, small, table, a = ctx.kept[layer - first]
            own = layers.of(layer)
            of_h, of_a, of_own = on.update_gradient(of_h, h, a, own, ctx.dropout, seed, layer)
            of_q += of_a[at]
            of_a = of_a if ctx.share is None else of_a.mul_(ctx.share)
            seen = _from_given(weights, given, facts) if layer == 0 else weights
            on.add_messages(of_h, of_a, table, scopes, seen, facts.outgoing, True)
            of_table = on.table_gradient(small, of_a, table, scopes, seen, facts)
            of_own = (*layers.messages.gradients(layer, of_table), *of_own)
            for part, value in zip(of_parts, of_own, strict=True):
                if part is not None:
                    part[layer] = value
        if ctx.places is None:
            return None, None, of_q + of_h[at], *[None] * 9, *of_parts
        rows = (of_h if ctx.kept else of_h.clone()).view(-1, of_h.shape[2])
        of_places = rows[ctx.places]
        rows[ctx.places] = 0
        of_states = torch.cat([of_places, rows.view(of_h.shape).sum(0)])
        return of_states, None, of_q, *[None] * 9, *of_parts


def _layers(kind: type[Messages], parts: tuple[Tensor, ...] | list[Tensor]) -> Layers:
    of_messages = len(kind._fields)
    return Layers(kind(*parts[:of_messages]), *parts[of_messages:])


def _columns(given: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """Where the questions begin: at their entities, each in its column, or all in the only one."""
    return given, torch.arange(len(given), device=given.device) % h.shape[1]


def _from_given(weights: Tensor, given: Tensor, facts: DirectedFacts) -> Tensor:
    """The weights of the facts that leave the given entities, else 0: all that layer 0 passes."""
    sends = weights.new_zeros(facts.entities).index_fill_(0, given, 1)
    return weights * sends[facts.source.long()]


def propagate(inputs: PathInputs) -> Tensor:
    """What `plain_propagate` gives, without gradients for weights.

    Or all questions in one column, with entities, predicates and times of their own (`nearest`).
    """
    q, given, layers, *rest = inputs
    first = first_layer(inputs) if inputs.scopes.shape[1] == len(q) else None
    messages, *of_update = layers
    keep, kind = torch.is_grad_enabled(), type(messages)
    result: Tensor = _Propagate.apply(  # type: ignore[no-untyped-call]
        *first or (None, None), q, given, *rest, keep, kind, *messages, *of_update
    )
    return result


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, own: Tensor, last_weight: Tensor) -> Tensor:
        ctx.save_for_backward(h, weight, own, last_weight)
        result: Tensor = fast(h.device).scores(h, weight, own, last_weight)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        gradient = gradients[0].contiguous()
        on = fast(gradient.device)
        result: tuple[Tensor, ...] = on.scores_gradient(gradient, *ctx.saved_tensors)
        return result


def scores(h: Tensor, weight: Tensor, own: Tensor, last_weight: Tensor) -> Tensor:
    """What `plain_scores` gives."""
    result: Tensor = _Scores.apply(h, weight, own, last_weight)  # type: ignore[no-untyped-call]
    return result


def first_layer(inputs: PathInputs) -> tuple[Tensor, Tensor] | None:
    """The states after the first layer, at the cost of the facts at the given entities.

    No message reaches any other entity, so all others share one state of the question. Rows of
    [entities x questions] and their places, followed by those of all others. None where this saves
    nothing, and on a GPU, which would have to wait for the number of facts.
    """
    q, given, layers, scopes, weights, facts, share, dropout, seed = inputs
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
    predicate = order.predicate[at].long()
    message = layers.messages.of_facts(0, predicate, question, scope) * q[question]
    message = message * weights[order.number[at].long()].unsqueeze(1)
    # The rows that differ: the given entities first, then those that messages reach; and at the
    # end the state of all others.
    own = given * questions + torch.arange(questions)
    places, row = torch.cat([own, order.target[at].long() * questions + question]).unique(
        return_inverse=True
    )
    a = q.new_zeros(len(places), width).index_add(0, row[questions:], message)
    if share is not None:
        a = a * share.view(-1, 1)[places]
    a = a.index_add(0, row[:questions], q)
    h = q.new_zeros(len(places), width).index_copy(0, row[:questions], q)
    nothing = q.new_zeros(questions, width)
    h, a = torch.cat([h, nothing]), torch.cat([a, nothing])
    x = _change(h, a, layers, 0)
    if dropout:
        mask = kept(torch.Size((1, questions, width)), dropout, seed, 0)[0]
        x = x * mask[torch.cat([places % questions, torch.arange(questions)])] / (1 - dropout)
    return h + x, places
