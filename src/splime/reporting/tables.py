"""What is shown of graphs and cuts, as tables for a terminal and the page; needs no PyTorch."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from splime.errors import counted
from splime.graph import SPLITS, TemporalGraph
from splime.statistics import (
    Statistics,
    describe,
    evenly,
    facts_over_time,
    frequent_predicates,
    time_window,
)
from splime.times import format_ticks

if TYPE_CHECKING:
    from splime.datasets import Inspection, Transformed
    from splime.leakage import LeakReport
    from splime.reading import Reading
    from splime.segmentation import Segmentation
    from splime.static import StaticGraph
    from splime.streaming import StreamResult

STRATA = {
    "train": "whether train has the triple, at any time",
    "time": "kind of time",
    "before": "what earlier facts have",
}
"""What groups of facts are called, where their kind does not say it."""
_BARS = " ▁▂▃▄▅▆▇█"
_WIDTH = 40
"""Of a line of bars."""


def graph_tables(graph: TemporalGraph) -> Iterator[RenderableType]:
    """What a graph holds, in short."""
    yield statistics_table(describe(graph))
    yield predicate_table(graph)


def inspection_tables(inspection: Inspection) -> Iterator[RenderableType]:
    """What is in a graph, what was dropped, what leaks."""
    yield from data_tables(inspection)
    yield from leak_table(inspection.leaks)


def data_tables(inspection: Inspection) -> Iterator[RenderableType]:
    """The same without what leaks."""
    yield statistics_table(inspection.statistics)
    yield from reading_table(inspection.graph.reading)
    yield from coverage_table(inspection.statistics)
    yield predicate_table(inspection.graph)


def statistics_table(statistics: Statistics) -> Table:
    """Sizes, time and kinds of facts."""
    unit = f"{'buckets of ' if statistics.bucketed else ''}{statistics.granularity}s"
    kinds = {
        "instant": statistics.instant,
        "interval": statistics.interval,
        "open (begin or end unknown)": statistics.open,
    }
    if statistics.without_time:
        kinds["… of these without any time"] = statistics.without_time
    total = sum(statistics.facts.values())
    rows = {
        "entities": f"{statistics.entities:,}",
        "predicates": f"{statistics.predicates:,}",
        "timestamps": f"{statistics.timestamps:,} ({unit})",
        "time": f"{statistics.begin} to {statistics.end}, by {statistics.granularity}",
    }
    rows |= {f"facts in {split}": f"{count:,}" for split, count in statistics.facts.items()}
    rows |= {f"facts: {k}": f"{n:,} ({100 * n / total:.1f} %)" for k, n in kinds.items()}
    return list_table(statistics.name or "graph", rows)


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
        yield Text(f"{counted(count, 'fact')} kept, but: {note}{where}")
    for remark in reading.remarks:
        yield Text(remark)
    shown: dict[str, Text] = {}
    for example in reading.examples:
        # One example of a kind for each file is enough here; the JSON has them all.
        kind = example.where.split(",")[0] + example.why.split(":")[0]
        shown.setdefault(kind, Text(f"  {example}", style="dim"))
    yield from shown.values()


def coverage_table(statistics: Statistics) -> Iterator[RenderableType]:
    """What of valid and test train does not have; a chronological split; times far from others."""
    beside = statistics.beside_train
    table, lacking = make_table("what train does not have", "", *beside), False
    for title, count, of in (
        ("entities that train never names", "unseen_entities", "entities"),
        ("predicates that train never names", "unseen_predicates", "predicates"),
        ("facts that name such ones", "unseen", "facts"),
        ("facts outside of train's time", "outside", "facts"),
    ):
        shares = [(getattr(split, count), getattr(split, of)) for split in beside.values()]
        lacking |= any(number for number, _ in shares)
        table.add_row(title, *(f"{n:,} ({100 * n / total:.1f} %)" for n, total in shares))
    if lacking:
        yield table
    elif beside:
        splits = " and ".join(beside)
        yield Text(f"train names every entity and predicate of {splits}, and covers their times")
    if after := {split: part for split, part in beside.items() if part.after_train}:
        begins = " and ".join(f"{split} begins at {part.begins}" for split, part in after.items())
        hold, train = max(part.still_hold for part in after.values()), statistics.facts["train"]
        why = "its scopes end before that, so no cut"
        if hold:
            why = f"{hold:,} of its {train:,} facts still hold then, so hardly any cut"
        yield Text(
            f"the split is chronological: {begins}, after all facts of train have begun; {why}"
            " can be learned there"
        )
        yield Text(
            "to forecast: splime train DATA --model path --past all --out RUN (--past train: from"
            " facts of train alone); the baseline that repeats the latest facts: --model latest"
        )
    if far := statistics.far_times:
        lies = "fact lies" if far.count == 1 else "facts lie"
        yield Text(
            f"{far.count:,} {lies} far from all others: without, the time is {far.begin} to"
            f" {far.end}, not {statistics.begin} to {statistics.end}. If that is a mistake, correct"
            " the lines or choose other --columns"
        )
        if far.filled:
            first = f" --first {far.begin}" * (far.begin != statistics.begin)
            last = f" --last {far.end}" * (far.end != statistics.end)
            reach = "reaches" if far.filled == 1 else "reach"
            yield Text(
                f"{counted(far.filled, 'fact')} with an unknown begin or end {reach} that far;"
                f" another one can be chosen with{first}{last}"
            )
        for fact in far.facts:
            yield Text(f"  {' | '.join(text or '' for text in fact)}", style="dim")


def leak_table(leaks: LeakReport) -> Iterator[RenderableType]:
    """The duplicates table of the paper, and what else train gives away."""
    table = make_table("leakage, once the time is stripped", "", "train", "valid", "test")
    for title, shares in (
        ("duplicates in the split", leaks.duplicates),
        ("triples that are in train", leaks.in_train),
        ("… whose pair is linked in train", leaks.pair_in_train),
        ("… whose reverse is in train", leaks.reversed_in_train),
        ("facts in train with the same time", leaks.fact_in_train),
        ("facts whose subject is their object", leaks.self_loops),
    ):
        if shares is leaks.self_loops and not any(share.count for share in shares.values()):
            continue
        cells = [str(shares[split]) if split in shares else "" for split in SPLITS]
        table.add_row(title, *cells)
    yield table
    if any(share.count for share in leaks.self_loops.values()):
        yield Text(
            "a fact whose subject is its object (a self-loop) counts like any other, except that it"
            " is not taken for its own reverse"
        )
    unit = leaks.granularity
    for split, recurrence in leaks.recurrence.items():
        if recurrence.median is not None:
            near = recurrence.within[1]
            plural = "s" * (recurrence.median != 1)
            yield Text(
                f"{split}: train states the triple of {counted(recurrence.facts, 'fact')}; for"
                f" half of them at most {recurrence.median:g} {unit}{plural} away, for"
                f" {100 * near / recurrence.facts:.0f} % at most 1 {unit}"
            )


def predicate_table(graph: TemporalGraph, *, most: int = 10) -> Table:
    """The most frequent predicates and their facts over time."""
    window = time_window(graph)
    order, counts = frequent_predicates(graph)
    with_facts = np.count_nonzero(counts)  # a part of a graph keeps the names of the whole
    shown = order[: min(most, with_facts)]
    limits, _, holding = facts_over_time(graph, shown)
    few = f"the {most} most frequent predicates" if with_facts > most else ""
    title = "; ".join(filter(None, ["facts over time", few, window.remark]))
    times = format_ticks(np.array([window.first, window.last]), graph.timeline.granularity)
    table = make_table(title, "predicate", "facts", " → ".join(times))
    lines = evenly(limits, holding, window, _WIDTH)
    for predicate, heights in zip(shown.tolist(), lines, strict=True):
        name = Text(graph.predicates[predicate])
        table.add_row(name, f"{counts[predicate]:,}", Bars(sparkline(heights)))
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
        title, "predicate", "scopes", "facts in each", "the scopes", words=("the scopes",)
    )
    for source in order.tolist():
        name, start = scopes.names[source], int(scopes.starts[source])
        rows = slice(start, start + int(counts[source]))
        facts, labels = scopes.facts[rows], scopes.labels[rows].to_pylist()
        shown = labels if len(labels) <= 4 else [*labels[:2], "…", *labels[-2:]]
        dates = ", ".join(label.removeprefix(name) for label in shown)
        sizes = f"{facts.min():,} to {facts.max():,}"
        table.add_row(Text(name), f"{counts[source]:,}", sizes, Text(dates))
    return table


def static_tables(static: StaticGraph) -> Iterator[RenderableType]:
    """How many triples there are, and of which scoped predicates."""
    rows = {f"triples in {split}": f"{len(triples):,}" for split, triples in static.splits()}
    yield list_table(static.name or "static graph", rows)
    yield segmentation_table(static.segmentation)


def transformed_tables(made: Transformed) -> Iterator[RenderableType]:
    """The cuts; of each split the facts, triples, what the filter took, what is left."""
    yield segmentation_table(made.whole.segmentation)
    removed = made.removed
    table = make_table(
        "the transform", "", "facts", "triples", f"removed by {removed.kind}", "left", "distinct"
    )
    distinct, _ = made.static.distinct()
    for split, triples in made.whole.splits():
        facts, *left = (getattr(one, split) for one in (made.graph, made.static, distinct))
        counts = (len(facts), len(triples), removed.removed[split], *map(len, left))
        table.add_row(split, *(f"{count:,}" for count in counts))
    yield table


def stream_table(result: StreamResult) -> Iterator[RenderableType]:
    """The cuts; of each split the facts and triples; and how long each step took."""
    yield segmentation_table(result.segmentation)
    table = make_table("the transform, streamed", "", "facts", "triples")
    for split in SPLITS:
        table.add_row(split, f"{result.facts[split]:,}", f"{result.triples[split]:,}")
    yield table
    seconds = sum(result.seconds.values())
    steps = ", ".join(f"{step} {took:.1f} s" for step, took in result.seconds.items())
    yield Text(f"{result.rows / max(seconds, 1e-9):,.0f} rows per second ({steps})")


class Bars(Text):
    """A line of bars, of which a page makes a drawing."""

    @property
    def heights(self) -> list[int]:
        """From 0 to 8."""
        return [_BARS.index(bar) for bar in self.plain]


def sparkline(values: npt.NDArray[Any]) -> str:
    """Numbers as a line of bars.

    >>> sparkline(np.array([0, 1, 2, 4, 8]))
    ' ▁▂▄█'
    """
    if values.max() <= 0:
        return ""
    # A bar that is not empty must be seen.
    heights = np.ceil(values / values.max() * (len(_BARS) - 1)).astype(int)
    return "".join(_BARS[height] for height in heights)


# What all tables share

HEADING, BEST = "bold cyan", "bold green"
"""Colours of titles and questions, and of the best values."""


def make_table(title: str, *columns: str, words: Container[str] = ()) -> Table:
    """An empty table in the common style; columns of numbers are aligned right.

    The first column holds words, and so do those without a name and those that `words` names.
    """
    table = Table(
        title=Text(title), title_justify="left", title_style=HEADING, show_header=any(columns)
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


def list_table(title: str, rows: Mapping[str, str]) -> Table:
    """Names and what belongs to each, without a header."""
    table = make_table(title, "", "")
    for name, value in rows.items():
        table.add_row(name, Text(value))
    return table


def described(name: str, values: Mapping[str, object], *, most: int | None = None) -> str:
    """A name with some values, at most so many.

    >>> described("split", {"grow": 5.0, "by": "time"}, most=1), described("vanilla", {})
    ('split (grow 5, …)', 'vanilla')
    """
    listed = [
        f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in values.items()
    ]
    if most is not None and len(listed) > most:
        listed = [*listed[:most], "…"]
    return f"{name} ({', '.join(listed)})" if listed else name


def markdown_lines(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, words: Container[int]
) -> list[str]:
    """The lines of a table in Markdown; columns that do not hold `words` are aligned right.

    >>> print(*markdown_lines(("method", "MRR"), [("merge", ".358")], words={0}), sep=chr(10))
    | method | MRR |
    |---|--:|
    | merge | .358 |
    """
    rule = "|".join("---" if at in words else "--:" for at in range(len(header)))
    lines = [f"| {' | '.join(cells)} |" for cells in (header, *rows)]
    return [lines[0], f"|{rule}|", *lines[1:]]


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, also in a cell.

    >>> escaped("a|b_c")
    'a\\\\|b\\\\_c'
    """
    return re.sub(r"([\\|*_`<])", r"\\\1", text)
