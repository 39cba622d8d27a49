"""The recurrency baseline of forecasts: what held lately, or often, holds again.

For a directed predicate with a decay d and a weight w, both chosen on valid:

    score = w 2^(-d gap) + (1 - w) share

The gap is how many ticks lie between the question and the nearest known fact of the same triple, or
infinite (strict recurrency); the share is that of the predicate's facts with the answer (relaxed).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from splime.arrays import grouped
from splime.graph import Facts, TemporalGraph
from splime.scoring.scoping import SIDES, Kind, keyed
from splime.scoring.timed import TimedScoring
from splime.settings import LatestSettings
from splime.times import Ints
from splime.training.engines import EpochEnd, Events, ModelInput
from splime.training.latest import Floats, LatestEngine, LatestLearner, LatestScorer
from splime.training.registry import ModelEntry

DECAYS = np.array([1e-4, 1e-3, 3e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0])
WEIGHTS = np.array([1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.99, 0.999, 0.9999, 0.99999])
"""What is tried on valid, for each predicate and side."""
_USUAL = 0.1, 0.999
"""Where valid has no question."""
_NEVER = 1e-12
NAMES = ("decay", "weight")


class RecurrencyEngine(LatestEngine):
    """Chooses a decay and a weight for each predicate, both ways, on valid."""

    def learner(self, settings: LatestSettings, source: ModelInput) -> RecurrencyLearner:
        """Nothing is chosen yet."""
        scoring = TimedScoring(RecurrencyScorer(source.graph, settings), source.graph)
        return RecurrencyLearner(scoring, len(source.graph.train))

    def open(
        self, settings: LatestSettings, source: ModelInput, tensors: Mapping[str, Tensor]
    ) -> TimedScoring:
        """The scores with what was chosen."""
        scorer = RecurrencyScorer(source.graph, settings)
        for name in NAMES:
            given = tensors[name] if name in tensors else torch.empty(0)
            if given.shape != (2 * len(source.graph.predicates),):
                raise ValueError(f"there is no {name} for each predicate")
            setattr(scorer, name, given.double().numpy().copy())
        return TimedScoring(scorer, source.graph)


class RecurrencyScorer(LatestScorer):
    """The scores of the module's formula."""

    def __init__(self, graph: TemporalGraph, settings: LatestSettings) -> None:
        super().__init__(graph, settings)
        self.decay, self.weight = (np.full(2 * len(graph.predicates), each) for each in _USUAL)

    def _recency(self, gap: Floats, directed: Any) -> Floats:
        recency: Floats = np.exp2(-self.decay[directed] * gap)
        return recency

    def _score(self, nearest: Floats, share: Floats, directed: Any) -> Floats:
        weight = self.weight[directed]
        scores: Floats = np.log(weight * nearest + (1 - weight) * share + _NEVER)
        return scores

    def choose(self, facts: Facts) -> None:
        """Choose what ranks some facts best, for each of their predicates, both ways."""
        for side, kind in enumerate(SIDES):
            gains: dict[int, Floats] = {}
            for row, others in enumerate(_right_answers(kind, facts, self._graph)):
                one = facts.take(np.array([row]))
                directed = int(one.predicate[0]) + side * len(self._graph.predicates)
                gains[directed] = gains.get(directed, 0) + 1 / self._ranks(kind, one, others)
            for directed, gain in gains.items():
                decay, weight = np.unravel_index(gain.argmax(), gain.shape)
                self.decay[directed], self.weight[directed] = DECAYS[decay], WEIGHTS[weight]

    def _ranks(self, kind: Kind, fact: Facts, others: Ints) -> Floats:
        """[decays, weights]: the rank of the answer of one fact for each choice."""
        gaps, share = self._answers(kind, fact)
        answer = int(getattr(fact, kind)[0])
        allowed = np.ones(len(share), bool)
        allowed[others] = False
        allowed[answer] = True
        # Of those without a fact of the pair only the share counts.
        known = np.isfinite(gaps)
        some = np.append(np.flatnonzero(known & allowed), answer)
        near = np.exp2(-DECAYS[:, None, None] * gaps[some])  # 0 where there is no such fact
        mixed = WEIGHTS[:, None] * near + (1 - WEIGHTS[:, None]) * share[some]
        target = mixed[:, :, -1:]
        some_mixed = mixed[:, :, :-1]
        above, equal = (some_mixed > target).sum(2), (some_mixed == target).sum(2)
        rest = np.sort(share[~known & allowed])
        wanted = target[:, :, 0] / (1 - WEIGHTS)
        above += len(rest) - np.searchsorted(rest, wanted, "right")
        equal += np.searchsorted(rest, wanted, "right") - np.searchsorted(rest, wanted)
        ranks: Floats = above + (np.maximum(equal, 1) + 1) / 2
        return ranks


class RecurrencyLearner(LatestLearner):
    """Looks at valid once."""

    def train(self) -> Events:
        """One epoch."""
        scorer: Any = self._scoring.scorer
        scorer.choose(self._scoring.graph.valid)
        self.epoch = 1
        yield EpochEnd(0.0)

    def parameters(self) -> dict[str, Tensor]:
        """What was chosen."""
        return {name: torch.from_numpy(getattr(self._scoring.scorer, name)) for name in NAMES}


def _right_answers(kind: Kind, facts: Facts, graph: TemporalGraph) -> list[Ints]:
    """What some facts state in the place of an answer at the same time, for each of them."""
    asked = keyed(kind, facts, graph)
    number, first = grouped([asked.key, asked.begin, asked.end])
    order = np.argsort(number, kind="stable")
    groups = np.split(asked.id[order], np.bincount(number, minlength=len(first)).cumsum()[:-1])
    return [groups[one] for one in number.tolist()]


engine = RecurrencyEngine()
entry = ModelEntry(
    "recurrency",
    "What held lately or often, weighed on valid for each predicate: a baseline of forecasts.",
    "recurrency",
    LatestSettings,
    reads_facts=True,
)
