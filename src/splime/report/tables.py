"""What `splime inspect` shows, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from splime.graph import SPLITS, TemporalGraph
from splime.leakage import Filtered, LeakReport
from splime.reading import Reading
from splime.report.style import frequent
from splime.segmentation import Segmentation
from splime.static import StaticGraph
from splime.statistics import Statistics, facts_over_time
from splime.streaming import StreamResult
from splime.times import Ints

_BARS = " ▁▂▃▄▅▆▇█"
_WIDTH = 40


def statistics_table(statistics: Statistics) -> Table:
    """Sizes, time and kinds of facts."""
    table = make_table(statistics.name or "graph", "", "")
    unit = f"{'buckets of ' if statistics.bucketed else ''}{statistics.granularity}s"
    table.add_row("entities", f"{statistics.entities:,}")
    table.add_row("predicates", f"{statistics.predicates:,}")
    table.add_row("timestamps", f"{statistics.timestamps:,} ({unit})")
    table.add_row("time", f"{statistics.begin} to {statistics.end}, by {statistics.granularity}")
    for split, count in statistics.facts.items():
        table.add_row(f"facts in {split}", f"{count:,}")
    total = sum(statistics.facts.values())
    for kind, count in (
        ("instant", statistics.instant),
        ("interval", statistics.interval),
        ("open (begin or end unknown)", statistics.open),
    ):
        table.add_row(f"facts: {kind}", f"{count:,} ({100 * count / total:.1f} %)")
    return table


def reading_table(reading: Reading) -> Iterator[RenderableType]:
    """What was read, kept and dropped, with the first examples."""
    table = make_table("reading", "file or table", "rows", "kept", "dropped", "why", words=("why",))
    for source in reading.sources:
        why = ", ".join(f"{count:,} × {reason}" for reason, count in source.dropped.items())
        dropped = source.rows - source.kept
        name = Text(source.name)  # a name with brackets is not markup
        table.add_row(name, f"{source.rows:,}", f"{source.kept:,}", f"{dropped:,}", why)
    yield table
    for source in reading.sources:
        if source.header is not None:
            yield Text(f"{source.name}: the first line is a header: {source.header}")
    for note, count in reading.notes.items():
        parts = [f"{s.notes[note]:,} in {s.name}" for s in reading.sources if note in s.notes]
        where = f" ({', '.join(parts)})" if len(reading.sources) > 1 else ""
        yield Text(f"{count:,} facts kept, but: {note}{where}")
    for remark in reading.remarks:
        yield Text(remark)
    shown: set[str] = set()
    for example in reading.examples:
        # One example of a kind for each file is enough here; the JSON has them all.
        kind = example.where.split(",")[0] + example.why.split(":")[0]
        if kind not in shown:
            shown.add(kind)
            yield Text(f"  {example}", style="dim")


def inspection_json(
    graph: TemporalGraph, statistics: Statistics, leaks: LeakReport
) -> dict[str, Any]:
    """What is in a graph, what was dropped, what leaks, as JSON."""
    return {
        "statistics": statistics.to_json(),
        "reading": graph.reading.to_json(),
        "leakage": leaks.to_json(),
    }


def leak_table(leaks: LeakReport) -> Iterator[RenderableType]:
    """The duplicates table of the paper, and what else train gives away."""
    table = make_table("leakage, once the time is stripped", "", "train", "valid", "test")
    for title, shares in (
        ("duplicates in the split", leaks.duplicates),
        ("triples that are in train", leaks.in_train),
        ("… whose pair is linked in train", leaks.pair_in_train),
        ("… whose reverse is in train", leaks.reversed_in_train),
        ("facts in train with the same time", leaks.fact_in_train),
    ):
        cells = [str(shares[split]) if split in shares else "" for split in SPLITS]
        table.add_row(title, *cells)
    yield table
    unit = leaks.granularity
    for split, recurrence in leaks.recurrence.items():
        if recurrence.median is not None:
            near = recurrence.within[1]
            yield Text(
                f"{split}: {recurrence.facts:,} facts have a triple that train knows at some time;"
                f" for half of them it is at most {recurrence.median:g} {unit}(s) away,"
                f" for {100 * near / recurrence.facts:.0f} % at most 1 {unit}"
            )


def predicate_table(graph: TemporalGraph, *, most: int = 10) -> Table:
    """The most frequent predicates and their facts over time."""
    holding = facts_over_time(graph)
    order, counts = frequent(graph, most)
    left = len(graph.predicates) - len(order)
    title = "facts over time" + (f" (the {most} most frequent predicates)" if left > 0 else "")
    table = make_table(title, "predicate", "facts", f"{_ends(graph)}")
    for predicate in order:
        table.add_row(
            Text(graph.predicates[predicate]),
            f"{counts[predicate]:,}",
            sparkline(holding[predicate]),
        )
    return table


def segmentation_table(segmentation: Segmentation, *, most: int = 10) -> Table:
    """The scoped predicates of the predicates with the most of them."""
    scopes = segmentation.predicates
    counts = np.diff(scopes.offsets) + 1
    order = np.argsort(-counts, kind="stable")[:most]
    title = f"{len(scopes):,} scoped predicates of {len(scopes.names):,}"
    if len(counts) > most:
        title += f" (the {most} that were cut most)"
    table = make_table(
        title, "predicate", "pieces", "facts in each", "the pieces", words=("the pieces",)
    )
    for name in order.tolist():
        start = int(scopes.starts[name])
        pieces = slice(start, start + int(counts[name]))
        facts = scopes.facts[pieces]
        labels = scopes.labels[pieces].to_pylist()
        shown = labels if len(labels) <= 4 else [*labels[:2], "…", *labels[-2:]]
        dates = ", ".join(label.removeprefix(scopes.names[name]) for label in shown)
        table.add_row(
            Text(scopes.names[name]),
            f"{counts[name]:,}",
            f"{facts.min():,} to {facts.max():,}",
            Text(dates),
        )
    return table


def transform_table(
    graph: TemporalGraph, static: StaticGraph, filtered: StaticGraph, removed: Filtered
) -> Table:
    """What a transform made of each split: facts, triples, what the filter took, what is left."""
    table = make_table(
        "the transform", "", "facts", "triples", f"removed by {removed.kind}", "left", "distinct"
    )
    distinct, _ = filtered.distinct()
    for split, triples in static.splits():
        table.add_row(
            split,
            f"{len(getattr(graph, split)):,}",
            f"{len(triples):,}",
            f"{removed.removed[split]:,}",
            f"{len(getattr(filtered, split)):,}",
            f"{len(getattr(distinct, split)):,}",
        )
    return table


def stream_table(result: StreamResult) -> Iterator[RenderableType]:
    """What streaming made of each split, what it dropped, and how fast it was."""
    table = make_table("the transform, streamed", "", "facts", "triples")
    for split in SPLITS:
        table.add_row(split, f"{result.facts[split]:,}", f"{result.triples[split]:,}")
    yield table
    for reason, count in result.dropped.items():
        yield Text(f"{count:,} of {result.rows:,} rows dropped: {reason}")
    seconds = sum(result.seconds.values())
    steps = ", ".join(f"{step} {took:.1f} s" for step, took in result.seconds.items())
    yield Text(f"{result.rows / max(seconds, 1e-9):,.0f} rows per second ({steps})")


def sparkline(values: Ints, *, width: int = _WIDTH) -> str:
    """Numbers as a line of bars, at most `width` wide.

    >>> sparkline(np.array([0, 1, 2, 4, 8]))
    ' ▁▂▄█'
    """
    parts = np.array_split(values, min(width, len(values)))
    means = np.array([part.mean() for part in parts])
    if means.max() <= 0:
        return ""
    # A bar that is not empty must be seen.
    heights = np.ceil(means / means.max() * (len(_BARS) - 1)).astype(int)
    return "".join(_BARS[height] for height in heights)


def _ends(graph: TemporalGraph) -> str:
    first, last = graph.timeline.label(0), graph.timeline.label(-1)
    return f"{first} → {last}"


def make_table(title: str, *columns: str, words: Container[str] = ()) -> Table:
    """An empty table in the style of the house; columns of numbers stand to the right.

    The first column holds words, and so do those without a name and those that `words` names.
    """
    table = Table(
        title=Text(title), title_justify="left", title_style="bold", show_header=any(columns)
    )
    for position, column in enumerate(columns):
        line = "→" in column  # a broken line of bars says nothing
        numeric = position and column and column not in words and not line
        table.add_column(
            Text(column),
            justify="right" if numeric else "left",
            overflow="crop" if line else "fold",
            no_wrap=line,
        )
    return table
