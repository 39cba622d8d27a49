"""Pictures of a graph and of its cuts: facts over time, scopes, costs of change points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from splime.errors import UsageError
from splime.graph import TemporalGraph
from splime.report import style
from splime.report.tables import counted
from splime.segmentation import Segmentation
from splime.statistics import facts_over_time, frequent_predicates

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from splime.analysis.findings import ChangeCosts
    from splime.methods import ChangePointSplit
    from splime.methods.changepoint import Costs

_MOST = 25
_TINTS = ("#b9d3ec", "#fbdcae")
"""Of neighbouring scopes."""
_COLUMNS = 3


def plot_facts_over_time(graph: TemporalGraph, *, most: int = _MOST) -> Figure:
    """Facts that hold at each timestamp: all of them above, the frequent predicates below.

    Each row is scaled to its own highest value, so that rare predicates are seen too.
    """
    order, counts = frequent_predicates(graph)
    order = order[:most]
    all_holding = facts_over_time(graph)
    rows = 0.25 * len(order) + 0.3
    figure = style.make_figure(10, rows + 2.6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1.6, rows])
    edges = np.arange(len(graph.timeline) + 1) - 0.5
    above.stairs(all_holding.sum(axis=0), edges, fill=True, color="#0072b2")
    above.set_ylim(bottom=0)
    style.whole_numbers(above.yaxis)
    above.yaxis.set_major_formatter("{x:,.0f}")
    above.set_ylabel("facts that hold", fontsize=style.SMALL)
    style.open_axes(above)
    style.heading(
        above,
        f"{style.short(graph.name) or 'graph'}: {len(graph):,} facts, {len(graph.predicates):,}"
        f" predicates, {len(graph.timeline):,} timestamps",
    )
    holding = all_holding[order]
    share = holding / np.maximum(holding.max(axis=1, keepdims=True), 1)
    image = below.imshow(
        share, aspect="auto", cmap="YlGnBu", interpolation="nearest", vmin=0, vmax=1
    )
    style.label_rows(
        below, [f"{style.short(graph.predicates[p])}  ({counts[p]:,})" for p in order.tolist()]
    )
    style.date_axis(below, graph.timeline)
    bar = figure.colorbar(
        image, ax=below, pad=0.01, fraction=0.03, aspect=6 * rows, ticks=[0, 0.5, 1]
    )
    bar.ax.tick_params(labelsize=style.SMALL)
    style.remark(
        figure,
        "facts that hold, as a share of the predicate's own maximum; numbers of facts in brackets",
        left_out=len(counts) - len(order),
    )
    return figure


def plot_segmentation(
    segmentation: Segmentation, graph: TemporalGraph, *, most: int = _MOST
) -> Figure:
    """Predicates as rows, time from left to right: the scopes tinted, the facts over them.

    Neighbouring scopes have different tints; the height of the dark area is the number of facts
    that hold, scaled to the predicate's own maximum.
    """
    scopes = segmentation.predicates
    order, _ = frequent_predicates(graph)
    cuts = {source: scopes.cuts_of(source) for source in order[:most].tolist()}
    heavy = sum(len(each) + 1 + len(graph.timeline) for each in cuts.values()) > style.HEAVY
    holding = facts_over_time(graph)
    figure = style.make_figure(10, 1.1 + 0.4 * len(cuts))
    axes = figure.subplots()
    edges = np.arange(len(graph.timeline) + 1) - 0.5
    for row, (source, own) in enumerate(cuts.items()):
        # A scope reaches from cut to cut; the ends of time are half a timestamp further out.
        bounds = np.concatenate([edges[:1], own / 2, edges[-1:]])
        axes.broken_barh(
            list(zip(bounds[:-1], np.diff(bounds), strict=True)),
            (row - 0.42, 0.84),
            facecolors=[_TINTS[scope % 2] for scope in range(len(own) + 1)],
            linewidths=0,
            rasterized=heavy,
            zorder=1,
        )
        share = holding[source] / max(int(holding[source].max()), 1)
        axes.stairs(
            row + 0.42 - 0.84 * share, edges, baseline=row + 0.42, fill=True, color=style.INK,
            alpha=0.6, linewidth=0, rasterized=heavy, zorder=2,
        )  # fmt: skip
    style.label_rows(
        axes, [f"{style.short(scopes.names[p])}  ({len(own) + 1:,})" for p, own in cuts.items()]
    )
    axes.spines[:].set_visible(False)
    style.date_axis(axes, graph.timeline)
    method = style.short(str(segmentation.method.get("method", "segmentation")))
    style.heading(
        axes,
        f"{style.short(graph.name) or 'graph'}, {method}: {len(scopes.names):,} predicates in"
        f" {len(scopes):,} scopes",
    )
    style.remark(
        figure,
        "tints change at cuts, scopes in brackets; dark: facts that hold, of the predicate's"
        " maximum",
        left_out=len(order) - len(cuts),
    )
    return figure


def plot_change_costs(graph: TemporalGraph, change_costs: ChangeCosts, *, most: int = 9) -> Figure:
    """Cost against the number of change points, for the most frequent predicates.

    The search begins on the right, with as many change points as there is room for, and removes
    them one by one until the method stops it; the dot is where that was.
    """
    method, costs = change_costs
    order, _ = frequent_predicates(graph)
    names = [name for p in order.tolist() if (name := graph.predicates[p]) in costs][:most]
    if not names:
        raise UsageError("there are no facts to fit on")
    columns = min(_COLUMNS, len(names))
    rows = -(-len(names) // columns)
    figure = style.make_figure(3.3 * columns + 0.4, 2.4 * rows + 0.8)
    panels = figure.subplots(rows, columns, squeeze=False)
    for axes in panels.flat[len(names) :]:
        axes.set_visible(False)
    for name, axes in zip(names, panels.flat, strict=False):
        _draw_costs(axes, costs[name], method.epsilon)
        style.heading(axes, style.short(name, 32))
    for axes in panels.flat[max(0, len(names) - columns) : len(names)]:
        axes.set_xlabel("change points", fontsize=style.SMALL)
    for axes in panels[:, 0]:
        axes.set_ylabel("total cost", fontsize=style.SMALL)
    style.remark(figure, _stop(method), left_out=len(costs) - len(names))
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
    style.open_axes(axes)
    style.whole_numbers(axes.xaxis)


def _stop(method: ChangePointSplit) -> str:
    """When the search stops."""
    if method.epsilon is not None:
        return f"scopes are joined while the cost is below ε = {method.epsilon:g} (dashed)"
    if method.penalty is not None:
        return f"scopes are joined while that raises the cost by less than {method.penalty:g}"
    return f"scopes are joined until {method.changes:,} change points are left"
