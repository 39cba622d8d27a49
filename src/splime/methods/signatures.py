"""How a predicate changes over time: the proximity of the entities it links, at each timestamp.

The paper has three measures of the proximity of two linked entities, based on their neighbours.
Γ(s) is the neighbourhood of an entity s among the links of one timestamp; direction does not
matter. It is *closed* if s belongs to its own neighbourhood, as in the code of the paper, and
*open* if it does not (unless a link leads from s to s), as the paper's text defines it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from splime.arrays import batches, changes, distinct, expand
from splime.methods.bottomup import Floats, Signals
from splime.times import Bools, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array  # type: ignore[import-untyped, unused-ignore]

Integers: TypeAlias = npt.NDArray[np.integer]

# Neighbours looked up at once: bounds the memory.
_AT_ONCE = 1 << 21


@dataclass(frozen=True, eq=False)
class Links:
    """Distinct undirected links at timestamps: `time[i]` links the two entities `pairs[pair[i]]`.

    Pairs are ordered, the smaller entity first; links are ordered by time and pair. An entity at
    a timestamp is a separate node, so that all timestamps together are one graph, without a loop.

    >>> links = Links.of(np.array([7, 7]), np.array([8, 7]), np.array([2, 1]), np.array([1, 3]))
    >>> links.time.tolist(), links.pair.tolist(), links.pairs.tolist()
    ([7, 7, 8], [0, 1, 0], [[1, 2], [1, 3]])
    """

    time: Ints
    pair: Ints
    pairs: Ints
    left_node: Ints
    right_node: Ints
    nodes: int

    @classmethod
    def of(cls, begin: Integers, end: Integers, subject: Integers, object: Integers) -> Links:
        """The links at every timestamp from the begin to the end of facts, both included.

        Several facts that link two entities at a timestamp, in any direction, are one link.
        """
        low, high = np.minimum(subject, object), np.maximum(subject, object)
        span = int(high.max(initial=0)) + 1
        code, of_fact = np.unique(low.astype(np.int64) * span + high, return_inverse=True)
        fact, time = expand(begin.astype(np.int64), end.astype(np.int64) - begin + 1)
        time, pair = np.divmod(distinct(time * len(code) + of_fact[fact]), max(len(code), 1))
        pairs = np.stack(np.divmod(code, span), axis=1)
        left, right = (time * span + pairs[pair, side] for side in (0, 1))
        node = distinct(np.concatenate([left, right]))
        left, right = np.searchsorted(node, left), np.searchsorted(node, right)
        return cls(time, pair, pairs, left, right, len(node))

    def __len__(self) -> int:
        return len(self.time)

    def in_itself(self, *, closed: bool) -> Bools:
        """Whether a node belongs to its own neighbourhood."""
        belongs = np.full(self.nodes, closed)
        belongs[self.left_node[self.left_node == self.right_node]] = True
        return belongs

    def sizes(self, *, closed: bool) -> Ints:
        """|Γ| of every node."""
        apart = self.left_node != self.right_node
        sizes: Ints = self.in_itself(closed=closed).astype(np.int64)
        for end in (self.left_node, self.right_node):
            sizes += np.bincount(end[apart], minlength=self.nodes)
        return sizes

    def common(self, *, closed: bool) -> Iterator[tuple[Ints, Ints]]:
        """Every (link, node in the neighbourhoods of both its ends), in batches.

        The neighbours of the end with fewer are looked up among those of the other: over all links
        that is O(sum of the smaller degrees), so hubs are cheap.
        """
        left, right = self.left_node, self.right_node
        apart = left != right
        # The ends themselves need no lookup.
        belongs = self.in_itself(closed=closed)
        for end, shared in ((left, belongs[left]), (right, belongs[right] & apart)):
            yield np.flatnonzero(shared), end[shared]

        known = np.concatenate(
            [(left * self.nodes + right)[apart], (right * self.nodes + left)[apart]]
        )
        known.sort()
        degree = self.sizes(closed=False) - self.in_itself(closed=False)
        first = degree.cumsum() - degree
        swap = degree[left] > degree[right]
        fewer, more = np.where(swap, right, left), np.where(swap, left, right)
        # An end whose only neighbour is the other end shares none.
        link = np.flatnonzero((degree[fewer] > 1) | ~apart)
        for batch in batches(degree[fewer[link]], _AT_ONCE):
            links = link[batch]
            owner, place = expand(first[fewer[links]], degree[fewer[links]])
            node = known[place] % self.nodes
            wanted = (more[links] * self.nodes)[owner] + node
            at = np.searchsorted(known, wanted)
            shared = known[np.minimum(at, len(known) - 1)] == wanted
            yield links[owner[shared]], node[shared]


def jaccard(links: Links, *, closed: bool = True) -> Floats:
    """|Γ(s) ∩ Γ(o)| / |Γ(s) ∪ Γ(o)|.

    The union is never empty: linked entities are in each other's neighbourhood.

    >>> links = Links.of(*np.array([[0, 0, 0], [0, 0, 0], [0, 1, 2], [1, 2, 3]]))
    >>> jaccard(links).round(2).tolist(), jaccard(links, closed=False).tolist()
    ([0.67, 0.5, 0.67], [0.0, 0.0, 0.0])
    """
    common = np.zeros(len(links))
    for link, _ in links.common(closed=closed):
        np.add.at(common, link, 1)
    sizes = links.sizes(closed=closed)
    return common / (sizes[links.left_node] + sizes[links.right_node] - common)


def adamic_adar(links: Links, *, closed: bool = True) -> Floats:
    """The sum of 1 / log |Γ(z)| over z in Γ(s) ∩ Γ(o).

    The logarithm is natural; its base cancels where scores are normalised. A z with |Γ(z)| = 1,
    whose term has no value, is left out (it occurs only in open neighbourhoods, for a link from an
    entity to itself). With closed neighbourhoods a pair with Γ(s) = Γ(o) scores 0, as in the code
    of the paper; its text does not mention it, and open neighbourhoods do not need it.

    >>> links = Links.of(*np.array([[0, 0, 0], [0, 0, 0], [0, 1, 2], [1, 2, 3]]))
    >>> adamic_adar(links).round(2).tolist()  # 1 / log 2 + 1 / log 3, 2 / log 3, ...
    [2.35, 1.82, 2.35]
    """
    sizes = links.sizes(closed=closed)
    weight = np.zeros(links.nodes)
    np.divide(1, np.log(sizes, where=sizes > 1, out=weight), where=sizes > 1, out=weight)
    score, common = np.zeros(len(links)), np.zeros(len(links))
    for link, node in links.common(closed=closed):
        np.add.at(score, link, weight[node])
        np.add.at(common, link, 1)
    if closed:
        left, right = sizes[links.left_node], sizes[links.right_node]
        score[(common == left) & (common == right)] = 0
    return score


def preferential_attachment(links: Links, *, closed: bool = True) -> Floats:
    """|Γ(s)| · |Γ(o)|.

    >>> links = Links.of(*np.array([[0, 0, 0], [0, 0, 0], [0, 1, 2], [1, 2, 3]]))
    >>> preferential_attachment(links).tolist()
    [6.0, 9.0, 6.0]
    """
    sizes = links.sizes(closed=closed).astype(np.float64)
    product: Floats = sizes[links.left_node] * sizes[links.right_node]
    return product


Measure: TypeAlias = Callable[[Links], Floats]
"""Gives a score for each link, in the order of the links."""
PROXIMITIES: Mapping[str, Callable[..., Floats]] = {
    measure.__name__: measure for measure in (jaccard, adamic_adar, preferential_attachment)
}
"""The measures by name; whether neighbourhoods are `closed` is an option of each."""


class Signatures(NamedTuple):
    """Row r of `scores` is the signature at `timestamps[r]`, with a column for each of `pairs`."""

    timestamps: Ints
    pairs: Ints
    scores: csr_array


def signatures(
    begin: Integers, end: Integers, subject: Integers, object: Integers, *, proximity: Measure
) -> Signatures:
    """The signatures of a predicate, from its facts (`begin` and `end` are timestamps, inclusive).

    One row for each timestamp at which a fact holds, one column for each unordered pair of linked
    entities. Several facts that link a pair at a timestamp count once. Rows have length 1, or 0 if
    all scores are 0.

    >>> facts = [np.array(column) for column in ([0, 1], [1, 1], [5, 6], [6, 7])]
    >>> linked = signatures(*facts, proximity=preferential_attachment)
    >>> linked.timestamps.tolist(), linked.pairs.tolist()
    ([0, 1], [[5, 6], [6, 7]])
    >>> linked.scores.toarray().round(2).tolist()
    [[1.0, 0.0], [0.71, 0.71]]
    """
    from scipy.sparse import csr_array

    links = Links.of(begin, end, subject, object)
    timestamps = distinct(links.time)
    first = np.searchsorted(links.time, timestamps)
    score = proximity(links)
    norm = np.sqrt(np.add.reduceat(score * score, first))
    norm[norm == 0] = 1
    first = np.append(first, len(links))
    scores = csr_array(
        (score / np.repeat(norm, np.diff(first)), links.pair, first),
        shape=(len(timestamps), len(links.pairs)),
    )
    scores.eliminate_zeros()
    return Signatures(timestamps, links.pairs, scores)


class Runs(NamedTuple):
    """Signatures of several sources; equal neighbours are one row, a run."""

    signals: Signals
    before: Ints
    """How many timestamps there are before each interval, over all sources."""
    begin: Ints
    """The first timestamp of each interval; a run has one interval or more."""

    def timestamps(self, rows: Ints) -> Ints:
        """The timestamps of rows, which are numbered over all sources."""
        interval = np.searchsorted(self.before, rows, side="right") - 1
        return self.begin[interval] + rows - self.before[interval]


class Intervals:
    """The intervals between the begins and ends of facts, source after source."""

    def __init__(self, source: Integers, begin: Integers, end: Integers, sources: int) -> None:
        self.stride = int(end.max(initial=0)) + 2
        first = source.astype(np.int64) * self.stride
        self.points = distinct(np.concatenate([first + begin, first + end + 1]))
        """The source and the timestamp of each, as one number; the last ends the last interval."""
        self.first, last = (
            np.searchsorted(self.points, first + at) for at in (begin, end.astype(np.int64) + 1)
        )
        self.last = last - 1
        """The first and the last interval of each fact."""
        self.offsets = np.searchsorted(self.points, np.arange(sources + 1) * self.stride)
        """Where the intervals of each source begin."""

    def runs(
        self, rows: Ints, sources: Ints, subject: Integers, object: Integers, *, proximity: Measure
    ) -> Runs:
        """The runs of the given sources, from the rows of their facts."""
        # An entity gets a different number for each source.
        source = self.points[self.first[rows]] // self.stride
        offset = source * (int(max(subject.max(), object.max())) + 1)
        ends = offset + subject[rows], offset + object[rows]
        known = distinct(np.concatenate(ends))
        numbers = (np.searchsorted(known, end) for end in ends)
        linked = signatures(self.first[rows], self.last[rows], *numbers, proximity=proximity)
        interval, scores = linked.timestamps, linked.scores
        source, begin = np.divmod(self.points[interval], self.stride)
        length = self.points[interval + 1] - self.points[interval]
        first = np.flatnonzero(changes(source) | ~_like_previous(scores))
        counts = np.diff(np.searchsorted(source[first], np.append(sources, sources[-1] + 1)))
        sizes = np.add.reduceat(length, first)
        return Runs(Signals(scores[first], sizes, counts), length.cumsum() - length, begin)


def _like_previous(scores: csr_array) -> Bools:
    """Whether each row equals the one before it."""
    count = np.diff(scores.indptr)
    like = np.zeros(len(count), bool)
    like[1:] = count[1:] == count[:-1]
    row = np.flatnonzero(like)
    owner, place = expand(scores.indptr[row].astype(np.int64), count[row].astype(np.int64))
    previous = place - count[row][owner]
    differs = scores.indices[place] != scores.indices[previous]
    differs |= scores.data[place] != scores.data[previous]
    like[row[owner[differs]]] = False
    return like
