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
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor

from splime.paths import messages
from splime.paths.facts import DirectedFacts, Order
from splime.paths.model import PathModel

# In which weights grow.
_STEPS = 8


@dataclass(frozen=True)
class Chain:
    """Facts that lead from the given entity to the answer, and what they add to its score."""

    facts: tuple[int, ...]
    """Numbers of directed facts, in order."""
    contribution: float


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
    predicate: int,
    scopes: Tensor,
    answer: int,
    weights: Tensor | None = None,
) -> Passing:
    """Gradients of one answer's score by the weights of facts in each layer, averaged.

    They add up to about what all facts together add to the score.

    `scopes` are those of the one question. Only facts within the steps that are left to the answer
    are read, and in the first layer only those at the given entity: nothing else can matter.
    """
    weights = facts.weights() if weights is None else weights
    if model.aggregation == "mean":
        weights = weights / facts.degrees(weights)[facts.target]
    q = model.query[[predicate]].detach()
    layers = messages.Layers(*(part.detach() for part in model.layers_of(q.expand(_STEPS, -1))))
    order, near = facts.incoming, torch.zeros(facts.entities, dtype=torch.bool, device=q.device)
    near[answer] = True
    # What a layer reads, and the entities that it needs before and after.
    read: list[Order] = []
    needed = [near.nonzero().flatten()]
    for _ in range(model.layers):
        chosen = near[order.target.long()] & (weights[order.number.long()] != 0)
        read.insert(0, order.take(chosen))
        near = near.index_fill(0, read[0].source.long(), True)
        needed.insert(0, near.nonzero().flatten())
    read[0] = read[0].take(read[0].source == given)
    # As many questions as steps of the growing weights.
    grow = (torch.arange(_STEPS, device=q.device) + 0.5) / _STEPS
    scopes = scopes.expand(-1, _STEPS)
    start = q.new_zeros(facts.entities, 1, model.width)
    start[given, 0] = q[0]
    h, own, place = start[needed[0]].expand(-1, _STEPS, -1), [], torch.zeros_like(near).long()
    nothing = torch.zeros((), dtype=torch.int64, device=q.device)
    for layer, some in enumerate(read):
        place[needed[layer]] = torch.arange(len(needed[layer]), device=q.device)
        own.append((weights[some.number.long()].unsqueeze(1) * grow).requires_grad_())
        here = replace(
            some,
            source=place[some.source.long()],
            target=place[some.target.long()],
            number=torch.arange(len(some.number), device=q.device),
        )
        a = messages.plain_aggregate(h, messages.plain_table(layers, layer), scopes, own[-1], here)
        after = needed[layer + 1]
        inner = place[after]
        h = messages.plain_update(h[inner], a[inner] + start[after], layers, layer, 0.0, nothing)
    score = model.score(h, q.expand(_STEPS, -1), plain=True)
    gradients = torch.autograd.grad(score.sum(), own)
    layer_of = torch.arange(len(read), device=q.device)
    number = torch.cat([some.number.long() for some in read])
    return Passing(
        number,
        layer_of.repeat_interleave(layer_of.new_tensor([len(some.number) for some in read])),
        torch.cat(gradients).mean(1) * weights[number],
    )


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
    into: dict[int, list[tuple[int, int, int, float]]] = defaultdict(list)
    speaks = passed.gradient > 0
    number, layer, gradient = (
        column[speaks] for column in (passed.number, passed.layer, passed.gradient)
    )
    columns = (facts.target[number], facts.source[number], number, layer, gradient)
    for target, *rest in zip(*(column.tolist() for column in columns), strict=True):
        into[target].append((*rest,))
    done: dict[tuple[int, ...], float] = defaultdict(float)
    total = sum(rest[-1] for rest in into[answer])
    partial: list[_Partial] = [
        (answer, int(layer.max()) + 1 if len(layer) else 0, total, (), (answer,))
    ]
    while partial:
        longer: list[_Partial] = []
        for entity, before, value, steps, seen in partial:
            options = [rest for rest in into[entity] if rest[2] < before]
            whole = sum(rest[3] for rest in options)
            for source, fact, at, part in options:
                if source == given:
                    done[(fact, *steps)] += value * part / whole
                elif source not in seen:
                    longer.append(
                        (source, at, value * part / whole, (fact, *steps), (source, *seen))
                    )
        partial = sorted(longer, key=lambda one: -one[2])[:beam]
    best = sorted(done.items(), key=lambda one: (-one[1], one[0]))
    return [Chain(steps, value) for steps, value in best[:most]]


def evidence(
    model: PathModel,
    facts: DirectedFacts,
    given: int,
    predicate: int,
    scopes: Tensor,
    answer: int,
    weights: Tensor | None = None,
    *,
    most: int = 5,
) -> list[Chain]:
    """The chains of facts that an answer to a question rests on."""
    passed = passing(model, facts, given, predicate, scopes, answer, weights)
    return chains(facts, passed, given, answer, most=most)
