"""Scores of a model that is asked at a time itself, not through the scopes of a predicate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from splime.arrays import grouped
from splime.errors import UsageError
from splime.graph import Facts
from splime.scoring.doubts import Doubts
from splime.scoring.queries import GIVEN, Block, Queries, Scoring, Spans
from splime.scoring.scoping import CutFacts, Kind, Scoping
from splime.scoring.scorer import Ids, Room, Scorer, check_nan
from splime.static import Aggregate
from splime.times import Ints


@runtime_checkable
class TimedScorer(Protocol):
    """Scores of all entities as the answer to questions at a time; higher is better."""

    @property
    def device(self) -> torch.device:
        """Where scores are made."""

    def entities(self, kind: Kind, facts: Facts) -> torch.Tensor:
        """A row for each fact: its object (or subject) is asked for, at its time."""

    def facts(self, facts: Facts) -> torch.Tensor:
        """How likely each fact is: the mean log-probability of its object and of its subject."""


@dataclass(frozen=True, eq=False)
class TimedScoring(Scoring):
    """Questions are asked at the times that they give; there is nothing to aggregate."""

    scorer: TimedScorer  # type: ignore[assignment]

    @cached_property
    def doubts(self) -> Doubts:
        """What train does not have, and the model cannot know."""
        forecasts = getattr(self.scorer, "past", None) is not None
        return Doubts(self.scoping, timed=True, forecasts=forecasts)

    @property
    def has_absolute_scopes(self) -> bool:
        """No: they would be relative to the question."""
        return False

    def questions_for(self, kind: Kind) -> int:
        """One for an entity; both ways for each predicate, or each timestamp."""
        if kind in ("object", "subject"):
            return 1
        graph = self.scoping.graph
        return 2 * len(graph.predicates if kind == "predicate" else graph.timeline)

    def queries(self, kind: Kind, asked: CutFacts) -> Queries:
        """The queries for the objects, the subjects or the predicates of facts."""
        facts = asked.facts
        given = [getattr(facts, name) for name in GIVEN[kind]]
        number, fact = grouped([*given, facts.begin, facts.end, facts.unknown])
        own, candidates = facts.take(fact), len(self.scoping.names(kind))

        def score(start: int, stop: int) -> torch.Tensor:
            some = own.take(np.arange(start, stop))
            if kind == "predicate":
                every = np.arange(candidates, dtype=some.predicate.dtype)
                each = some.take(np.repeat(np.arange(len(some)), candidates))
                each = Facts.owning(each.subject, np.tile(every, len(some)), *each.columns()[2:])
                scores = self.scorer.facts(each).view(len(some), candidates)
            else:
                scores = self.scorer.entities(kind, some)
            check_nan(scores)
            return scores

        rows = candidates if kind == "predicate" else 1
        room = Room(self.memory, self.scorer.device, 4, candidates)
        one = np.ones(len(fact), np.int64)
        return Queries(number, rows * one, one, score, room.queries)

    def scoped_predicates(self, facts: Facts) -> Iterator[Block]:  # noqa: ARG002
        """There are none."""
        raise UsageError("this model has no scoped predicates to choose the best of")

    def scopes_of(self, facts: Facts) -> tuple[Ints, Ints]:
        """There are none."""
        return np.zeros(len(facts), np.int64), np.empty(0, np.int64)

    def spans_of(self, facts: Facts) -> Spans:
        """Every timestamp is a span of its own."""
        size = len(self.scoping.graph.timeline)
        question = np.repeat(np.arange(len(facts)), size)
        time = np.tile(np.arange(size), len(facts))
        names: list[Ids] = [facts.subject, facts.predicate, facts.object, facts.predicate]
        return Spans(
            question, time, time, time, *(each[question].astype(np.int64) for each in names)
        )

    def span_block(self, spans: Spans, questions: int) -> Block:
        """The score of every span, a row for each question."""
        timeline = self.scoping.graph.timeline
        names = (column.astype(np.int32) for column in spans[4:7])
        begin, end = timeline.starts[spans.begin], timeline.ends[spans.end]
        asked = Facts.owning(*names, begin, end, np.zeros(len(begin), np.uint8))
        scores = self.scorer.facts(asked).view(questions, -1)
        return Block(np.arange(questions), scores, torch.ones(questions, device=scores.device))


def likelihoods(scorer: TimedScorer, facts: Facts, block: int = 256) -> torch.Tensor:
    """The mean log-probability of the object and of the subject of each fact, some at a time."""
    total = torch.zeros(len(facts), device=scorer.device)
    for start in range(0, len(facts), block):
        some = facts.take(np.arange(start, min(start + block, len(facts))))
        kinds: tuple[Kind, ...] = ("object", "subject")
        for kind in kinds:
            scores = scorer.entities(kind, some).log_softmax(1)
            answer = torch.from_numpy(getattr(some, kind).astype(np.int64)).to(scorer.device)
            total[start : start + len(some)] += scores.gather(1, answer[:, None])[:, 0] / 2
    return total


def make_scoring(
    scorer: Scorer | TimedScorer,
    scoping: Scoping,
    how: Aggregate = "mean",
    memory: int | None = None,
) -> Scoring:
    """How candidates are scored at a time: by scopes, or by a model that is asked at a time."""
    if isinstance(scorer, TimedScorer):
        return TimedScoring(scorer, scoping, how, memory)
    if getattr(scorer, "knows_time", False):
        scoping = scoping.timed
    return Scoring(scorer, scoping, how, memory)
