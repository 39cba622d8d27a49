"""One triple of each fact: every fact once, its pieces by their weight."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

import splime
from splime.embedding.making import make_model
from splime.errors import UsageError
from splime.training.registry import make_settings
from splime.training.trainer import Draws, Trainer


@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5), min_size=1, max_size=8))
def test_every_fact_gives_one_of_its_triples(weights: list[list[int]]) -> None:
    fact = np.repeat(np.arange(len(weights)), [len(own) for own in weights])
    triples = torch.arange(3 * len(fact)).reshape(-1, 3)
    draws = Draws(triples, fact, np.concatenate(weights))
    assert len(draws) == len(weights)
    drawn = draws.draw(torch.Generator().manual_seed(0))
    assert fact[(drawn[:, 0] // 3).numpy()].tolist() == list(range(len(weights)))


def test_pieces_are_drawn_by_weight() -> None:
    """As a timestamp of the fact at random would: 1, 2 and 5 of 8 timestamps."""
    draws = Draws(torch.arange(12).reshape(-1, 3), np.array([4, 7, 7, 7]), np.array([3, 1, 2, 5]))
    generator = torch.Generator().manual_seed(0)
    counts = Counter(int(draws.draw(generator)[1, 0]) // 3 for _ in range(4000))
    for piece, weight in ((1, 1), (2, 2), (3, 5)):
        assert counts[piece] / 4000 == pytest.approx(weight / 8, abs=0.03)


def test_triples_must_be_in_the_order_of_facts() -> None:
    with pytest.raises(ValueError, match="order of their facts"):
        Draws(torch.zeros(2, 3), np.array([1, 0]), np.array([1, 1]))


@pytest.mark.parametrize("loss", ["softmax", "self_adversarial"])
def test_an_epoch_has_each_fact_once_and_another_draw(loss: str) -> None:
    rows = [("a", "p", f"o{n}", 1990, 1990 + n) for n in range(8)] + [("a", "p", "o1", 1992, 1995)]
    static = splime.Timestamp().fit_transform(splime.read(rows, split="none"))
    few: dict[str, Any] = {} if loss == "softmax" else {"negatives": 4}
    settings = make_settings("distmult", each="fact", loss=loss, batch_size=4, dimension=4, **few)
    model = make_model(settings, static)
    trainer = Trainer(model, static.train, settings)
    assert trainer.steps == 3  # of 9 facts, two of the same triple
    seen = []
    for _ in range(6):
        trainer.run_epoch()
        both = 2 if loss == "softmax" else 1
        assert len(trainer.examples) == both * len(rows)
        seen.append(trainer.examples[:, 1].tolist())
    assert len({tuple(one) for one in seen}) > 3


def test_too_few_facts_for_a_batch() -> None:
    static = splime.Timestamp().fit_transform(
        splime.read([("a", "p", "b", 1990, 1999)], split="none")
    )
    settings = make_settings("distmult", each="fact", batch_size=5)
    model = make_model(settings, static)
    with pytest.raises(UsageError, match="train, which has 1 facts"):
        Trainer(model, static.train, settings)
