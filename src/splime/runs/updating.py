"""Add facts to a run for good."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pyarrow.compute as pc

from splime.arrays import grouped
from splime.datasets.loading import load_unsplit
from splime.errors import UsageError, counted
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, Facts, TemporalGraph
from splime.io.files import locked
from splime.runs.graph_run import GraphRun
from splime.runs.run import Run
from splime.runs.updates import Change, sweep, write_update
from splime.scoring.scoping import KnownFacts
from splime.times import format_ticks

if TYPE_CHECKING:
    from splime.keywords import Reading

_NAMED = 5
"""So many new names are kept with an update."""


def update(
    run: Run | str | Path,
    facts: TemporalGraph | str | Path,
    *,
    warn: Callable[[str], None] = warnings.warn,
    **reading: Unpack[Reading],
) -> Change:
    """Add facts to a run, or the one in a folder, for good: `Run.update` describes it."""
    opened = run if isinstance(run, Run) else Run(run, device="cpu")
    return opened.update(facts, warn=warn, **reading)


def update_run(
    run: Run, facts: TemporalGraph | str | Path, warn: Callable[[str], None], **reading: Any
) -> Change:
    """Add facts to the run in a folder; `Run.update` describes it."""
    _check(run)
    if isinstance(facts, TemporalGraph):
        source = facts.name or "facts"
    else:
        source, facts = str(facts), load_unsplit(facts, **reading)
    if not len(facts):
        raise UsageError(f"{source}: there are no facts to add")
    with locked(run.path):
        now = Run(run.path, device="cpu")  # with what another process added meanwhile
        sweep(run.path, now.updates)
        kept = now.knowable(facts, warn)
        graph = now.over(kept).graph
        change = _change(now, graph, source, len(kept), len(facts) - len(kept), warn)
        before = [] if now.updates is None else now.updates.changes
        if change.is_new:
            write_update(run.path, graph, [*before, change])
    return change


def _check(run: Run) -> None:
    """An error unless facts can be added to a run."""
    if isinstance(run, GraphRun):
        raise UsageError(
            f"{run.path}: this is not a run, and nothing of it is kept: add the facts to the file"
            " itself, or ask with --facts"
        )
    if not run.own_facts:
        raise UsageError(f"{run.path}: is asked over other facts; update the run itself")
    if not run.reads_facts:
        raise UsageError(
            f"{run.path}: {run.config['settings']['model']} has a vector for each entity of its"
            " train, and must be trained again to know more: train it on all facts, or take the"
            " path model (--model path), which is updated without training"
        )


def _change(
    run: Run,
    after: TemporalGraph,
    source: str,
    given: int,
    left_out: int,
    warn: Callable[[str], None],
) -> Change:
    """What is different in the graph of a run after an update."""
    before = run.graph
    entities, predicates = (
        new.labels.filter(pc.invert(pc.is_in(new.labels, old.labels))).to_pylist()
        for old, new in (
            (before.entities, after.entities),
            (before.predicates, after.predicates),
        )
    )
    old = before.facts().renumber(
        after.entities.ids(before.entities.labels), after.predicates.ids(before.predicates.labels)
    )
    gone, came = _differences(old, after.facts())
    replaced, stating = KnownFacts(_only(after, gone)).pairs("time", came)
    if run.past is None and not run.members:
        asked = _only(after, Facts.concat([after.valid, after.test]))
        _, stated = KnownFacts(asked).pairs("time", came)
        if number := len(np.unique(stated)):
            warn(
                f"{counted(number, 'fact')} of valid and test are now among the facts that are"
                " answered from: metrics of them are too good"
            )
    return Change(
        source=source,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        added=len(came) - len(np.unique(replaced)),
        corrected=len(np.unique(stating)),
        same=given - len(came),
        left_out=left_out,
        entities=entities[:_NAMED],
        predicates=predicates[:_NAMED],
        new_entities=len(entities),
        new_predicates=len(predicates),
        new_timestamps=len(after.timeline) - len(before.timeline),
        time=_range(after),
        time_before=_range(before),
    )


def _only(graph: TemporalGraph, facts: Facts) -> TemporalGraph:
    return replace(graph, train=facts, valid=Facts.empty(), test=Facts.empty())


def _differences(old: Facts, new: Facts) -> tuple[Facts, Facts]:
    """The facts that are only among the old ones, and those only among the new ones.

    What an unknown begin or end was filled in with does not count.
    """
    both = Facts.concat([old, new])
    begin, end = (
        np.where(both.unknown & bit, 0, ticks)
        for ticks, bit in ((both.begin, BEGIN_UNKNOWN), (both.end, END_UNKNOWN))
    )
    same, _ = grouped([both.subject, both.predicate, both.object, begin, end, both.unknown])
    of_old, of_new = same[: len(old)], same[len(old) :]
    return old.take(~np.isin(of_old, of_new)), new.take(~np.isin(of_new, of_old))


def _range(graph: TemporalGraph) -> tuple[str, str]:
    ticks = np.array([graph.timeline.first, graph.timeline.last])
    first, last = format_ticks(ticks, graph.timeline.granularity)
    return first, last
