"""Models that are a table of scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from splime.counts import Counts
from splime.graph import TemporalGraph
from splime.scoring.scorer import Scorer
from splime.segmentation import Scopes, Segmentation
from splime.vocabulary import Vocabulary


class TableScorer(Scorer):
    """A score for every triple of ids."""

    def __init__(self, table: Any, dtype: Any = torch.float32) -> None:
        self.table = torch.as_tensor(table).to(dtype)
        self.device = torch.device("cpu")
        self.calls: list[int] = []

    def score(self, subject: int, predicate: int, object: int) -> float:
        return float(self.table[subject, predicate, object])

    def objects(self, subject: torch.Tensor, predicate: torch.Tensor) -> torch.Tensor:
        self.calls.append(len(subject))
        return self.table[subject, predicate]

    def subjects(self, predicate: torch.Tensor, object: torch.Tensor) -> torch.Tensor:
        self.calls.append(len(object))
        return self.table[:, predicate, object].T

    def predicates(self, subject: torch.Tensor, object: torch.Tensor) -> torch.Tensor:
        self.calls.append(len(subject))
        return self.table[subject, :, object]


class ConstantScorer(Scorer):
    """Knows nothing."""

    def __init__(self, entities: int, predicates: int) -> None:
        self.device = torch.device("cpu")
        self._entities, self._predicates = entities, predicates

    def objects(self, *queries: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(queries[0]), self._entities)

    def subjects(self, *queries: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(queries[0]), self._entities)

    def predicates(self, *queries: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(queries[0]), self._predicates)


def random_scorer(segmentation: Segmentation, entities: int, seed: int) -> TableScorer:
    """Few different scores, so that there are many ties; some are -inf."""
    size = entities if segmentation.entities is None else len(segmentation.entities)
    rng = np.random.default_rng(seed)
    table = rng.integers(-1, 4, (size, len(segmentation.predicates), size)).astype(float)
    table[table < 0] = rng.choice([-1.0, -np.inf])
    return TableScorer(table)


@st.composite
def segmentations(draw: st.DrawFn, graph: TemporalGraph, *, entities: bool | None = None) -> Any:
    """Any cuts, also such that leave pieces without facts; those that train does not know."""
    size = len(graph.timeline)

    def scopes(names: Vocabulary, columns: Sequence[Any]) -> Scopes:
        counted = graph.facts() if draw(st.booleans()) else graph.train
        begin, end = graph.timestamps(counted)
        name = np.concatenate([getattr(counted, column) for column in columns])
        repeat = len(columns)
        counts = Counts.of(name, np.tile(begin, repeat), np.tile(end, repeat), len(names), size)
        every = st.sets(st.integers(0, 2 * size - 1), max_size=5)
        cuts = [np.array(sorted(draw(every)), np.int64) for _ in range(len(names))]
        return Scopes.of(names, graph.timeline, cuts, counts)

    of_entities = draw(st.booleans()) if entities is None else entities
    return Segmentation(
        scopes(graph.predicates, ["predicate"]),
        scopes(graph.entities, ["subject", "object"]) if of_entities else None,
    )
