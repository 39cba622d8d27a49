"""Relative scopes: how the time of a fact lies to the time that is asked about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from splime.errors import UsageError, check_kind, check_name
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, Facts, TemporalGraph
from splime.times import GRANULARITIES, Granularity, Ints

if TYPE_CHECKING:
    import torch

Kind: TypeAlias = Literal["none", "events", "intervals"]
KINDS: tuple[Kind, ...] = get_args(Kind)

LEFT_OUT = 255
"""The scope of a fact that must not be seen by a question."""

# The first distance of each bin, in units that people think in. Those that the data do not reach
# are left out.
_LADDERS: Mapping[Granularity, tuple[int, ...]] = {
    "step": (1, 2, 4, 8, 16, 32, 64, 128, 256),
    "year": (1, 3, 6, 11, 26, 101),
    "month": (1, 2, 4, 7, 13, 25, 61, 121),
    "day": (1, 2, 4, 8, 15, 31, 91, 366, 1827),
    "hour": (1, 2, 4, 7, 13, 25, 73, 169, 721, 2161, 8761),
    "minute": (1, 2, 6, 16, 61, 241, 1_441, 10_081, 43_201, 525_601),
    "second": (1, 2, 11, 61, 601, 3_601, 14_401, 86_401, 604_801, 2_592_001, 31_536_001),
}
# An edge stays if at least this share of the distances lies beyond it.
_LEAST = 0.01
# So many pairs of facts are looked at to choose edges.
_PAIRS = 200_000
# What intervals that touch can be, after the bins of "before" and "after".
_TOUCHING = (
    "same begin and end",
    "same begin",
    "same end",
    "contains it",
    "within it",
    "overlaps it",
)
_SAME, _SAME_BEGIN, _SAME_END, _CONTAINS, _WITHIN, _OVERLAPS = range(6)
# By 3 * (fact begins before, with, after the question) + (ends before, with, after it).
_RELATIONS = (
    _OVERLAPS, _SAME_END, _CONTAINS,
    _SAME_BEGIN, _SAME, _SAME_BEGIN,
    _WITHIN, _SAME_END, _OVERLAPS,
)  # fmt: skip


class Times(NamedTuple):
    """When facts or questions begin and end, in ticks, and which sides are unknown."""

    begin: torch.Tensor
    end: torch.Tensor
    unknown: torch.Tensor

    @classmethod
    def of(cls, facts: Facts) -> Times:
        """Those of facts."""
        import torch

        columns = (facts.begin, facts.end, facts.unknown)
        return cls(*(torch.from_numpy(np.array(column)) for column in columns))

    def to(self, device: torch.device | str) -> Times:
        """The same on a device."""
        return Times(*(column.to(device) for column in self))

    def take(self, rows: torch.Tensor) -> Times:
        """Some of them, by their positions."""
        return Times(*(column[rows] for column in self))

    def points(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Begin and end, where an unknown one is the known one."""
        no_begin, no_end = self.unknown == BEGIN_UNKNOWN, self.unknown == END_UNKNOWN
        return self.begin.where(~no_begin, self.end), self.end.where(~no_end, self.begin)


@dataclass(frozen=True)
class RelativeScopes:
    """Which scope, a small number, a fact has for a question.

    Kinds: `events` says how far the begin of a fact lies from the question's time; `intervals` has
    bins of distance before and after, and Allen's relations between them; `none` is one scope for
    all, so that time does not count.

    An unknown begin or end is the known one; a fact without any time is always there. With
    `unknown` such facts have scopes of their own wherever the unknown side would decide.
    With `past` a fact that begins at or after the question's begin, or may do so, is left out.
    With `begin_only` a question is about its begin, whenever it ends.

    >>> years = RelativeScopes("intervals", "year", (1, 3, 6))
    >>> years.name(years.scope((1990, 1994), (1998, 1999))), years.name(years.scope((1, 3), (2, 2)))
    ('ended 3..5 years before', 'contains it')
    """

    kind: Kind
    granularity: Granularity = "year"
    edges: tuple[int, ...] = ()
    """The first distance, in ticks, of each bin."""
    unknown: bool = False
    past: bool = False
    begin_only: bool = False

    def __post_init__(self) -> None:
        check_name("kind of relative scopes", self.kind, KINDS)
        check_name("granularity", self.granularity, GRANULARITIES)
        edges = tuple(self.edges)
        for edge in edges:
            check_kind("an edge of relative scopes", edge, int)
        if self.kind == "none":
            edges = ()
        elif not edges or edges[0] != 1 or any(b <= a for a, b in pairwise(edges)):
            raise UsageError(
                "edges of relative scopes are the first distance of each bin: ascending whole"
                f" numbers from 1 on, such as 1,3,6,11; not {','.join(map(str, edges)) or 'none'}"
            )
        object.__setattr__(self, "edges", tuple(map(int, edges)))
        if len(self) > LEFT_OUT:
            raise UsageError(f"{len(edges)} edges are too many; 60 are always possible")

    @classmethod
    def of(
        cls,
        graph: TemporalGraph,
        kind: Kind | None = None,
        *,
        bins: int | None = None,
        unknown: bool = False,
        past: bool = False,
    ) -> RelativeScopes:
        """Scopes whose edges follow from the distances between train facts of the same entity.

        `events` if all facts are instants, else `intervals`. `bins` says how many distances are
        told apart on either side; the heaviest bins are divided or the lightest joined.
        """
        train, granularity = graph.train, graph.timeline.granularity
        if kind is None:
            kind = "events" if bool((train.begin == train.end).all()) else "intervals"
        if kind == "none":
            return cls(kind, granularity, past=past)
        if bins is not None and bins < 1:
            raise UsageError(f"bins of relative scopes must be at least 1, not {bins}")
        edges = _edges(_distances(train, kind), _LADDERS[granularity], bins)
        return cls(kind, granularity, edges, unknown, past)

    def __len__(self) -> int:
        """How many scopes there are."""
        return len(self.names())

    def name(self, scope: int) -> str:
        """One scope in words."""
        return "left out" if scope == LEFT_OUT else self.names()[scope]

    def names(self) -> list[str]:
        """All scopes in words, in their order."""
        if self.kind == "none":
            return ["at any time"]
        spans = [
            _span(first, following - 1 if following else None, self.granularity)
            for first, following in zip(self.edges, (*self.edges[1:], 0), strict=True)
        ]
        if self.kind == "events":
            names = [f"same {self.granularity}"]
            names += [f"{span} {side}" for side in ("before", "after") for span in spans]
            return names + ["time unknown"] * self.unknown
        names = [f"ended {span} before" for span in spans]
        names += [f"begins {span} after" for span in spans]
        names += _TOUCHING
        if self.unknown:
            names += [f"began {span} before, end unknown" for span in spans]
            names += [f"ends {span} after, begin unknown" for span in spans]
            names += ["begins in it, end unknown", "ends in it, begin unknown", "time unknown"]
        return names

    def scope(self, fact: tuple[int, int], question: tuple[int, int], unknown: int = 0) -> int:
        """The scope of one fact for one question."""
        import torch

        def times(span: tuple[int, int], unknown: int) -> Times:
            return Times(*(torch.tensor([value]) for value in (*span, unknown)))

        return int(self.scopes(times(question, 0), times(fact, unknown)))

    def scopes(self, questions: Times, facts: Times, *, most: int = 1 << 22) -> torch.Tensor:
        """Bytes [facts, questions]; at most so many pairs are worked on at once."""
        import torch

        count, width = len(facts.begin), len(questions.begin)
        rows = max(1, most // max(width, 1))
        if count > rows:
            device = facts.begin.device
            blocks = torch.arange(count, device=device).split(rows)
            return torch.cat([self.scopes(questions, facts.take(at)) for at in blocks])
        begin, end = (column.unsqueeze(1) for column in facts.points())
        unknown = facts.unknown.unsqueeze(1)
        q_begin, q_end = questions.points()
        if self.begin_only:
            q_end = q_begin
        timeless = unknown == BEGIN_UNKNOWN | END_UNKNOWN
        if self.kind == "none":
            scope = torch.zeros(count, width, dtype=torch.uint8, device=begin.device)
        elif self.kind == "events":
            # A question about a stretch of time is about all that begins in it.
            scope = self._bins((begin - q_begin).clamp(max=0) + (begin - q_end).clamp(min=0))
            scope = scope.where(~timeless, 2 * len(self.edges) + 1 if self.unknown else 0)
        else:
            scope = self._intervals(begin, end, q_begin, q_end, unknown, timeless)
        if self.past:
            scope = scope.where((begin < q_begin) & ~timeless, LEFT_OUT)
        return scope.to(torch.uint8)

    def _bins(self, gap: torch.Tensor) -> torch.Tensor:
        """0 where there is no gap; 1, 2, … for the bins before; then those after."""
        import torch

        number = len(self.edges)
        edges = _numbers(self.edges, gap.device)
        bins = torch.bucketize(gap.abs(), edges, right=True, out_int32=True)
        return bins.where(gap <= 0, bins + number)

    def _intervals(
        self,
        begin: torch.Tensor,
        end: torch.Tensor,
        q_begin: torch.Tensor,
        q_end: torch.Tensor,
        unknown: torch.Tensor,
        timeless: torch.Tensor,
    ) -> torch.Tensor:
        bins = 2 * len(self.edges)
        # Below 0: so long before; above: so long after; 0: they share a tick.
        gap = (end - q_begin).clamp(max=0) + (begin - q_end).clamp(min=0)
        at = 4 + 3 * (begin - q_begin).sign() + (end - q_end).sign()
        touching = bins + _numbers(_RELATIONS, begin.device)[at]
        touching = touching.where(~timeless, bins + _CONTAINS)
        apart = self._bins(gap.where(~timeless, 0)) - 1
        scope = apart.where(apart >= 0, touching)
        if not self.unknown:
            return scope
        own, number = bins + len(_TOUCHING), len(self.edges)
        open_end, open_begin = unknown == END_UNKNOWN, unknown == BEGIN_UNKNOWN
        scope = scope.where(~(open_end & (gap < 0)), own + apart)
        scope = scope.where(~(open_begin & (gap > 0)), own + apart)
        scope = scope.where(~(open_end & (gap == 0)), own + 2 * number)
        scope = scope.where(~(open_begin & (gap == 0)), own + 2 * number + 1)
        return scope.where(~timeless, own + 2 * number + 2)


@cache
def _numbers(values: tuple[int, ...], device: torch.device) -> torch.Tensor:
    """Constants on a device, copied there once: a recorded step on a GPU cannot copy."""
    import torch

    return torch.tensor(values, device=device)


def _span(first: int, last: int | None, unit: str) -> str:
    if last is None:
        return f"more than {first - 1:,} {unit}{'' if first == 2 else 's'}"
    if first == last:
        return f"{first:,} {unit}{'' if first == 1 else 's'}"
    return f"{first:,}..{last:,} {unit}s"


def _distances(facts: Facts, kind: Kind) -> Ints:
    """Sorted gaps between pairs of facts of an entity, a sample of them; 0 if they touch."""
    dated = facts.take(facts.unknown != BEGIN_UNKNOWN | END_UNKNOWN)
    begin = np.where(dated.unknown & BEGIN_UNKNOWN, dated.end, dated.begin)
    end = np.where(dated.unknown & END_UNKNOWN, dated.begin, dated.end)
    if kind == "events":
        end = begin
    ends = np.concatenate([dated.subject, dated.object])
    order = np.argsort(ends, kind="stable")
    random = np.random.default_rng(0)
    first = np.arange(len(order))
    if len(order) > _PAIRS:
        first = random.integers(0, len(order), _PAIRS)
    ordered = ends[order]
    low, high = (np.searchsorted(ordered, ordered[first], side) for side in ("left", "right"))
    second = random.integers(low, high)
    a, b = (order[which] % max(len(dated), 1) for which in (first, second))
    gaps = np.maximum(np.maximum(begin[a] - end[b], begin[b] - end[a]), 0)
    return np.sort(gaps[a != b])


def _edges(distances: Ints, ladder: tuple[int, ...], bins: int | None) -> tuple[int, ...]:
    """The edges of the ladder that the distances reach, and as many as are wanted."""

    def beyond(edge: int) -> int:
        return len(distances) - int(np.searchsorted(distances, edge))

    def weight(at: int) -> float:
        # What is near decides more, so a distance counts by how far it is.
        here = beyond(edges[at]) - (beyond(edges[at + 1]) if at + 1 < len(edges) else 0)
        return here / edges[at]

    edges = [edge for edge in ladder if edge == 1 or beyond(edge) > _LEAST * len(distances)]
    if bins is None:
        return tuple(edges)
    while len(edges) > bins:
        # The lightest bin joins the one before it.
        del edges[min(range(1, len(edges)), key=lambda at: (weight(at), -at))]
    largest = int(distances[-1]) if len(distances) else 0
    while len(edges) < bins:
        lasts = [*(edge - 1 for edge in edges[1:]), max(largest, edges[-1])]
        wide = [at for at, last in enumerate(lasts) if last > edges[at]]
        if not wide:
            break
        at = max(wide, key=lambda at: (weight(at), -at))
        # Between 2 and 15 comes 6: what is near is told apart more finely.
        middle = int(np.ceil(np.sqrt(edges[at] * (lasts[at] + 1))))
        edges.insert(at + 1, min(max(middle, edges[at] + 1), lasts[at]))
    return tuple(edges)
