"""Relative scopes: how the time of a fact relates to the time of the question."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from splime.errors import UsageError, check_kind, check_name
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, Facts, TemporalGraph
from splime.times import GRANULARITIES, Granularity, Ints

if TYPE_CHECKING:
    import torch

LEFT_OUT = 255
"""The scope of a fact that must not be seen by a question."""
_FARTHEST = 1 << 62
"""What fits into a tensor, also where 1 is added to it."""
_TIMELESS = BEGIN_UNKNOWN | END_UNKNOWN

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
_GOES_ON = "has not ended before"
"""What a forecast knows of a fact that contains its time."""
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
class RelativeScopes(ABC):
    """Which scope, a small number, a fact has for a question. Each kind is a class.

    An unknown begin or end is the known one; a fact without any time is always there. With
    `unknown` such facts have separate scopes wherever the unknown side would decide.
    With `past` a fact that begins at or after the question's begin, or may do so, is left out, and
    an end that lies there is hidden.
    With `begin_only` a question is about its begin, whenever it ends.

    >>> years = IntervalScopes("year", (1, 3, 6))
    >>> years.name(years.scope((1990, 1994), (1998, 1999))), years.name(years.scope((1, 3), (2, 2)))
    ('ended 3..5 years before', 'contains it')
    """

    kind: ClassVar[str]
    """The name in settings."""
    instants: ClassVar[bool] = False
    """Whether only the begins of facts count."""

    granularity: Granularity = "year"
    edges: tuple[int, ...] = ()
    """The first distance, in ticks, of each bin."""
    unknown: bool = False
    past: bool = False
    begin_only: bool = False
    split_begins: tuple[int, ...] = ()
    """Ticks: with `past`, a question sees what lies before the last one up to its own begin."""

    def __post_init__(self) -> None:
        check_name("granularity", self.granularity, GRANULARITIES)
        for edge in self.edges:
            check_kind("an edge of relative scopes", edge, int)
        object.__setattr__(self, "edges", tuple(map(int, self.edges)))
        self._check_edges()
        if len(self) > LEFT_OUT:
            raise UsageError(f"{len(self.edges)} edges are too many; 60 are always possible")

    @classmethod
    def edges_for(cls, graph: TemporalGraph) -> tuple[int, ...]:
        """Edges that suit the distances between facts of train."""
        distances = _distances(graph.train, cls.instants)
        return _edges(distances, _LADDERS[graph.timeline.granularity])

    def _check_edges(self) -> None:
        if self.edges[:1] != (1,) or any(b <= a for a, b in pairwise(self.edges)):
            raise UsageError(
                "edges of relative scopes are the first distance of each bin: ascending whole"
                " numbers from 1 on, such as 1,3,6,11; not"
                f" {','.join(map(str, self.edges)) or 'none'}"
            )
        if self.edges[-1] > _FARTHEST:
            raise UsageError(
                f"an edge of relative scopes is at most {_FARTHEST:,}, not {self.edges[-1]:,}"
            )

    def __str__(self) -> str:
        """The kind and the edges, as settings have them."""
        return f"{self.kind}:{','.join(map(str, self.edges))}".rstrip(":")

    def __len__(self) -> int:
        """How many scopes there are."""
        return len(self.names())

    def name(self, scope: int) -> str:
        """One scope in words."""
        return "left out" if scope == LEFT_OUT else self.names()[scope]

    @abstractmethod
    def names(self) -> list[str]:
        """All scopes in words, in their order."""

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
        limit = self._limit(q_begin)
        if self.past:  # whatever has not ended goes on
            end = end.where(end < limit, q_end + 1)
        asked = Times(q_begin, q_end, questions.unknown)
        scope = self._scopes(Times(begin, end, unknown), asked)
        if self.past:
            scope = scope.where((begin < limit) & (unknown != _TIMELESS), LEFT_OUT)
        return scope.to(torch.uint8)

    @abstractmethod
    def _scopes(self, facts: Times, questions: Times) -> torch.Tensor:
        """Whatever lies in the past: [facts, questions] from [facts, 1] and [questions]."""

    def _limit(self, begin: torch.Tensor) -> torch.Tensor:
        """What lies before these ticks is the past of questions."""
        import torch

        if not self.split_begins:
            return begin
        ticks = _numbers(self.split_begins, begin.device)
        at = torch.bucketize(begin, ticks, right=True)
        return begin.where(at == 0, ticks[(at - 1).clamp(min=0)])

    def _spans(self) -> list[str]:
        """The bins of distance in words."""
        following = (*self.edges[1:], 0)
        return [
            _span(first, after - 1 if after else None, self.granularity)
            for first, after in zip(self.edges, following, strict=True)
        ]

    def _bins(self, gap: torch.Tensor) -> torch.Tensor:
        """0 where there is no gap; 1, 2, … for the bins before; then those after."""
        import torch

        edges = _numbers(self.edges, gap.device)
        bins = torch.bucketize(gap.abs(), edges, right=True, out_int32=True)
        return bins.where(gap <= 0, bins + len(self.edges))


class SingleScope(RelativeScopes):
    """One scope for all, so that time does not count."""

    kind = "none"

    @classmethod
    def edges_for(cls, graph: TemporalGraph) -> tuple[int, ...]:  # noqa: ARG003
        """None."""
        return ()

    def _check_edges(self) -> None:
        if self.edges:
            raise UsageError("distances belong to kinds of relative scopes with time, not to none")

    def names(self) -> list[str]:
        """The only one."""
        return ["at any time"]

    def _scopes(self, facts: Times, questions: Times) -> torch.Tensor:
        return facts.begin.new_zeros(len(facts.begin), len(questions.begin))


class EventScopes(RelativeScopes):
    """How far the begin of a fact lies from the question's time."""

    kind, instants = "events", True

    def names(self) -> list[str]:
        """The same time, distances before, distances after."""
        spans = [f"{span} {side}" for side in ("before", "after") for span in self._spans()]
        return [f"same {self.granularity}", *spans, *["time unknown"] * self.unknown]

    def _scopes(self, facts: Times, questions: Times) -> torch.Tensor:
        # A question about a stretch of time is about all that begins in it.
        before, after = facts.begin - questions.begin, facts.begin - questions.end
        scope = self._bins(before.clamp(max=0) + after.clamp(min=0))
        return scope.where(
            facts.unknown != _TIMELESS, 2 * len(self.edges) + 1 if self.unknown else 0
        )


class IntervalScopes(RelativeScopes):
    """Bins of distance before and after, and Allen's relations between them."""

    kind = "intervals"

    def names(self) -> list[str]:
        """Distances before, distances after, what touches, and what is unknown."""
        spans = self._spans()
        names = [f"ended {span} before" for span in spans]
        names += [f"begins {span} after" for span in spans]
        names += [_GOES_ON if self.past and one == "contains it" else one for one in _TOUCHING]
        if self.unknown:
            names += [f"began {span} before, end unknown" for span in spans]
            names += [f"ends {span} after, begin unknown" for span in spans]
            names += ["begins in it, end unknown", "ends in it, begin unknown", "time unknown"]
        return names

    def _scopes(self, facts: Times, questions: Times) -> torch.Tensor:
        (begin, end, unknown), (q_begin, q_end, _) = facts, questions
        bins, timeless = 2 * len(self.edges), unknown == _TIMELESS
        # Below 0: so long before; above: so long after; 0: they share a tick.
        gap = (end - q_begin).clamp(max=0) + (begin - q_end).clamp(min=0)
        at = 4 + 3 * (begin - q_begin).sign() + (end - q_end).sign()
        touching = bins + _numbers(_RELATIONS, begin.device)[at]
        touching = touching.where(~timeless, bins + _CONTAINS)
        apart = self._bins(gap.where(~timeless, 0)) - 1
        scope = apart.where(apart >= 0, touching)
        if not self.unknown:
            return scope
        first = bins + len(_TOUCHING)  # of the scopes of facts with an unknown side
        open_end, open_begin = unknown == END_UNKNOWN, unknown == BEGIN_UNKNOWN
        scope = scope.where(~(open_end & (gap < 0)), first + apart)
        scope = scope.where(~(open_begin & (gap > 0)), first + apart)
        scope = scope.where(~(open_end & (gap == 0)), first + bins)
        scope = scope.where(~(open_begin & (gap == 0)), first + bins + 1)
        return scope.where(~timeless, first + bins + 2)


KINDS: Mapping[str, type[RelativeScopes]] = {
    kind.kind: kind for kind in (SingleScope, EventScopes, IntervalScopes)
}
"""One class here makes a kind known everywhere."""
AUTO = "auto"
"""In settings: the kind is chosen from the facts."""


def parse_relative(text: str) -> tuple[type[RelativeScopes] | None, tuple[int, ...]]:
    """The kind and the edges that settings give; None and nothing are chosen from the facts.

    >>> parse_relative("intervals:1,3,6"), parse_relative("auto")
    ((<class 'splime.paths.relative.IntervalScopes'>, (1, 3, 6)), (None, ()))
    """
    name, _, listed = text.partition(":")
    check_name("kind of relative scopes", name, (AUTO, *KINDS))
    try:
        edges = tuple(int(edge) for edge in listed.split(",")) if listed else ()
    except ValueError:
        raise UsageError(
            f"relative is {', '.join((AUTO, *KINDS))}, or one of those with time followed by the"
            f" first distance of each scope, such as events:1,2,4,8; not {text!r}"
        ) from None
    if name == AUTO and edges:
        raise UsageError(f"distances belong to a kind of relative scopes, not to {AUTO}")
    if edges:
        KINDS[name](edges=edges)  # an error where they make no sense
    return KINDS.get(name), edges


def fit_relative(text: str, graph: TemporalGraph) -> RelativeScopes:
    """What settings give, and for the rest scopes that suit the facts of train.

    The kind is events if all facts are instants, else intervals; edges follow from the distances
    between facts of the same entity.
    """
    kind, edges = parse_relative(text)
    if kind is None:
        kind = EventScopes if bool((graph.train.begin == graph.train.end).all()) else IntervalScopes
    return kind(graph.timeline.granularity, edges or kind.edges_for(graph))


def growing_scopes(facts: Facts, granularity: Granularity, bins: int) -> IntervalScopes:
    """Scopes with so many distances, which grow by a factor, whatever the unit is.

    The last begins at the median distance between facts of the same entity.
    """
    distances = _distances(facts, instants=False)
    distances = distances[distances > 0]
    last = max(float(np.median(distances)) if len(distances) else 0.0, 8.0)
    edges = [1]
    for step in range(1, bins):
        edges.append(max(edges[-1] + 1, round(last ** (step / (bins - 1)))))
    return IntervalScopes(granularity, tuple(edges))


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


def _distances(facts: Facts, instants: bool) -> Ints:
    """Sorted gaps between pairs of facts of an entity, a sample of them; 0 if they touch."""
    dated = facts.take(~facts.timeless)
    begin, end = dated.known_times()
    if instants:
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


def _edges(distances: Ints, ladder: tuple[int, ...]) -> tuple[int, ...]:
    """The edges of the ladder that the distances reach."""

    def beyond(edge: int) -> int:
        return len(distances) - int(np.searchsorted(distances, edge))

    return tuple(edge for edge in ladder if edge == 1 or beyond(edge) > _LEAST * len(distances))
