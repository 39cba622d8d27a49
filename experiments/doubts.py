"""Facts that are wrong on purpose, and where they are found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from splime.graph import Facts, TemporalGraph
from splime.vocabulary import Vocabulary

WAYS = ("object", "subject", "predicate", "time", "name", "overlap")


def broken(graph: TemporalGraph, share: float, seed: int = 0) -> tuple[TemporalGraph, np.ndarray, list[tuple[str,str]]]:
    random = np.random.default_rng(seed)
    facts = graph.facts()
    count = max(1, round(share * len(facts)))
    order = random.permutation(len(facts))
    columns = [np.array(c) for c in facts.columns()]
    s, p, o, b, e, u = columns
    way = np.full(len(facts), -1)
    stated = set(zip(s.tolist(), p.tolist(), o.tolist()))
    done = 0
    at = iter(order.tolist())
    for number, name in enumerate(("object", "subject", "predicate")):
        column = {"object": o, "subject": s, "predicate": p}[name]
        left = count
        while left:
            row = next(at)
            same = np.flatnonzero(facts.predicate == p[row]) if name != "predicate" else order
            new = getattr(facts, name)[same[random.integers(len(same))]]
            old = column[row]
            column[row] = new
            if new == old or (s[row], p[row], o[row]) in stated or s[row] == o[row]:
                column[row] = old
                continue
            way[row] = number
            left -= 1
    spread = np.ptp(facts.begin)
    left = count
    while left:
        row = next(at)
        if u[row] == 3:
            continue
        new = facts.begin[random.integers(len(facts))]
        old = facts.end[row] if u[row] & 1 else facts.begin[row]
        if abs(int(new) - int(old)) < spread / 10:
            continue
        length = 0 if u[row] else e[row] - b[row]
        if new + length > graph.timeline.last:
            continue
        if not u[row] & 1:
            b[row] = new
        if not u[row] & 2:
            e[row] = new + length
        way[row] = 3
        left -= 1
    made = Facts.owning(s, p, o, b, e, u)
    ok = b <= e
    made, way = made.take(ok), way[ok]
    empty = Facts.empty()
    return replace(graph, train=made, valid=empty, test=empty), way, []
