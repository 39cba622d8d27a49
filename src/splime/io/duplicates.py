"""Facts that are repeated with the same time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from splime.graph import Facts
from splime.times import Bools

_BLOCK = 1 << 15  # rows whose keys fit into the cache
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, so that multiplying loses nothing


def repeats(facts: Facts) -> Bools:
    """Which facts stand already before them, with the same times as given."""
    repeated = np.zeros(len(facts), bool)
    ordered = _keys(facts)
    ordered.sort()
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    del ordered
    if not len(twice):
        return repeated
    key = _keys(facts)  # made again rather than kept: memory is dearer, and repeats are rare
    at = np.minimum(np.searchsorted(twice, key), len(twice) - 1)
    suspects = np.flatnonzero(twice[at] == key)
    # Keys can collide, so the suspects are compared column by column.
    columns = facts.take(suspects).columns()
    order = np.lexsort(columns)
    same = np.ones(len(order) - 1, bool)
    for column in columns:
        same &= column[order][1:] == column[order][:-1]
    # lexsort is stable: within a run of equal facts the first one read comes first.
    repeated[suspects[order[1:][same]]] = True
    return repeated


def _keys(facts: Facts) -> npt.NDArray[np.uint64]:
    """One number for each fact: equal for equal facts, nearly always different for others.

    Sorting these is several times faster than sorting six columns.
    """
    keys = np.empty(len(facts), np.uint64)
    for start in range(0, len(facts), _BLOCK):
        rows = slice(start, start + _BLOCK)
        key = np.zeros(len(keys[rows]), np.uint64)
        for column in facts.columns():
            key ^= column[rows].astype(np.int64).view(np.uint64)
            key *= _FACTOR
            key ^= key >> np.uint64(29)
        keys[rows] = key
    return keys
