"""Facts of a split as questions whose answer is known, to see how far scores can be trusted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from splime.graph import Facts, SplitName
from splime.query.answering import Answering
from splime.query.question import Kind
from splime.query.spans import known_spans, span_block, spans_of
from splime.times import Ints

# Scores that are kept at once.
_NUMBERS = 1 << 26
_SEED = 0


class Cases(NamedTuple):
    """Questions with the scores of all candidates; -inf is none, or another answer of train."""

    scores: torch.Tensor
    row: Ints
    """The questions that right answers are to,"""
    column: Ints
    """the right answers,"""
    share: torch.Tensor
    """and how much of the truth each of them is: a fact may hold in several scopes."""

    def __len__(self) -> int:
        return len(self.scores)

    def target(self) -> torch.Tensor:
        """The mean score of the right answers to each question."""
        total = torch.zeros(len(self), dtype=torch.float64)
        own = self.scores[self.row, self.column].double() * self.share
        return total.index_add_(0, torch.as_tensor(self.row), own)


def make_cases(answering: Answering, kind: Kind, split: SplitName, most: int) -> Cases:
    """At most so many facts of a split, drawn with a fixed seed."""
    graph = answering.scoring.run.graph
    facts: Facts = getattr(graph, split)
    setting = answering.scoring.setting
    if kind == "time":
        if setting.entities is None:  # of a predicate that is not cut there is nothing to choose
            facts = facts.take(np.diff(setting.static.predicates.offsets)[facts.predicate] > 0)
        candidates = 16 * len(graph.timeline)  # each with the pieces of three names
    else:
        candidates = len(graph.predicates if kind == "predicate" else graph.entities)
    most = max(1, min(most, _NUMBERS // candidates))
    if len(facts) > most:
        chosen = np.random.default_rng(_SEED).choice(len(facts), most, replace=False)
        facts = facts.take(np.sort(chosen))
    if not len(facts):
        nothing = np.empty(0, np.int64)
        return Cases(torch.zeros(0, 1), nothing, nothing, torch.zeros(0))
    with torch.inference_mode():
        return _times(answering, facts) if kind == "time" else _names(answering, kind, facts)


def _names(answering: Answering, kind: Kind, facts: Facts) -> Cases:
    target = getattr(facts, kind).astype(np.int64)
    scores: torch.Tensor | None = None
    for block, known in answering.blocks(kind, facts):
        values = block.scores / block.weight[:, None]
        other = known.learned & (known.id != target[block.rows][known.question])
        values[known.question[other], known.id[other]] = -torch.inf
        if scores is None:
            scores = torch.empty(len(facts), values.shape[1])
        scores[block.rows] = values.float().cpu()
    assert scores is not None, "there are facts"
    return Cases(scores, np.arange(len(facts)), target, torch.ones(len(facts)))


def _times(answering: Answering, facts: Facts) -> Cases:
    spans = spans_of(answering.scoring, facts)
    scores = span_block(answering.scoring, spans, len(facts)).scores.cpu()
    begin, end = answering.scoring.run.graph.timestamps(facts)
    held = np.minimum(end[spans.question], spans.end) - np.maximum(
        begin[spans.question], spans.begin
    )
    own = np.flatnonzero(held >= 0)
    row, column = spans.question[own], spans.number[own]
    share = (held[own] + 1) / (end - begin + 1)[row]
    known = known_spans(answering.known, facts, spans)
    width = scores.shape[1]
    other = known.learned & ~np.isin(known.question * width + known.id, row * width + column)
    scores[known.question[other], known.id[other]] = -torch.inf
    return Cases(scores, row, column, torch.as_tensor(share))
