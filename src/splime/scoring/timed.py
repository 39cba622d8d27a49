"""Scores of a model that is asked at a time itself, not through the scopes of a predicate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import torch

from splime.arrays import grouped
from splime.graph import Facts, TemporalGraph
from splime.scoring.queries import GIVEN, Block, Queries, Scoring, Spans
from splime.scoring.scoping import SIDES, Kind
from splime.scoring.scorer import Ids, MemoryBudget, check_nan


class TimedScorer(ABC):
    """Scores of all entities as the answer to questions at a time; higher is better."""

    device: torch.device
    """Where scores are made."""
    forecasts: bool = False
    """Whether only facts before the time asked about are known."""
    block: int = 256
    """How many questions are worth asking at once."""

    @abstractmethod
    def entities(self, kind: Kind, facts: Facts) -> torch.Tensor:
        """A row for each fact: scores of all entities as its object (or subject), at its time."""

    def facts(self, facts: Facts) -> torch.Tensor:
        """How likely each fact is: the mean log-probability of its object and of its subject."""
        total = torch.zeros(len(facts), device=self.device)
        for start in range(0, len(facts), self.block):
            some = facts.take(np.arange(start, min(start + self.block, len(facts))))
            for kind in SIDES:
                scores = self.entities(kind, some).log_softmax(1)
                answer = torch.from_numpy(getattr(some, kind).astype(np.int64)).to(self.device)
                total[start : start + len(some)] += scores.gather(1, answer[:, None])[:, 0] / 2
        return total

    @property
    def explainer(self) -> Explainer | None:
        """What knows which facts an answer rests on, if anything does."""
        return None


class Chain(NamedTuple):
    """Facts that lead from the given entity to the answer."""

    facts: tuple[int, ...]
    """Their numbers; from the number of facts on, they are walked from object to subject."""
    contribution: float
    """What they add to the answer's score."""


class Explainer(TimedScorer):
    """A scorer that knows which facts an answer rests on."""

    known: Facts
    """What questions are answered from."""

    @abstractmethod
    def why(self, kind: Kind, fact: Facts, *, most: int = 5) -> list[Chain]:
        """The chains of known facts that the object (or subject) of one fact rests on."""

    @abstractmethod
    def relations(self, fact: Facts, facts: Facts) -> list[str]:
        """How the times of facts relate to the time of one, in words."""

    @property
    def explainer(self) -> Explainer:
        """Itself."""
        return self


class TimedScoring(Scoring):
    """Questions are asked at the times that they give; there is nothing to aggregate."""

    scorer: TimedScorer

    def __init__(self, scorer: TimedScorer, graph: TemporalGraph) -> None:
        self.graph, self.scorer, self.device = graph, scorer, scorer.device
        self.forecasts = scorer.forecasts

    @property
    def explainer(self) -> Explainer | None:
        """The scorer that knows which facts an answer rests on, if there is one."""
        return self.scorer.explainer

    def questions_for(self, kind: Kind) -> int:
        """One for an entity; both ways for each predicate, or each timestamp."""
        if kind in SIDES:
            return 1
        return 2 * len(self.graph.predicates if kind == "predicate" else self.graph.timeline)

    def queries(self, kind: Kind, facts: Facts) -> Queries:
        """The queries for the objects, the subjects or the predicates of facts."""
        return _TimedQueries(self, kind, facts)

    def spans_of(self, facts: Facts) -> Spans:
        """Every timestamp is a separate span."""
        size = len(self.graph.timeline)
        question = np.repeat(np.arange(len(facts)), size)
        time = np.tile(np.arange(size), len(facts))
        names: list[Ids] = [facts.subject, facts.predicate, facts.object, facts.predicate]
        return Spans(
            question, time, time, time, *(name[question].astype(np.int64) for name in names)
        )

    def span_block(self, spans: Spans, questions: int) -> Block:
        """The score of every span, a row for each question."""
        timeline = self.graph.timeline
        names = (column.astype(np.int32) for column in spans[4:7])
        begin, end = timeline.starts[spans.begin], timeline.ends[spans.end]
        asked = Facts.owning(*names, begin, end, np.zeros(len(begin), np.uint8))
        scores = self.scorer.facts(asked).view(questions, -1)
        return Block(np.arange(questions), scores, torch.ones(questions, device=scores.device))


class _TimedQueries(Queries):
    def __init__(self, scoring: TimedScoring, kind: Kind, facts: Facts) -> None:
        self.scorer, self.kind, self.candidates = scoring.scorer, kind, len(scoring.names(kind))
        given = [getattr(facts, name) for name in GIVEN[kind]]
        number, fact = grouped([*given, facts.begin, facts.end, facts.unknown])
        self.facts, one = facts.take(fact), np.ones(len(fact), np.int64)
        budget = MemoryBudget(scoring.memory, scoring.device, 4, self.candidates)
        cost = self.candidates * one if kind == "predicate" else one
        super().__init__(number, cost, one, budget.queries)

    def score(self, start: int, stop: int) -> torch.Tensor:
        """The scores of all candidates for the queries from one number up to another."""
        facts, count = self.facts.take(np.arange(start, stop)), self.candidates
        if self.kind == "predicate":
            predicates = np.arange(count, dtype=facts.predicate.dtype)
            asked = facts.take(np.repeat(np.arange(len(facts)), count))
            asked = Facts.owning(
                asked.subject, np.tile(predicates, len(facts)), *asked.columns()[2:]
            )
            scores = self.scorer.facts(asked).view(len(facts), count)
        else:
            scores = self.scorer.entities(self.kind, facts)
        check_nan(scores)
        return scores
