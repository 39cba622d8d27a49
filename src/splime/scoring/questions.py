"""The scores of questions, exactly as the protocols rank with them; and when a triple holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

from splime.arrays import changes, expand, grouped
from splime.graph import Facts
from splime.scoring.queries import GIVEN, MEANS, Parts, Scoring, aggregated, time_parts
from splime.scoring.scoping import NAMES, Kind, KnownAnswers, KnownFacts
from splime.scoring.scorer import Room, asking
from splime.times import Ints


class Block(NamedTuple):
    """A row of scores over all candidates for some questions; -inf is no candidate."""

    rows: Ints
    """The positions of the questions."""
    scores: torch.Tensor
    """Made for this block; whoever takes it may write into it."""
    weight: torch.Tensor
    """What each row is to be divided by to be a mean."""


def blocks(scoring: Scoring, kind: Kind, facts: Facts) -> Iterator[Block]:
    """The scores of questions for objects, subjects or predicates."""
    queries = scoring.queries(kind, scoring.scoping.cut(facts))
    for asked, row, scores in queries.blocks():
        # Questions that are the same query differ in what is known at their times.
        for start in range(0, len(asked), queries.block):
            rows = asked[start : start + queries.block]
            weight = torch.as_tensor(queries.weight[queries.number[rows]], dtype=scores.dtype)
            own = torch.as_tensor(row[start : start + queries.block]).to(scores.device)
            yield Block(rows, scores.index_select(0, own), weight.to(scores.device))


def scoped_predicates(scoring: Scoring, facts: Facts) -> Iterator[Block]:
    """The scores of all scoped predicates between the entities of questions."""
    columns = len(scoring.scoping.static.predicates)
    ask = asking(scoring.scorer, "predicate", columns)
    room = Room(scoring.memory, scoring.scorer.device, 4, columns, columns)
    asked = scoring.scoping.cut(facts)
    for start in range(0, len(facts), room.queries):
        some = np.arange(start, min(start + room.queries, len(facts)))
        query, time = np.arange(len(some)), asked.begin[some]
        if scoring.scoping.entities is not None:
            query, time = time_parts(asked.begin[some], asked.end[some], scoring.how)
        subject, object_ = (
            scoring.scoping.at(name, getattr(facts, name)[some][query], time)
            for name in GIVEN["predicate"]
        )
        parts = Parts(query, subject, object_, np.ones(len(query), np.int64))
        scores = aggregated(ask, parts, len(some), scoring.how, room=room.parts)
        weight = np.bincount(query) if scoring.how in MEANS else np.ones(len(some))
        divisor = torch.as_tensor(weight, dtype=scores.dtype).to(scores.device)
        yield Block(some, scores, divisor)


def scopes_of(scoring: Scoring, facts: Facts) -> tuple[Ints, Ints]:
    """The scoped predicates that facts are scored by: how many, and which, in order of time."""
    asked = scoring.scoping.cut(facts)
    if scoring.scoping.entities is None:
        triples = asked.triples
        parts = scoring.scope_parts(triples.fact, triples.predicate, triples.overlap, len(facts))
        return parts.count, parts.predicate
    fact, time = time_parts(asked.begin, asked.end, scoring.how)
    scope = scoring.scoping.at("predicate", facts.predicate[fact], time)
    new = changes(fact, scope)
    return np.bincount(fact[new], minlength=len(facts)), scope[new]


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
    """The (scoped) subject that is asked for."""
    predicate: Ints
    object: Ints
    scope: Ints
    """The scoped predicate at that time; `predicate` may be its fallback."""


def spans_of(scoring: Scoring, facts: Facts) -> Spans:
    """The spans of the triples of questions, whatever their times."""
    scoping = scoring.scoping
    size = len(scoping.graph.timeline)
    question = np.repeat(np.arange(len(facts)), size)
    time = np.tile(np.arange(size, dtype=np.int32), len(facts))
    scopes = {}
    for name in NAMES:
        cut = scoping.static.predicates if name == "predicate" else scoping.entities
        sources = getattr(facts, name)[question]
        scopes[name] = sources if cut is None else cut.at(sources, time)
    start = np.flatnonzero(changes(question, *scopes.values()))
    count = np.bincount(question[start], minlength=len(facts))
    return Spans(
        question=question[start],
        number=expand(np.zeros_like(count), count)[1],
        begin=time[start].astype(np.int64),
        end=time[np.append(start[1:], len(time)) - 1].astype(np.int64),
        subject=scoping.entity_fallback[scopes["subject"][start]],
        predicate=scoping.predicate_fallback[scopes["predicate"][start]],
        object=scoping.entity_fallback[scopes["object"][start]],
        scope=scopes["predicate"][start].astype(np.int64),
    )


def span_block(scoring: Scoring, spans: Spans, questions: int) -> Block:
    """The score of every span, a row for each question and a column for each span of it."""
    scorer, columns = scoring.scorer, len(scoring.scoping.static.predicates)
    ask = asking(scorer, "predicate", columns)
    room = Room(scoring.memory, scorer.device, 4, columns).queries
    row, pair = grouped([spans.subject, spans.object])
    order = np.argsort(row, kind="stable")
    ordered = row[order]
    width = int(spans.number.max(initial=-1)) + 1
    scores = torch.full((questions, width), -torch.inf, device=scorer.device)
    for start in range(0, len(pair), room):
        some = pair[start : start + room]
        of_pairs = ask(spans.subject[some], spans.object[some])
        low, high = np.searchsorted(ordered, (start, start + room)).tolist()
        at = order[low:high]
        places = (spans.question[at], spans.number[at], row[at] - start, spans.predicate[at])
        question, number, own, predicate = (torch.as_tensor(x).to(scorer.device) for x in places)
        scores[question, number] = of_pairs[own, predicate].to(scores.dtype)
    return Block(np.arange(questions), scores, torch.ones(questions, device=scorer.device))


def known_spans(known: KnownFacts, facts: Facts, spans: Spans) -> KnownAnswers:
    """The spans in which the triples of questions are known to hold."""
    question, fact = known.pairs("time", facts)
    begin, end = known.graph.timestamps(known.facts.take(fact))
    count = np.bincount(spans.question, minlength=len(facts))
    pair, span = expand((count.cumsum() - count)[question], count[question])
    held = (spans.begin[span] <= end[pair]) & (spans.end[span] >= begin[pair])
    pair, span = pair[held], span[held]
    question, number, fact = question[pair], spans.number[span], fact[pair]
    order = np.lexsort((fact, number, question))
    return known.once(question[order], number[order], fact[order])
