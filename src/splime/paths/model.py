"""The path model: it starts at the given entity, passes messages along facts, and scores entities.

For a question with predicate p and given entity u0, with q = query[p] and h0 = q at u0, else 0:

    m(r, k) = base[r, k] · (1 + gate(q)[k]) + shift(q)[r]
    a[v]    = h0[v] + Σ over facts (u, r, v) of weight · h[u] · m(r, scope of the fact)
              (or h0[v] + their mean)
    h[v]   += dropout(relu(layernorm(W [h[v]; a[v]] + b)))          once for each layer
    score   = MLP([h[v]; q])
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

import torch
from torch import Tensor, nn

from splime.paths import messages
from splime.paths.facts import DirectedFacts
from splime.paths.messages import Layers, PathInputs
from splime.paths.relative import Times

if TYPE_CHECKING:
    from splime.paths.nearest import Nearest

Aggregation: TypeAlias = Literal["sum", "mean"]
WIDTHS = (16, 32, 64)


class PathModel(nn.Module):
    """Its parameters belong to predicates and scopes; the facts are an input.

    Predicates of questions are numbered as those of directed facts: p asks for the object of p,
    p + predicates for its subject.
    """

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
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.predicates, self.scopes, self.layers, self.width = predicates, scopes, layers, width
        self.dropout, self.aggregation, self.reach = dropout, aggregation, reach
        directed = 2 * predicates
        random = torch.Generator().manual_seed(seed)

        def normal(*shape: int) -> Tensor:
            return torch.randn(shape, generator=random)

        def uniform(inputs: int, *shape: int) -> nn.Parameter:
            numbers = torch.rand(shape, generator=random) * 2 - 1
            return nn.Parameter(numbers / math.sqrt(inputs))

        self.query = nn.Parameter(normal(directed, width))
        base = 0.3 * normal(layers, directed, scopes, width) + normal(layers, directed, 1, width)
        self.base = nn.Parameter(base)
        self.gate_weight = nn.Parameter(torch.zeros(layers, width, scopes * width))
        self.gate_bias = nn.Parameter(torch.zeros(layers, 1, scopes * width))
        self.shift_weight = uniform(width, layers, width, directed * width)
        self.shift_bias = uniform(width, layers, 1, directed * width)
        self.update_weight = uniform(2 * width, layers, width, 2 * width)
        self.update_bias = uniform(2 * width, layers, width)
        self.norm_weight = nn.Parameter(torch.ones(layers, width))
        self.norm_bias = nn.Parameter(torch.zeros(layers, width))
        self.hidden_weight = uniform(2 * width, 2 * width, 2 * width)
        self.hidden_bias = uniform(2 * width, 2 * width)
        self.score_weight = uniform(2 * width, 2 * width)
        self.score_bias = uniform(2 * width, 1)

    def forward(
        self,
        facts: DirectedFacts,
        given: Tensor,
        predicates: Tensor,
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
        dropout, q = self.dropout if self.training else 0.0, self.query[predicates]
        entities, near = facts.entities, None
        if not plain:
            near = self.nearest(facts, given, scopes, times, weights)
        if near is not None:
            facts, given, weights = near.facts, near.given, weights[near.number]
            scopes = scopes.reshape(-1, 1)
        share = self.share(facts, weights, scopes)
        propagate = messages.plain_propagate if plain else messages.propagate
        layers = self.layers_of(q)
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

    def layers_of(self, q: Tensor) -> Layers:
        """What the layers need for questions."""
        every, shape = q.expand(self.layers, *q.shape), (self.layers, len(q), -1, self.width)
        gate = torch.baddbmm(self.gate_bias, every, self.gate_weight)
        shift = torch.baddbmm(self.shift_bias, every, self.shift_weight)
        return Layers(
            self.base,
            gate.view(shape),
            shift.view(shape),
            self.update_weight,
            self.update_bias,
            self.norm_weight,
            self.norm_bias,
        )

    def score(self, h: Tensor, q: Tensor, *, plain: bool = False) -> Tensor:
        """Scores [questions, entities] from the states of entities [entities, questions, width]."""
        of_h, of_q = self.hidden_weight.split(self.width, 1)
        own = q @ of_q.T + self.hidden_bias
        score = messages.plain_scores if plain else messages.scores
        return score(h, of_h, own, self.score_weight) + self.score_bias
