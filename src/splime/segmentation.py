"""Where predicates (or entities) are cut in time, and the scoped ones that this gives.

A cut lies at a timestamp or between two. One rule puts a fact `[b, e]` on the sides of a cut `c`:
left if e <= c, else right if b >= c, else both. With sorted cuts an instant then lies in the piece
`#{c < b}`, and a longer fact in the pieces `#{c <= b}` to `#{c < e}`. Cuts are kept doubled, so
that those between two timestamps are integers too: `2t` is at timestamp t, `2t - 1` just before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from splime.counts import Counts
from splime.errors import UsageError
from splime.graph import Ids
from splime.timeline import Timeline
from splime.times import Ints, When, format_ticks
from splime.vocabulary import Vocabulary

# Piece numbers of every name at every timestamp are looked up in a table, up to this size.
_TABLE = 1 << 23


class Scope(NamedTuple):
    """One scoped predicate (or entity), for people."""

    name: str
    source: str
    begin: str
    end: str
    facts: int


@dataclass(frozen=True, eq=False)
class Scopes:
    """The cuts of one vocabulary, and the pieces between them.

    The pieces of a name are numbered through, in the order of the names and of time: a name with
    m cuts has m + 1 of them.
    """

    names: Vocabulary
    timeline: Timeline
    cuts: Ints
    """Doubled; those of a name are sorted and stand together."""
    offsets: Ints
    """Where the cuts of each name begin; one more than there are names."""
    facts: Ints
    """How many of the facts that the cuts were fitted on each piece holds."""
    first: Ids
    """The first timestamp at which a fact of the piece holds."""
    last: Ids
    """The last timestamp at which a fact of the piece holds."""

    @classmethod
    def of(
        cls, names: Vocabulary, timeline: Timeline, cuts: Sequence[Ints], counts: Counts
    ) -> Scopes:
        """The pieces that the cuts of each name give, with what `counts` says about them."""
        offsets = np.cumsum([0, *map(len, cuts)])
        flat = np.concatenate([np.empty(0, np.int64), *cuts]).astype(np.int64)
        owner = np.repeat(np.arange(len(names)), np.diff(offsets) + 1)
        ends_of_time = -1, 2 * len(timeline) + 1
        left, right = _bounds(flat, offsets, *ends_of_time)
        facts, first, last = counts.within(owner, left, right)
        return cls(names, timeline, flat, offsets, facts, first, last)

    def __len__(self) -> int:
        return len(self.names) + len(self.cuts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scopes) and all(
            (mine == theirs) if part in ("names", "timeline") else np.array_equal(mine, theirs)
            for part in self.__dataclass_fields__
            for mine, theirs in [(getattr(self, part), getattr(other, part))]
        )

    def __hash__(self) -> int:
        return hash((len(self), self.names))

    @property
    def starts(self) -> Ints:
        """The first piece of every name."""
        return self.offsets[:-1] + np.arange(len(self.names))

    @cached_property
    def sources(self) -> Ids:
        """The name that each piece belongs to."""
        return np.repeat(np.arange(len(self.names)), np.diff(self.offsets) + 1).astype(np.int32)

    def cuts_of(self, name: int) -> Ints:
        """The doubled cuts of one name."""
        return self.cuts[self.offsets[name] : self.offsets[name + 1]]

    @cached_property
    def labels(self) -> pa.Array:
        """The names of the pieces: `P54[1998..2003]`, and `P54` where nothing was cut."""
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

    def scope(self, piece: int) -> Scope:
        """One piece, for people."""
        ticks = np.array(
            [self.timeline.starts[self.first[piece]], self.timeline.ends[self.last[piece]]]
        )
        begin, end = format_ticks(ticks, self.timeline.granularity)
        source = self.names[int(self.sources[piece])]
        return Scope(self.labels[piece].as_py(), source, begin, end, int(self.facts[piece]))

    def pieces(self, name: Ids, begin: Ids, end: Ids) -> tuple[Ids, Ids]:
        """The first and last piece of facts, by the rule."""
        instant = begin == end
        low = np.where(
            instant,
            self._count(name, begin, below=True),
            self._count(name, begin, below=False),
        )
        return low, np.maximum(low, self._count(name, end, below=True))

    def _count(self, name: Ids, time: Ids, *, below: bool) -> Ids:
        """The piece behind all cuts below a timestamp (or up to it)."""
        if len(self.names) * len(self.timeline) <= min(_TABLE, 4 * len(name)):
            table = self._tables[0 if below else 1]
            return np.take(table, name.astype(np.int64) * len(self.timeline) + time)
        return self._search(name, time, below=below)

    def _search(self, name: Ids, time: Ids, *, below: bool) -> Ids:
        width = 2 * len(self.timeline) + 2
        owner = np.repeat(np.arange(len(self.names)), np.diff(self.offsets))
        key = name.astype(np.int64) * width + 2 * time.astype(np.int64)
        found = np.searchsorted(owner * width + self.cuts, key, side="left" if below else "right")
        return (found + name).astype(np.int32)

    @cached_property
    def _tables(self) -> tuple[Ids, Ids]:
        name = np.repeat(np.arange(len(self.names), dtype=np.int32), len(self.timeline))
        time = np.tile(np.arange(len(self.timeline), dtype=np.int32), len(self.names))
        return self._search(name, time, below=True), self._search(name, time, below=False)


@dataclass(frozen=True)
class Segmentation:
    """The cuts of predicates and entities; knows nothing of how they were chosen.

    `method` only remembers it for people.
    """

    predicates: Scopes
    entities: Scopes | None = None
    """None where entities are not cut."""
    method: dict[str, Any] = field(default_factory=dict)

    @property
    def timeline(self) -> Timeline:
        """The timestamps that the cuts lie between."""
        return self.predicates.timeline

    def __hash__(self) -> int:
        return hash((self.predicates, self.entities))

    def __repr__(self) -> str:
        parts = [f"{len(self.predicates):,} scoped predicates of {len(self.predicates.names):,}"]
        if self.entities is not None:
            parts.append(f"{len(self.entities):,} scoped entities of {len(self.entities.names):,}")
        return f"Segmentation({', '.join(parts)}, {repr(self.timeline)[9:-1]})"

    def serving(self, predicate: str, begin: When, end: When | None = None) -> list[Scope]:
        """The scoped predicates that serve a predicate at a time, or during an interval.

        >>> import splime
        >>> graph = splime.read([("a", "p", "b", year) for year in (1990, 1991, 1992)],
        ...                     split="none")
        >>> [scope.name for scope in splime.Timestamp().fit(graph).serving("p", 1991)]
        ['p[1991]']
        """
        name = self.predicates.names.id(predicate)
        ticks = self.timeline.interval(begin, begin if end is None else end)
        times = self.timeline.index(np.array(ticks))
        low, high = self.predicates.pieces(np.array([name], np.int32), times[:1], times[1:])
        return [self.predicates.scope(piece) for piece in range(int(low[0]), int(high[0]) + 1)]

    def scopes_of(self, predicate: str) -> list[Scope]:
        """All scoped predicates of a predicate, in the order of time."""
        name = self.predicates.names.id(predicate)
        start = int(self.predicates.starts[name])
        count = len(self.predicates.cuts_of(name)) + 1
        return [self.predicates.scope(piece) for piece in range(start, start + count)]

    def source(self, scoped: str) -> Scope:
        """Back from a scoped predicate to its source and dates."""
        import pyarrow.compute as pc

        labels = self.predicates.labels
        found = pc.index(labels, pa.scalar(scoped, labels.type)).as_py()
        if found < 0:
            raise UsageError(f"no scoped predicate is called {scoped!r}")
        return self.predicates.scope(found)

    def compare(self, other: Segmentation) -> Comparison:
        """Which cuts of the predicates two segmentations share."""
        if self.predicates.names != other.predicates.names or self.timeline != other.timeline:
            raise UsageError(
                "only segmentations of the same predicates and timeline can be compared"
            )
        mine, theirs = (
            {
                (name, int(cut))
                for name in range(len(s.predicates.names))
                for cut in s.predicates.cuts_of(name)
            }
            for s in (self, other)
        )
        return Comparison(len(mine & theirs), len(mine - theirs), len(theirs - mine))


@dataclass(frozen=True)
class Comparison:
    """How many cuts two segmentations share, and how many only one of them has."""

    shared: int
    only_first: int
    only_second: int

    @property
    def first_refines_second(self) -> bool:
        """Whether the first has all cuts of the second."""
        return self.only_second == 0

    @property
    def jaccard(self) -> float:
        """Shared cuts among all; 1 where neither has any."""
        union = self.shared + self.only_first + self.only_second
        return self.shared / union if union else 1.0


def _bounds(cuts: Ints, offsets: Ints, lowest: int, highest: int) -> tuple[Ints, Ints]:
    """The doubled cuts on both sides of every piece."""
    size = len(cuts) + len(offsets) - 1
    starts = offsets[:-1] + np.arange(len(offsets) - 1)
    left, right = np.full(size, lowest, np.int64), np.full(size, highest, np.int64)
    inner = np.ones(size, bool)
    inner[starts] = False
    left[inner] = cuts
    last = np.ones(size, bool)
    last[starts + np.diff(offsets)] = False
    right[last] = cuts
    return left, right


def covering_cuts(timestamps: Iterable[int]) -> Ints:
    """Cuts that leave each of some ascending timestamps in a piece of its own.

    Where timestamps are missing in between, the cut lies in the middle, so that a fact there comes
    to the nearest piece.

    >>> covering_cuts([3, 4, 8]).tolist()
    [7, 13]
    """
    held = np.asarray(list(timestamps), np.int64)
    return (held[:-1] + held[1:]) // 2 * 2 + 1
