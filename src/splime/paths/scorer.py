"""The path model as evaluation and questions see it: scores of all entities at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from splime.device import free_memory
from splime.errors import SplimeError, counted
from splime.graph import Facts, TemporalGraph
from splime.paths.counted import CountedPathModel
from splime.paths.counting import statement_groups
from splime.paths.evidence import evidence
from splime.paths.facts import DirectedFacts
from splime.paths.messages import fast
from splime.paths.model import Counting, LearnedPathModel, PathModel
from splime.paths.relative import RelativeScopes, SingleScope, Times, parse_relative
from splime.scoring.scoping import Kind
from splime.scoring.timed import Chain, Explainer
from splime.settings import PathSettings
from splime.times import Ints

MODELS: Mapping[str, type[PathModel]] = {
    "learned": LearnedPathModel,
    "counted": CountedPathModel,
}
"""By where messages come from."""
_BLOCK = 256 << 20
"""Bytes that the states of entities may take while questions are scored."""
_FACT = 300
"""Bytes that a fact takes: both ways, in three orders, and while these are made."""


def relative_scopes(graph: TemporalGraph, settings: PathSettings) -> RelativeScopes:
    """The relative scopes of a run."""
    kind, edges = parse_relative(settings.relative)
    return (kind or SingleScope)(
        graph.timeline.granularity,
        edges,
        unknown=bool(settings.unknown_scopes),
        past=settings.forecasts,
        begin_only=bool(settings.begin_only),
        split_begins=graph.split_begins() if settings.past == "split" else (),
    )


def make_path_model(
    graph: TemporalGraph, settings: PathSettings, *, empty: bool = False
) -> PathModel:
    """An untrained model for the predicates of a graph; an empty one is filled from a file."""
    return MODELS[settings.messages](
        len(graph.predicates),
        len(relative_scopes(graph, settings)),
        layers=settings.layers,
        width=settings.dimension,
        dropout=settings.dropout or 0.0,
        aggregation=settings.aggregation or "sum",
        reach=settings.reach,
        seed=None if empty else settings.seed,
    )


def _sizes(entities: int, facts: int, settings: PathSettings) -> tuple[int, int]:
    """Bytes of the states of a question, of which a few are needed at a time, and of its facts.

    Entities that are not in reach share a state, but then each question has other facts.
    """
    rows, own = entities, 0
    if settings.reach is not None and settings.reach < facts:
        rows, own = min(entities, settings.reach + 1), settings.reach
    return 4 * rows * settings.dimension, 128 * own + 4 * entities


def check_memory(
    graph: TemporalGraph,
    facts: int,
    settings: PathSettings,
    device: torch.device,
    *,
    batch: int | None = None,
) -> None:
    """An error where training with batches of so many questions, or one question, would not fit.

    What counts are the facts, the states of all entities (for each question about 3 in a layer
    while training, else 4 in all), and the messages of all predicates and scopes.
    """
    entities, layers = len(graph.entities), settings.layers
    state, own = _sizes(entities, facts, settings)
    messages = 8 * len(graph.predicates) * len(relative_scopes(graph, settings))
    messages *= settings.dimension
    question = 4 * state + 2 * messages if batch is None else layers * (3 * state + 2 * messages)
    question += own
    needed, free = _FACT * facts + (batch or 1) * question, free_memory(device)
    if free is None or needed <= free:
        return
    over = f"over {entities:,} entities and {counted(facts, 'fact')}"
    about = f"takes about {needed / 1e9:,.2f} GB of memory, and {free / 1e9:,.2f} GB are free"
    if batch is None:
        raise SplimeError(
            f"a question {over} {about}: take fewer facts, or train with a lower dimension"
        )
    fitting = (free - _FACT * facts) // question
    hint = f"lower batch_size (--batch-size {fitting} fits)" if fitting > 0 else "take fewer facts"
    raise SplimeError(
        f"a batch of {batch:,} questions {over} {about}: {hint}, or lower dimension or layers"
    )


class PathScorer(Explainer):
    """Scores of all entities, from the facts that are given and the time that is asked about."""

    def __init__(
        self,
        model: PathModel,
        graph: TemporalGraph,
        settings: PathSettings,
        counting: Counting | None = None,
    ) -> None:
        self.model, self.relative = model, relative_scopes(graph, settings)
        self.forecasts = settings.forecasts
        self.device = model.device
        self.known = graph.facts() if settings.past in ("split", "all") else graph.train
        """What questions are answered from."""
        # Counts are of train, so that what is asked for is not among them.
        self._counted = np.arange(len(self.known)) < len(graph.train)
        check_memory(graph, len(self.known), settings, self.device)
        entities, predicates = len(graph.entities), len(graph.predicates)
        self._graph = graph
        counted = self.known.take(self._counted)
        self._start = model.starter(counted, graph, self.relative, counting)
        self.read = DirectedFacts.of(self.known, entities, predicates).to(self.device)
        self._weights: Tensor | None = None
        state, own = _sizes(entities, len(self.known), settings)
        # Kernels read a message for each predicate and scope of a question.
        messages = 4 * 2 * predicates * len(self.relative) * settings.dimension
        self.block = max(1, min(256, _BLOCK // max(4 * state + own, messages)))

    def entities(self, kind: Kind, facts: Facts) -> Tensor:
        """A row for each fact: scores of all entities as its object (or subject), at its time."""
        given, inverse = (facts.subject, 0) if kind == "object" else (facts.object, 1)
        predicate = facts.predicate.astype(np.int64) + inverse * self.read.predicates
        times = Times.of(facts).to(self.device)
        was_training = self.model.training
        self.model.eval()
        scores = torch.empty(len(facts), self.read.entities, device=self.device)
        # Those about a predicate together, for what they begin with is the same.
        order = torch.from_numpy(predicate.argsort(kind="stable")).to(self.device)
        entity, asked = (
            torch.from_numpy(ids.astype(np.int64)).to(self.device) for ids in (given, predicate)
        )
        with torch.inference_mode(), fast(self.device).at_work():
            for at in order.split(self.block):
                own, start = times.take(at), self._start(asked[at], None)
                scopes = self.read.scopes(self.relative, own)
                inputs = (self.read, entity[at], start, scopes, self._weights)
                scores[at] = self.model(*inputs, times=own)
        self.model.train(was_training)
        return scores

    def why(self, kind: Kind, fact: Facts, *, most: int = 5) -> list[Chain]:
        """The chains of known facts that the object (or subject) of one fact rests on."""
        given, answer = int(fact.subject[0]), int(fact.object[0])
        predicate = int(fact.predicate[0])
        if kind == "subject":
            given, answer, predicate = answer, given, predicate + self.read.predicates
        times = Times.of(fact).to(self.device)
        scopes = self.read.scopes(self.relative, times)
        with fast(torch.device("cpu")).at_work(), torch.no_grad():
            start = self._start(torch.tensor([predicate], device=self.device), None)
        asked = (given, start, scopes, answer, self._weights)
        with fast(torch.device("cpu")).at_work():
            return evidence(self.model, self.read, *asked, times=times, most=most)

    @cached_property
    def statements(self) -> Ints:
        """A number for each known fact, the same for those that state the same at the same time."""
        return statement_groups(self.known)

    @contextmanager
    def weighing(self, weights: Tensor) -> Iterator[None]:
        """What holds while facts have weights, both ways: 0 for those that are left out."""
        before, self._weights = self._weights, weights
        try:
            yield
        finally:
            self._weights = before

    @contextmanager
    def hiding(self, statements: Ints) -> Iterator[Callable[[int], None]]:
        """What holds while some statements are left out of counts; call it to hide one of them.

        The others stay among the facts that a question reads.
        """
        before = self._start, self._weights
        without = self._counted & ~np.isin(self.statements, statements)
        self._start = self.model.starter(self.known.take(without), self._graph, self.relative)

        def hide(statement: int) -> None:
            numbers = np.flatnonzero(self.statements == statement)
            self._weights = self.read.weights(torch.from_numpy(numbers).to(self.device))

        try:
            yield hide
        finally:
            self._start, self._weights = before

    def each_hidden(self, numbers: Ints, first: int = 0) -> Iterator[int]:
        """The places of known facts, from one on, while each is hidden in turn.

        With it a tenth of the graph is left out of counts, the same facts wherever it begins.
        """
        size = max(1, len(self.known) // 10)
        for start in range(first - first % size, len(numbers), size):
            own = self.statements[numbers[start : start + size]]
            with self.hiding(own) as hide:
                for place in range(max(start, first), start + len(own)):
                    hide(int(own[place - start]))
                    yield place

    def relations(self, fact: Facts, facts: Facts) -> list[str]:
        """How the times of facts relate to the time of one, in words."""
        scopes = self.relative.scopes(Times.of(fact), Times.of(facts))[:, 0].tolist()
        return [self.relative.name(scope) for scope in scopes]
