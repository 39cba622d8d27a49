"""The path model: it starts at the given entity, passes messages along facts, and scores entities.

For a question with a vector q of its predicate and given entity u0, with h0 = q at u0, else 0:

    m(r, k) = the message of a fact of r in scope k, learned or counted
    a[v]    = h0[v] + Σ over facts (u, r, v) of weight · h[u] · m(r, scope of the fact)
              (or h0[v] + their mean)
    h[v]   += dropout(relu(layernorm(W [h[v]; a[v]] + b)))          once for each layer
    score   = MLP([h[v]; q])
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from splime.graph import Facts, TemporalGraph
from splime.paths import messages
from splime.paths.facts import DirectedFacts
from splime.paths.messages import Layers, LearnedMessages, Messages, PathInputs
from splime.paths.relative import RelativeScopes, Times

if TYPE_CHECKING:
    from splime.paths.counting import FactCounts
    from splime.paths.nearest import Nearest

Aggregation: TypeAlias = Literal["sum", "mean"]
WIDTHS = (16, 32, 64)


class Start(NamedTuple):
    """What questions begin with."""

    q: Tensor
    """[questions, width]: what is at their given entities."""
    messages: Messages


Starter: TypeAlias = Callable[[Tensor, Tensor | None], Start]
"""What questions about some predicates begin with; in training also the numbers of their facts.

Predicates are numbered as those of directed facts: p asks for the object of p, p + predicates for
its subject.
"""
Counting: TypeAlias = Callable[[Facts, TemporalGraph, RelativeScopes], "FactCounts"]
"""Counts of some facts of a graph."""


class PathModel(nn.Module, ABC):
    """The layers and the score; a class for each source of messages adds those. Facts are inputs.

    A subclass makes its parameters in `_make_messages`, which is called first.
    """

    steps_are_alike: bool = True
    """Whether training steps do the same on other questions, so that a GPU can record one."""

    def __init__(
        self,
        predicates: int,
        scopes: int,
        *,
        layers: int = 4,
        width: int = 32,
        dropout: float = 0.0,
        aggregation: Aggregation = "sum",
        reach: int | None = None,
        seed: int | None = 0,
    ) -> None:
        """Without a seed parameters take no memory yet: they are filled from a file."""
        super().__init__()
        self.predicates, self.scopes, self.layers, self.width = predicates, scopes, layers, width
        self.dropout, self.aggregation, self.reach = dropout, aggregation, reach
        self._random = None if seed is None else torch.Generator().manual_seed(seed)
        with torch.device("cpu" if seed is not None else "meta"):
            self._make_parameters()
        del self._random

    def _make_parameters(self) -> None:
        layers, width, uniform = self.layers, self.width, self._uniform
        self._make_messages()
        self.update_weight = uniform(2 * width, layers, width, 2 * width)
        self.update_bias = uniform(2 * width, layers, width)
        self.norm_weight = nn.Parameter(torch.ones(layers, width))
        self.norm_bias = nn.Parameter(torch.zeros(layers, width))
        self.hidden_weight = uniform(2 * width, 2 * width, 2 * width)
        self.hidden_bias = uniform(2 * width, 2 * width)
        self.score_weight = uniform(2 * width, 2 * width)
        self.score_bias = uniform(2 * width, 1)

    def _normal(self, *shape: int, scale: float = 1.0) -> nn.Parameter:
        if self._random is None:  # to compute without numbers imports torch's compiler: a second
            return nn.Parameter(torch.empty(shape))
        return nn.Parameter(scale * torch.randn(shape, generator=self._random))

    def _uniform(self, inputs: int, *shape: int) -> nn.Parameter:
        if self._random is None:
            return nn.Parameter(torch.empty(shape))
        numbers = torch.rand(shape, generator=self._random) * 2 - 1
        return nn.Parameter(numbers / math.sqrt(inputs))

    @abstractmethod
    def _make_messages(self) -> None:
        """The parameters of messages and of what questions begin with."""

    @abstractmethod
    def starter(
        self,
        known: Facts,
        graph: TemporalGraph,
        relative: RelativeScopes,
        counting: Counting | None = None,
    ) -> Starter:
        """What questions begin with that are answered from some facts of a graph.

        `counting` is what counts the facts, for models that need it.
        """

    @abstractmethod
    def training_starter(
        self, known: Facts, graph: TemporalGraph, relative: RelativeScopes
    ) -> Starter:
        """The same for questions made of these facts, of which each is hidden from its own."""

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return self.score_bias.device

    def forward(
        self,
        facts: DirectedFacts,
        given: Tensor,
        start: Start,
        scopes: Tensor,
        weights: Tensor | None = None,
        *,
        times: Times | None = None,
        seed: Tensor | None = None,
        plain: bool = False,
    ) -> Tensor:
        """Scores [questions, entities].

        `scopes` are `facts.scopes(relative, times)` with the `times` of the questions, which
        `reach` needs too; `weights` those of directed facts (all 1 if left out); `seed` decides
        what dropout drops. `plain` computes by the plain formulas, from all facts, which also gives
        gradients for weights.
        """
        weights = facts.weights() if weights is None else weights
        seed = torch.zeros((), dtype=torch.int64, device=given.device) if seed is None else seed
        dropout, (q, carried) = self.dropout if self.training else 0.0, start
        entities, near = facts.entities, None
        if not plain:
            near = self.nearest(facts, given, scopes, times, weights)
        if near is not None:
            facts, given, weights = near.facts, near.given, weights[near.number]
            scopes = scopes.reshape(-1, 1)
        share = self.share(facts, weights, scopes)
        propagate = messages.plain_propagate if plain else messages.propagate
        layers = self.layers_of(carried)
        h = propagate(PathInputs(q, given, layers, scopes, weights, facts, share, dropout, seed))
        if near is None:
            return self.score(h, q, plain=plain)
        scores = self.score(h.transpose(0, 1), q[near.question], plain=True)
        return near.spread(scores[:, 0], entities)

    def nearest(
        self,
        facts: DirectedFacts,
        given: Tensor,
        scopes: Tensor,
        times: Times | None,
        weights: Tensor,
    ) -> Nearest | None:
        """The facts that questions read; None for all, where `reach` lets them."""
        if self.reach is None or facts.facts <= self.reach:
            return None
        from splime.paths.nearest import nearest

        assert times is not None
        return nearest(facts, given, scopes, times, weights, self.layers, self.reach)

    def share(self, facts: DirectedFacts, weights: Tensor, scopes: Tensor) -> Tensor | None:
        """By what the sum at an entity is multiplied: 1 / facts that arrive, for a mean."""
        if self.aggregation == "sum":
            return None
        return 1 / facts.degrees(weights, scopes).unsqueeze(2)

    def layers_of(self, carried: Messages) -> Layers:
        """What the layers need for questions with these messages."""
        return Layers(
            carried, self.update_weight, self.update_bias, self.norm_weight, self.norm_bias
        )

    def score(self, h: Tensor, q: Tensor, *, plain: bool = False) -> Tensor:
        """Scores [questions, entities] from the states of entities [entities, questions, width]."""
        of_h, of_q = self.hidden_weight.split(self.width, 1)
        own = q @ of_q.T + self.hidden_bias
        score = messages.plain_scores if plain else messages.scores
        return score(h, of_h, own, self.score_weight) + self.score_bias


class LearnedPathModel(PathModel):
    """Messages are parameters of predicates and scopes; with gate and shift linear in q,

    m(r, k) = base[r, k] · (1 + gate(q)[k]) + shift(q)[r].
    """

    def _make_messages(self) -> None:
        layers, scopes, width, directed = self.layers, self.scopes, self.width, 2 * self.predicates
        normal, uniform = self._normal, self._uniform
        self.query = normal(directed, width)
        self.base = normal(layers, directed, scopes, width, scale=0.3)
        if self._random is not None:
            self.base.data += normal(layers, directed, 1, width)
        self.gate_weight = nn.Parameter(torch.zeros(layers, width, scopes * width))
        self.gate_bias = nn.Parameter(torch.zeros(layers, 1, scopes * width))
        self.shift_weight = uniform(width, layers, width, directed * width)
        self.shift_bias = uniform(width, layers, 1, directed * width)

    def start(self, predicates: Tensor, asked: Tensor | None = None) -> Start:
        """What questions about predicates begin with, whatever the facts are."""
        q = self.query[predicates]
        every, shape = q.expand(self.layers, *q.shape), (self.layers, len(q), -1, self.width)
        gate = torch.baddbmm(self.gate_bias, every, self.gate_weight)
        shift = torch.baddbmm(self.shift_bias, every, self.shift_weight)
        return Start(q, LearnedMessages(self.base, gate.view(shape), shift.view(shape)))

    def starter(self, *_: object, **__: object) -> Starter:
        """Facts do not matter for it."""
        return self.start

    training_starter = starter
