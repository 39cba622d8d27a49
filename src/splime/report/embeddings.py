"""Maps of predicate embeddings by t-SNE: the paper's figures 1 and 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from splime.errors import UsageError
from splime.report.style import (
    add_legend,
    date_ticks,
    frequent,
    heading,
    look,
    make_figure,
    remark,
    short,
)
from splime.runs.names import run_names
from splime.segmentation import Scopes
from splime.times import Bools, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

    from splime.runs import Run
    from splime.runs.projection import Vectors
    from splime.runs.smoothness import Smoothness

_PANEL = 6.0
"""Inches, of a panel's width and height."""
_OLD_TO_RECENT = ("#d7191c", "#b0307a", "#7a4fc0", "#1f5fd6")
"""From red to blue, all dark enough for white."""
_MEANING = (
    "smoothness: mean distance between scopes that are neighbours in time / between the others, of"
    " the vectors themselves; 1: time does not matter"
)


def plot_predicates(run: Run, *, most: int = 10, seed: int = 0) -> Figure:
    """Figure 1: all scoped predicates on a map by t-SNE, those of the most frequent ones drawn."""
    from splime.runs.projection import project
    from splime.runs.smoothness import smoothness

    figure = make_figure(_PANEL + 3.2, _PANEL)
    projection = project(run, seed=seed)
    source = run.segmentation.predicates.sources[projection.scopes]
    order, _ = frequent(run.graph, most)
    axes = figure.subplots()
    handles, names = [], []
    for number, predicate in enumerate(order):
        own = projection.positions[source == predicate]
        handles.append(
            axes.scatter(own[:, 0], own[:, 1], s=26, linewidths=0, alpha=0.85, **look(number))
        )
        names.append(f"{short(run.graph.predicates[predicate])}  ({len(own):,})")
    _bare(axes)
    add_legend(axes, handles, names, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    overall = _overall(smoothness(run))
    heading(
        axes,
        f"{_described(run, run_names([run])[0])}: t-SNE of {len(source):,} scoped predicates"
        f"\nsmoothness over time: {overall}",
    )
    left_out = len(run.graph.predicates) - len(order)
    shown = f"; drawn: the {len(order)} most frequent predicates" if left_out else ""
    remark(figure, f"numbers of scopes in brackets{shown}\n{_MEANING}")
    return figure


def plot_predicate(runs: Sequence[Run], predicate: str | None = None, *, seed: int = 0) -> Figure:
    """Figure 2: the scopes of one predicate on the map, run beside run, joined in order of time.

    Without a name it is the one that is cut most in the run that cuts it least, since how smooth a
    predicate is depends on its facts more than on who cut it; where no predicate is cut in all
    runs, each shows its own most cut one. Colours go by the end of the scope, from red (long ago)
    to blue (recent).
    """
    from splime.runs.projection import project
    from splime.runs.smoothness import smoothness

    if not runs:
        raise UsageError("there are no runs to draw")
    names = run_names(runs)
    figure = make_figure(_PANEL * len(runs), _PANEL + 0.6)
    panels = figure.subplots(1, len(runs), squeeze=False)[0]
    predicate = _most_cut(*runs) if predicate is None else predicate
    for axes, run, name in zip(panels, runs, names, strict=True):
        pieces = run.segmentation.predicates
        projection, smooth = project(run, seed=seed), smoothness(run)
        source = pieces.sources[projection.scopes]
        label = predicate or _most_cut(run) or ""
        own = source == pieces.names.id(label)
        if not own.any():
            raise UsageError(f"{run.path}: train has no facts of {label!r}")
        _draw_path(axes, pieces, projection.scopes[own], projection.positions[own])
        ratio = f"{smooth.predicates[label].ratio:.2f}" if label in smooth.predicates else "–"
        heading(
            axes,
            f"{_described(run, name)}\n{short(label, 30)}: {_scopes(int(own.sum()))},"
            f" smoothness {ratio} (all predicates {_overall(smooth)})",
        )
    remark(figure, _MEANING)
    return figure


def _most_cut(*runs: Run) -> str | None:
    """The predicate with the most scopes in the run with the fewest; None if nobody has two."""
    counts = [_scopes_of(run) for run in runs]
    fewest = {name: min(each.get(name, 0) for each in counts) for name in counts[0]}
    best = max(fewest, key=lambda name: fewest[name])
    return best if fewest[best] > 1 or len(runs) == 1 else None


def _scopes_of(run: Run) -> dict[str, int]:
    """How many scopes of each predicate train has; predicates with the most facts come first."""
    from splime.runs.projection import learned

    names = run.segmentation.predicates.names
    source = run.segmentation.predicates.sources[learned(run).scopes]
    scopes = np.bincount(source, minlength=len(names)).tolist()
    return {names[p]: scopes[p] for p in frequent(run.graph, len(names))[0]}


def _draw_path(axes: Axes, pieces: Scopes, scopes: Ints, positions: Vectors) -> None:
    """Points in the order of time, the lines between them, and as many dates as there is room."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import Normalize

    colors = _colors()
    last = pieces.last[scopes]
    among = Normalize(-0.5, len(pieces.timeline) - 0.5)
    lines = LineCollection(
        np.stack([positions[:-1], positions[1:]], axis=1).tolist(),
        colors=colors(among(last[1:])),
        linewidths=1.1,
        alpha=0.7,
        zorder=1,
    )
    axes.add_collection(lines)
    points = axes.scatter(
        positions[:, 0],
        positions[:, 1],
        c=last,
        cmap=colors,
        norm=among,
        s=24,
        linewidths=0,
        zorder=3,
    )
    axes.margins(0.12, 0.06)  # for labels
    _bare(axes)
    labels = [_dates(pieces, scope) for scope in scopes.tolist()]
    is_right = _is_right(positions)
    for place in _with_room(positions, labels):
        right = is_right[place]
        text = axes.annotate(
            labels[place],
            positions[place],
            (-4 if right else 4, 3),
            textcoords="offset points",
            ha="right" if right else "left",
            fontsize=7,
            color=colors(among(last[place])),
            zorder=2,  # below the points, above the lines
        )
        text.set_in_layout(False)
        text.set_bbox({"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.2})
    bar = axes.figure.colorbar(
        points, ax=axes, location="bottom", fraction=0.03, pad=0.01, aspect=60
    )
    ticks, dates = date_ticks(pieces.timeline, most=7)
    bar.set_ticks(ticks, labels=dates, fontsize=7)
    bar.set_label("end of the scope", fontsize=7, labelpad=1)


def _with_room(positions: Vectors, labels: Sequence[str]) -> list[int]:
    """Which points to label so that no label lies on another, or (first and last apart) on a point.

    First come the first and the last one, then those in between.
    """
    # In widths and heights of a digit, about; the points spread over most of the panel.
    spread = positions - positions.min(axis=0)
    x, y = (spread / (spread.max() or 1)).T * (_PANEL * 0.8 * 72 / np.array([[4.4], [8]]))
    size = np.array([len(label) for label in labels])
    left = np.where(_is_right(positions), x - 1 - size, x + 1)
    right, low = left + size, y + 0.3
    chosen: list[int] = []
    for number, place in enumerate(_halving(len(labels))):
        on_labels = (left[chosen] < right[place] + 1) & (left[place] < right[chosen] + 1)
        on_labels &= np.abs(low[chosen] - low[place]) < 1.1
        on_points = (x > left[place] - 0.6) & (x < right[place] + 0.6)
        on_points &= (y > low[place] - 0.2) & (y < low[place] + 1.1)
        if not on_labels.any() and (number < 2 or not on_points.any()):
            chosen.append(place)
    return chosen


def _is_right(positions: Vectors) -> Bools:
    """Points in the right half, whose labels stand on their left."""
    across = positions[:, 0]
    right: Bools = across > (across.min() + across.max()) / 2
    return right


def _halving(count: int) -> list[int]:
    """Places in an order that is spread evenly wherever it is broken off.

    >>> _halving(6)
    [0, 5, 2, 1, 3, 4]
    """
    found, parts = [0, count - 1][:count], [(0, count - 1)]
    for left, right in parts:
        if right - left > 1:
            middle = (left + right) // 2
            found.append(middle)
            parts += [(left, middle), (middle, right)]
    return found


def _dates(pieces: Scopes, scope: int) -> str:
    """The scope without its predicate: `1998..2003`; all of time where it was not cut."""
    _, _, begin, end, _ = pieces.scope(scope)
    return begin if begin == end else f"{begin}..{end}"


def _colors() -> Colormap:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("old to recent", _OLD_TO_RECENT)


def _bare(axes: Axes) -> None:
    """No numbers, since places on a map of t-SNE have none worth reading; but one scale."""
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color("#bbbbbb")


def _described(run: Run, name: str) -> str:
    method, model = run.config["method"]["name"], run.config["settings"]["model"]
    return f"{short(name, 32)} ({method}, {model})"


def _overall(smooth: Smoothness) -> str:
    return "–" if smooth.overall is None else f"{smooth.overall:.2f}"


def _scopes(count: int) -> str:
    return "1 scope" if count == 1 else f"{count:,} scopes"
