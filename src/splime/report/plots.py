"""Pictures of a graph, of its cuts, and of how runs did on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from splime.errors import UsageError, check_name
from splime.graph import TemporalGraph
from splime.report import style
from splime.report.tables import STRATA, counted
from splime.segmentation import Segmentation
from splime.statistics import facts_over_time, frequent_predicates

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from splime.analysis.findings import ChangeCosts
    from splime.evaluation import Evaluation, Metrics
    from splime.methods.changepoint import Costs
    from splime.runs import Epoch

_MOST = 25
_TINTS = ("#b9d3ec", "#fbdcae")
"""Of neighbouring scopes."""


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
    style.open_axes(
        above,
        f"{style.short(graph.name) or 'graph'}: {len(graph):,} facts, {len(graph.predicates):,}"
        f" predicates, {len(graph.timeline):,} timestamps",
        y="facts that hold",
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
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure = style.make_figure(3.3 * columns + 0.4, 2.4 * rows + 0.8)
    panels = figure.subplots(rows, columns, squeeze=False)
    for axes in panels.flat[len(names) :]:
        axes.set_visible(False)
    for name, axes in zip(names, panels.flat, strict=False):
        style.open_axes(axes, style.short(name, 32))
        _draw_costs(axes, costs[name], method.epsilon)
    for axes in panels.flat[max(0, len(names) - columns) : len(names)]:
        axes.set_xlabel("change points", fontsize=style.SMALL)
    for axes in panels[:, 0]:
        axes.set_ylabel("total cost", fontsize=style.SMALL)
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


def plot_learning(histories: Mapping[str, Sequence[Epoch]]) -> Figure:
    """Loss and MRR on valid over the epochs of each run, the best epoch marked."""
    if not histories:
        raise UsageError("there are no runs to draw")
    validated = any(one.valid is not None for history in histories.values() for one in history)
    figure = style.make_figure(10, 2.7 * (1 + validated) + 0.5)
    panels = figure.subplots(1 + validated, 1, sharex=True, squeeze=False)[:, 0]
    handles, labels = [], []
    for number, (name, history) in enumerate(histories.items()):
        color = style.look(number)["color"]
        epochs, losses = [one.epoch for one in history], [one.loss for one in history]
        dot = "o" if len(epochs) == 1 else ""  # one point makes no line
        handles += panels[0].plot(epochs, losses, color=color, marker=dot, linewidth=1.5)
        labels.append(
            style.short(name) + (_draw_valid(panels[1], history, color) if validated else "")
        )
    for axes, title in zip(panels, ("loss", "MRR on valid"), strict=False):
        style.open_axes(axes, title)
    panels[-1].set_xlabel("epoch", fontsize=style.SMALL)
    style.whole_numbers(panels[-1].xaxis)
    style.add_legend(panels[0], handles, labels, loc="best")
    if validated:
        style.remark(
            figure, "MRR by protocol fact, filter exact; star: the best epoch, which is kept"
        )
    return figure


def _draw_valid(axes: Axes, history: Sequence[Epoch], color: str) -> str:
    """The MRR of each validation, with a star at the best one; what the legend says of it."""
    points = [(one.epoch, one.valid) for one in history if one.valid is not None]
    if not points:
        return ""
    axes.plot(*zip(*points, strict=True), color=color, marker="o", markersize=3, linewidth=1.5)
    epoch, best = max(points, key=lambda point: point[1])
    axes.plot([epoch], [best], color=color, marker="*", markersize=13, linestyle="")
    return f": best {best:.3f}, epoch {epoch:,}"


def plot_strata(evaluations: Mapping[str, Evaluation], *kinds: str, most: int = _MOST) -> Figure:
    """MRR of groups of facts: a panel for each kind of groups, a mark for each evaluation.

    The kinds are those of `Evaluation.strata`: predicate and period (drawn if none is named), time,
    train. Of the predicates those with the most queries are shown; periods are in order of time.
    """
    kinds = kinds or ("predicate", "period")
    _check_alike(evaluations, kinds)
    one = next(iter(evaluations.values()))
    name = one.filters[0]
    strata = {kind: [each.strata[name][kind] for each in evaluations.values()] for kind in kinds}
    labels = {kind: _labels(strata[kind], kind, most) for kind in kinds}
    sizes = [0.25 * len(each) + 0.55 for each in labels.values()]
    figure = style.make_figure(9, sum(sizes) + 0.5)
    panels = figure.subplots(len(kinds), 1, sharex=True, squeeze=False, height_ratios=sizes)[:, 0]
    for axes, kind in zip(panels, kinds, strict=True):
        handles = _draw_groups(axes, strata[kind], labels[kind])
        shown, total = len(labels[kind]), len({group for each in strata[kind] for group in each})
        few = f" (the {shown} most asked for of {total:,})" if shown < total else ""
        style.heading(axes, f"MRR by {STRATA.get(kind, kind)}{few}")
    panels[-1].set_xlim(0, None)
    if len(evaluations) > 1:
        style.add_legend(panels[0], handles, [style.short(each) for each in evaluations])
    style.remark(
        figure,
        f"protocol {one.protocol}, {one.split}, filter {name}; numbers of queries in brackets",
    )
    return figure


def _check_alike(evaluations: Mapping[str, Evaluation], kinds: Sequence[str]) -> None:
    """An error where evaluations cannot be compared."""
    if not evaluations:
        raise UsageError("there is nothing to draw")
    one = next(iter(evaluations.values()))
    name = one.filters[0]
    for label, each in evaluations.items():
        for what in ("protocol", "split", "ties", "leak_filter"):
            if getattr(each, what) != getattr(one, what):
                raise UsageError(
                    f"{label}: was evaluated with {what} {getattr(each, what)}, not"
                    f" {getattr(one, what)} as the first; such metrics do not compare"
                )
        for kind in kinds:
            check_name("kind of groups", kind, each.strata.get(name, {}))
        if "period" in kinds and [*each.strata[name]["period"]] != [*one.strata[name]["period"]]:
            raise UsageError(f"{label}: has other periods than the first; they do not compare")


def _labels(strata: Sequence[Mapping[str, Metrics]], kind: str, most: int) -> dict[str, str]:
    """The groups to show, each with its label: the name and its numbers of queries."""
    queries: dict[str, list[int]] = {}
    for each in strata:
        for group, metrics in each.items():
            queries.setdefault(group, []).append(metrics.queries)
    shown = [*queries]
    if kind == "predicate":
        shown = sorted(shown, key=lambda group: -max(queries[group]))[:most]
    ends = {group: sorted({min(queries[group]), max(queries[group])}) for group in shown}
    return {
        group: f"{style.short(group)}  ({' to '.join(f'{end:,}' for end in ends[group])})"
        for group in shown
    }


def _draw_groups(
    axes: Axes, strata: Sequence[Mapping[str, Metrics]], labels: Mapping[str, str]
) -> list[object]:
    """A row for each group, with a mark for each evaluation that has it; the marks' handles."""
    for row, group in enumerate(labels):
        values = [each[group].mrr for each in strata if group in each]
        axes.plot([min(values), max(values)], [row, row], color="#bbbbbb", linewidth=1, zorder=1)
    handles: list[object] = []
    for number, each in enumerate(strata):
        rows = [row for row, group in enumerate(labels) if group in each]
        values = [each[group].mrr for group in labels if group in each]
        handles += axes.plot(
            values, rows, linestyle="", markersize=6, alpha=0.9, zorder=2, **style.look(number)
        )
    style.open_axes(axes, grid="x")
    style.label_rows(axes, [*labels.values()])
    axes.tick_params(axis="x", labelbottom=True)
    return handles
