"""Maps of predicate embeddings by t-SNE, as in the paper's figures 1 and 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from splime.errors import UsageError, counted
from splime.reporting import style
from splime.segmentation import Scopes
from splime.statistics import Window, frequent_predicates, time_window
from splime.times import Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from splime.analysis.embeddings import Projection, Vectors

_PANEL = 6.0
"""Inches, of a panel's width and height."""
_NO_NAMES: Mapping[str, str] = MappingProxyType({})
_MEANING = (
    "smoothness: mean distance between scopes that are neighbours in time / between the others, of"
    " the vectors themselves; 1: time does not matter"
)


def plot_predicates(
    projection: Projection, *, most: int = 10, names: Mapping[str, str] = _NO_NAMES
) -> Figure:
    """Figure 1: all scoped predicates on a map by t-SNE, those of the most frequent ones drawn.

    `names` says what predicates are called where the graph only has their numbers.
    """
    graph = projection.run.graph
    figure = style.make_figure(_PANEL + 3.2, _PANEL)
    axes = figure.subplots()
    order, _ = frequent_predicates(graph)
    handles, labels = [], []
    for number, predicate in enumerate(order[:most].tolist()):
        x, y = projection.positions[_sources(projection) == predicate].T
        marks = style.series_style(number)
        handles.append(axes.scatter(x, y, s=26, linewidths=0, alpha=0.85, **marks))
        labels.append(f"{_called(graph.predicates[predicate], names)}  ({len(x):,})")
    _bare(axes)
    style.add_legend(axes, handles, labels)
    style.heading(
        axes,
        f"{_title(projection, projection.run.path.resolve().name)}: t-SNE of"
        f" {len(projection.scopes):,} scoped predicates"
        f"\nsmoothness over time: {_ratio(projection.smoothness.overall)}",
    )
    shown = f"; drawn: the {most} most frequent predicates" if len(order) > most else ""
    style.remark(figure, f"numbers of scopes in brackets{shown}\n{_MEANING}")
    return figure


def plot_predicate(
    projections: Sequence[Projection],
    predicate: str | None = None,
    *,
    names: Mapping[str, str] = _NO_NAMES,
) -> Figure:
    """Figure 2: the scopes of one predicate on the map, run beside run, joined in order of time.

    Without a name it is the one that is cut most in the run that cuts it least, since how smooth a
    predicate is depends on its facts more than on the method that cut it. Colours go by
    the end of the scope, from red (long ago) to blue (recent).
    """
    from splime.analysis.comparing import run_names

    if not projections:
        raise UsageError("there are no runs to draw")
    runs = run_names([projection.run for projection in projections])
    figure = style.make_figure(_PANEL * len(projections), _PANEL + 0.6)
    panels = figure.subplots(1, len(projections), squeeze=False)[0]
    predicate = predicate or _most_cut(projections)
    points = []
    for axes, projection, name in zip(panels, projections, runs, strict=True):
        scopes = projection.run.segmentation.predicates
        shown = _sources(projection) == scopes.names.id(predicate)
        if not shown.any():
            raise UsageError(f"{projection.run.path}: train has no facts of {predicate!r}")
        window = time_window(projection.run.graph)
        numbers, positions = projection.scopes[shown], projection.positions[shown]
        points.append((positions, *_draw_path(axes, scopes, numbers, positions, window)))
        smooth = projection.smoothness
        own = smooth.predicates.get(predicate)
        count = counted(int(shown.sum()), "scope")
        style.heading(
            axes,
            f"{_title(projection, name)}\n{_called(predicate, names)}: {count}, smoothness"
            f" {_ratio(own and own.ratio)} (all predicates {_ratio(smooth.overall)})",
        )
    style.remark(figure, _MEANING)
    figure.draw_without_rendering()  # so that it is known how much room labels have
    for axes, each in zip(panels, points, strict=True):
        _label_points(axes, *each)
    return figure


def _called(predicate: str, names: Mapping[str, str]) -> str:
    name = names.get(predicate)
    return style.short(predicate if name is None else f"{name} ({predicate})", 36)


def _most_cut(projections: Sequence[Projection]) -> str:
    """The predicate with the most scopes in the run with the fewest."""
    counts = []
    for projection in projections:
        graph = projection.run.graph
        names, (order, _) = graph.predicates, frequent_predicates(graph)
        scopes = np.bincount(_sources(projection), minlength=len(names)).tolist()
        counts.append({names[predicate]: scopes[predicate] for predicate in order.tolist()})
    fewest = {name: min(each.get(name, 0) for each in counts) for name in counts[0]}
    return max(fewest, key=lambda name: fewest[name])


def _sources(projection: Projection) -> Ints:
    sources = projection.run.segmentation.predicates.sources
    return sources[projection.scopes].astype(np.int64)


def _draw_path(
    axes: Axes, scopes: Scopes, shown: Ints, positions: Vectors, window: Window
) -> tuple[list[str], Any]:
    """Points in the order of time, and the lines between them; their dates and colours."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    red_to_blue = ["#d7191c", "#b0307a", "#7a4fc0", "#1f5fd6"]  # all dark enough for white
    colors = LinearSegmentedColormap.from_list("old to recent", red_to_blue)
    last = np.clip(scopes.timeline.ends[scopes.last[shown]], window.first, window.last)
    window = Window(int(last.min()), int(last.max()), int(last.min()))
    last = last - window.origin
    among = Normalize(*window.ends)
    lines = LineCollection(
        np.stack([positions[:-1], positions[1:]], axis=1).tolist(),
        colors=colors(among(last[1:])),
        linewidths=1.1,
        alpha=0.7,
        zorder=1,
    )
    axes.add_collection(lines)
    x, y = positions.T
    points = axes.scatter(x, y, c=last, cmap=colors, norm=among, s=24, linewidths=0, zorder=3)
    axes.margins(0.12, 0.06)  # for labels
    _bare(axes)
    dates = [scopes.scope(scope)[2:4] for scope in shown.tolist()]
    labels = [begin if begin == end else f"{begin}..{end}" for begin, end in dates]
    bar = axes.figure.colorbar(
        points, ax=axes, location="bottom", fraction=0.03, pad=0.01, aspect=60
    )
    ticks, texts = style.date_ticks(window, scopes.timeline.granularity, most=7)
    bar.set_ticks([tick - window.origin for tick in ticks], labels=texts, fontsize=7)
    bar.set_label("end of the scope", fontsize=7, labelpad=1)
    return labels, colors(among(last))


def _label_points(axes: Axes, positions: Vectors, labels: Sequence[str], colors: Any) -> None:
    """Labels that do not lie on each other, nor (but for the first and the last) on a point.

    First come the first and the last one, then those in between.
    """
    right = positions[:, 0] > (positions[:, 0].min() + positions[:, 0].max()) / 2
    drawn: list[Any] = []
    points = axes.transData.transform(positions)
    for number, place in enumerate(_halving(len(labels))):
        text = axes.annotate(
            labels[place],
            positions[place],
            (-4 if right[place] else 4, 3),
            textcoords="offset points",
            ha="right" if right[place] else "left",
            fontsize=7,
            color=colors[place],
            zorder=2,  # below the points, above the lines
        )
        text.set_in_layout(False)
        box = text.get_window_extent()
        on_points = ((points > box.min) & (points < box.max)).all(axis=1)
        if box.count_overlaps(drawn) or (number > 1 and on_points.any()):
            text.remove()
            continue
        drawn.append(box)
        text.set_bbox({"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.2})


def _halving(count: int) -> list[int]:
    """Places in an order that is spread evenly wherever it is broken off.

    >>> _halving(6)
    [0, 5, 2, 1, 3, 4]
    """
    places, parts = [0, count - 1][:count], [(0, count - 1)]
    for left, right in parts:
        if right - left > 1:
            middle = (left + right) // 2
            places.append(middle)
            parts += [(left, middle), (middle, right)]
    return places


def _bare(axes: Axes) -> None:
    """No numbers, since places on a map of t-SNE have none worth reading; but one scale."""
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color("#bbbbbb")


def _title(projection: Projection, name: str) -> str:
    config = projection.run.config
    return f"{style.short(name, 32)} ({config['method']['name']}, {config['settings']['model']})"


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
