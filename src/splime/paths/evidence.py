"""What an answer rests on: chains of facts from the given entity to it.

The gradient of the answer's score by the weight that a fact has in a layer says how much of the
score passes there. It is averaged while the weights of all facts grow from 0 to 1 (integrated
gradients): where one fact decides alone, a little more or less of it would change nothing.

A chain's contribution follows this from the answer back to the given entity: at each entity, what
passes is divided among the facts that brought it, by their gradients. So the contributions of all
chains add up to no more than what arrives at the answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from splime.paths import messages
from splime.paths.facts import DirectedFacts, Order
from splime.paths.messages import Layers
from splime.paths.model import PathModel, Start
from splime.paths.relative import Times
from splime.scoring.timed import Chain

# In which weights grow.
_STEPS = 8


@dataclass(frozen=True, eq=False)
class Passing:
    """The facts that can matter for an answer, and how much of its score passes along them."""

    number: Tensor
    """Of the directed fact."""
    layer: Tensor
    gradient: Tensor


def passing(
    model: PathModel,
    facts: DirectedFacts,
    given: int,
    start: Start,
    scopes: Tensor,
    answer: int,
    weights: Tensor | None = None,
) -> Passing:
    """Gradients of one answer's score by the weights of facts in each layer, averaged.

    They add up to about what all facts together add to the score.

    `scopes` are those of the one question. Only facts within the steps that are left to the answer
    are read, and in the first layer only those at the given entity: nothing else can matter. This
    is done on a processor, also where the model is on a GPU: one question is little work.
    """
    facts, scopes, on = facts.on_processor, scopes.cpu(), messages.fast(torch.device("cpu"))
    weights = facts.weights() if weights is None else weights.cpu()
    share = model.share(facts, weights, scopes)
    layers, q = model.layers_of(start.messages).on_processor(), start.q.detach()
    begin = q.cpu()
    # As many questions as steps of the growing weights, which grow with the messages.
    grow = (torch.arange(_STEPS) + 0.5) / _STEPS
    scopes = scopes.expand(-1, _STEPS).contiguous()
    kept: list[_Layer] = []
    h, nothing = begin.new_zeros(0), torch.zeros((), dtype=torch.int64)
    for layer, (here, before, after) in enumerate(
        _read(facts, weights, given, answer, model.layers)
    ):
        if layer == 0:
            h = begin.new_zeros(len(before), _STEPS, model.width)
            h[before == given] = begin
        table = layers.messages.table(layer) * grow.view(-1, 1, 1)
        inner = torch.searchsorted(before, after)
        a = h.new_zeros(len(after), _STEPS, model.width)
        on.add_messages(a, h, table, scopes, weights, here, False)
        divided = None if share is None else share[after]
        if divided is not None:
            a *= divided
        a[after == given] += begin
        kept.append(_Layer(here, after, inner, h, a, table, divided))
        h = on.update(h[inner], a, layers.of(layer), 0.0, nothing, layer)[0]
    h.requires_grad_()
    score = model.score(h.to(q.device), q.expand(_STEPS, -1), plain=True)
    (of_h,) = torch.autograd.grad(score.sum(), h)
    gradient = _gradient(layers, kept, of_h, scopes, weights, grow)
    number = torch.cat([one.here.number for one in kept]).long()
    sizes = torch.tensor([len(one.here.number) for one in kept])
    layer_of = torch.arange(model.layers).repeat_interleave(sizes)
    return Passing(number, layer_of, gradient * weights[number])


def _gradient(
    layers: Layers,
    kept: Sequence[_Layer],
    of_h: Tensor,
    scopes: Tensor,
    weights: Tensor,
    grow: Tensor,
) -> Tensor:
    """The gradients by the weights of the facts of all layers, from that by what they made."""
    on, nothing = messages.fast(torch.device("cpu")), torch.zeros((), dtype=torch.int64)
    factors = 1 / (_STEPS * grow)
    gradients: list[Tensor] = []
    for layer in range(len(kept) - 1, -1, -1):
        here, _, inner, h, a, table, share = kept[layer]
        of_inner, of_a, _ = on.update_gradient(
            of_h, h[inner], a, layers.of(layer), 0.0, nothing, layer
        )
        if share is not None:
            of_a *= share
        of_h = torch.zeros_like(h).index_copy_(0, inner, of_inner)
        gradients.insert(0, on.fact_gradient(of_h, h, of_a, table, scopes, weights, here, factors))
    return torch.cat(gradients)


class _Layer(NamedTuple):
    """What a layer reads, between places among the entities that are needed, and what it made."""

    here: Order
    after: Tensor
    """The entities that are needed after it."""
    inner: Tensor
    """Their places among those that are needed before it."""
    h: Tensor
    a: Tensor
    table: Tensor
    share: Tensor | None
    """What the sums of these entities are multiplied with, if the model has that."""


def _read(
    facts: DirectedFacts, weights: Tensor, given: int, answer: int, layers: int
) -> list[tuple[Order, Tensor, Tensor]]:
    """What each layer reads for one answer, and the entities that it needs before and after."""
    order, near = facts.incoming, torch.zeros(facts.entities, dtype=torch.bool)
    source, target = order.source.long(), order.target.long()
    read: list[tuple[Order, Tensor, Tensor]] = []
    usable = weights[order.number.long()] != 0
    near[answer] = True
    after = torch.tensor([answer])
    for layer in range(layers - 1, -1, -1):
        chosen = usable & near[target]
        near = near.index_fill(0, source[chosen], True)
        before = near.nonzero().flatten()
        followed = order.take(chosen & (source == given) if layer == 0 else chosen)
        places, rows = (
            torch.searchsorted(entities, column.long())
            for entities, column in ((before, followed.source), (after, followed.target))
        )
        starts = torch.searchsorted(rows, torch.arange(len(after) + 1))
        here = replace(followed, starts=starts, source=places.int(), target=rows.int())
        read.insert(0, (here, before, after))
        after = before
    return read


_Partial: TypeAlias = tuple[int, int, float, tuple[int, ...], tuple[int, ...]]
"""The entity where a chain has come to, the layer it must have come by, what passes, its facts and
its entities."""


def chains(
    facts: DirectedFacts, passed: Passing, given: int, answer: int, *, most: int = 5, beam: int = 64
) -> list[Chain]:
    """The chains that contribute most, by a beam search from the answer back.

    A chain comes to no entity twice. Facts with a gradient below 0 speak against the answer, and
    are in no chain.
    """
    number, layer, gradient = (
        column[passed.gradient > 0].cpu().numpy()
        for column in (passed.number, passed.layer, passed.gradient)
    )
    source, target = (
        column.numpy()[number] for column in (facts.on_processor.source, facts.on_processor.target)
    )
    order = np.argsort(target, kind="stable")
    ordered = target[order]

    def into(entity: int, before: int) -> Any:
        """The facts that bring something to an entity before a layer."""
        low, high = np.searchsorted(ordered, (entity, entity + 1))
        at = order[low:high]
        return at[layer[at] < before]

    done: dict[tuple[int, ...], float] = defaultdict(float)
    total = float(gradient[into(answer, facts.facts)].sum())
    top = int(layer.max()) + 1 if len(layer) else 0
    partial: list[_Partial] = [(answer, top, total, (), (answer,))]
    while partial:
        longer: list[_Partial] = []
        for entity, before, value, steps, seen in partial:
            options = into(entity, before)
            parts = value * gradient[options] / gradient[options].sum()
            begins = source[options] == given
            for at, part in zip(options[begins].tolist(), parts[begins].tolist(), strict=True):
                done[(int(number[at]), *steps)] += part
            options, parts = options[~begins], parts[~begins]
            # No more than the beam can stay, beside those that come back to an entity.
            best = np.argsort(-parts, kind="stable")[: beam + len(seen)]
            for at, part in zip(options[best].tolist(), parts[best].tolist(), strict=True):
                u = int(source[at])
                if u not in seen:
                    longer.append((u, int(layer[at]), part, (int(number[at]), *steps), (u, *seen)))
        partial = sorted(longer, key=lambda one: -one[2])[:beam]
    best_first = sorted(done.items(), key=lambda one: (-one[1], one[0]))
    return [Chain(steps, value) for steps, value in best_first[:most]]


def evidence(
    model: PathModel,
    facts: DirectedFacts,
    given: int,
    start: Start,
    scopes: Tensor,
    answer: int,
    weights: Tensor | None = None,
    *,
    times: Times | None = None,
    most: int = 5,
) -> list[Chain]:
    """The chains of facts that an answer rests on; its question has a `start` and `times`."""
    weights = facts.weights() if weights is None else weights
    asked = torch.tensor([given], device=facts.device)
    near = model.nearest(facts, asked, scopes, times, weights)
    if near is None:
        passed = passing(model, facts, given, start, scopes, answer, weights)
        return chains(facts, passed, given, answer, most=most)
    row, reached = int(near.given), (near.entity == answer).nonzero().flatten().tolist()
    if not reached:
        return []
    of_near = (near.facts, row, start, scopes, reached[0], weights[near.number])
    passed = passing(model, *of_near)
    return [
        Chain(tuple(near.number[list(chain.facts)].tolist()), chain.contribution)
        for chain in chains(near.facts, passed, row, reached[0], most=most)
    ]
