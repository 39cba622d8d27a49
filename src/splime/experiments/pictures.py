"""The figures of the main table, the grid and t-SNE, by the names of their files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splime.experiments.rows import MAIN, SWEEPS, TITLES, TSNE, VARIATIONS, Results, Row
from splime.experiments.tables import mrr
from splime.report.style import SMALL, add_legend, heading, look, make_figure, open_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TOLERANCE = 0.015
"""How far from the printed MRR a row may be and still count as the same."""
_PRINTED: Mapping[str, Any] = {
    "marker": "|",
    "color": "black",
    "markersize": 12,
    "markeredgewidth": 1.5,
}


def main_pictures(results: Results, _: Path) -> dict[str, Figure]:
    """A panel for each dataset; each row has the paper's MRR, ours, and what explains it."""
    figure = make_figure(9.5, 3.8)
    panels = figure.subplots(1, len(TITLES))
    for axes, (dataset, title) in zip(panels, TITLES.items(), strict=True):
        rows = [row for row in MAIN if row.dataset == dataset]
        for at, row in enumerate(rows):
            _plot_row(axes, results, row, at)
        axes.set_yticks(range(len(rows)), [row.title.split(", ")[0] for row in rows])
        axes.invert_yaxis()
        axes.use_sticky_edges = False  # bars would end where the panel does
        axes.autoscale_view()
        axes.xaxis.set_major_formatter(lambda value, _: mrr(value))
        axes.set_xlabel("MRR on test")
        open_axes(axes)
        heading(axes, title)
    marks = {
        f"printed, and {mrr(TOLERANCE)} around it": _PRINTED,
        "ours, from the lowest run to the highest": look(0),
        "with what explains the difference": {**look(1), "fillstyle": "none"},
    }
    handles = [panels[0].plot([], [], linestyle="none", **mark)[0] for mark in marks.values()]
    figure.legend(
        handles, list(marks), loc="outside lower center", ncols=3, frameon=False, fontsize=SMALL
    )
    return {"main": figure}


def _plot_row(axes: Axes, results: Results, row: Row, at: int) -> None:
    printed = row.printed["mrr"]
    axes.barh(at, 2 * TOLERANCE, left=printed - TOLERANCE, height=0.7, color="#e3e6ea")
    axes.plot(printed, at, linestyle="none", **_PRINTED)
    ran = results.average(row.cases)
    if ran.mrrs:
        axes.plot([min(ran.mrrs), max(ran.mrrs)], [at, at], color=look(0)["color"], linewidth=1.2)
        axes.plot(ran.mean["mrr"], at, markersize=6, **look(0))
    for variation in VARIATIONS:
        changed = results.average(variation.cases)
        if variation.explains and variation.row is row and changed.mrrs:
            axes.plot(changed.mean["mrr"], at, markersize=7, fillstyle="none", **look(1))


def grid_pictures(results: Results, _: Path) -> dict[str, Figure]:
    """A figure for each dataset."""
    return {f"grid-{dataset}": _plot_grid(results, dataset) for dataset in TITLES}


def _plot_grid(results: Results, dataset: str) -> Figure:
    """MRR on test against the number of predicates, a line for each method."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for sweep in SWEEPS:
        averages = [results.average(row.cases, split="test") for row in sweep.rows.values()]
        places = [(ran.predicates, ran.mean["mrr"]) for ran in averages if ran.mrrs]
        if sweep.dataset == dataset and places:
            lines[sweep.title] = sorted(places)
    figure = make_figure(7.5, 4.2)
    axes = figure.subplots()
    handles = [
        axes.plot(*zip(*places, strict=True), linewidth=1.2, markersize=5, **look(at))[0]
        for at, places in enumerate(lines.values())
    ]
    _few_ticks(axes, [predicates for places in lines.values() for predicates, _ in places])
    axes.set_xlabel("predicates")
    axes.set_ylabel("MRR on test (protocol triple, filter inter)")
    open_axes(axes)
    add_legend(axes, handles, list(lines), loc="upper left", bbox_to_anchor=(1.0, 1.0))
    heading(axes, f"{dataset}: TransE with the paper's settings, one seed")
    return figure


def _few_ticks(axes: Axes, predicates: list[float]) -> None:
    """Round numbers of predicates along a logarithmic axis, MRRs with three digits."""
    steps = [step * 10**power for power in range(1, 6) for step in (1, 2, 5)]
    low, high = min(predicates, default=10), max(predicates, default=100)
    ticks = [step for step in steps if low <= step <= high]
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter(lambda value, _: mrr(value))


def tsne_pictures(_: Results, runs: Path) -> dict[str, Figure]:
    """The paper's three figures, drawn from the folders of two runs."""
    from splime.analysis.embeddings import project
    from splime.report.embeddings import plot_predicate, plot_predicates
    from splime.runs import Run

    merge, random = (Run(runs / row.folder, device="cpu") for row in TSNE)
    return {
        "tsne-predicates": plot_predicates(project(merge)),
        "tsne-P54-merge": plot_predicate([project(merge)], "P54"),
        "tsne-P551-random": plot_predicate([project(random)], "P551"),
    }
