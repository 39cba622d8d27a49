"""The scores of questions, exactly as the protocols `fact` and `predicate` rank with them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch

from splime.evaluation.aggregate import Parts, aggregated
from splime.evaluation.fact import entity_queries
from splime.evaluation.memory import Room
from splime.evaluation.parts import (
    MEANS,
    Aggregate,
    check_aggregate,
    scope_parts,
    time_parts,
)
from splime.evaluation.predicate import predicate_queries
from splime.evaluation.scorer import asking
from splime.evaluation.setting import Setting
from splime.graph import Facts
from splime.query.question import Kind
from splime.runs import Run
from splime.times import Ints


class Block(NamedTuple):
    """Scores of some questions over all candidates; -inf is no candidate."""

    rows: Ints
    """The positions of the questions."""
    scores: torch.Tensor
    """Made for this block; whoever takes it may write into it."""
    weight: torch.Tensor
    """What each row is to be divided by to be a mean."""


class Scoring:
    """A run as questions see it."""

    def __init__(self, run: Run, how: Aggregate, memory: int | None) -> None:
        check_aggregate(how)
        self.run, self.how, self.memory = run, how, memory

    @cached_property
    def setting(self) -> Setting:
        """The graph, its cuts, and what stands in for scopes that train does not know."""
        return Setting.of(self.run.graph, self.run.segmentation, "train")

    def blocks(self, kind: Kind, facts: Facts) -> Iterator[Block]:
        """The scores of questions for objects, subjects or predicates."""
        setting, scorer = self.setting.about(facts), self.run.scorer
        if kind == "predicate":
            queries = predicate_queries(scorer, setting, self.how, self.memory)
        else:
            queries = entity_queries(scorer, setting, kind, self.how, self.memory)
        order = np.argsort(queries.number, kind="stable")
        number = queries.number[order]
        for first in range(0, len(queries.cost), queries.block):
            last = min(first + queries.block, len(queries.cost))
            start, stop = np.searchsorted(number, (first, last)).tolist()
            scores = queries.score(first, last)
            # Questions that are the same query differ in what is known at their times.
            for at in range(start, stop, queries.block):
                some = slice(at, min(at + queries.block, stop))
                rows = torch.as_tensor(number[some] - first).to(scores.device)
                weight = torch.as_tensor(queries.weight[number[some]], dtype=scores.dtype)
                yield Block(order[some], scores.index_select(0, rows), weight.to(scores.device))

    def scoped_predicates(self, facts: Facts) -> Iterator[Block]:
        """The scores of all scoped predicates between the entities of questions."""
        setting, scorer = self.setting.about(facts), self.run.scorer
        columns = len(setting.static.predicates)
        ask = asking(scorer, "predicate", columns)
        room = Room(self.memory, scorer.device, 4, columns, columns)
        begin, end = setting.begin.astype(np.int64), setting.end.astype(np.int64)
        for start in range(0, len(facts), room.queries):
            some = np.arange(start, min(start + room.queries, len(facts)))
            query, time = np.arange(len(some)), begin[some]
            if setting.entities is not None:
                query, time = time_parts(begin[some], end[some], self.how)
            subject, object_ = (
                setting.piece_of_entity(column[some][query], time)
                for column in (facts.subject, facts.object)
            )
            parts = Parts(query, subject, object_, np.ones(len(query), np.int64), None)
            scores = aggregated(ask, parts, len(some), self.how, room=room.parts)
            weight = np.bincount(query) if self.how in MEANS else np.ones(len(some))
            divisor = torch.as_tensor(weight, dtype=scores.dtype).to(scores.device)
            yield Block(some, scores, divisor)

    def serving(self, facts: Facts) -> tuple[Ints, Ints]:
        """The scoped predicates that serve each fact: how many, and which, in the order of time."""
        setting = self.setting.about(facts)
        if setting.entities is None:
            found = scope_parts(setting.triples, len(facts), setting.instead.predicates, self.how)
            return found.count, found.predicate
        begin, end = setting.begin.astype(np.int64), setting.end.astype(np.int64)
        whose, time = time_parts(begin, end, self.how)
        piece = setting.piece_of_predicate(facts.predicate[whose], time)
        new = np.ones(len(piece), bool)
        new[1:] = (whose[1:] != whose[:-1]) | (piece[1:] != piece[:-1])
        return np.bincount(whose[new], minlength=len(facts)), piece[new]
