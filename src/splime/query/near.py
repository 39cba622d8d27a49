"""Which entities or predicates are near another one in the model, at a time or at any."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from splime.errors import UsageError
from splime.evaluation.setting import Setting
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
    instead: Ints


def near(
    run: Run,
    setting: Setting,
    names: Vocabulary,
    name: str,
    timestamps: tuple[int, int] | None,
    limit: int | None,
) -> list[Answer]:
    """The other names by the cosine of their vectors.

    At a time a name is the mean of its pieces' vectors over the timestamps. Without one, the mean
    over all time is compared with every piece of the others.
    """
    table = _table(run, setting, names)
    with torch.inference_mode():
        if table.scopes is None or timestamps is None:
            pieces = _pieces_of(table, names.id(name))
            own = table.vectors[pieces].mean(0)
            score = _cosine(table.vectors, own)
            score[pieces] = -torch.inf
        else:
            vectors = _mean_vectors(table, table.scopes, timestamps)
            score = _cosine(vectors, vectors[names.id(name)])
            score[names.id(name)] = -torch.inf
        count = int((score > -torch.inf).sum())
        top = torch.topk(score, count if limit is None else min(limit, count))
    return [
        _answer(table, rank, int(place), float(value), timestamps)
        for rank, (value, place) in enumerate(zip(*top, strict=True), start=1)
    ]


def _table(run: Run, setting: Setting, names: Vocabulary) -> _Table:
    if run.engine != "splime":
        raise UsageError(
            f"{run.path}: the model is one of PyKEEN's, of which splime has scores but no vectors;"
            " only questions about facts can be asked"
        )
    model = run.model
    if names is setting.graph.entities:
        return _Table(
            model.entities.vectors().detach(), names, setting.entities, setting.instead.entities
        )
    scopes = setting.static.predicates
    forth = model.predicates.vectors().detach()[: len(scopes)]  # those after them are inverses
    vectors = model.predicate_vectors(forth)
    return _Table(vectors, names, scopes, setting.instead.predicates)


def _pieces_of(table: _Table, name: int) -> Ints:
    if table.scopes is None:
        return np.array([name])
    start = table.scopes.starts[name]
    return np.arange(start, start + len(table.scopes.cuts_of(name)) + 1)


def _mean_vectors(table: _Table, scopes: Scopes, timestamps: tuple[int, int]) -> torch.Tensor:
    """A vector for each name, over the timestamps."""
    every = np.arange(len(table.names), dtype=np.int32)
    total = torch.zeros(len(every), table.vectors.shape[1], device=table.vectors.device)
    for time in range(timestamps[0], timestamps[1] + 1):
        at = np.full(len(every), time, np.int32)
        total += table.vectors[table.instead[scopes.find(every, at, at)[0]]]
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
        pieces = np.array([place])
        name = scopes.labels[place].as_py()
    else:
        one, first, last = (np.array([x], np.int32) for x in (place, *timestamps))
        low, high = scopes.find(one, first, last)
        pieces = np.unique(table.instead[np.arange(low[0], high[0] + 1)])
        name = table.names[place]
    timeline = scopes.timeline
    ends = np.array(
        [timeline.starts[scopes.first[pieces[0]]], timeline.ends[scopes.last[pieces[-1]]]]
    )
    labels = tuple(scopes.labels[piece].as_py() for piece in pieces)
    begin, end = format_ticks(ends, timeline.granularity)
    return Answer(rank, name, score, None, labels, begin, end, None)
