"""Pictures of a graph and of its cuts, with time from left to right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from splime.graph import TemporalGraph
from splime.report.style import (
    HEAVY,
    INK,
    SMALL,
    date_axis,
    frequent,
    heading,
    make_figure,
    open_axes,
    remark,
    short,
    whole_numbers,
)
from splime.segmentation import Segmentation
from splime.statistics import facts_over_time

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 25
_TINTS = ("#b9d3ec", "#fbdcae")
"""Of the segments, by turns."""


def plot_facts_over_time(graph: TemporalGraph, *, most: int = _MOST) -> Figure:
    """Facts that hold at each timestamp: all of them above, the frequent predicates below.

    Each row is scaled to its own highest value, so that rare predicates are seen too.
    """
    order, counts = frequent(graph, most)
    all_holding = facts_over_time(graph)
    rows = 0.25 * len(order) + 0.3
    figure = make_figure(10, rows + 2.6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1.6, rows])
    edges = np.arange(len(graph.timeline) + 1) - 0.5
    above.stairs(all_holding.sum(axis=0), edges, fill=True, color="#0072b2")
    above.set_ylim(bottom=0)
    whole_numbers(above.yaxis)
    above.yaxis.set_major_formatter("{x:,.0f}")
    above.set_ylabel("facts that hold", fontsize=SMALL)
    open_axes(above)
    heading(
        above,
        f"{short(graph.name) or 'graph'}: {len(graph):,} facts, {len(graph.predicates):,}"
        f" predicates, {len(graph.timeline):,} timestamps",
    )
    holding = all_holding[order]
    share = holding / np.maximum(holding.max(axis=1, keepdims=True), 1)
    image = below.imshow(
        share, aspect="auto", cmap="YlGnBu", interpolation="nearest", vmin=0, vmax=1
    )
    labels = [f"{short(graph.predicates[p])}  ({counts[p]:,})" for p in order]
    below.set_yticks(range(len(order)), labels, fontsize=SMALL)
    date_axis(below, graph.timeline)
    bar = figure.colorbar(
        image, ax=below, pad=0.01, fraction=0.03, aspect=6 * rows, ticks=[0, 0.5, 1]
    )
    bar.ax.tick_params(labelsize=SMALL)
    remark(
        figure,
        "facts that hold, as a share of the predicate's own maximum; numbers of facts in brackets"
        + _not_shown(graph, order),
    )
    return figure


def plot_segmentation(
    segmentation: Segmentation, graph: TemporalGraph, *, most: int = _MOST
) -> Figure:
    """Predicates as rows, time from left to right: the segments tinted, the facts over them.

    Neighbouring segments have different tints; the height of the dark area is the number of facts
    that hold, scaled to the predicate's own maximum.
    """
    scopes = segmentation.predicates
    order, _ = frequent(graph, most)
    cuts = [scopes.cuts_of(name) for name in order]
    shapes = sum(len(each) + 1 + len(graph.timeline) for each in cuts)
    holding = facts_over_time(graph)
    figure = make_figure(10, 1.1 + 0.4 * len(order))
    axes = figure.subplots()
    edges = np.arange(len(graph.timeline) + 1) - 0.5
    for row, (name, own) in enumerate(zip(order, cuts, strict=True)):
        # A piece reaches from cut to cut; the ends of time are half a timestamp further out.
        bounds = np.concatenate([edges[:1], own / 2, edges[-1:]])
        axes.broken_barh(
            list(zip(bounds[:-1], np.diff(bounds), strict=True)),
            (row - 0.42, 0.84),
            facecolors=[_TINTS[piece % 2] for piece in range(len(own) + 1)],
            linewidths=0,
            rasterized=shapes > HEAVY,
            zorder=1,
        )
        share = holding[name] / max(int(holding[name].max()), 1)
        axes.stairs(
            row + 0.42 - 0.84 * share, edges, baseline=row + 0.42, fill=True, color=INK, alpha=0.6,
            linewidth=0, rasterized=shapes > HEAVY, zorder=2,
        )  # fmt: skip
    labels = [f"{short(graph.predicates[p])}  ({len(own) + 1:,})" for p, own in
              zip(order, cuts, strict=True)]  # fmt: skip
    axes.set_yticks(range(len(order)), labels, fontsize=SMALL)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(order) - 0.5, -0.5)
    axes.spines[:].set_visible(False)
    date_axis(axes, graph.timeline)
    method = short(str(segmentation.method.get("method", "segmentation")))
    heading(
        axes,
        f"{short(graph.name) or 'graph'}, {method}: {len(scopes.names):,} predicates in"
        f" {len(scopes):,} segments",
    )
    remark(
        figure,
        "tints change at cuts, segments in brackets; dark: facts that hold, of the predicate's"
        " maximum" + _not_shown(graph, order),
    )
    return figure


def _not_shown(graph: TemporalGraph, order: list[int]) -> str:
    left_out = len(graph.predicates) - len(order)
    return f"; {left_out:,} less frequent predicates are not shown" if left_out else ""
