"""Ranks from scores: how many candidates are better than an answer, and how many are as good."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

import numpy as np
import torch

from splime.errors import UsageError, nearest
from splime.evaluation.filters import Excluded
from splime.evaluation.metrics import Floats
from splime.times import Ints

Ties: TypeAlias = Literal["mean", "worst", "best"]

# Scores are compared in pieces that stay in the cache (on a GPU: that fill it).
_COMPARED = {"cpu": 1 << 20, "cuda": 1 << 26}


def check_ties(ties: str) -> None:
    """An error for a tie rule that does not exist."""
    if ties not in get_args(Ties):
        known = get_args(Ties)
        raise UsageError(f"ties is one of {', '.join(known)}, not {ties!r}.{nearest(ties, known)}")


def rank(better: Ints, equal: Ints, ties: Ties) -> Floats:
    """Ranks from 1; `equal` counts others with the same score.

    >>> [float(rank(np.array(3), np.array(1), ties)) for ties in ("mean", "worst", "best")]
    [4.5, 5.0, 4.0]
    """
    share = {"mean": 0.5, "worst": 1.0, "best": 0.0}[ties]
    ranks: Floats = 1 + better + share * equal
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
    at = torch.as_tensor(row).to(scores.device)
    own = scores[at, torch.as_tensor(target).to(scores.device)]
    better, equal = _compare(scores, at, own)
    if never is not None:
        # Fewer columns than candidates as a rule, so this is cheaper than leaving them out.
        less, same = _compare(scores.index_select(1, never), at, own)
        better, equal = better - less, equal - same
    size = levels * len(row)
    off = np.zeros((2, levels, len(row)), np.int64)
    for part in excluded:
        answer, id_ = (torch.as_tensor(ids).to(scores.device) for ids in (part.answer, part.id))
        others, against = scores[at[answer], id_], own[answer]
        place = part.level * len(row) + part.answer
        for taken, hit in zip(off, (others > against, others == against), strict=True):
            taken += np.bincount(place[hit.cpu().numpy()], minlength=size).reshape(levels, -1)
    off = off.cumsum(axis=1)
    return better.cpu().numpy() - off[0], equal.cpu().numpy() - off[1] - 1


def _compare(
    scores: torch.Tensor, row: torch.Tensor, own: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """In the rows of some answers, how many scores are higher than theirs, and how many equal."""
    count, columns = len(row), max(scores.shape[1], 1)
    step = max(1, _COMPARED.get(scores.device.type, 1 << 20) // columns)
    better = torch.empty(count, dtype=torch.int64, device=scores.device)
    equal = torch.empty_like(better)
    aligned = count == len(scores) and bool(
        torch.equal(row, torch.arange(count, device=row.device))
    )
    for start in range(0, count, step):
        part = slice(start, start + step)
        compared = scores[part] if aligned else scores.index_select(0, row[part])
        against = own[part, None]
        # Summing to 32 bits is several times faster than to torch's 64.
        better[part] = (compared > against).sum(1, dtype=torch.int32)
        equal[part] = (compared == against).sum(1, dtype=torch.int32)
    return better, equal
