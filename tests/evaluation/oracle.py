"""The protocols as plain loops, one fact, one candidate and one part at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from splime.graph import Fact, TemporalGraph
from splime.segmentation import Scopes, Segmentation

Score = Callable[[int, int, int], float]


def rank(own: float, others: Iterable[float], ties: str) -> float:
    others = list(others)
    better = sum(other > own for other in others)
    equal = sum(other == own for other in others)
    return {"mean": 1 + better + equal / 2, "worst": 1 + better + equal, "best": 1 + better}[ties]


def excludes(name: str, query: Fact, known: Fact) -> bool:
    """Whether a filter counts a known fact as an answer to a query."""
    if name == "static":
        return True
    if name == "exact":
        return (known.begin, known.end) == (query.begin, query.end)
    low = [-np.inf if fact.begin is None else int(fact.begin) for fact in (query, known)]
    high = [np.inf if fact.end is None else int(fact.end) for fact in (query, known)]
    return max(low) <= min(high)


def pieces(scopes: Scopes, name: int, begin: int, end: int) -> list[tuple[int, int]]:
    """The pieces that a fact lies in and its overlap with them: cut after cut, by the rule."""
    start = int(scopes.offsets[name]) + name
    left, right = 2 * begin, 2 * end
    overlaps: list[tuple[int, int]] = []
    for number, cut in enumerate(scopes.cuts_of(name).tolist()):
        if right <= cut:
            return [*overlaps, (start + number, right // 2 - (left + 1) // 2 + 1)]
        if left < cut:
            overlaps.append((start + number, cut // 2 - (left + 1) // 2 + 1))
            left = cut
    last = start + len(scopes.cuts_of(name))
    return [*overlaps, (last, right // 2 - (left + 1) // 2 + 1)]


def at(scopes: Scopes, name: int, time: int) -> int:
    return pieces(scopes, name, time, time)[0][0]


def nearest(scopes: Scopes, piece: int, seen: set[int]) -> int:
    """The piece itself if it is seen, or else the nearer of the seen ones before and after it."""
    if piece in seen:
        return piece
    same = [p for p in sorted(seen) if scopes.sources[p] == scopes.sources[piece]]
    before, after = [p for p in same if p < piece], [p for p in same if p > piece]
    if not before or not after:
        return before[-1] if before else after[0] if after else piece
    to_before = int(scopes.first[piece]) - int(scopes.last[before[-1]])
    to_after = int(scopes.first[after[0]]) - int(scopes.last[piece])
    return before[-1] if to_before <= to_after else after[0]


def aggregate(how: str, parts: list[tuple[float, int]]) -> float:
    """One score from those of parts, which have weights and are in the order of time."""
    scores = [score for score, _ in parts]
    if how == "max":
        return max(scores)
    if how == "sum":
        return sum(scores)
    if how == "ends":
        return (scores[0] + scores[-1]) / 2
    return sum(score * weight for score, weight in parts) / sum(weight for _, weight in parts)


class Oracle:
    """Scores and ranks of the facts of a graph, literally."""

    def __init__(self, graph: TemporalGraph, segmentation: Segmentation, score: Score) -> None:
        self.graph, self.score = graph, score
        self.predicates, self.entities = segmentation.predicates, segmentation.entities
        self.known = list(graph.rows())
        self.seen_predicates: set[int] = set()
        self.seen_entities: set[int] = set()
        for subject, predicate, object_, begin, end in self.columns("train"):
            served = pieces(self.predicates, predicate, begin, end)
            self.seen_predicates |= {piece for piece, _ in served}
            if self.entities is not None:
                for name in (subject, object_):
                    served = pieces(self.entities, name, begin, end)
                    self.seen_entities |= {piece for piece, _ in served}

    def columns(self, split: Any) -> list[tuple[int, int, int, int, int]]:
        facts = self.graph.facts(split)
        begin, end = self.graph.timestamps(facts)
        columns = (facts.subject, facts.predicate, facts.object, begin, end)
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def fact_score(self, how: str, fact: tuple[int, int, int, int, int]) -> float:
        subject, predicate, object_, begin, end = fact
        parts: list[tuple[float, int]] = []
        if self.entities is None:
            for piece, overlap in pieces(self.predicates, predicate, begin, end):
                used = nearest(self.predicates, piece, self.seen_predicates)
                parts.append((self.score(subject, used, object_), overlap))
        else:
            for time in range(begin, end + 1):
                used = nearest(
                    self.predicates, at(self.predicates, predicate, time), self.seen_predicates
                )
                one, other = (
                    nearest(self.entities, at(self.entities, name, time), self.seen_entities)
                    for name in (subject, object_)
                )
                parts.append((self.score(one, used, other), 1))
        return aggregate(how, parts)

    def ranks(self, split: Any, asked: str, filter_: str, how: str, ties: str) -> list[float]:
        """The rank of every fact's subject, predicate or object."""
        position = ("subject", "predicate", "object").index(asked)
        names = self.graph.predicates if asked == "predicate" else self.graph.entities
        ranks = []
        for row, fact in zip(self.graph.rows(split), self.columns(split), strict=True):
            answers = {
                names.id(known[position])  # type: ignore[arg-type]
                for known in self.known
                if known[:position] == row[:position]
                and known[position + 1 : 3] == row[position + 1 : 3]
                and excludes(filter_, row, known)
            }
            scores = {}
            for candidate in range(len(names)):
                changed = (*fact[:position], candidate, *fact[position + 1 :])
                scores[candidate] = self.fact_score(how, changed)  # type: ignore[arg-type]
            target = fact[position]
            others = [s for c, s in scores.items() if c != target and c not in answers]
            ranks.append(rank(scores[target], others, ties))
        return ranks
