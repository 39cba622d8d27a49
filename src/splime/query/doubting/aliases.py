"""One thing under two names: entities with similar names whose facts look like one's.

What the facts of one thing under two names look like is learned from the graph itself: some
entities get a second name, with a slip of the pen, and half of their facts. A logistic regression
tells such pairs from other pairs of similar names.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import numpy as np

from splime.analysis.regression import Scale, fit_logistic, logistic, with_ones
from splime.arrays import distinct
from splime.evaluation.metrics import Floats
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, Facts, TemporalGraph
from splime.paths.processor import compiled
from splime.query.doubting.overlaps import ONE, find_overlaps
from splime.times import Ints

_SHARE = 0.01
"""How many of the entities are supposed to have a second name."""
_SPLIT = 500
"""Entities that get a second name, at most."""
_LEAST = 0.4
"""How alike the names of a pair are, at least: the cosine of their trigrams."""
_COMMON = 500
"""Trigrams of more names find no pairs."""
_BLOCK = 2048
_RIDGE = 1e-2


class Aliases(NamedTuple):
    """Pairs of entities, the likeliest to be one thing first."""

    one: Ints
    """The entity with fewer facts."""
    other: Ints
    probability: Floats


def slip(name: str, random: np.random.Generator) -> str:
    """A name with a letter left out, doubled, or exchanged with the next, or a shortened word."""
    words = name.split(" ")
    if len(words) > 1 and len(words[0]) > 1 and random.random() < 0.25:
        return " ".join([words[0][0] + ".", *words[1:]])
    at, how = int(random.integers(0, max(len(name) - 1, 1))), int(random.integers(0, 3))
    letter, rest = name[at : at + 1], name[at + 1 :]
    return name[:at] + (rest, 2 * letter + rest, rest[:1] + letter + rest[1:])[how]


def find_aliases(graph: TemporalGraph, facts: Facts) -> Aliases:
    """The pairs with similar names, with the probability that they are one thing."""
    size, random = len(graph.entities), np.random.default_rng(0)
    names = list(graph.entities)
    empty = np.empty(0, np.int64)
    one, other = _similar(_trigrams(names))
    if not len(one):
        return Aliases(empty, empty, np.empty(0))
    split, halved = _split(facts, size, random)
    slips = [slip(names[entity], random) for entity in split.tolist()]
    wrong = _Features(halved, [*names, *slips], len(graph.predicates))
    planted = wrong.of(split, size + np.arange(len(split)))
    kept = planted[:, 0] >= _LEAST
    features = _Features(facts, names, len(graph.predicates)).of(one, other)
    x = np.concatenate([planted[kept], features])
    right = np.arange(len(x)) < kept.sum()
    weight = np.where(right, 1 / max(kept.sum(), 1), 1 / len(features))
    x = with_ones(Scale.of(x).apply(x))
    line = fit_logistic(x, right, weight, _RIDGE)
    odds = np.log(min(1.0, _SHARE * size / len(one)))
    probability = logistic(x[len(planted[kept]) :] @ line + odds)
    count = np.bincount(np.concatenate([facts.subject, facts.object]), minlength=size)
    turned = count[one] > count[other]
    one, other = np.where(turned, other, one), np.where(turned, one, other)
    order = np.lexsort((other, one, -probability.round(9)))
    return Aliases(one[order], other[order], probability[order])


def _split(facts: Facts, size: int, random: np.random.Generator) -> tuple[Ints, Facts]:
    """Some entities, and the facts of which half have a new one in their place.

    Of half of them these are the later ones.
    """
    count = np.bincount(np.concatenate([facts.subject, facts.object]), minlength=size)
    split = random.permutation(np.flatnonzero(count > 1))[:_SPLIT]
    columns: dict[str, Any] = {
        name: np.array(getattr(facts, name)) for name in ("subject", "object")
    }
    place = np.full(size, -1)
    place[split] = np.arange(len(split))
    rows = np.flatnonzero((place[facts.subject] >= 0) | (place[facts.object] >= 0))
    chosen = random.random(len(facts)) < 0.5
    owner = np.maximum(place[facts.subject], place[facts.object])[rows]
    order = np.lexsort((facts.begin[rows], owner))
    starts = np.searchsorted(owner[order], np.arange(len(split) + 1))
    for number in range(0, len(split), 2):
        own = rows[order[starts[number] : starts[number + 1]]]
        chosen[own] = np.arange(len(own)) >= len(own) / 2
    for column in columns.values():
        of = place[column]
        moved = chosen & (of >= 0)
        column[moved] = size + of[moved]
    return split, replace(facts, **columns)


def _plain(name: str) -> str:
    decomposed = unicodedata.normalize("NFKD", name.casefold())
    return "".join(c if c.isalnum() else " " for c in decomposed if not unicodedata.combining(c))


def _trigrams(names: Sequence[str]) -> Any:
    """A row for each name: its trigrams, rare ones with more weight, of length 1."""
    from scipy.sparse import csr_matrix

    number: dict[str, int] = {}
    columns, starts = [], [0]
    for name in names:
        padded = f"  {' '.join(_plain(name).split())} "
        grams = {padded[at : at + 3] for at in range(len(padded) - 2)}
        columns += [number.setdefault(gram, len(number)) for gram in sorted(grams)]
        starts.append(len(columns))
    made = csr_matrix((np.ones(len(columns)), columns, starts), (len(names), len(number)))
    return _scaled(made)


def _scaled(rows: Any) -> Any:
    """Columns weighed by how rare they are, rows of length 1."""
    from scipy.sparse import diags

    rare = np.log((rows.shape[0] + 1) / (np.bincount(rows.indices, minlength=rows.shape[1]) + 1))
    weighed = rows @ diags(rare + 0.1)
    length = np.sqrt(weighed.multiply(weighed).sum(1)).A1
    return (diags(1 / np.maximum(length, 1e-9)) @ weighed).tocsr()


def _similar(trigrams: Any) -> tuple[Ints, Ints]:
    """Pairs of rows that are alike, the first before the second."""
    few = np.bincount(trigrams.indices, minlength=trigrams.shape[1]) <= _COMMON
    rare = trigrams[:, np.flatnonzero(few)].tocsr()
    found = []
    for start in range(0, rare.shape[0], _BLOCK):
        block = (rare[start : start + _BLOCK] @ rare.T).tocoo()
        one, other = block.row.astype(np.int64) + start, block.col.astype(np.int64)
        near = (one < other) & (block.data > _LEAST / 2)
        one, other = one[near], other[near]
        cosine = trigrams[one].multiply(trigrams[other]).sum(1).A1 if len(one) else np.empty(0)
        alike = cosine >= _LEAST
        found.append((one[alike], other[alike]))
    return tuple(np.concatenate(column) for column in zip(*found, strict=True))  # type: ignore[return-value]


@compiled
def _compare(  # type: ignore[no-untyped-def]
    one, other, starts, predicate, target, begin, end, single, differ, agree
):
    """Count facts of two entities that one thing cannot have at once, and those that are alike."""
    for q in range(len(one)):
        for i in range(starts[one[q]], min(starts[one[q] + 1], starts[one[q]] + 500)):
            for j in range(starts[other[q]], min(starts[other[q] + 1], starts[other[q]] + 500)):
                if predicate[i] != predicate[j]:
                    continue
                apart = max(begin[i] - end[j], begin[j] - end[i])
                at_once = apart < 0 or begin[i] == begin[j]
                if target[i] == target[j]:
                    agree[q] += at_once
                elif single[predicate[i]] == ONE or (single[predicate[i]] > 0 and at_once):
                    differ[q] += 1


class _Features:
    """What tells whether two entities are one thing."""

    def __init__(self, facts: Facts, names: Sequence[str], predicates: int) -> None:
        from scipy.sparse import csr_matrix

        self._plain, trigrams, size = [_plain(name) for name in names], _trigrams(names), len(names)
        own = np.concatenate([facts.subject, facts.object]).astype(np.int64)
        other = np.concatenate([facts.object, facts.subject]).astype(np.int64)
        kind = np.concatenate([facts.predicate, facts.predicate + predicates]).astype(np.int64)
        cell = kind * size + other
        cells = distinct(cell)
        ones = np.ones(len(own), np.float32)
        place = np.searchsorted(cells, cell)
        around = csr_matrix((ones, (own, place)), (size, len(cells)))
        around.data[:] = 1
        kinds = csr_matrix((ones, (own, kind)), (size, 2 * predicates)).log1p()
        self._names, self._around, self._kinds = trigrams, _scaled(around), _scaled(kinds)
        self._linked = csr_matrix((ones, (own, other)), (size, size))
        self._count = np.bincount(own, minlength=size)
        times = np.concatenate([facts.begin, facts.begin])
        self._first, self._last = np.full(size, np.inf), np.full(size, -np.inf)
        np.minimum.at(self._first, own, times)
        np.maximum.at(self._last, own, times)
        order = np.argsort(facts.subject, kind="stable")
        by_subject = facts.take(order)
        no_begin, no_end = (by_subject.unknown == bit for bit in (BEGIN_UNKNOWN, END_UNKNOWN))
        self._facts = (
            np.searchsorted(by_subject.subject, np.arange(size + 1)),
            by_subject.predicate,
            by_subject.object,
            np.where(no_begin, by_subject.end, by_subject.begin),
            np.where(no_end, by_subject.begin, by_subject.end),
            find_overlaps(facts, predicates).single,
        )

    def of(self, one: Ints, other: Ints) -> Floats:
        """A row for each pair: how alike the names are comes first."""
        cosines = [
            rows[one].multiply(rows[other]).sum(1).A1
            for rows in (self._names, self._around, self._kinds)
        ]
        few = np.minimum(self._count[one], self._count[other])
        linked = np.asarray(self._linked[one, other])[0] > 0 if len(one) else np.empty(0)
        begin = np.maximum(self._first[one], self._first[other])
        end = np.minimum(self._last[one], self._last[other])
        gap = np.maximum(begin - end, 0).clip(max=1e9)
        differ, agree = np.zeros(len(one)), np.zeros(len(one))
        _compare(one, other, *self._facts, differ, agree)
        edits = [
            SequenceMatcher(None, self._plain[a], self._plain[b], autojunk=False).ratio()
            for a, b in zip(one.tolist(), other.tolist(), strict=True)
        ]
        numbers = (few, gap, differ, agree)
        columns = [*cosines, np.sqrt(cosines[1]), np.array(edits) ** 8, linked, differ > 0]
        return np.stack([*columns, *map(np.log1p, numbers)], axis=1).astype(float)
