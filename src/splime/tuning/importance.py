"""Which choices mattered: by how much a forest's guesses get worse without each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median, mode
from typing import Any

import numpy as np

from splime.evaluation.metrics import Floats

_FEWEST = 8  # trials, below which nothing can be told
_SHUFFLES, _TREES = 20, 100


def importances(
    chosen: Sequence[Mapping[str, Any]], values: Sequence[float], *, seed: int = 0
) -> dict[str, float]:
    """The shares of the choices in the differences between values, most first.

    A random forest learns the values from the choices; then the values of a choice are exchanged
    among the trials that have it, and its guesses get worse by so much. Unlike the evaluators of
    optuna this also works for parameters that only some trials have, such as those of one method.
    Empty where trials are too few or all alike.
    """
    names = [
        name for name in _names(chosen) if len({one[name] for one in chosen if name in one}) > 1
    ]
    if len(chosen) < _FEWEST or not names or np.ptp(values) == 0:
        return {}
    from sklearn.ensemble import RandomForestRegressor

    rng = np.random.default_rng(seed)
    target = np.asarray(values, np.float64)
    encode = _encoder(chosen, names)
    forest = RandomForestRegressor(_TREES, min_samples_leaf=2, random_state=seed)
    forest.fit(encode(chosen), target)
    # All at once: a forest takes long to be asked, however little.
    tables = [list(chosen)]
    tables += [_shuffled(chosen, name, rng) for name in names for _ in range(_SHUFFLES)]
    guesses = forest.predict(encode([one for table in tables for one in table]))
    errors = ((guesses.reshape(len(tables), len(target)) - target) ** 2).sum(1)
    worse = errors[1:].reshape(len(names), _SHUFFLES).mean(1) - errors[0]
    shares = np.maximum(worse, 0.0) / max(np.maximum(worse, 0.0).sum(), np.finfo(float).tiny)
    order = np.argsort(-shares, kind="stable")
    return {names[at]: float(shares[at]) for at in order.tolist()}


def _names(chosen: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for one in chosen for name in one))


def _shuffled(
    chosen: Sequence[Mapping[str, Any]], name: str, rng: np.random.Generator
) -> list[Mapping[str, Any]]:
    having = [at for at, one in enumerate(chosen) if name in one]
    found = list(chosen)
    for at, other in zip(having, rng.permutation(having).tolist(), strict=True):
        found[at] = {**chosen[at], name: chosen[other][name]}
    return found


def _encoder(
    chosen: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> Callable[[Sequence[Mapping[str, Any]]], Floats]:
    """Numbers for a forest: one column for a number, one for each of several words.

    A trial that does not have a parameter gets a common value, lest it tell the method, too.
    """
    columns: list[tuple[str, str | None]] = []
    common: dict[str, Any] = {}
    for name in names:
        values = [one[name] for one in chosen if name in one]
        if any(isinstance(value, str | bool) for value in values):
            columns += [(name, word) for word in sorted({*map(str, values)})]
            common[name] = mode(values)
        else:
            columns.append((name, None))
            common[name] = median(values)

    def cell(one: Mapping[str, Any], name: str, word: str | None) -> float:
        value = one.get(name, common[name])
        return float(value) if word is None else float(str(value) == word)

    def encode(some: Sequence[Mapping[str, Any]]) -> Floats:
        return np.array([[cell(one, *column) for column in columns] for one in some], np.float64)

    return encode
