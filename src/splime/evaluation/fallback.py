"""Scopes that train knows nothing about: the nearest one that it knows stands in for them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from splime.segmentation import Scopes
from splime.static import StaticGraph
from splime.times import Bools, Ints


class Fallback(NamedTuple):
    """The scoped predicate and the (scoped) entity to use for each one."""

    predicates: Ints
    entities: Ints


def fallback(static: StaticGraph) -> Fallback:
    """What stands in for scopes without a train triple."""
    train, entities = static.train, static.segmentation.entities
    seen = np.zeros(len(static.predicates), bool)
    seen[train.predicate] = True
    predicates = nearest_seen(static.predicates, seen)
    if entities is None:
        return Fallback(predicates, np.arange(len(static.entities)))
    seen = np.zeros(len(entities), bool)
    seen[train.subject] = seen[train.object] = True
    return Fallback(predicates, nearest_seen(entities, seen))


def nearest_seen(scopes: Scopes, seen: Bools) -> Ints:
    """For every piece the nearest seen one of its name, the earlier of two equally near.

    Near is measured in timestamps from one piece's last to the next one's first. Pieces of a name
    that was never seen stay what they are.
    """
    size = len(scopes)
    piece = np.arange(size)
    before = np.maximum.accumulate(np.where(seen, piece, -1))
    after = np.minimum.accumulate(np.where(seen, piece, size)[::-1])[::-1]
    has_before, has_after = before >= 0, after < size
    before, after = np.where(has_before, before, piece), np.where(has_after, after, piece)
    has_before &= scopes.sources[before] == scopes.sources
    has_after &= scopes.sources[after] == scopes.sources
    earlier = has_before & (
        ~has_after | (scopes.first - scopes.last[before] <= scopes.first[after] - scopes.last)
    )
    found: Ints = np.where(earlier, before, np.where(has_after, after, piece))
    return found
