"""The baseline that repeats the latest facts. It learns nothing, and beats many models that do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from splime.arrays import expand
from splime.axes import Axis
from splime.embedding.presets import QUICK, STRONG
from splime.embedding.settings import Settings
from splime.errors import UsageError
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, Facts, TemporalGraph
from splime.scoring.scoping import Kind
from splime.static import StaticGraph
from splime.times import Ints
from splime.training.engines import LATEST, NO_CUTS, Supervisor

Floats: TypeAlias = npt.NDArray[np.float64]

_SETTINGS = ("model", "past")
# What an answer gets for being frequent, beside 1 for one of the same time.
_FREQUENT = 1e-3
_NEVER = 1e-9
_FAR = 1 << 60


class LatestEngine:
    """Has nothing to train."""

    def make_settings(
        self,
        model: str | None,  # noqa: ARG002
        preset: str | None,
        **given: Any,
    ) -> Settings:
        """Only `past` has an effect; a seed and the presets of all models may be given."""
        if preset not in (None, STRONG, QUICK):
            raise UsageError(f"the model latest has no presets; leave out {preset!r}")
        for name in given:
            if name not in (*_SETTINGS, "seed"):
                raise UsageError(f"{name} has no effect on the model latest; leave it out")
        return self.read_settings({"model": LATEST, **given})

    def read_settings(self, values: Mapping[str, Any]) -> Settings:
        """All settings that have an effect are in the configuration."""
        return Settings.of(values)

    def values(self, settings: Settings) -> dict[str, Any]:
        """Those that have an effect."""
        return {name: value for name, value in settings.values().items() if name in _SETTINGS}

    def fitted(self, settings: Settings, static: StaticGraph, given: Mapping[str, Any]) -> Settings:  # noqa: ARG002
        """The same for all graphs."""
        if len(static.predicates) > len(static.predicates.names):
            raise UsageError(NO_CUTS)
        return settings

    def search_space(self, settings: Settings) -> dict[str, Axis]:  # noqa: ARG002
        """There is nothing to search for."""
        return {}

    def fit(self, static: StaticGraph, settings: Settings, supervisor: Supervisor) -> None:
        """Take the folder, and measure the MRR on valid."""
        learner = _Learner(static.graph, settings)
        supervisor.begin(learner, parameters=0, triples=len(static.train))
        learner.epoch = 1
        supervisor.end_epoch(0.0)

    def open(
        self,
        static: StaticGraph,
        settings: Settings,
        tensors: Mapping[str, Tensor],  # noqa: ARG002
        device: torch.device,  # noqa: ARG002
    ) -> LatestScorer:
        """The scores, which need no tensors."""
        return LatestScorer(static.graph, settings)


class _Learner:
    """What the supervisor of a training asks for."""

    epochs = 1

    def __init__(self, graph: TemporalGraph, settings: Settings) -> None:
        self.epoch = 0
        self._scorer = LatestScorer(graph, settings)

    def parameters(self) -> dict[str, Tensor]:
        """None."""
        return {}

    def scorer(self) -> LatestScorer:
        """The scores."""
        return self._scorer

    def state(self) -> None:
        """There is nothing to resume."""

    def restore(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """There is nothing to resume."""


class LatestScorer:
    """A candidate's score: log(1 / (1 + gap) + share / 1000).

    The gap is how many ticks lie between the question and the nearest known fact with the same
    predicate, given entity and answer. The share is that of the facts of the predicate that have
    the answer: it decides among equally near ones, and where there are none. With `past` only
    facts that begin before the question count. Unknown times are as in `RelativeScopes`.
    """

    device = torch.device("cpu")

    def __init__(self, graph: TemporalGraph, settings: Settings) -> None:
        self._graph, self.past = graph, settings.past
        known = graph.facts() if settings.past == "all" else graph.train
        if self.past:
            known = known.take(known.unknown != BEGIN_UNKNOWN | END_UNKNOWN)
        # By predicate, and those of a triple together.
        known = known.take(np.lexsort((known.object, known.subject, known.predicate)))
        self._known, (self._begin, self._end) = known, _points(known)
        self._triples = _triples(known, graph)
        self._starts = np.searchsorted(known.predicate, np.arange(len(graph.predicates) + 1))

    def entities(self, kind: Kind, facts: Facts) -> Tensor:
        """A row for each fact: its object (or subject) is asked for, at its time."""
        given, wanted = ("subject", "object") if kind == "object" else ("object", "subject")
        begins, ends = _points(facts)
        scores = np.empty((len(facts), len(self._graph.entities)), np.float32)
        for row, predicate in enumerate(facts.predicate.tolist()):
            alike = slice(self._starts[predicate], self._starts[predicate + 1])
            near = self._near(alike, begins[row], ends[row])
            answer = getattr(self._known, wanted)[alike]
            own = getattr(self._known, given)[alike] == getattr(facts, given)[row]
            share = np.bincount(answer, near > 0, minlength=scores.shape[1])
            nearest = np.zeros(scores.shape[1])
            np.maximum.at(nearest, answer[own], near[own])
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
        own = self._begin[known]
        return (
            np.searchsorted(np.sort(own), begins) if self.past else np.full(len(begins), len(own))
        )

    def _near(self, known: Any, begin: Any, end: Any) -> Floats:
        """1 / (1 + gap) of known facts to times; 0 for those that must not be seen."""
        gap = np.maximum(begin - self._end[known], self._begin[known] - end)
        near = 1 / (1 + np.maximum(gap, 0))
        return np.where(self._begin[known] < begin, near, 0.0) if self.past else near


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
