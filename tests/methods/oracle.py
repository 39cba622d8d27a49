"""The paper's pseudocode as slow, literal loops: what the fast methods are compared with.

A method gives, for every name, the list of its scopes in the order of time, each a list of facts
with what is left of their time.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Part = tuple[int, int, int]
"""Begin, end, number of the fact."""
ByScope = dict[int, list[list[Part]]]


def divide(parts: list[Part], at: int) -> tuple[list[Part], list[Part]]:
    """The rule of the running text: left if e <= t, right if b >= t, else both."""
    left, right = [], []
    for begin, end, number in parts:
        if end <= at:
            left.append((begin, end, number))
        elif begin >= at:
            right.append((begin, end, number))
        else:
            left.append((begin, at, number))
            right.append((at, end, number))
    return left, right


def timestamp(facts: dict[int, list[Part]]) -> ByScope:
    """Algorithm 1: one predicate for each timestamp at which a fact holds."""
    scopes: ByScope = {}
    for name, parts in facts.items():
        by_time: dict[int, list[Part]] = {}
        for begin, end, number in parts:
            t = begin
            while t <= end:
                by_time.setdefault(t, []).append((t, t, number))
                t += 1
        scopes[name] = [by_time[t] for t in sorted(by_time)]
    return scopes


def can_be_split(parts: list[Part]) -> bool:
    begins, ends = [b for b, _, _ in parts], [e for _, e, _ in parts]
    return max(ends) - min(begins) >= 3 and len(set(begins)) > 2 and len(set(ends)) > 2


def middle(parts: list[Part]) -> int:
    return int((min(b for b, _, _ in parts) + max(e for _, e, _ in parts)) / 2)


def balance(parts: list[Part]) -> int:
    first, last = min(b for b, _, _ in parts), max(e for _, e, _ in parts)
    times = {t for b, e, _ in parts for t in (b, e)} - {first, last}
    best, best_difference = None, math.inf
    for t in sorted(times):
        ended = sum(1 for _, e, _ in parts if e <= t)
        to_begin = sum(1 for b, _, _ in parts if b >= t)
        if abs(ended - to_begin) < best_difference:
            best, best_difference = t, abs(ended - to_begin)
    return middle(parts) if best is None else best


def split(
    facts: dict[int, list[Part]],
    where: Callable[[list[Part]], int],
    enough: Callable[[int, int], bool],
) -> ByScope | None:
    """Algorithm 2; `enough` looks at the numbers of predicates and triples. None: it got stuck."""
    # Predicates in the order in which they came to be.
    current = [(name, parts) for name, parts in sorted(facts.items())]
    while not enough(len(current), sum(len(parts) for _, parts in current)):
        candidates = [entry for entry in current if can_be_split(entry[1])]
        if not candidates:
            return None
        chosen = max(candidates, key=lambda entry: len(entry[1]))  # the first of the largest
        current = [entry for entry in current if entry is not chosen]
        left, right = divide(chosen[1], where(chosen[1]))
        current += [(chosen[0], left), (chosen[0], right)]
    return in_time(current)


def random(facts: dict[int, list[Part]], predicates: int, seed: int) -> ByScope | None:
    """The random baseline, drawing as the method does."""
    rng = np.random.default_rng(seed)

    def places(parts: list[Part]) -> list[int]:
        first, last = min(b for b, _, _ in parts), max(e for _, e, _ in parts)
        return [t for t in range(first, last + 1) if all(divide(parts, t))]

    closed = [entry for entry in sorted(facts.items()) if not places(entry[1])]
    opened = [entry for entry in sorted(facts.items()) if places(entry[1])]
    while len(opened) + len(closed) < predicates:
        if not opened:
            return None
        drawn = int(rng.integers(len(opened)))
        name, parts = opened[drawn]
        opened[drawn] = opened[-1]
        opened.pop()
        at = places(parts)[int(rng.integers(len(places(parts))))]
        for side in divide(parts, at):
            (opened if places(side) else closed).append((name, side))
    return in_time(opened + closed)


def merge(facts: dict[int, list[Part]], predicates: int) -> ByScope:
    """Algorithm 3: join the two neighbours with the fewest facts, counted once per timestamp."""
    current = timestamp(facts)
    while sum(map(len, current.values())) > predicates:
        best: tuple[int, int, int] | None = None
        for name in sorted(current):
            for at in range(len(current[name]) - 1):
                size = len(current[name][at]) + len(current[name][at + 1])
                if best is None or size < best[0]:
                    best = (size, name, at)
        assert best is not None
        _, name, at = best
        current[name][at : at + 2] = [current[name][at] + current[name][at + 1]]
    return current


def in_time(named: list[tuple[int, list[Part]]]) -> ByScope:
    scopes: ByScope = {}
    for name, parts in sorted(
        named, key=lambda scope: (min(x[0] for x in scope[1]), max(x[1] for x in scope[1]))
    ):
        scopes.setdefault(name, []).append(parts)
    return scopes


def membership(scopes: ByScope) -> list[tuple[int, int, int]]:
    """Which fact is in which scope of which name; once, however often it is there."""
    return sorted(
        {
            (number, name, at)
            for name, own in scopes.items()
            for at, parts in enumerate(own)
            for _, _, number in parts
        }
    )
