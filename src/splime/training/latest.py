"""The baseline that repeats the latest facts. It learns nothing, and beats many models that do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from splime.arrays import expand
from splime.graph import Facts, TemporalGraph
from splime.scoring.scoping import Kind
from splime.scoring.timed import TimedScorer, TimedScoring
from splime.settings import LatestSettings
from splime.times import Bools, Ints
from splime.training.engines import Engine, EpochEnd, Events, Learner, ModelInput
from splime.training.registry import ModelEntry

Floats: TypeAlias = npt.NDArray[np.float64]

# What an answer gets for being frequent, beside 1 for one of the same time.
_FREQUENT = 1e-3
_NEVER = 1e-9
_FAR = 1 << 60


class LatestEngine(Engine[LatestSettings]):
    """Has nothing to train."""

    def learner(self, settings: LatestSettings, source: ModelInput) -> LatestLearner:
        """Nothing is learned, but the MRR on valid is measured."""
        return LatestLearner(self.open(settings, source, {}), len(source.graph.train))

    def open(
        self, settings: LatestSettings, source: ModelInput, tensors: Mapping[str, Tensor]
    ) -> TimedScoring:
        """The scores, which need no tensors."""
        return TimedScoring(LatestScorer(source.graph, settings), source.graph)


class LatestLearner(Learner):
    """Learns nothing."""

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
        known = graph.facts() if settings.past in ("split", "all") else graph.train
        self._limits = np.array(graph.split_begins() if settings.past == "split" else (), np.int64)
        if self.forecasts:
            known = known.take(~known.timeless)
        # By predicate, and those of a triple together.
        known = known.take(np.lexsort((known.object, known.subject, known.predicate)))
        self._known, (self._begin, self._end) = known, _points(known)
        self._triples = _triples(known, graph)
        self._starts = np.searchsorted(known.predicate, np.arange(len(graph.predicates) + 1))

    def entities(self, kind: Kind, facts: Facts) -> Tensor:
        """A row for each fact: scores of all entities as its object (or subject), at its time."""
        turned = len(self._graph.predicates) * (kind == "subject")
        scores = np.empty((len(facts), len(self._graph.entities)), np.float32)
        for row, predicate in enumerate(facts.predicate.tolist()):
            directed = predicate + turned
            gaps, share = self._answers(kind, facts.take(np.array([row])))
            scores[row] = self._score(self._recency(gaps, directed), share, directed)
        return torch.from_numpy(scores)

    def _answers(self, kind: Kind, fact: Facts) -> tuple[Floats, Floats]:
        """For each entity as the answer, the gap to the nearest fact, and the predicate's share."""
        given, wanted = ("subject", "object") if kind == "object" else ("object", "subject")
        predicate, ([begin], [end]) = int(fact.predicate[0]), _points(fact)
        alike = slice(self._starts[predicate], self._starts[predicate + 1])
        gap, seen = self._gap(alike, begin, end)
        answer = getattr(self._known, wanted)[alike]
        share = np.bincount(answer[seen], minlength=len(self._graph.entities))
        nearest = np.full(len(share), np.inf)
        same = seen & (getattr(self._known, given)[alike] == getattr(fact, given)[0])
        np.minimum.at(nearest, answer[same], gap[same])
        return nearest, share / max(share.sum(), 1)

    def facts(self, facts: Facts) -> Tensor:
        """The same for whole facts: the nearest one of the triple, and the predicate's share."""
        begins, ends = _points(facts)
        triples = _triples(facts, self._graph)
        low = np.searchsorted(self._triples, triples)
        row, at = expand(low, np.searchsorted(self._triples, triples, side="right") - low)
        gap, visible = self._gap(at, begins[row], ends[row])
        nearest = np.full(len(facts), np.inf)
        np.minimum.at(nearest, row[visible], gap[visible])
        seen, all_seen = np.empty(len(facts)), self._seen(slice(None), begins)
        for predicate in np.unique(facts.predicate).tolist():
            rows = facts.predicate == predicate
            alike = slice(self._starts[predicate], self._starts[predicate + 1])
            seen[rows] = self._seen(alike, begins[rows])
        recency = self._recency(nearest, facts.predicate)
        scores = self._score(recency, seen / np.maximum(all_seen, 1), facts.predicate)
        return torch.from_numpy(scores.astype(np.float32))

    def _seen(self, known: slice, begins: Ints) -> Ints:
        """How many of some known facts may be seen by questions that begin at these times."""
        seen = self._begin[known]
        if not self.forecasts:
            return np.full(len(begins), len(seen))
        before: Ints = np.searchsorted(np.sort(seen), self._limit(begins))
        return before

    def _limit(self, begin: Any) -> Any:
        """What lies before these ticks is the past of questions."""
        if not len(self._limits):
            return begin
        at = np.searchsorted(self._limits, begin, "right")
        return np.where(at, self._limits[at - 1], begin)

    def _recency(self, gap: Floats, directed: Any) -> Floats:
        """What a gap counts; `directed` is the predicate, or its inverse."""
        recency: Floats = 1 / (1 + gap)
        return recency

    def _score(self, nearest: Floats, share: Floats, directed: Any) -> Floats:
        scores: Floats = np.log(nearest + _FREQUENT * share + _NEVER)
        return scores

    def _gap(self, known: Any, begin: Any, end: Any) -> tuple[Ints, Bools]:
        """How far known facts are from times, and which may be seen."""
        limit, known_begin, known_end = self._limit(begin), self._begin[known], self._end[known]
        if self.forecasts:  # whatever has not ended goes on
            known_end = np.where(known_end < limit, known_end, begin)
        gap = np.maximum(np.maximum(begin - known_end, known_begin - end), 0)
        return gap, known_begin < limit if self.forecasts else np.ones(len(gap), bool)


def _triples(facts: Facts, graph: TemporalGraph) -> Ints:
    """A number for each triple, by predicate, subject and object."""
    entities = len(graph.entities)
    pair = facts.predicate.astype(np.int64) * entities + facts.subject
    return pair * entities + facts.object


def _points(facts: Facts) -> tuple[Ints, Ints]:
    """Begin and end: an unknown one is the known one, and without both it is always."""
    begin, end = facts.known_times()
    return np.where(facts.timeless, -_FAR, begin), np.where(facts.timeless, _FAR, end)


engine = LatestEngine()
entry = ModelEntry(
    "latest",
    "The answers of the latest facts, a baseline.",
    "latest",
    LatestSettings,
    reads_facts=True,
    trained=False,
)
