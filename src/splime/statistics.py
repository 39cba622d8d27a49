"""The sizes of a graph, how valid and test relate to train, and facts over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, Fact, Facts, TemporalGraph
from splime.times import Bools, Granularity, Ints, format_ticks

Floats: TypeAlias = npt.NDArray[np.float64]
_EXAMPLES = 3
_FEW, _GAP = 10, 10
"""Too few facts to tell which times are usual; and a gap that is too small to report."""


@dataclass(frozen=True)
class BesideTrain:
    """How a split differs from train."""

    facts: int
    """All facts of the split."""
    entities: int
    unseen_entities: int
    """Entities that train does not have."""
    predicates: int
    unseen_predicates: int
    unseen: int
    """Facts with an unseen entity or predicate."""
    outside: int
    """Facts with a time before the first or after the last of train."""
    begins: str | None
    """The first time of the split."""
    after_train: bool
    """Whether all of its facts begin after all facts of train: a chronological split."""
    still_hold: int
    """Facts of train that still hold when the split begins."""


@dataclass(frozen=True)
class FarTimes:
    """Few facts so far from all others that they make the timeline more than twice as long."""

    count: int
    facts: tuple[Fact, ...]
    """Examples."""
    begin: str
    end: str
    """The time of the other facts."""
    filled: int
    """Facts whose unknown begin or end was filled with a far time."""


@dataclass(frozen=True)
class Statistics:
    """The sizes of a graph, and the kinds of its facts."""

    name: str
    entities: int
    predicates: int
    timestamps: int
    granularity: Granularity
    bucketed: bool
    begin: str
    end: str
    rows: Mapping[str, int]
    """Rows of the source: per split, or `all` if it has no splits."""
    facts: Mapping[str, int]
    instant: int
    interval: int
    open: int
    """Facts with an unknown begin or end."""
    unknown_begin: int
    unknown_end: int
    without_time: int
    """Facts whose begin and end are both unknown."""
    beside_train: Mapping[str, BesideTrain]
    """For valid and test, if they have facts."""
    far_times: FarTimes | None

    def to_json(self) -> dict[str, Any]:
        """The same as plain lists and dictionaries."""
        return asdict(self)


def describe(graph: TemporalGraph) -> Statistics:
    """The statistics of a graph.

    >>> import splime
    >>> sizes = describe(splime.read([("Ada", "bornIn", "Ulm", 1990)], split="none"))
    >>> sizes.entities, sizes.facts["train"], sizes.instant
    (2, 1, 1)
    """
    facts = graph.facts()
    is_open = facts.unknown != 0
    instant = int(((facts.begin == facts.end) & ~is_open).sum())
    begin, end = format_ticks(
        np.array([graph.timeline.first, graph.timeline.last]), graph.timeline.granularity
    )
    after = begins_after_train(graph)
    read: dict[str, int] = {}
    for source in graph.reading.sources:
        read[source.split or "all"] = read.get(source.split or "all", 0) + source.rows
    kept: dict[str, int] = {split: len(part) for split, part in graph.splits()}
    return Statistics(
        name=graph.name,
        entities=len(graph.entities),
        predicates=len(graph.predicates),
        timestamps=len(graph.timeline),
        granularity=graph.timeline.granularity,
        bucketed=graph.timeline.bucketed,
        begin=begin,
        end=end,
        rows=read or kept,
        facts=kept,
        instant=instant,
        interval=len(facts) - instant - int(is_open.sum()),
        open=int(is_open.sum()),
        unknown_begin=int((facts.unknown & BEGIN_UNKNOWN != 0).sum()),
        unknown_end=int((facts.unknown & END_UNKNOWN != 0).sum()),
        without_time=int(facts.timeless.sum()),
        beside_train={
            split: _beside_train(graph, part, split in after)
            for split, part in graph.splits()
            if split != "train" and len(part) and len(graph.train)
        },
        far_times=_far_times(graph),
    )


def known_times(facts: Facts) -> tuple[Ints, Ints, Bools]:
    """The first and last known tick of every fact that has one, and which facts have one."""
    dated = ~facts.timeless
    return *facts.take(dated).known_times(), dated


def begins_after_train(graph: TemporalGraph) -> dict[str, int]:
    """The first ticks of valid and test, if they begin after all facts of train.

    >>> import splime
    >>> facts = {"train": [("a", "p", "b", 1990)], "test": [("a", "p", "b", 1995)]}
    >>> begins_after_train(splime.read(facts))
    {'test': 1995}
    """
    train = known_times(graph.train)[0]
    firsts = {split: known_times(facts)[0] for split, facts in graph.splits() if split != "train"}
    return {
        split: int(first.min())
        for split, first in firsts.items()
        if len(first) and len(train) and first.min() > train.max()
    }


def _beside_train(graph: TemporalGraph, facts: Facts, after_train: bool) -> BesideTrain:
    train = graph.train
    entities, known = (np.union1d(part.subject, part.object) for part in (facts, train))
    predicates = np.unique(facts.predicate)
    first, last, _ = known_times(facts)
    train_first, train_last, _ = known_times(train)
    begins = int(first.min()) if len(first) else None
    outside = 0
    if len(train_first):
        outside = int(((first < train_first.min()) | (last > train_last.max())).sum())
    return BesideTrain(
        facts=len(facts),
        entities=len(entities),
        unseen_entities=len(np.setdiff1d(entities, known)),
        predicates=len(predicates),
        unseen_predicates=len(np.setdiff1d(predicates, train.predicate)),
        unseen=int((~facts.named_in(train)).sum()),
        outside=outside,
        begins=None
        if begins is None
        else format_ticks(np.array([begins]), graph.timeline.granularity)[0],
        after_train=after_train,
        still_hold=0 if begins is None else int((train.end >= begins).sum()),
    )


def _far_times(graph: TemporalGraph) -> FarTimes | None:
    """At most 1 % of the facts, beyond a gap that is longer than the time of all others."""
    facts = graph.facts()
    first, last, dated = known_times(facts)
    if len(first) <= _FEW:
        return None
    most = max(1, len(first) // 100)
    low, high = int(first.min()), int(last.max())
    ordered = np.sort(np.partition(last, -most - 1)[-most - 1 :])
    if (wide := np.diff(ordered) > np.maximum(ordered[:-1] - low, _GAP)).any():
        high = int(ordered[wide.argmax()])
    ordered = np.sort(np.partition(first, most)[: most + 1])
    if (wide := np.diff(ordered) > np.maximum(high - ordered[1:], _GAP)).any():
        low = int(ordered[len(wide) - wide[::-1].argmax()])
    far = np.flatnonzero(dated)[(first < low) | (last > high)]
    if not len(far):
        return None
    examples = tuple(replace(graph, train=facts.take(far[:_EXAMPLES])).rows("train"))
    begin, end = format_ticks(np.array([low, high]), graph.timeline.granularity)
    filled = ((facts.unknown & BEGIN_UNKNOWN) != 0) & (facts.begin < low)
    filled |= ((facts.unknown & END_UNKNOWN) != 0) & (facts.end > high)
    return FarTimes(len(far), examples, begin, end, int(filled.sum()))


@dataclass(frozen=True)
class Window:
    """The time that pictures show: all of it, unless a few facts would take up most of it."""

    first: int
    last: int
    origin: int = 0
    """The tick at 0 on the axis, so that coordinates stay small numbers."""
    remark: str = ""
    """The facts outside."""

    @property
    def ends(self) -> tuple[float, float]:
        """The limits of the axis; the tick 5 reaches from 4.5 to 5.5."""
        return self.first - self.origin - 0.5, self.last - self.origin + 0.5


def time_window(graph: TemporalGraph) -> Window:
    """The time of a graph, without the first or last 2 % of its times if they take over half.

    >>> import splime
    >>> years = [-431, *range(1900, 2000)]
    >>> graph = splime.read([("a", "p", "b", year) for year in years], split="none")
    >>> time_window(graph)
    Window(first=1899, last=1999, origin=-431, remark='1 fact begins before 1899, from -431 on')
    """
    begin, end, _ = known_times(graph.facts())
    times = np.concatenate([begin, end])
    first, last = graph.timeline.first, graph.timeline.last
    most = max(len(times) // 50, 2 * (len(begin) > _FEW))
    if not most:
        return Window(first, last, first)
    outer = [most, len(times) - 1 - most]
    low, high = np.clip(np.partition(times, outer)[outer], first, last).tolist()
    for _ in range(2):  # the limit of one side depends on the other
        first = low if low - first > last - low else first
        last = high if last - high > high - first else last
    margin = (last - first) // 40  # shows that there is more
    first, last = max(graph.timeline.first, first - margin), min(graph.timeline.last, last + margin)
    dates = format_ticks(
        np.array([first, begin.min(), last, end.max()]), graph.timeline.granularity
    )
    remarks = []
    if before := int((begin < first).sum()):
        words = "fact begins" if before == 1 else "facts begin"
        remarks.append(f"{before:,} {words} before {dates[0]}, from {dates[1]} on")
    if after := int((end > last).sum()):
        words = "fact ends" if after == 1 else "facts end"
        remarks.append(f"{after:,} {words} after {dates[2]}, until {dates[3]}")
    return Window(first, last, graph.timeline.first, "; ".join(remarks))


def facts_over_time(graph: TemporalGraph, predicates: Ints) -> tuple[Floats, Ints, Ints]:
    """The number of facts that hold: limits of stretches, all facts, `predicates x stretches`.

    A stretch is a timestamp, or the time between two timestamps. Limits are relative to the first
    tick.

    >>> import splime
    >>> graph = splime.read([("a", "p", "b", 1, 4), ("a", "q", "c", 2, 2)], split="none")
    >>> limits, in_all, of_predicates = facts_over_time(graph, np.array([1]))
    >>> limits.tolist(), in_all.tolist(), of_predicates.tolist()
    ([-0.5, 0.5, 1.5, 2.5, 3.5], [1, 2, 1, 1], [[0, 1, 0, 0]])
    """
    facts, timeline = graph.facts(), graph.timeline
    begin, end = graph.timestamps(facts)
    ticks = np.stack([timeline.starts, timeline.ends], axis=1) - timeline.first
    limits = np.add(ticks, [-0.5, 0.5]).ravel()
    there = np.ones(len(limits), bool)  # every timestamp, and gaps between them
    there[1::2] = np.append(timeline.starts[1:] > timeline.ends[:-1] + 1, False)

    def holding(rows: Bools | slice) -> Ints:
        begun, ended = (np.bincount(at[rows], minlength=len(timeline)) for at in (begin, end))
        after = (begun - ended).cumsum()  # facts that continue after a timestamp
        return np.stack([after + ended, after], axis=1).ravel()[there]

    table = [holding(facts.predicate == predicate) for predicate in predicates]
    return np.append(limits[there], limits[-1]), holding(slice(None)), np.stack(table)


def evenly(limits: Floats, holding: Ints, window: Window, most: int) -> Floats:
    """The means of stretches over cells of equal length: at most `most` cells, of a tick or more.

    >>> limits, holding = np.array([-0.5, 1.5, 3.5]), np.array([[2, 4]])
    >>> evenly(limits, holding, Window(0, 3), 2).tolist()
    [[2.0, 4.0]]
    >>> evenly(limits, holding, Window(0, 3), 10).tolist()
    [[2.0, 2.0, 4.0, 4.0]]
    """
    cells = min(most, window.last - window.first + 1)
    bounds = np.linspace(*window.ends, cells + 1)
    area = np.pad((holding * np.diff(limits)).cumsum(axis=1), ((0, 0), (1, 0)))
    within = np.diff([np.interp(bounds, limits, row) for row in area], axis=1)
    within[within < 1e-12 * area[:, -1:]] = 0  # rounding
    return within / np.diff(bounds)


def frequent_predicates(graph: TemporalGraph) -> tuple[Ints, Ints]:
    """The predicates, most facts first (in order of names on ties); and their numbers of facts.

    >>> import splime
    >>> rows = [("a", "p", "b", 1), ("a", "q", "c", 2), ("c", "q", "a", 2)]
    >>> frequent_predicates(splime.read(rows, split="none"))
    (array([1, 0]), array([1, 2]))
    """
    counts = np.bincount(graph.facts().predicate, minlength=len(graph.predicates))
    return np.argsort(-counts, kind="stable"), counts
