"""The main table at a glance: the paper's MRR and ours, row by row."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from splime.experiments.figures import average, figures_of
from splime.experiments.main_table import Row, rows
from splime.experiments.results import Results
from splime.experiments.table import TITLES, mrr
from splime.experiments.variations import variations

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TOLERANCE = 0.015
"""How far from the printed MRR a row may be and still count as the same."""


def pictures(results: Results, _: Path) -> dict[str, Figure]:
    """The figure by the name of its file."""
    return {"main": plot_main(results)}


def plot_main(results: Results) -> Figure:
    """A panel for each dataset; each row has the paper's figure, ours, and what explains it."""
    from splime.report.style import SMALL, heading, look, make_figure, open_axes

    figure = make_figure(9.5, 3.8)
    panels = figure.subplots(1, len(TITLES))
    for axes, (dataset, title) in zip(panels, TITLES.items(), strict=True):
        own = [row for row in rows() if row.dataset == dataset]
        for at, row in enumerate(own):
            _plot_row(axes, results, row, at)
        axes.set_yticks(range(len(own)), [row.title.split(", ")[0] for row in own])
        axes.invert_yaxis()
        axes.use_sticky_edges = False  # bars would end where the panel does
        axes.autoscale_view()
        axes.xaxis.set_major_formatter(lambda value, _: mrr(value))
        axes.set_xlabel("MRR on test")
        open_axes(axes)
        heading(axes, title)
    ours, explained = look(0), look(1)
    handles = [
        panels[0].plot([], [], "|", color="black", markersize=12, markeredgewidth=1.5)[0],
        panels[0].plot([], [], linestyle="none", **ours)[0],
        panels[0].plot([], [], linestyle="none", fillstyle="none", **explained)[0],
    ]
    labels = [
        f"printed, and {mrr(TOLERANCE)} around it",
        "ours, from the lowest run to the highest",
        "with what explains the difference",
    ]
    figure.legend(
        handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=SMALL
    )
    return figure


def _plot_row(axes: Axes, results: Results, row: Row, at: int) -> None:
    from splime.report.style import look

    printed = row.printed["mrr"]
    axes.barh(at, 2 * TOLERANCE, left=printed - TOLERANCE, height=0.7, color="#e3e6ea")
    axes.plot(printed, at, "|", color="black", markersize=12, markeredgewidth=1.5)
    found = [figures["mrr"] for case in row.cases() if (figures := figures_of(results, case))]
    if found:
        axes.plot([min(found), max(found)], [at, at], color=look(0)["color"], linewidth=1.2)
        axes.plot(fmean(found), at, markersize=6, **look(0))
    for variation in variations():
        if variation.explains and variation.row == row:
            with_it = average(results, variation.changed)
            if with_it is not None:
                axes.plot(with_it.mean["mrr"], at, markersize=7, fillstyle="none", **look(1))
