"""Facts that are repeated with the same time."""

from __future__ import annotations

import numpy as np

from splime.graph import Facts
from splime.times import Bools

_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, so that multiplying loses nothing


def repeats(facts: Facts) -> Bools:
    """Which facts stand already before them, with the same times as given."""
    repeated = np.zeros(len(facts), bool)
    key = np.zeros(len(facts), np.uint64)
    for column in facts.columns():
        # Multiply and fold: equal facts get equal keys, others nearly always different ones.
        # Sorting keys is several times faster than sorting six columns.
        key ^= column.astype(np.int64).view(np.uint64)
        key *= _FACTOR
        key ^= key >> np.uint64(29)
    ordered = np.sort(key)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    del ordered
    if not len(twice):
        return repeated
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
