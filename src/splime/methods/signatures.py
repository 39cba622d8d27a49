"""How a predicate changes over time: the proximity of the entities it links, at each timestamp."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from splime.arrays import distinct
from splime.methods.bottomup import bottom_up, rbf_gram
from splime.methods.proximity import Integers, Links, find_proximity
from splime.times import Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array  # type: ignore[import-untyped, unused-ignore]


class Signatures(NamedTuple):
    """Row r of `scores` is the signature at `timestamps[r]`, with a column for each of `pairs`."""

    timestamps: Ints
    pairs: Ints
    scores: csr_array


def signatures(
    begin: Integers,
    end: Integers,
    subject: Integers,
    object: Integers,
    *,
    proximity: str,
    closed: bool = True,
) -> Signatures:
    """The signatures of a predicate, from its facts (`begin` and `end` are timestamps, inclusive).

    One row for each timestamp at which some fact holds, one column for each unordered pair of
    entities that is ever linked; however many facts link a pair at a timestamp, it counts once.
    Rows have length 1, or 0 where all scores are 0.

    >>> facts = [np.array(column) for column in ([0, 1], [1, 1], [5, 6], [6, 7])]
    >>> found = signatures(*facts, proximity="preferential_attachment")
    >>> found.timestamps.tolist(), found.pairs.tolist()
    ([0, 1], [[5, 6], [6, 7]])
    >>> found.scores.toarray().round(2).tolist()
    [[1.0, 0.0], [0.71, 0.71]]
    """
    from scipy.sparse import csr_array

    measure = find_proximity(proximity)
    links = Links.of(begin, end, subject, object)
    timestamps = distinct(links.time)
    first = np.searchsorted(links.time, timestamps)
    score = measure(links, closed=closed)
    norm = np.sqrt(np.add.reduceat(score * score, first))
    norm[norm == 0] = 1
    first = np.append(first, len(links))
    scores = csr_array(
        (score / np.repeat(norm, np.diff(first)), links.pair, first),
        shape=(len(timestamps), len(links.pairs)),
    )
    scores.eliminate_zeros()
    return Signatures(timestamps, links.pairs, scores)


def change_cuts(
    begin: Integers,
    end: Integers,
    subject: Integers,
    object: Integers,
    *,
    proximity: str,
    closed: bool = True,
    min_size: int = 1,
    epsilon: float | None = None,
    penalty: float | None = None,
    changes: int | None = None,
) -> list[int]:
    """The timestamps just before which the signatures of a predicate change.

    `epsilon`, `penalty` or `changes` says where `bottom_up` stops; give one.

    >>> facts = [np.array(column) for column in ([0, 4], [3, 7], [5, 8], [6, 9])]
    >>> change_cuts(*facts, proximity="jaccard", changes=1)
    [4]
    """
    found = signatures(begin, end, subject, object, proximity=proximity, closed=closed)
    rows = bottom_up(
        rbf_gram(found.scores),
        epsilon=epsilon,
        penalty=penalty,
        changes=changes,
        min_size=min_size,
    )
    return [int(found.timestamps[row]) for row in rows]
