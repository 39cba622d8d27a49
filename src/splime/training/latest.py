"""The baseline that repeats the latest facts. It learns nothing, and beats many models that do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from splime.arrays import expand
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, Facts, TemporalGraph
from splime.scoring.scoping import Kind
from splime.scoring.timed import TimedScorer, TimedScoring
from splime.settings import LatestSettings
from splime.times import Ints
from splime.training.engines import Engine, EpochEnd, Events, Learner, ModelInput
from splime.training.registry import ModelEntry

Floats: TypeAlias = npt.NDArray[np.float64]

# What an answer gets for being frequent, beside 1 for one of the same time.
_FREQUENT = 1e-3
_NEVER = 1e-9
_FAR = 1 << 60


class LatestEngine(Engine[LatestSettings]):
    """Has nothing to train."""

    def learner(self, settings: LatestSettings, source: ModelInput) -> _LatestLearner:
        """Nothing is learned, but the MRR on valid is measured."""
        return _LatestLearner(self.open(settings, source, {}), len(source.graph.train))

    def open(
        self, settings: LatestSettings, source: ModelInput, tensors: Mapping[str, Tensor]
    ) -> TimedScoring:
        """The scores, which need no tensors."""
        return TimedScoring(LatestScorer(source.graph, settings), source.graph)


class _LatestLearner(Learner):
    def __init__(self, scoring: TimedScoring, facts: int) -> None:
        self._scoring = scoring
        self.about = {"parameters": 0, "triples": facts}

    def train(self) -> Events:
        """One epoch, in which nothing happens."""
        self.epoch = 1
        yield EpochEnd(0.0)

    def parameters(self) -> dict[str, Tensor]:
        """None."""
        return {}

    def scoring(self) -> TimedScoring:
        """The scores."""
        return self._scoring


class LatestScorer(TimedScorer):
    """A candidate's score: log(1 / (1 + gap) + share / 1000).

    The gap is how many ticks lie between the question and the nearest known fact with the same
    predicate, given entity and answer. The share is that of the facts of the predicate that have
    the answer: it decides among equally near ones, and where there are none. With `past` only
    facts that begin before the question count. Unknown times are as in `RelativeScopes`.
    """

    device = torch.device("cpu")

    def __init__(self, graph: TemporalGraph, settings: LatestSettings) -> None:
        self._graph, self.forecasts = graph, settings.forecasts
        known = graph.facts() if settings.past == "all" else graph.train
        if self.forecasts:
            known = known.take(known.unknown != BEGIN_UNKNOWN | END_UNKNOWN)
        # By predicate, and those of a triple together.
        known = known.take(np.lexsort((known.object, known.subject, known.predicate)))
        self._known, (self._begin, self._end) = known, _points(known)
        self._triples = _triples(known, graph)
        self._starts = np.searchsorted(known.predicate, np.arange(len(graph.predicates) + 1))

    def entities(self, kind: Kind, facts: Facts) -> Tensor:
        """A row for each fact: scores of all entities as its object (or subject), at its time."""
        given, wanted = ("subject", "object") if kind == "object" else ("object", "subject")
        begins, ends = _points(facts)
        scores = np.empty((len(facts), len(self._graph.entities)), np.float32)
        for row, predicate in enumerate(facts.predicate.tolist()):
            alike = slice(self._starts[predicate], self._starts[predicate + 1])
            near = self._near(alike, begins[row], ends[row])
            answer = getattr(self._known, wanted)[alike]
            same_given = getattr(self._known, given)[alike] == getattr(facts, given)[row]
            share = np.bincount(answer, near > 0, minlength=scores.shape[1])
            nearest = np.zeros(scores.shape[1])
            np.maximum.at(nearest, answer[same_given], near[same_given])
            scores[row] = _score(nearest, share / max(share.sum(), 1))
        return torch.from_numpy(scores)

    def facts(self, facts: Facts) -> Tensor:
        """The same for whole facts: the nearest one of the triple, and the predicate's share."""
        begins, ends = _points(facts)
        triples = _triples(facts, self._graph)
        low = np.searchsorted(self._triples, triples)
        row, at = expand(low, np.searchsorted(self._triples, triples, side="right") - low)
        nearest = np.zeros(len(facts))
        np.maximum.at(nearest, row, self._near(at, begins[row], ends[row]))
        seen, all_seen = np.empty(len(facts)), self._seen(slice(None), begins)
        for predicate in np.unique(facts.predicate).tolist():
            rows = facts.predicate == predicate
            alike = slice(self._starts[predicate], self._starts[predicate + 1])
            seen[rows] = self._seen(alike, begins[rows])
        scores = _score(nearest, seen / np.maximum(all_seen, 1))
        return torch.from_numpy(scores.astype(np.float32))

    def _seen(self, known: slice, begins: Ints) -> Ints:
        """How many of some known facts may be seen by questions that begin at these times."""
        seen = self._begin[known]
        if not self.forecasts:
            return np.full(len(begins), len(seen))
        return np.searchsorted(np.sort(seen), begins)

    def _near(self, known: Any, begin: Any, end: Any) -> Floats:
        """1 / (1 + gap) of known facts to times; 0 for those that must not be seen."""
        gap = np.maximum(begin - self._end[known], self._begin[known] - end)
        near = 1 / (1 + np.maximum(gap, 0))
        return np.where(self._begin[known] < begin, near, 0.0) if self.forecasts else near


def _score(nearest: Floats, share: Floats) -> Floats:
    scores: Floats = np.log(nearest + _FREQUENT * share + _NEVER)
    return scores


def _triples(facts: Facts, graph: TemporalGraph) -> Ints:
    """A number for each triple, by predicate, subject and object."""
    entities = len(graph.entities)
    pair = facts.predicate.astype(np.int64) * entities + facts.subject
    return pair * entities + facts.object


def _points(facts: Facts) -> tuple[Ints, Ints]:
    """Begin and end: an unknown one is the known one, and without both it is always."""
    timeless = facts.unknown == BEGIN_UNKNOWN | END_UNKNOWN
    begin = np.where(facts.unknown == BEGIN_UNKNOWN, facts.end, facts.begin)
    end = np.where(facts.unknown == END_UNKNOWN, facts.begin, facts.end)
    return np.where(timeless, -_FAR, begin), np.where(timeless, _FAR, end)


engine = LatestEngine()
entry = ModelEntry(
    "latest",
    "The answers of the latest facts, a baseline.",
    "latest",
    LatestSettings,
    reads_facts=True,
    trained=False,
)
