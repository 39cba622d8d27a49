from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from splime.evaluation import ranking
from splime.evaluation.filters import Excluded
from splime.evaluation.ranking import TIES, count
from tests.evaluation import oracle


@given(st.data())
def test_counts_equal_a_double_loop(data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 9))
    some = st.sampled_from([-np.inf, -1.0, 0.0, 1.0, 2.0])
    scores = np.array(data.draw(st.lists(some, min_size=rows * columns, max_size=rows * columns)))
    scores = scores.reshape(rows, columns)
    never = sorted(data.draw(st.sets(st.integers(0, columns - 1), max_size=columns - 1)))
    candidates = [c for c in range(columns) if c not in never]
    pairs = st.tuples(st.integers(0, rows - 1), st.sampled_from(candidates))
    answers = data.draw(st.lists(pairs, min_size=1, max_size=8))
    levels = data.draw(st.integers(1, 3))
    excluded: dict[tuple[int, int], int] = {}
    for answer, (_, target) in enumerate(answers):
        for other in candidates:
            if other != target and data.draw(st.booleans()):
                excluded[answer, other] = data.draw(st.integers(0, levels - 1))
    listed = np.array([(a, c, level) for (a, c), level in excluded.items()], np.int64)
    listed = listed.reshape(-1, 3)
    cut = data.draw(st.integers(0, len(listed)))
    blocks = [Excluded(*part.T) for part in (listed[:cut], listed[cut:])]
    row, target = np.array(answers).T
    better, equal = count(
        torch.as_tensor(scores, dtype=torch.float32),
        row,
        target,
        blocks,
        levels=levels,
        never=torch.as_tensor(never, dtype=torch.int64) if never else None,
    )
    for level in range(levels):
        for answer, (r, own) in enumerate(answers):
            others = [
                scores[r, c]
                for c in candidates
                if c != own and excluded.get((answer, c), levels) > level
            ]
            for ties in TIES:
                rank = ranking.rank(better[level, answer], equal[level, answer], ties)  # type: ignore[arg-type]
                assert rank == oracle.rank(scores[r, own], others, ties)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_any_float_type(dtype: torch.dtype) -> None:
    scores = torch.tensor([[1.0, 2.0, 2.0, 3.0]]).to(dtype)
    better, equal = count(scores, np.array([0]), np.array([1]), [], levels=1)
    assert (better.item(), equal.item()) == (1, 1)


def test_many_answers_to_one_query() -> None:
    scores = torch.arange(2_000.0).flip(0)[None]
    target = np.arange(2_000)
    better, equal = count(scores, np.zeros(2_000, np.int64), target, [], levels=1)
    assert (better[0] == target).all()
    assert not equal.any()
