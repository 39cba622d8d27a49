"""The scores of all candidates, for the queries of protocols and for questions alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self, get_args

import numpy as np
import pyarrow as pa
import torch

from splime.arrays import expand
from splime.errors import check_name
from splime.graph import Facts, TemporalGraph
from splime.scoring.coverage import TrainCoverage
from splime.scoring.scoping import Kind, KnownAnswers, KnownFacts, Scoping
from splime.static import Aggregate
from splime.times import Ints
from splime.vocabulary import Vocabulary

if TYPE_CHECKING:
    from splime.scoring.timed import Explainer

# What a query gives, in the order in which a scorer is asked.
GIVEN = {
    "object": ("subject", "predicate"),
    "subject": ("object", "predicate"),
    "predicate": ("subject", "object"),
}


@dataclass(eq=False)
class Queries(ABC):
    """The distinct queries of some facts, and how they are scored."""

    number: Ints
    """The query of every fact."""
    cost: Ints
    """How many rows are scored for each query."""
    weight: Ints
    """What the scores of each query must be divided by to be means; 1 if they are no means."""
    block: int
    """How many queries fit into a block."""

    @abstractmethod
    def score(self, start: int, stop: int) -> torch.Tensor:
        """The scores of all candidates for the queries from one number up to another."""

    @cached_property
    def _order(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.number, kind="stable")
        return order, self.number[order]

    def scored(self, start: int, stop: int) -> tuple[Ints, Ints, torch.Tensor]:
        """The facts that ask queries from one number up to another, the row of each, the scores."""
        facts, row = self.asked(start, stop)
        return facts, row, self.score(start, stop)

    def asked(self, start: int, stop: int) -> tuple[Ints, Ints]:
        """The same without the scores."""
        order, number = self._order
        low, high = np.searchsorted(number, (start, stop)).tolist()
        return order[low:high], number[low:high] - start

    def blocks(self) -> Iterator[tuple[Ints, Ints, torch.Tensor]]:
        """All queries, block by block, as `scored` gives them."""
        for start in range(0, len(self.cost), self.block):
            yield self.scored(start, min(start + self.block, len(self.cost)))


class Block(NamedTuple):
    """A row of scores over all candidates for some questions; -inf is no candidate."""

    rows: Ints
    """The positions of the questions."""
    scores: torch.Tensor
    """Made for this block; the receiver may write into it."""
    weight: torch.Tensor
    """What each row must be divided by to be a mean."""


class Spans(NamedTuple):
    """The spans of some triples, by question and in the order of time.

    In each all three names lie in the same scopes; where only predicates are cut, it is a scope.
    """

    question: Ints
    number: Ints
    """The position of the span in its question, from 0."""
    begin: Ints
    """The first timestamp."""
    end: Ints
    subject: Ints
    """The (scoped) subject to score."""
    predicate: Ints
    object: Ints
    scope: Ints
    """The scoped predicate at that time; `predicate` may be its fallback."""


class Scoring(ABC):
    """The scores of candidates at a time.

    Protocols and questions take their scores from here, so that they are the same.
    """

    device: torch.device
    """Where scores are made."""
    scoping: Scoping | None = None
    """The scopes of predicates that answers are scored by; None for a model asked at a time."""
    forecasts: bool = False
    """Whether only facts before the time asked about are known."""
    scorer: Any
    """What gives the scores."""
    graph: TemporalGraph
    how: Aggregate = "mean"
    memory: int | None = None

    def with_options(self, how: Aggregate, memory: int | None = None) -> Self:
        """The same with another aggregation of scopes, and other bytes for blocks of scores."""
        check_name("aggregation", how, get_args(Aggregate))
        other = copy(self)
        other.how, other.memory = how, memory
        return other

    @property
    def explainer(self) -> Explainer | None:
        """The scorer that knows which facts an answer rests on, if there is one."""
        return None

    @property
    def can_hide(self) -> bool:
        """Whether a fact can be hidden: answers rest on facts that are read, and nothing else."""
        return self.explainer is not None and self.explainer is self.scorer

    @cached_property
    def known(self) -> KnownFacts:
        """The facts of all splits, to look answers up in."""
        return KnownFacts(self.graph)

    @cached_property
    def coverage(self) -> TrainCoverage:
        """What train does not have, and the model cannot know."""
        return TrainCoverage(self.graph, self.scoping, forecasts=self.forecasts)

    @property
    def labels(self) -> pa.Array:
        """What the predicates that answers are scored by are called, with their scopes."""
        return self.graph.predicates.labels

    def names(self, kind: str) -> Vocabulary:
        """The names of predicates (or of subjects and objects)."""
        return self.graph.predicates if kind == "predicate" else self.graph.entities

    def questions_for(self, kind: Kind) -> int:
        """How many questions to the model one question of a kind takes, about."""
        return 1

    @abstractmethod
    def queries(self, kind: Kind, facts: Facts) -> Queries:
        """The queries for the objects, the subjects or the predicates of facts."""

    def blocks(self, kind: Kind, facts: Facts) -> Iterator[Block]:
        """The scores of questions for objects, subjects or predicates."""
        queries = self.queries(kind, facts)
        for asked, row, scores in queries.blocks():
            # Questions that are the same query differ in what is known at their times.
            for start in range(0, len(asked), queries.block):
                rows = asked[start : start + queries.block]
                weight = torch.as_tensor(queries.weight[queries.number[rows]], dtype=scores.dtype)
                places = torch.as_tensor(row[start : start + queries.block]).to(scores.device)
                yield Block(rows, scores.index_select(0, places), weight.to(scores.device))

    def scoped_predicates(self, facts: Facts) -> Iterator[Block]:
        """The scores of all scoped predicates between the entities of questions."""
        raise NotImplementedError("it has no scoped predicates")

    def scopes_of(self, facts: Facts) -> tuple[Ints, Ints]:
        """The scoped predicates that facts are scored by: how many, and which, in order of time."""
        return np.zeros(len(facts), np.int64), np.empty(0, np.int64)

    @abstractmethod
    def spans_of(self, facts: Facts) -> Spans:
        """The spans of the triples of questions, whatever their times."""

    @abstractmethod
    def span_block(self, spans: Spans, questions: int) -> Block:
        """The score of every span, a row for each question and a column for each span of it."""

    def known_spans(self, facts: Facts, spans: Spans) -> KnownAnswers:
        """The spans in which the triples of questions are known to hold."""
        question, fact = self.known.pairs("time", facts)
        begin, end = self.graph.timestamps(self.known.facts.take(fact))
        count = np.bincount(spans.question, minlength=len(facts))
        pair, span = expand((count.cumsum() - count)[question], count[question])
        held = (spans.begin[span] <= end[pair]) & (spans.end[span] >= begin[pair])
        pair, span = pair[held], span[held]
        question, number, fact = question[pair], spans.number[span], fact[pair]
        # A fact without time does not say when, so it marks no span.
        order = np.lexsort((fact, self.known.undated[fact], number, question))
        known = self.known.once(question[order], number[order], fact[order])
        return known._replace(fact=np.where(self.known.undated[known.fact], -1, known.fact))
