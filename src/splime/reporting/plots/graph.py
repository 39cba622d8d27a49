"""Pictures of a graph and of its cuts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from splime.errors import UsageError, counted
from splime.graph import TemporalGraph
from splime.methods import change_method
from splime.methods.changepoint import Costs, change_costs
from splime.reporting import style
from splime.segmentation import Segmentation
from splime.statistics import (
    Window,
    begins_after_train,
    evenly,
    facts_over_time,
    frequent_predicates,
    time_window,
)
from splime.times import format_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from splime.times import Ints


MOST = 25
"""Predicates that are drawn."""
_CELLS = 1_500
"""How many stretches of time the picture of facts tells apart: its pixels."""
_TINTS = ("#b9d3ec", "#fbdcae")
"""Of neighbouring scopes."""


def plot_facts_over_time(graph: TemporalGraph, *, most: int = MOST) -> Figure:
    """Facts that hold at each time: all of them above, the frequent predicates below.

    Each row is scaled to its own highest value, so that rare predicates are seen too. Where valid
    or test begins after all facts of train, a line marks it.
    """
    order, counts = frequent_predicates(graph)
    # A part of a graph keeps the names of the whole; those without facts have nothing to show.
    with_facts = max(1, int(np.count_nonzero(counts)))
    order = order[: min(most, with_facts)]
    limits, in_all, of_predicates = facts_over_time(graph, order)
    window = time_window(graph)
    rows = 0.25 * len(order) + 0.3
    figure = style.make_figure(10, rows + 2.6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1.6, rows])
    above.stairs(in_all, limits, fill=True, color="#0072b2")
    above.set_ylim(bottom=0)
    style.whole_numbers(above.yaxis)
    above.yaxis.set_major_formatter("{x:,.0f}")
    style.open_axes(
        above,
        f"{style.short(graph.name) or 'graph'}: {counted(len(graph), 'fact')},"
        f" {counted(len(graph.predicates), 'predicate')},"
        f" {counted(len(graph.timeline), 'timestamp')}",
        y="facts that hold",
    )
    holding = evenly(limits, of_predicates, window, _CELLS)
    highest = holding.max(axis=1, keepdims=True)
    image = below.imshow(
        holding / np.where(highest, highest, 1),
        aspect="auto", cmap="YlGnBu", interpolation="nearest", vmin=0, vmax=1,
        extent=(*window.ends, len(order) - 0.5, -0.5),
    )  # fmt: skip
    style.label_rows(
        below, [f"{style.short(graph.predicates[p])}  ({counts[p]:,})" for p in order.tolist()]
    )
    style.date_axis(below, window, graph.timeline.granularity)
    _mark_splits(graph, window, above, below)
    bar = figure.colorbar(
        image, ax=below, pad=0.01, fraction=0.03, aspect=6 * rows, ticks=[0, 0.5, 1]
    )
    bar.ax.tick_params(labelsize=style.SMALL)
    style.remark(
        figure,
        "facts that hold, as a share of the predicate's own maximum; numbers of facts in brackets",
        left_out=with_facts - len(order),
        more=window.remark,
    )
    return figure


def _mark_splits(graph: TemporalGraph, window: Window, above: Axes, below: Axes) -> None:
    """A line where valid or test begins after train."""
    lines = begins_after_train(graph)
    above.set_ylim(top=above.get_ylim()[1] * (1 + 0.15 * len(lines)))  # room for their names
    for number, (split, begin) in enumerate(lines.items()):
        place = begin - window.origin - 0.5
        for axes in (above, below):
            axes.axvline(place, color="#d55e00", linewidth=1.2, linestyle="--")
        (date,) = format_ticks(np.array([begin]), graph.timeline.granularity)
        above.text(
            place, 0.98 - 0.12 * number, f"{split} begins: {date} ",
            transform=above.get_xaxis_transform(), ha="right", va="top", fontsize=style.SMALL,
            color="#d55e00",
        )  # fmt: skip


def plot_segmentation(
    segmentation: Segmentation, graph: TemporalGraph, *, most: int = MOST
) -> Figure:
    """Predicates as rows, time from left to right: the scopes tinted, the facts over them.

    Neighbouring scopes have different tints; the height of the dark area is the number of facts
    that hold, scaled to the predicate's own maximum.
    """
    scopes, rows = segmentation.predicates, _PredicateRows(graph, most)
    cuts = {predicate: scopes.cuts_of(predicate) for predicate in rows.holding}
    heavy = sum(len(each) + 1 + len(graph.timeline) for each in cuts.values()) > style.HEAVY
    figure = style.make_figure(10, 1.1 + 0.4 * len(cuts))
    axes = figure.subplots()
    for row, (predicate, each) in enumerate(cuts.items()):
        rows.draw_scopes(axes, row, each, heavy)
        rows.draw_holding(axes, row, predicate, heavy)
    style.label_rows(
        axes, [f"{style.short(scopes.names[p])}  ({len(cuts[p]) + 1:,})" for p in cuts]
    )
    method = style.short(str(segmentation.method.get("method", "segmentation")))
    style.heading(
        axes,
        f"{style.short(graph.name) or 'graph'}, {method}:"
        f" {counted(len(scopes.names), 'predicate')} in {counted(len(scopes), 'scope')}",
    )
    rows.finish(
        figure,
        axes,
        "tints change at cuts, scopes in brackets; dark: facts that hold, of the predicate's"
        " maximum",
    )
    return figure


def plot_cuts(
    segmentations: Mapping[str, Segmentation], graph: TemporalGraph, *, most: int = 5
) -> Figure:
    """Where several segmentations cut the most frequent predicates: their facts, below the scopes.

    The segmentations have names; those that cut nothing are left out.
    """
    cut = {
        name: one.predicates
        for name, one in segmentations.items()
        if len(one.predicates) > len(one.predicates.names)
    }
    if not cut:
        raise UsageError("no predicate is cut")
    rows = _PredicateRows(graph, most)
    places: dict[float, str] = {}
    figure = style.make_figure(10, 1.0 + 0.19 * len(rows.holding) * (len(cut) + 1.6))
    axes = figure.subplots()
    row = 0.0
    for predicate in rows.holding:
        cuts = {name: scopes.cuts_of(predicate) for name, scopes in cut.items()}
        heavy = sum(map(len, cuts.values())) + len(graph.timeline) > style.HEAVY / most
        rows.draw_holding(axes, row, predicate, heavy)
        facts = int(rows.counts[predicate])
        places[row] = f"{style.short(graph.predicates[predicate])}  ({facts:,} facts)"
        for name, each in cuts.items():
            row += 1
            rows.draw_scopes(axes, row, each, heavy)
            places[row] = f"{style.short(name, 24)}  ({len(each) + 1:,})"
        row += 1.6
    axes.set_yticks([*places], [*places.values()], fontsize=style.SMALL)
    for label in axes.get_yticklabels()[:: len(cut) + 1]:
        label.set_fontweight("bold")
    axes.set_ylim(row - 1.0, -0.7)
    axes.tick_params(axis="y", length=0)
    rows.finish(
        figure,
        axes,
        "dark: facts that hold, of the predicate's maximum; below, the scopes of each run: tints"
        " change at cuts, numbers of scopes in brackets",
    )
    return figure


class _PredicateRows:
    """The most frequent predicates as rows, time from left to right."""

    def __init__(self, graph: TemporalGraph, most: int) -> None:
        order, self.counts = frequent_predicates(graph)
        self._left_out = max(0, len(order) - most)
        self._limits, _, holding = facts_over_time(graph, order[:most])
        self.holding = dict(zip(order[:most].tolist(), holding, strict=True))
        """For each predicate, how many of its facts hold over time."""
        self._window, self._timeline = time_window(graph), graph.timeline

    def draw_scopes(self, axes: Axes, row: float, cuts: Ints, heavy: bool) -> None:
        """Scopes as a row of tints that change at the cuts."""
        # A scope reaches from cut to cut: to the middle of a timestamp, or just before the next.
        starts, ends, at = self._timeline.starts, self._timeline.ends, (cuts + 1) // 2
        places = np.where(cuts % 2, starts[at] - 0.5, (starts[at] + ends[at]) / 2)
        inside = places - self._window.origin
        bounds = np.concatenate([self._limits[:1], inside, self._limits[-1:]])
        axes.broken_barh(
            list(zip(bounds[:-1], np.diff(bounds), strict=True)),
            (row - 0.42, 0.84),
            facecolors=[_TINTS[scope % 2] for scope in range(len(cuts) + 1)],
            linewidths=0,
            rasterized=heavy,
            zorder=1,
        )

    def draw_holding(self, axes: Axes, row: float, predicate: int, heavy: bool) -> None:
        """The number of facts that hold as a dark area, as high as its row."""
        from matplotlib.patches import StepPatch

        holding = self.holding[predicate]
        share = holding / max(int(holding.max()), 1)
        steps = StepPatch(
            row + 0.42 - 0.84 * share, self._limits, baseline=row + 0.42, fill=True,
            color=style.INK, alpha=0.6, linewidth=0, rasterized=heavy, zorder=2,
        )  # fmt: skip
        axes.add_artist(steps)  # the bars set the limits; `stairs` looks for them at every step

    def finish(self, figure: Figure, axes: Axes, text: str) -> None:
        """The axis of time, and what one must know to read the picture."""
        axes.spines[:].set_visible(False)
        style.date_axis(axes, self._window, self._timeline.granularity)
        style.remark(figure, text, left_out=self._left_out, more=self._window.remark)


def plot_change_costs(segmentation: Segmentation, graph: TemporalGraph, *, most: int = 9) -> Figure:
    """Cost against the number of change points, for the most frequent predicates.

    The search begins on the right, with as many change points as there is room for, and removes
    them one by one until the method stops it; the dot is where that was.
    """
    method = change_method(segmentation)
    costs = change_costs(graph, method)
    order, _ = frequent_predicates(graph)
    names = [name for p in order.tolist() if (name := graph.predicates[p]) in costs][:most]
    if not names:
        raise UsageError("there are no facts to fit on")
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure = style.make_figure(3.3 * columns + 0.4, 2.4 * rows + 0.8)
    for place, name in enumerate(names):
        axes = figure.add_subplot(rows, columns, place + 1)
        style.open_axes(axes, style.short(name, 32), "change points", "total cost")
        _draw_costs(axes, costs[name], method.epsilon)
    if method.epsilon is not None:
        stop = f"while the cost is below ε = {method.epsilon:g} (dashed)"
    elif method.penalty is not None:
        stop = f"while that raises the cost by less than {method.penalty:g}"
    else:
        stop = f"until {method.changes:,} change points are left"
    style.remark(figure, f"scopes are joined {stop}", left_out=len(costs) - len(names))
    return figure


def _draw_costs(axes: Axes, costs: Costs, epsilon: float | None) -> None:
    axes.plot(costs.changes, costs.costs, color="#0072b2", linewidth=1.5)
    if epsilon is not None:
        axes.axhline(epsilon, color="#666666", linestyle="--", linewidth=1)
    axes.plot([costs.chosen], [costs.cost], color="#d55e00", marker="o", linestyle="")
    axes.text(
        0.97, 0.95, f"{counted(costs.chosen, 'change point')},\ncost {costs.cost:.3g}",
        transform=axes.transAxes, ha="right", va="top", fontsize=style.SMALL, color="#d55e00",
    )  # fmt: skip
    axes.set_ylim(bottom=0)
    style.whole_numbers(axes.xaxis)
