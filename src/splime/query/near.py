"""Which entities or predicates are near another one in the model, at a time or at any."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from splime.errors import UsageError
from splime.query.answers import Answer
from splime.runs import Run
from splime.segmentation import Scopes
from splime.times import Ints, format_ticks
from splime.vocabulary import Vocabulary


class _Table(NamedTuple):
    """The vectors of all (scoped) names of one kind."""

    vectors: torch.Tensor
    names: Vocabulary
    scopes: Scopes | None
    """None where these names are not cut."""
    fallback: Ints


def near(
    run: Run, names: Vocabulary, name: str, timestamps: tuple[int, int] | None, limit: int | None
) -> list[Answer]:
    """The other names by the cosine of their vectors.

    At a time a name is the mean of its scopes' vectors over the timestamps. Without one, the mean
    over all time is compared with every scope of the others.
    """
    table, own = _table(run, names), names.id(name)
    with torch.inference_mode():
        if table.scopes is None or timestamps is None:
            places = [own] if table.scopes is None else [*table.scopes.of_name(own)]
            score = _cosine(table.vectors, table.vectors[places].mean(0))
            score[places] = -torch.inf
        else:
            vectors = _mean_vectors(table, table.scopes, timestamps)
            score = _cosine(vectors, vectors[own])
            score[own] = -torch.inf
        count = int((score > -torch.inf).sum())
        top = torch.topk(score, count if limit is None else min(limit, count))
    return [
        _answer(table, rank, int(place), float(value), timestamps)
        for rank, (value, place) in enumerate(zip(*top, strict=True), start=1)
    ]


def _table(run: Run, names: Vocabulary) -> _Table:
    if run.engine != "splime":
        raise UsageError(
            f"{run.path}: the model is one of PyKEEN's, of which splime has scores but no vectors;"
            " only questions about facts can be asked"
        )
    model, scoping = run.model, run.scoping
    if names is run.graph.entities:
        return _Table(
            model.entities.vectors().detach(), names, scoping.entities, scoping.entity_fallback
        )
    scopes = run.segmentation.predicates
    forth = model.predicates.vectors().detach()[: len(scopes)]  # those after them are inverses
    return _Table(model.predicate_vectors(forth), names, scopes, scoping.predicate_fallback)


def _mean_vectors(table: _Table, scopes: Scopes, timestamps: tuple[int, int]) -> torch.Tensor:
    """A vector for each name, over the timestamps."""
    every = np.arange(len(table.names), dtype=np.int32)
    total = torch.zeros(len(every), table.vectors.shape[1], device=table.vectors.device)
    for time in range(timestamps[0], timestamps[1] + 1):
        total += table.vectors[table.fallback[scopes.at(every, np.full(len(every), time))]]
    return total


def _cosine(vectors: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cosine_similarity(vectors, own[None], dim=1)


def _answer(
    table: _Table, rank: int, place: int, score: float, timestamps: tuple[int, int] | None
) -> Answer:
    if table.scopes is None:
        return Answer(rank, table.names[place], score, None, (), None, None, None)
    scopes = table.scopes
    if timestamps is None:
        used = np.array([place])
        name = scopes.labels[place].as_py()
    else:
        low, high = scopes.find(*(np.array([x], np.int32) for x in (place, *timestamps)))
        used = np.unique(table.fallback[np.arange(low[0], high[0] + 1)])
        name = table.names[place]
    line = scopes.timeline
    ends = np.array([line.starts[scopes.first[used[0]]], line.ends[scopes.last[used[-1]]]])
    labels = tuple(scopes.labels[scope].as_py() for scope in used)
    begin, end = format_ticks(ends, line.granularity)
    return Answer(rank, name, score, None, labels, begin, end, None)
