"""Which choices mattered."""

from __future__ import annotations

import random
from typing import Any

from splime.tuning.results import importances


def trials(count: int, seed: int = 0) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    choices: list[dict[str, Any]] = []
    for _ in range(count):
        one: dict[str, Any] = {"method": draw.choice(["split", "merge"]), "noise": draw.random()}
        one["rate"] = draw.random()
        if one["method"] == "split":
            one["split.grow"] = draw.uniform(2, 50)
        choices.append(one)
    return choices


def test_what_decides_is_first() -> None:
    chosen = trials(40)
    shares = importances(chosen, [one["rate"] for one in chosen])
    assert next(iter(shares)) == "rate"
    assert shares["rate"] > 0.9
    assert abs(sum(shares.values()) - 1) < 1e-9
    assert list(shares.values()) == sorted(shares.values(), reverse=True)


def test_words_and_parameters_of_one_method() -> None:
    chosen = trials(40)
    by_method = importances(chosen, [float(one["method"] == "split") for one in chosen])
    assert next(iter(by_method)) == "method"
    assert by_method["method"] > 0.8
    by_grow = importances(chosen, [one.get("split.grow", 25.0) for one in chosen])
    assert next(iter(by_grow)) == "split.grow"


def test_nothing_to_tell() -> None:
    chosen = trials(40)
    assert importances(chosen, [0.5] * 40) == {}
    assert importances(chosen[:5], [0.1, 0.2, 0.3, 0.4, 0.5]) == {}
    assert importances([{"method": "split"}] * 20, list(range(20))) == {}
    assert importances([], []) == {}
    assert importances(chosen, [1.0, *[0.5] * 39]) == importances(chosen, [1.0, *[0.5] * 39])
