"""Which other answers to a query are known: the candidates that a rank must not count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from splime.arrays import batches, changes, distinct, expand
from splime.scoring.scoping import Keyed
from splime.times import Ints

TIMED = ("exact", "overlap", "static")
"""The filters of protocol `fact`, each within the next: known with the same begin and end as given,
known at some time of the interval, known at any time."""

# Pairs of an answer and a known fact are made for a few answers at a time.
_PAIRS = 1 << 20


class Excluded(NamedTuple):
    """Distinct pairs of an answer and another id known to be right.

    `level` is the first filter that excludes it; those after it do so too.
    """

    answer: Ints
    id: Ints
    level: Ints


class AnswerFilter:
    """The known answers to queries, other than the one that is ranked.

    >>> def years(key, id, begin, end):
    ...     return Keyed(*(np.array(column) for column in (key, id, begin, end)))
    >>> facts = years([7, 7, 7, 8], [0, 1, 2, 3], [1990, 1990, 1999, 99], [1995, 1999, 2001, 99])
    >>> [excluded] = AnswerFilter(facts, facts.take(np.array([0]))).excluded(np.array([0]))
    >>> excluded.id.tolist(), [TIMED[level] for level in excluded.level]
    ([1, 2], ['overlap', 'static'])
    """

    def __init__(self, known: Keyed, asked: Keyed) -> None:
        self._known = known.take(np.argsort(known.key, kind="stable"))
        self._asked = asked
        self._low = np.searchsorted(self._known.key, asked.key, side="left")
        self._count = np.searchsorted(self._known.key, asked.key, side="right") - self._low
        self._width = int(known.id.max(initial=0)) + 1

    def excluded(self, answers: Ints) -> Iterator[Excluded]:
        """What answers, given by their positions, exclude; in blocks, and numbered from 0."""
        for block in batches(self._count[answers], _PAIRS):
            answer, ids, level = self._block(answers[block])
            yield Excluded(answer + block.start, ids, level)

    def _block(self, answers: Ints) -> Excluded:
        whose, row = expand(self._low[answers], self._count[answers])
        asked = self._asked.take(answers[whose])
        known = self._known.take(row)
        overlap = (known.begin <= asked.end) & (known.end >= asked.begin)
        exact = (known.begin == asked.begin) & (known.end == asked.end)
        # An answer is known from several facts: sorted, the first filter that excludes it leads.
        last = len(TIMED) - 1
        key = whose.astype(np.int64) * self._width + known.id
        key = key * (last + 1) + (last - overlap - exact)
        key, level = np.divmod(distinct(key[known.id != asked.id]), last + 1)
        new = changes(key)
        answer, ids = np.divmod(key[new], self._width)
        return Excluded(answer, ids, level[new])
