"""Which other answers to a question are known: the candidates that a rank must not count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from splime.arrays import distinct, expand
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, Facts
from splime.times import Ints

TIMED = ("exact", "overlap", "static")
"""The filters of protocol `fact`, each within the next: known with the same begin and end as given,
known at some time of the interval, known at any time."""

# Pairs of a question and a known fact are made for a few questions at a time.
_PAIRS = 1 << 20


class Excluded(NamedTuple):
    """Distinct pairs of an answer and another id known to be right.

    `level` is the first filter that excludes it; those after it do so too.
    """

    answer: Ints
    id: Ints
    level: Ints


class Questions(NamedTuple):
    """What is known of a triple, what is asked for, and when it holds.

    As questions, `id` is the answer that is ranked; as knowledge, one that is known.
    """

    key: Ints
    id: Ints
    begin: Ints
    end: Ints

    def take(self, rows: Ints) -> Questions:
        """Some of them, by positions."""
        return Questions(*(column[rows] for column in self))


def untimed(key: Ints, id: Ints) -> Questions:
    """Questions to static triples: everything holds always."""
    always = np.zeros(len(key), np.int64)
    return Questions(key, id, always, always)


def timed(key: Ints, id: Ints, facts: Facts) -> Questions:
    """Questions to facts, by their times as given; an unknown begin or end is infinitely far."""
    far = np.iinfo(np.int64)
    begin = np.where(facts.unknown & BEGIN_UNKNOWN, far.min, facts.begin)
    end = np.where(facts.unknown & END_UNKNOWN, far.max, facts.end)
    return Questions(key, id, begin, end)


class Known:
    """The known answers to some questions, other than the one that is ranked.

    >>> def years(key, id, begin, end):
    ...     return Questions(*(np.array(column) for column in (key, id, begin, end)))
    >>> facts = years([7, 7, 7, 8], [0, 1, 2, 3], [1990, 1990, 1999, 99], [1995, 1999, 2001, 99])
    >>> [excluded] = Known(facts, facts.take(np.array([0]))).of(0, 1)
    >>> excluded.id.tolist(), [TIMED[level] for level in excluded.level]
    ([1, 2], ['overlap', 'static'])
    """

    def __init__(self, known: Questions, asked: Questions) -> None:
        self._known = known.take(np.argsort(known.key, kind="stable"))
        self._asked = asked
        self._low = np.searchsorted(self._known.key, asked.key, side="left")
        self._count = np.searchsorted(self._known.key, asked.key, side="right") - self._low
        self._width = int(known.id.max(initial=0)) + 1

    def of(self, start: int, stop: int) -> Iterator[Excluded]:
        """What the questions from one position up to another exclude, in blocks."""
        upto = self._count[start:stop].cumsum()
        at = 0
        while at < stop - start:
            before = int(upto[at - 1]) if at else 0
            after = max(at + 1, int(np.searchsorted(upto, before + _PAIRS, side="right")))
            yield self._block(start, start + at, start + after)
            at = after

    def _block(self, base: int, start: int, stop: int) -> Excluded:
        whose, row = expand(self._low[start:stop], self._count[start:stop])
        known, asked = self._known, self._asked
        other = known.id[row] != asked.id[start:stop][whose]
        whose, row = whose[other], row[other]
        begin, end = asked.begin[start:stop][whose], asked.end[start:stop][whose]
        known_begin, known_end = known.begin[row], known.end[row]
        overlap = (known_begin <= end) & (known_end >= begin)
        exact = (known_begin == begin) & (known_end == end)
        # An answer is known from several facts: sorted, the first filter that excludes it leads.
        last = len(TIMED) - 1
        key = whose.astype(np.int64) * self._width + known.id[row]
        key, level = np.divmod(distinct(key * (last + 1) + (last - overlap - exact)), last + 1)
        first = np.ones(len(key), bool)
        np.not_equal(key[1:], key[:-1], out=first[1:])
        answer, id_ = np.divmod(key[first], self._width)
        return Excluded(answer + (start - base), id_, level[first])
