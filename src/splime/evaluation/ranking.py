"""Ranks from scores: how many candidates are better than an answer, and how many are as good."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import torch

from splime import collective
from splime.evaluation.filters import AnswerFilter, Excluded
from splime.evaluation.metrics import Floats
from splime.progress import Progress
from splime.scoring.queries import Queries
from splime.times import Ints

Ties: TypeAlias = Literal["mean", "worst", "best"]
TIES = {"mean": 0.5, "worst": 1.0, "best": 0.0}
"""The share of the candidates with the same score that stand before an answer."""

# Scores are compared in blocks that stay in the cache (on a GPU: that fill it).
_COMPARED = {"cpu": 1 << 20, "cuda": 1 << 26}
# Rows of so many scores are counted one by one.
_WIDE = 1 << 12


@dataclass(frozen=True)
class Side:
    """Answers to rank, and the queries that they answer."""

    queries: Queries
    target: Ints
    """The candidate that each answer is."""
    filter: AnswerFilter
    never: torch.Tensor | None = None
    """Columns of the scores that are no candidates."""


def rank_sides(sides: Sequence[Side], levels: int, ties: Ties, progress: Progress) -> Floats:
    """The ranks of all answers, by level of exclusion, answer and side."""
    done, total = 0, sum(len(side.target) for side in sides)
    ranks = np.zeros((levels, len(sides[0].target), len(sides)))
    progress("ranking", 0, total)
    for column, side in enumerate(sides):
        for start, stop, is_ours in _blocks(side.queries):
            answers, row = side.queries.asked(start, stop)
            if is_ours:
                scores = side.queries.score(start, stop)
                target, excluded = side.target[answers], side.filter.excluded(answers)
                counted = count(scores, row, target, excluded, levels=levels, never=side.never)
                ranks[:, answers, column] = rank(*counted, ties)
            done += len(answers)
            progress("ranking", done, total)
    collective.all_reduce(torch.from_numpy(ranks))
    return ranks


def _blocks(queries: Queries) -> Iterator[tuple[int, int, bool]]:
    """Ranges of queries, and whether this worker ranks them: workers take turns."""
    count, size, workers = len(queries.cost), queries.block, collective.size()
    if workers > 1:
        size = min(size, -(-count // workers))
    for number, start in enumerate(range(0, count, size)):
        yield start, min(start + size, count), number % workers == collective.rank()


def rank(better: Ints, equal: Ints, ties: Ties) -> Floats:
    """Ranks from 1; `equal` counts others with the same score.

    >>> [float(rank(np.array(3), np.array(1), ties)) for ties in ("mean", "worst", "best")]
    [4.5, 5.0, 4.0]
    """
    ranks: Floats = 1 + better + TIES[ties] * equal
    return ranks


def count(
    scores: torch.Tensor,
    row: Ints,
    target: Ints,
    excluded: Iterable[Excluded],
    *,
    levels: int,
    never: torch.Tensor | None = None,
) -> tuple[Ints, Ints]:
    """How many other candidates score higher than each answer, and how many the same.

    An answer is a column `target` in a `row` of the scores; candidates are all columns but those
    of `never` and the excluded ones. Both results have a row for each level of exclusion: all
    candidates are counted once, and for each level only what it excludes is taken off.
    """
    at, wanted = (torch.as_tensor(ids).to(scores.device) for ids in (row, target))
    answer_score = scores[at, wanted]
    better, equal = _compare(scores, at, answer_score)
    if never is not None and len(never):
        # Fewer columns than candidates as a rule, so this is cheaper than leaving them out.
        less, same = _compare(scores.index_select(1, never), at, answer_score)
        better, equal = better - less, equal - same
    size = levels * len(row)
    off = np.zeros((2, levels, len(row)), np.int64)
    for block in excluded:
        place = block.level * len(row) + block.answer
        answer, other = (torch.as_tensor(ids).to(scores.device) for ids in block[:2])
        others, against = scores[at[answer], other], answer_score[answer]
        for taken, hit in zip(off, (others > against, others == against), strict=True):
            taken += np.bincount(place[hit.cpu().numpy()], minlength=size).reshape(levels, -1)
    counts = torch.stack([better, equal]).cpu().numpy()[:, None] - off.cumsum(axis=1)
    return counts[0], counts[1] - 1


def _compare(
    scores: torch.Tensor, row: torch.Tensor, answer_score: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """In the rows of some answers, how many scores are higher than theirs, and how many equal."""
    count, columns = len(row), max(scores.shape[1], 1)
    step = max(1, _COMPARED.get(scores.device.type, 1 << 20) // columns)
    better = torch.empty(count, dtype=torch.int64, device=scores.device)
    equal = torch.empty_like(better)
    if columns >= _WIDE and scores.device.type == "cpu" and scores.dtype == torch.float32:
        # Row by row numpy counts four times faster than torch does.
        rows, limits = scores.numpy(), answer_score.numpy()
        for number, at in enumerate(row.tolist()):
            better[number] = int(np.count_nonzero(rows[at] > limits[number]))
            equal[number] = int(np.count_nonzero(rows[at] == limits[number]))
        return better, equal
    aligned = count == len(scores) and torch.equal(row, torch.arange(count, device=row.device))
    for start in range(0, count, step):
        part = slice(start, start + step)
        compared = scores[part] if aligned else scores.index_select(0, row[part])
        against = answer_score[part, None]
        # Summing to 32 bits is several times faster than to torch's 64.
        better[part] = (compared > against).sum(1, dtype=torch.int32)
        equal[part] = (compared == against).sum(1, dtype=torch.int32)
    return better, equal
