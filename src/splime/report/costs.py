"""What change points cost: the total cost as the search joins segments, and where it stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from splime.errors import UsageError
from splime.graph import TemporalGraph
from splime.methods import ChangePointSplit
from splime.methods.changepoint import Costs, change_costs
from splime.report.style import (
    SMALL,
    frequent,
    heading,
    make_figure,
    open_axes,
    remark,
    short,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 3


def plot_change_costs(graph: TemporalGraph, method: ChangePointSplit, *, most: int = 9) -> Figure:
    """Cost against the number of change points, for the most frequent predicates.

    The search begins on the right, with as many change points as there is room for, and joins
    segments until the method stops it; the dot is where that was.
    """
    costs = change_costs(graph, method)
    order, _ = frequent(graph, len(graph.predicates))
    names = [name for p in order if (name := graph.predicates[p]) in costs][:most]
    if not names:
        raise UsageError("there are no facts to fit on")
    columns = min(_COLUMNS, len(names))
    rows = -(-len(names) // columns)
    figure = make_figure(3.3 * columns + 0.4, 2.4 * rows + 0.8)
    panels = figure.subplots(rows, columns, squeeze=False)
    for axes in panels.flat[len(names) :]:
        axes.set_visible(False)
    for name, axes in zip(names, panels.flat, strict=False):
        _draw(axes, costs[name], method.epsilon)
        heading(axes, short(name, 32))
    for axes in panels.flat[max(0, len(names) - columns) : len(names)]:
        axes.set_xlabel("change points", fontsize=SMALL)
    for axes in panels[:, 0]:
        axes.set_ylabel("total cost", fontsize=SMALL)
    left_out = len(costs) - len(names)
    shown = f"; {left_out:,} less frequent predicates are not shown" if left_out else ""
    remark(figure, f"{_rule(method)}{shown}")
    return figure


def _draw(axes: Axes, costs: Costs, epsilon: float | None) -> None:
    axes.plot(costs.changes, costs.costs, color="#0072b2", linewidth=1.5)
    if epsilon is not None:
        axes.axhline(epsilon, color="#666666", linestyle="--", linewidth=1)
    axes.plot([costs.chosen], [costs.cost], color="#d55e00", marker="o", linestyle="")
    changes = "1 change point" if costs.chosen == 1 else f"{costs.chosen:,} change points"
    axes.text(
        0.97, 0.95, f"{changes},\ncost {costs.cost:.3g}", transform=axes.transAxes, ha="right",
        va="top", fontsize=SMALL, color="#d55e00",
    )  # fmt: skip
    axes.set_ylim(bottom=0)
    open_axes(axes)
    whole_numbers(axes.xaxis)


def _rule(method: ChangePointSplit) -> str:
    """Where the search stops."""
    if method.epsilon is not None:
        return f"segments are joined while the cost is below ε = {method.epsilon:g} (dashed)"
    if method.penalty is not None:
        return f"segments are joined while that raises the cost by less than {method.penalty:g}"
    return f"segments are joined until {method.changes:,} change points are left"
