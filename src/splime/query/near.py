"""Which names are near another one, by the cosine of their vectors."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import torch

from splime.embedding.models.base import Model
from splime.query.answers import Answer, dates
from splime.runs import Run
from splime.scoring.queries import Scoring
from splime.scoring.scoping import Scoping
from splime.segmentation import Scopes
from splime.times import Ints
from splime.vocabulary import Vocabulary

Span: TypeAlias = tuple[int, int]
"""The first and the last timestamp of a time."""


class _Vectors(NamedTuple):
    """The vectors of entities or predicates: a row for each scope, or for each name."""

    rows: torch.Tensor
    scopes: Scopes | None
    """None where there is one row for each name."""
    fallback: Ints


def near_names(
    run: Run, scoring: Scoring, name: str, names: Vocabulary, span: Span | None, limit: int | None
) -> list[Answer]:
    """The other names by the cosine of their vectors.

    At a time a name is the mean of its scopes' vectors over the timestamps. Without one, the mean
    over all time is compared with every scope of the others. Entities that move in time are their
    means over the timestamps, or over all time.
    """
    model = run.model  # an error where there are no vectors
    with torch.inference_mode():
        vectors = _vectors(model, run.scoping, names, span)
        rows, places = vectors.rows, [names.id(name)]
        if vectors.scopes is not None and span is None:
            places = [*vectors.scopes.of_name(places[0])]
        elif vectors.scopes is not None and span is not None:
            rows = _at_times(vectors, vectors.scopes, len(names), span)
        score = torch.cosine_similarity(rows, rows[places].mean(0)[None], dim=1)
        score[places] = -torch.inf
        count = int((score > -torch.inf).sum())
        top = torch.topk(score, min(limit or count, count))
    coverage, kind = scoring.coverage, "subject" if names is run.graph.entities else "predicate"
    answers = []
    for rank, (value, place) in enumerate(zip(*(x.tolist() for x in top), strict=True), start=1):
        number, label, used, begin, end = _about(vectors, names, place, span)
        lacking = coverage.names(kind, np.array([number]))[0]
        remark = coverage.about(kind, number, "the answer") if lacking else None
        answers.append(Answer(rank, label, value, None, used, begin, end, None, remark))
    return answers


def _vectors(model: Model, scoping: Scoping, names: Vocabulary, span: Span | None) -> _Vectors:
    if names is not scoping.graph.entities:
        fallback = scoping.predicate_fallback
        rows = model.predicates.vectors()[: len(fallback)]  # those after them are inverses
        return _Vectors(model.predicate_vectors(rows), scoping.static.predicates, fallback)
    rows = model.entities.vectors()
    if model.time_of is not None:
        first, last = span or (0, len(scoping.graph.timeline) - 1)
        times = torch.arange(first, last + 1, device=rows.device)
        moved = model.at(rows, times[0])
        for time in times[1:]:
            moved = moved + model.at(rows, time)
        rows = moved
    return _Vectors(rows, scoping.entities, scoping.entity_fallback)


def _at_times(vectors: _Vectors, scopes: Scopes, names: int, span: Span) -> torch.Tensor:
    """The sum over timestamps of each name's vector."""
    every = np.arange(names, dtype=np.int32)
    total = torch.zeros(names, vectors.rows.shape[1], device=vectors.rows.device)
    for time in range(span[0], span[1] + 1):
        total += vectors.rows[vectors.fallback[scopes.at(every, np.full(names, time))]]
    return total


def _about(
    vectors: _Vectors, names: Vocabulary, place: int, span: Span | None
) -> tuple[int, str, tuple[str, ...], str | None, str | None]:
    """What a row stands for: the id, its label, and its scopes with their first and last date."""
    scopes = vectors.scopes
    if scopes is None:
        return place, names[place], (), None, None
    used = np.array([place])
    if span is not None:
        low, high = scopes.find(*(np.array([x], np.int32) for x in (place, *span)))
        used = np.unique(vectors.fallback[np.arange(low[0], high[0] + 1)])
    labels = tuple(scopes.labels.take(pa.array(used)).to_pylist())
    [begin], [end] = dates(scopes.timeline, scopes.first[used[:1]], scopes.last[used[-1:]])
    if span is not None:
        return place, names[place], labels, begin, end
    return int(scopes.sources[place]), labels[0], labels, begin, end
