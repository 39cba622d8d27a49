"""Where predicates (or entities) are cut in time, and the scoped predicates that result.

A cut lies at a timestamp or between two. One rule puts a fact `[b, e]` on the sides of a cut `c`:
left if e <= c, else right if b >= c, else both. With sorted cuts an instant then lies in the scope
`#{c < b}`, and a longer fact in the scopes `#{c <= b}` to `#{c < e}`. Cuts are stored doubled, so
that cuts between two timestamps are integers too: `2t` is at timestamp t, `2t - 1` just before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from splime.arrays import Immutable, frozen
from splime.counts import Counts
from splime.errors import UsageError
from splime.graph import Ids
from splime.shown import Shown
from splime.timeline import Timeline
from splime.times import Ints, When, format_ticks
from splime.vocabulary import Vocabulary

# The scopes of every name at every timestamp are looked up in a table, up to this size.
_TABLE = 1 << 23


class Scope(NamedTuple):
    """One scoped predicate (or entity), with names and dates."""

    name: str
    source: str
    begin: str
    end: str
    facts: int


@dataclass(frozen=True, eq=False)
class Scopes(Immutable):
    """The cuts of one vocabulary, and the scopes between them.

    Scopes are numbered by name, then by time: a name with m cuts has m + 1 scopes. The name that a
    scope belongs to is its source.
    """

    names: Vocabulary
    timeline: Timeline
    cuts: Ints
    """Doubled, grouped by name and sorted."""
    offsets: Ints
    """Where the cuts of each name begin; one more than there are names."""
    facts: Ints
    """The number of facts in each scope, of those that the cuts were fitted on."""
    first: Ids
    """The first timestamp at which a fact of the scope holds."""
    last: Ids
    """The last timestamp at which a fact of the scope holds."""

    @classmethod
    def of(
        cls, names: Vocabulary, timeline: Timeline, cuts: Sequence[Ints], counts: Counts
    ) -> Scopes:
        """The scopes between the cuts of each name, with their facts and times from `counts`."""
        flat, offsets = _flat(cuts)
        sources = np.repeat(np.arange(len(names)), np.diff(offsets) + 1)
        # The doubled cuts on both sides of every scope; the first and last scopes are unbounded.
        left = np.insert(flat, offsets[:-1], -1)
        right = np.insert(flat, offsets[1:], 2 * len(timeline) + 1)
        return cls(names, timeline, flat, offsets, *counts.within(sources, left, right))

    def __len__(self) -> int:
        return len(self.names) + len(self.cuts)

    @property
    def starts(self) -> Ints:
        """The first scope of every name."""
        return self.offsets[:-1] + np.arange(len(self.names))

    @cached_property
    def sources(self) -> Ids:
        """The name that each scope belongs to."""
        scopes = np.diff(self.offsets) + 1
        return frozen(np.repeat(np.arange(len(self.names), dtype=np.int32), scopes))

    @cached_property
    def middle(self) -> Ints:
        """The timestamp in the middle of each scope."""
        return frozen((self.first.astype(np.int64) + self.last) // 2)

    def cuts_of(self, name: int) -> Ints:
        """The doubled cuts of one name."""
        return self.cuts[self.offsets[name] : self.offsets[name + 1]]

    @cached_property
    def labels(self) -> pa.Array:
        """The names of the scopes: `P54[1998..2003]`, and `P54` where nothing was cut."""
        cut = np.diff(self.offsets)[self.sources] > 0
        begin = format_ticks(self.timeline.starts[self.first], self.timeline.granularity)
        end = format_ticks(self.timeline.ends[self.last], self.timeline.granularity)
        sources = self.names.labels.take(pa.array(self.sources)).to_pylist()
        return pa.array(
            [
                (f"{name}[{b}]" if b == e else f"{name}[{b}..{e}]") if is_cut else name
                for name, b, e, is_cut in zip(sources, begin, end, cut.tolist(), strict=True)
            ],
            pa.large_string(),
        )

    def check_distinct(self) -> None:
        """An error if a name equals that of a scope of another name, as `p[1990]` may."""
        counts = pc.value_counts(self.labels)
        twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        if len(twice):
            raise UsageError(
                f"two scopes would be called {twice[0].as_py()!r}: a {self.names.kind} has the name"
                " of a scope of another; rename it"
            )

    def scope(self, number: int) -> Scope:
        """One scope, with names and dates."""
        ticks = np.array(
            [self.timeline.starts[self.first[number]], self.timeline.ends[self.last[number]]]
        )
        begin, end = format_ticks(ticks, self.timeline.granularity)
        source = self.names[int(self.sources[number])]
        return Scope(self.labels[number].as_py(), source, begin, end, int(self.facts[number]))

    def of_name(self, name: int) -> range:
        """The scopes of one name, in the order of time."""
        start = int(self.offsets[name]) + name
        return range(start, start + len(self.cuts_of(name)) + 1)

    def find(self, source: Ids, begin: Ids, end: Ids) -> tuple[Ids, Ids]:
        """The first and the last scope that each fact holds in, by the rule.

        Facts are given by the name that is cut and by their first and last timestamp.
        """
        below, upto = (self._behind_cuts(source, begin, below=below) for below in (True, False))
        low = np.where(begin == end, below, upto)
        return low, np.maximum(low, self._behind_cuts(source, end, below=True))

    def at(self, source: Ids, timestamp: npt.NDArray[np.integer]) -> Ids:
        """The scope of each name at a timestamp."""
        return self._behind_cuts(source, timestamp.astype(np.int32), below=True)

    def _behind_cuts(self, source: Ids, timestamp: Ids, *, below: bool) -> Ids:
        """The scope after all cuts below a timestamp (or up to it)."""
        if len(self.names) * len(self.timeline) <= min(_TABLE, 4 * len(source)):
            table = self._tables[0 if below else 1]
            return np.take(table, source.astype(np.int64) * len(self.timeline) + timestamp)
        return self._search(source, timestamp, below=below)

    def _search(self, source: Ids, timestamp: Ids, *, below: bool) -> Ids:
        key = source.astype(np.int64) * self._stride + 2 * timestamp.astype(np.int64)
        # Sorted keys are looked up much faster among millions of cuts, because of the cache.
        order = np.argsort(key)
        cuts = np.empty(len(key), np.int64)
        cuts[order] = np.searchsorted(self._keys, key[order], side="left" if below else "right")
        return (cuts + source).astype(np.int32)

    @property
    def _stride(self) -> int:
        return 2 * len(self.timeline) + 2

    @cached_property
    def cut_sources(self) -> Ints:
        """The name that each cut belongs to."""
        return frozen(np.repeat(np.arange(len(self.names)), np.diff(self.offsets)))

    @cached_property
    def _keys(self) -> Ints:
        """The name and the place of each cut, as one ascending number."""
        return frozen(self.cut_sources * self._stride + self.cuts)

    @cached_property
    def _tables(self) -> tuple[Ids, Ids]:
        cells = np.indices((len(self.names), len(self.timeline)), np.int32)
        source, timestamp = cells.reshape(2, -1)
        below, upto = (self._search(source, timestamp, below=below) for below in (True, False))
        return frozen(below), frozen(upto)

    def cut(self, source: Ids, begin: Ids, end: Ids, low: Ids, high: Ids) -> tuple[Ids, Ids, Ids]:
        """Repeat facts for every scope that they hold in, from `low` to `high` as `find` returns.

        Returns the number of scopes of each fact; and for each of them the scope and the overlap:
        the number of timestamps at which the fact holds inside the scope. This is the kernel of
        applying cuts: nothing is looked up twice for a triple.

        >>> from splime.counts import Counts
        >>> one, begin, end = (np.array([number], np.int32) for number in (0, 0, 3))
        >>> scopes = Scopes.of(Vocabulary(["p"], kind="predicate"),
        ...                    Timeline.of(np.arange(4), "step"),
        ...                    [np.array([1, 5])], Counts.of(one, begin, end, 1, 4))
        >>> low, high = scopes.find(one, begin, end)
        >>> [column.tolist() for column in scopes.cut(one, begin, end, low, high)]
        [[3], [0, 1, 2], [1, 2, 1]]
        """
        count = high - low + 1
        stop = np.cumsum(count)
        start = stop - count
        scope = np.repeat((low - start).astype(np.int32), count)
        scope += np.arange(len(scope), dtype=np.int32)
        overlap = self._width[scope]
        crossing = np.flatnonzero(count > 1)
        within = np.flatnonzero(count == 1)
        overlap[start[within]] = (end - begin + 1)[within]
        cut = (low - source)[crossing]
        overlap[start[crossing]] = self.cuts[cut] // 2 - begin[crossing] + 1
        cut = (high - source)[crossing] - 1
        overlap[stop[crossing] - 1] = end[crossing] - (self.cuts[cut] + 1) // 2 + 1
        return count, scope, overlap

    @cached_property
    def _width(self) -> Ids:
        """The number of timestamps inside a scope for a fact that crosses both of its cuts.

        Meaningless for first scopes, which no fact crosses.
        """
        width = np.zeros(len(self), np.int32)
        inner = np.arange(1, len(self.cuts)) + self.cut_sources[1:]
        width[inner] = self.cuts[1:] // 2 - (self.cuts[:-1] + 1) // 2 + 1
        return frozen(width)

    def coarsen(self, count: int) -> Scopes:
        """Coarser scopes, which join up to `count` neighbours of the same name.

        >>> import splime
        >>> graph = splime.read([("a", "p", "b", year) for year in range(1990, 1995)], split="none")
        >>> splime.Timestamp().fit(graph).predicates.coarsen(2).labels.to_pylist()
        ['p[1990..1991]', 'p[1992..1993]', 'p[1994]']
        """
        if count < 1:
            raise UsageError(f"the number of scopes to join is 1 or more, not {count}")
        cuts = [self.cuts_of(name)[count - 1 :: count] for name in range(len(self.names))]
        starts = [start for name in range(len(self.names)) for start in self.of_name(name)[::count]]
        last = self.last[np.append(starts[1:], len(self)) - 1]
        # A fact that crosses a cut between joined scopes is counted in each of them.
        facts = np.add.reduceat(self.facts, starts)
        return Scopes(self.names, self.timeline, *_flat(cuts), facts, self.first[starts], last)

    def members(self, coarser: Scopes) -> Ids:
        """The scope of `coarser` that contains each scope.

        The coarser scopes have a subset of the cuts.

        >>> import splime
        >>> graph = splime.read([("a", "p", "b", year) for year in range(1990, 1995)], split="none")
        >>> scopes = splime.Timestamp().fit(graph).predicates
        >>> scopes.members(scopes.coarsen(2)).tolist()
        [0, 0, 1, 1, 2]
        """
        if self.names != coarser.names or not np.isin(coarser._keys, self._keys).all():
            raise UsageError("the coarser scopes have cuts that the finer ones do not have")
        # The number of cuts before a scope is its number, less one for each source before it.
        coarser_cuts = np.append(0, np.isin(self._keys, coarser._keys).cumsum())
        before = np.arange(len(self)) - self.sources
        return np.asarray(coarser_cuts[before] + self.sources, np.int32)


@dataclass(frozen=True)
class Segmentation(Shown):
    """The cuts of predicates and entities, whatever chose them; `method` records it.

    >>> import splime
    >>> cuts = splime.Split(grow=5).fit(splime.load("demo"))
    >>> [scope.name for scope in cuts.scopes_at("livesIn", 1982)]
    ['livesIn[1980..1985]']
    """

    predicates: Scopes
    entities: Scopes | None = None
    """None where entities are not cut."""
    method: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def timeline(self) -> Timeline:
        """The timestamps that the cuts lie between."""
        return self.predicates.timeline

    def __repr__(self) -> str:
        parts = [f"{len(self.predicates):,} scoped predicates of {len(self.predicates.names):,}"]
        if self.entities is not None:
            parts.append(f"{len(self.entities):,} scoped entities of {len(self.entities.names):,}")
        return f"Segmentation({', '.join(parts)}, {repr(self.timeline)[9:-1]})"

    def scopes_at(self, predicate: str, begin: When, end: When | None = None) -> list[Scope]:
        """The scopes of a predicate at a time, or during an interval.

        >>> import splime
        >>> graph = splime.read([("a", "p", "b", year) for year in (1990, 1991, 1992)],
        ...                     split="none")
        >>> [scope.name for scope in splime.Timestamp().fit(graph).scopes_at("p", 1991)]
        ['p[1991]']
        """
        name = self.predicates.names.id(predicate)
        ticks = self.timeline.interval(begin, begin if end is None else end)
        times = self.timeline.index(np.array(ticks))
        low, high = self.predicates.find(np.array([name], np.int32), times[:1], times[1:])
        return [self.predicates.scope(number) for number in range(int(low[0]), int(high[0]) + 1)]

    def scopes_of(self, predicate: str) -> list[Scope]:
        """All scopes of a predicate, in the order of time."""
        name = self.predicates.names.id(predicate)
        return [self.predicates.scope(number) for number in self.predicates.of_name(name)]

    def source(self, scoped: str) -> Scope:
        """The source and dates of a scoped predicate, by its name."""
        labels = self.predicates.labels
        number = pc.index(labels, pa.scalar(scoped, labels.type)).as_py()
        if number < 0:
            raise UsageError(f"no scoped predicate is called {scoped!r}")
        return self.predicates.scope(number)


def _flat(cuts: Sequence[Ints]) -> tuple[Ints, Ints]:
    """The cuts of all names, concatenated, and the offset of each name."""
    offsets = np.cumsum([0, *map(len, cuts)])
    return np.concatenate([np.empty(0, np.int64), *cuts]).astype(np.int64), offsets


def covering_cuts(timestamps: Sequence[int] | Ints) -> Ints:
    """Cuts that put each of the given ascending timestamps into a separate scope.

    Where timestamps are missing in between, the cut lies in the middle, so that a fact there goes
    to the nearest scope.

    >>> covering_cuts([3, 4, 8]).tolist()
    [7, 13]
    """
    held = np.asarray(timestamps, np.int64)
    return (held[:-1] + held[1:]) // 2 * 2 + 1
