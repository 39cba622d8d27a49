"""Which names are near another one, by the cosine of their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import torch

from splime.query.answers import Answer, dates
from splime.runs import Run
from splime.scoring.queries import Scoring
from splime.segmentation import Scopes
from splime.times import Ints
from splime.vocabulary import Vocabulary

Span: TypeAlias = tuple[int, int]
"""The first and the last timestamp of a time."""


def near_names(
    run: Run, scoring: Scoring, number: int, names: Vocabulary, span: Span | None, limit: int | None
) -> list[Answer]:
    """The other names by the cosine of their vectors.

    At a time a name is the mean of its scopes' vectors over the timestamps. Without one, the mean
    over all time is compared with every scope of the others. Entities that move in time are their
    means over the timestamps, or over all time.
    """
    with torch.inference_mode():
        rows, scopes, fallback = _vectors(run, names, span)
        places: Sequence[int] = [number]
        if scopes is not None and span is None:
            places = scopes.of_name(number)
        elif scopes is not None and span is not None:
            every = np.arange(len(names), dtype=np.int32)
            times = (np.full(len(names), time) for time in range(span[0], span[1] + 1))
            rows = reduce(torch.add, (rows[fallback[scopes.at(every, time)]] for time in times))
        score = torch.cosine_similarity(rows, rows[[*places]].mean(0)[None], dim=1)
        score[[*places]] = -torch.inf
        count = int((score > -torch.inf).sum())
        top = torch.topk(score, min(limit or count, count))
    answers = []
    for rank, (value, place) in enumerate(zip(*(x.tolist() for x in top), strict=True), start=1):
        other, label, used, begin, end = _about(scopes, fallback, names, place, span)
        lacking = scoring.coverage.names(names.kind, np.array([other]))[0]
        remark = scoring.coverage.about(names.kind, other, "the answer") if lacking else None
        answers.append(Answer(rank, label, value, None, used, begin, end, None, remark))
    return answers


def _vectors(
    run: Run, names: Vocabulary, span: Span | None
) -> tuple[torch.Tensor, Scopes | None, Ints]:
    """The vectors of names or of their scopes, those scopes, and the one to use for each."""
    model, scoping = run.model, run.scoping  # an error where there are no vectors
    if names.kind == "predicate":
        fallback = scoping.predicate_fallback
        rows = model.predicates.vectors()[: len(fallback)]  # those after them are inverses
        return model.predicate_vectors(rows), scoping.static.predicates, fallback
    rows = model.entities.vectors()
    if model.time_of is not None:
        times = torch.arange(len(run.graph.timeline), device=rows.device)
        times = times if span is None else times[span[0] : span[1] + 1]
        rows = reduce(torch.add, (model.at(rows, time) for time in times))
    return rows, scoping.entities, scoping.entity_fallback


def _about(
    scopes: Scopes | None, fallback: Ints, names: Vocabulary, place: int, span: Span | None
) -> tuple[int, str, tuple[str, ...], str | None, str | None]:
    """What a row stands for: the id, its label, and its scopes with their first and last date."""
    if scopes is None:
        return place, names[place], (), None, None
    used = np.array([place])
    if span is not None:
        low, high = scopes.find(*(np.array([x], np.int32) for x in (place, *span)))
        used = np.unique(fallback[np.arange(low[0], high[0] + 1)])
    labels = tuple(scopes.labels.take(pa.array(used)).to_pylist())
    [begin], [end] = dates(scopes.timeline, scopes.first[used[:1]], scopes.last[used[-1:]])
    if span is not None:
        return place, names[place], labels, begin, end
    return int(scopes.sources[place]), labels[0], labels, begin, end
