"""When: the stretches of time in which a triple is one and the same for the model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from splime.evaluation.groups import grouped
from splime.evaluation.memory import Room
from splime.evaluation.scorer import asking
from splime.graph import Facts, Ids
from splime.query.known import KnownAnswers, KnownFacts
from splime.query.scoring import Block, Scoring
from splime.segmentation import Scopes
from splime.times import Ints


class Spans(NamedTuple):
    """The spans of some triples, by question and in the order of time.

    In each all three names lie in the same pieces; where only predicates are cut, it is a scope.
    """

    question: Ints
    number: Ints
    """The how-manieth of its question."""
    begin: Ints
    """The first timestamp."""
    end: Ints
    subject: Ints
    """The (scoped) subject that is asked for."""
    predicate: Ints
    object: Ints
    scope: Ints
    """The scoped predicate; `predicate` may stand in for it."""


def spans_of(scoring: Scoring, facts: Facts) -> Spans:
    """The spans of the triples of questions, whatever their times."""
    setting = scoring.setting
    size = len(setting.graph.timeline)
    question = np.repeat(np.arange(len(facts)), size)
    time = np.tile(np.arange(size, dtype=np.int32), len(facts))

    def pieces(scopes: Scopes | None, names: Ids) -> Ids:
        return names[question] if scopes is None else scopes.find(names[question], time, time)[0]

    subject, object_ = (pieces(setting.entities, ids) for ids in (facts.subject, facts.object))
    scope = pieces(setting.static.predicates, facts.predicate)
    new = np.ones(len(question), bool)
    new[1:] = False
    for column in (question, subject, scope, object_):
        new[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(new)) - 1
    whose = question[first]
    count = np.bincount(whose, minlength=len(facts))
    instead = setting.instead
    one, other = (
        ids[first].astype(np.int64) if setting.entities is None else instead.entities[ids[first]]
        for ids in (subject, object_)
    )
    return Spans(
        question=whose,
        number=np.arange(len(first)) - (count.cumsum() - count)[whose],
        begin=time[first].astype(np.int64),
        end=time[last].astype(np.int64),
        subject=one,
        predicate=instead.predicates[scope[first]],
        object=other,
        scope=scope[first].astype(np.int64),
    )


def span_block(scoring: Scoring, spans: Spans, questions: int) -> Block:
    """The score of every span, a row for each question and a column for each span of it."""
    scorer, columns = scoring.run.scorer, len(scoring.setting.static.predicates)
    ask = asking(scorer, "predicate", columns)
    room = Room(scoring.memory, scorer.device, 4, columns).queries
    row, pair = grouped([spans.subject, spans.object])
    order = np.argsort(row, kind="stable")
    ordered = row[order]
    width = int(spans.number.max(initial=-1)) + 1
    scores = torch.full((questions, width), -torch.inf, device=scorer.device)
    for first in range(0, len(pair), room):
        some = pair[first : first + room]
        found = ask(spans.subject[some], spans.object[some])
        start, stop = np.searchsorted(ordered, (first, first + room)).tolist()
        at = order[start:stop]
        places = (spans.question[at], spans.number[at], row[at] - first, spans.predicate[at])
        question, number, own, predicate = (torch.as_tensor(x).to(scorer.device) for x in places)
        scores[question, number] = found[own, predicate].to(scores.dtype)
    return Block(np.arange(questions), scores, torch.ones(questions, device=scorer.device))


def known_spans(known: KnownFacts, facts: Facts, spans: Spans) -> KnownAnswers:
    """The spans in which the triples of questions are known to hold."""
    question, fact = known.pairs("time", facts)
    begin, end = known.graph.timestamps(known.facts.take(fact))
    count = np.bincount(spans.question, minlength=len(facts))
    start = count.cumsum() - count
    found = []
    for one, row, first, last in zip(question, fact, begin, end, strict=True):
        own = slice(start[one], start[one] + count[one])
        hit = np.flatnonzero((spans.begin[own] <= last) & (spans.end[own] >= first))
        found.append(np.stack([np.full(len(hit), one), hit, np.full(len(hit), row)]))
    columns = np.concatenate([np.empty((3, 0), np.int64), *found], axis=1)
    columns = columns[:, np.lexsort((columns[2], columns[1], columns[0]))]
    new = np.ones(columns.shape[1], bool)
    new[1:] = (np.diff(columns[:2]) != 0).any(axis=0)
    question, number, fact = columns[:, new]
    return KnownAnswers(question, number, fact, known.learned(fact))
