"""What is drawn, how much of it, and whether it is known."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from scipy.stats import chisquare

from splime.embedding.negatives import Known, Negatives, seed_of
from splime.errors import UsageError
from splime.settings import Settings


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("share", ["batch", "none"])
@pytest.mark.parametrize(
    ("settings", "objects", "subjects"),
    [
        ({"corrupt": "both", "negatives": 8}, 4, 4),
        ({"corrupt": "both", "negatives": 7}, 4, 3),
        ({"corrupt": "both", "negatives": 2}, 1, 1),
        ({"corrupt": "object", "negatives": 7}, 7, 0),
        ({"corrupt": "subject", "negatives": 7}, 0, 7),
        ({"reciprocal": True, "negatives": 7}, 7, 0),
        ({"reciprocal": True, "negatives": 1}, 1, 0),
    ],
)
def test_how_many(settings: dict[str, Any], objects: int, subjects: int, share: str) -> None:
    negatives = Negatives(11, Settings.of({**settings, "share": share}))
    drawn = negatives.draw(3, 5, seeded())
    total = objects + subjects
    assert drawn.shape == ((3, total) if share == "batch" else (3, 5, total))
    of_objects, of_subjects = drawn[0].split(negatives.counts, -1)
    assert (of_objects.shape[-1], of_subjects.shape[-1]) == (objects, subjects)
    assert torch.equal(torch.cat([of_objects, of_subjects], dim=-1), drawn[0])


def test_draws_are_uniform_and_follow_the_seed() -> None:
    negatives = Negatives(13, Settings(negatives=100))
    drawn = negatives.draw(100, 1, seeded(1))
    assert torch.equal(drawn, negatives.draw(100, 1, seeded(1)))
    assert not torch.equal(drawn, negatives.draw(100, 1, seeded(2)))
    of_objects, of_subjects = drawn.split(negatives.counts, -1)
    for part in (drawn, of_objects, of_subjects, drawn[:, 0]):
        counts = torch.bincount(part.flatten(), minlength=13)
        assert len(counts) == 13
        assert chisquare(counts.numpy()).pvalue > 0.001
    steps = torch.stack([torch.bincount(step, minlength=13) for step in drawn])
    assert len(steps.unique(dim=0)) > 50  # each step has its own


triples = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=40
)


@given(train=triples)
def test_known(train: list[tuple[int, int, int]]) -> None:
    known, true = Known(torch.tensor(train), 5, 3), set(train)
    pairs = list(itertools.product(range(5), range(3)))
    entity, p = (torch.tensor(column) for column in zip(*pairs, strict=True))
    everyone = torch.arange(5)
    as_objects = [[(s, q, o) in true for o in range(5)] for s, q in pairs]
    as_subjects = [[(s, q, o) in true for s in range(5)] for o, q in pairs]
    assert known.among("object", entity, p, everyone).tolist() == as_objects
    assert known.among("subject", entity, p, everyone).tolist() == as_subjects
    # Own candidates: a row for each question, in an order of its own.
    own = torch.stack([everyone.roll(k) for k in range(len(pairs))])
    rows = list(zip(pairs, own.tolist(), strict=True))
    found = known.among("object", entity, p, own)
    expected = [[(s, q, o) in true for o in row] for (s, q), row in rows]
    assert found.tolist() == expected
    found = known.among("subject", entity, p, own)
    expected = [[(s, q, o) in true for s in row] for (o, q), row in rows]
    assert found.tolist() == expected


def test_known_of_very_many_entities() -> None:
    entities, predicates = 2**24, 2**14
    last = entities - 1, predicates - 1, entities - 1
    known = Known(torch.tensor([last, (0, 0, 0)]), entities, predicates)
    s, p, o = (torch.tensor([part]) for part in last)
    assert known.among("object", s, p, torch.tensor([0, last[2]])).tolist() == [[False, True]]
    assert known.among("subject", o, p, torch.tensor([0, last[0]])).tolist() == [[False, True]]
    with pytest.raises(UsageError, match="avoid_known"):
        Known(torch.tensor([[0, 0, 0]]), 2**25, 2**14)


def test_seeds_differ_and_stay() -> None:
    # A run's seed, its epochs, and its steps from 1 on.
    parts = [*itertools.product(range(8), range(8)), *itertools.product(range(8), range(8), [1, 2])]
    seeds = [seed_of(*part) for part in parts]
    assert len(set(seeds)) == len(parts)
    assert seeds == [seed_of(*part) for part in parts]
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert np.ptp([seed >> 32 for seed in seeds]) > 2**30
    # A file that is trained again years later must come out the same.
    assert seed_of(0, 1) == 2_918_264_622_725_855_778
