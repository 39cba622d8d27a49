"""A path model whose messages are made from counts of the graph.

Its parameters belong to no predicate and no entity, so it answers graphs that it never saw.
With the numbers x of predicate r in scope k for a question about p (`FactCounts.features`):

    z = relu(W1 x + scope[k] + b1);  z += relu(W2 z + b2);  messages of all layers = W3 z + b3
    q = query + MLP(numbers of p)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from splime.errors import UsageError
from splime.graph import Facts, TemporalGraph
from splime.paths.counting import ABOUT, NUMBERS, FactCounts, Features, statement_groups
from splime.paths.messages import CountedMessages
from splime.paths.model import Counting, PathModel, Start, Starter
from splime.paths.relative import IntervalScopes, RelativeScopes

BINS = 7
"""Distances before and after that it was made for."""
_HIDDEN = 64
_FOLDS = 4
"""In training, facts are asked for with the counts of the other parts."""
_KEPT: Mapping[str, int] = {"cpu": 256 << 20, "cuda": 8 << 30}
"""Bytes of messages that are kept for the predicates asked about last, by the kind of device."""
_FEATURES: Mapping[str, int] = {"cpu": 256 << 20, "cuda": 8 << 30}
"""Bytes up to which the features of all predicates are kept in training."""


class CountedPathModel(PathModel):
    """Messages are made from counts by a small network."""

    def _make_messages(self) -> None:
        width, hidden, uniform = self.width, _HIDDEN, self._uniform
        self.scope = self._normal(self.scopes, hidden, scale=0.3)
        self.input_weight = uniform(NUMBERS, hidden, NUMBERS)
        self.input_bias = uniform(NUMBERS, hidden)
        self.middle_weight = uniform(hidden, hidden, hidden)
        self.middle_bias = uniform(hidden, hidden)
        self.message_weight = uniform(hidden, self.layers * width, hidden)
        self.message_bias = uniform(hidden, self.layers * width)
        self.query = self._normal(width)
        self.about_weight = uniform(ABOUT, width, ABOUT)
        self.about_bias = uniform(ABOUT, width)
        self.start_weight = uniform(width, width, width)
        self.start_bias = uniform(width, width)

    def change(self, features: Features) -> Features:
        """What is done to features in training."""
        return features

    def make_messages(self, facts: Tensor) -> Tensor:
        """Tables [layers, predicates asked about, 2 x predicates, scopes, width] from features."""
        linear, asked = nn.functional.linear, len(facts)
        scope = self.scope + self.input_bias
        x = facts.view(-1, self.scopes, NUMBERS)
        z = (linear(x, self.input_weight) + scope).relu()
        z = z + linear(z, self.middle_weight, self.middle_bias).relu()
        made = linear(z, self.message_weight, self.message_bias)
        made = made.view(asked, -1, self.scopes, self.layers, self.width)
        return made.permute(3, 0, 1, 2, 4).contiguous()

    def begin(self, about: Tensor) -> Tensor:
        """q [predicates asked about, width] from features."""
        linear = nn.functional.linear
        x = linear(about, self.about_weight, self.about_bias).relu()
        return self.query + linear(x, self.start_weight, self.start_bias)

    def starter(
        self,
        known: Facts,
        graph: TemporalGraph,
        relative: RelativeScopes,
        counting: Counting | None = None,
    ) -> Starter:
        """Counts of the facts; the tables of the predicates asked about last are kept."""
        return _Answering(self, (counting or count)(known, graph, relative))

    def training_starter(
        self, known: Facts, graph: TemporalGraph, relative: RelativeScopes
    ) -> FoldStarter:
        """Counts of the facts outside of the part that a question's fact is in."""
        starter = FoldStarter(self, known, graph, relative)
        self.steps_are_alike = starter.shares_no_tables
        return starter


def count(known: Facts, graph: TemporalGraph, relative: RelativeScopes) -> FactCounts:
    """The counts of some facts of a graph; an error unless the scopes are those that it knows."""
    if not isinstance(relative, IntervalScopes) or len(relative.edges) != BINS or relative.unknown:
        raise UsageError(
            f"counted messages need relative scopes of the kind intervals with {BINS} distances,"
            " and no separate ones for unknown times; leave out relative and unknown_scopes"
        )
    # What is drawn at random does not depend on the order of the facts.
    known = known.take(np.lexsort(known.columns()[::-1]))
    return FactCounts.of(known, len(graph.entities), len(graph.predicates), relative)


class _Answering:
    """A starter that makes the tables of a predicate once."""

    def __init__(self, model: CountedPathModel, counts: FactCounts) -> None:
        self.model, self.counts = model, counts
        self._tables: dict[int, Tensor] = {}

    def __call__(self, predicates: Tensor, asked: Tensor | None = None) -> Start:
        distinct, number = predicates.unique(return_inverse=True)
        wanted, kept = distinct.tolist(), {} if torch.is_grad_enabled() else self._tables
        for predicate in wanted:
            if predicate in kept:
                kept[predicate] = kept.pop(predicate)  # the latest are at the end
            else:
                facts = self.counts.facts([predicate], self.model.device)
                kept[predicate] = self.model.make_messages(facts)
        tables = torch.cat([kept[predicate] for predicate in wanted], 1)
        size = sum(table.nbytes for table in kept.values())
        while size > _KEPT[self.model.device.type] and kept:
            size -= kept.pop(next(iter(kept))).nbytes
        about = self.counts.about(wanted, self.model.device)
        return Start(self.model.begin(about)[number], CountedMessages(tables, number))


class FoldStarter:
    """A starter with the counts of a few folds of train.

    The features of all predicates are kept where they fit. On a GPU each question then has a table
    of messages for itself, whose number no step has to wait for, so that a step can be recorded.
    """

    def __init__(
        self, model: CountedPathModel, train: Facts, graph: TemporalGraph, relative: RelativeScopes
    ) -> None:
        self.model, self._directed = model, 2 * len(graph.predicates)
        # Statements of the same at the same time are in the same fold.
        groups = statement_groups(train)
        size = int(groups.max(initial=-1)) + 1
        fold = np.random.default_rng(0).permutation(size)[groups] % min(_FOLDS, max(size, 1))
        self.counts = [
            count(train.take(fold != number), graph, relative) for number in range(_FOLDS)
        ]
        self.fold = torch.from_numpy(fold).to(model.device)
        """Of each fact."""
        needed = 4 * _FOLDS * self._directed**2 * len(relative) * NUMBERS
        self._features: Features | None = None
        if needed <= _FEATURES[model.device.type]:
            every = range(_FOLDS * self._directed)
            self._features = self._make(every, model.device)
        self.shares_no_tables = model.device.type == "cuda" and self._features is not None

    def _make(self, numbers: Sequence[int], device: torch.device) -> Features:
        """Those of predicates with the counts outside of a fold: fold x directed + predicate."""
        parts = []
        for fold, counts in enumerate(self.counts):
            inside = [n % self._directed for n in numbers if n // self._directed == fold]
            parts.append(counts.features(inside, device))
        return Features(*map(torch.cat, zip(*parts, strict=True)))

    def __call__(self, predicates: Tensor, asked: Tensor | None = None) -> Start:
        """What questions made of some facts begin with."""
        assert asked is not None
        number = self.fold[asked] * self._directed + predicates
        table = torch.arange(len(number), device=number.device)
        if not self.shares_no_tables:
            number, table = number.unique(return_inverse=True)
        if self._features is None:
            features = self._make(number.tolist(), number.device)
        else:
            features = Features(*(part[number] for part in self._features))
        features = self.model.change(features)
        tables = self.model.make_messages(features.facts)
        return Start(self.model.begin(features.about)[table], CountedMessages(tables, table))
