"""Facts repeated for every piece they hold in: the kernel of applying a segmentation."""

from __future__ import annotations

import numpy as np

from splime.graph import Ids
from splime.segmentation import Scopes


class Cutter:
    """Cuts facts at the cuts of one vocabulary; nothing is looked up twice for a triple.

    >>> from splime.counts import Counts
    >>> from splime.timeline import Timeline
    >>> from splime.vocabulary import Vocabulary
    >>> one, begin, end = np.zeros(1, np.int32), np.array([0], np.int32), np.array([3], np.int32)
    >>> scopes = Scopes.of(Vocabulary(["p"], kind="predicate"), Timeline.of(np.arange(4), "step"),
    ...                    [np.array([1, 5])], Counts.of(one, begin, end, 1, 4))
    >>> low, high = scopes.pieces(one, begin, end)
    >>> [column.tolist() for column in Cutter(scopes).cut(one, begin, end, low, high)]
    [[3], [0, 1, 2], [1, 2, 1]]
    """

    def __init__(self, scopes: Scopes) -> None:
        self._cuts = cuts = scopes.cuts
        owner = np.repeat(np.arange(len(scopes.names)), np.diff(scopes.offsets))
        # How many timestamps a fact that crosses both cuts of a piece holds at inside of it. Cuts
        # of different names give nonsense at first pieces, which no fact crosses.
        self._width = np.zeros(len(scopes), np.int32)
        self._width[np.arange(1, len(cuts)) + owner[1:]] = cuts[1:] // 2 - (cuts[:-1] + 1) // 2 + 1

    def cut(self, name: Ids, begin: Ids, end: Ids, low: Ids, high: Ids) -> tuple[Ids, Ids, Ids]:
        """How many pieces each fact has; and for each of them the piece, and the overlap.

        `low` and `high` are what `Scopes.pieces` says of the facts. The overlap is the number of
        timestamps at which the fact holds inside of the piece.
        """
        count = high - low + 1
        stop = np.cumsum(count)
        start = stop - count
        piece = np.repeat((low - start).astype(np.int32), count)
        piece += np.arange(len(piece), dtype=np.int32)
        overlap = self._width[piece]
        crossing = np.flatnonzero(count > 1)
        within = np.flatnonzero(count == 1)
        overlap[start[within]] = (end - begin + 1)[within]
        cut = (low - name)[crossing]
        overlap[start[crossing]] = self._cuts[cut] // 2 - begin[crossing] + 1
        cut = (high - name)[crossing] - 1
        overlap[stop[crossing] - 1] = end[crossing] - (self._cuts[cut] + 1) // 2 + 1
        return count, piece, overlap
