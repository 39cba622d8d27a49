"""A comparison of runs as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from splime.report.comparison import title
from splime.report.style import INK, SMALL, heading, make_figure, open_axes, short
from splime.runs.comparison import Comparison, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLORS = {
    "the best": INK,
    "difference from the best could be chance": "#0072b2",
    "lower than the best": "#b0b7c3",
}


def plot_comparison(found: Comparison) -> Figure:
    """The MRR of every run as a dot with its confidence interval, best first.

    Colours tell which could be as good as the best: overlapping intervals do not, since the runs
    were asked the same, and the test is of their differences.
    """
    figure = make_figure(8, 1.4 + 0.3 * len(found.rows))
    axes = figure.subplots()
    seen: set[str] = set()
    for place, row in enumerate(found.rows):
        kind = _kind(found, row)
        low, high = row.intervals["mrr"]
        mrr, color = row.metrics.mrr, _COLORS[kind]
        axes.plot([low, high], [place, place], color=color, linewidth=2, solid_capstyle="round")
        label = None if kind in seen else kind
        axes.plot(mrr, place, "o", markersize=7, color=color, label=label)
        axes.annotate(
            f"{mrr:.3f}",
            (high, place),
            (6, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
        )
        seen.add(kind)
    axes.set_yticks(range(len(found.rows)), [short(row.name) for row in found.rows])
    axes.set_ylim(len(found.rows) - 0.5, -0.5)
    axes.margins(x=0.12)
    axes.set_xlabel(f"MRR, with {100 * found.level:g} % confidence interval", fontsize=SMALL)
    heading(axes, short(title(found), 90))
    axes.grid(axis="x", color="#e4e7ec", linewidth=0.8)
    axes.set_axisbelow(True)
    open_axes(axes)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    if found.pairs:
        figure.legend(loc="outside lower left", ncols=3, frameon=False, fontsize=SMALL)
    return figure


def _kind(found: Comparison, row: Row) -> str:
    best, alike, lower = _COLORS
    if row.name == found.best(row.test_set).name:
        return best
    return alike if found.like_the_best(row) else lower
