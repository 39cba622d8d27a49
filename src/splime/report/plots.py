"""Pictures, with matplotlib (the extra `plot`)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from splime.errors import SplimeError, UsageError
from splime.graph import TemporalGraph
from splime.io.files import written_beside
from splime.segmentation import Segmentation
from splime.statistics import facts_over_time
from splime.timeline import Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST = 25
_COLORS = ("#a6cee3", "#fdd49e", "#b2df8a", "#fbb4ae", "#decbe4")
_FORMATS = (".png", ".svg", ".pdf")


def plot_facts_over_time(graph: TemporalGraph, *, most: int = _MOST) -> Figure:
    """Facts that hold at each timestamp: all of them above, the frequent predicates below.

    Each row is scaled to its own highest value, so that rare predicates are seen too.
    """
    figure_class = _figure_class()
    counts = np.bincount(graph.facts().predicate, minlength=len(graph.predicates))
    order = np.argsort(-counts, kind="stable")[:most]
    all_holding = facts_over_time(graph)
    holding = all_holding[order]
    height = 2.6 + 0.28 * len(order)
    figure: Figure = figure_class(figsize=(10, height), layout="constrained")
    above, below = figure.subplots(
        2, 1, sharex=True, gridspec_kw={"height_ratios": [1.6, 0.28 * len(order) + 0.2]}
    )
    times = np.arange(len(graph.timeline))
    above.bar(times, all_holding.sum(axis=0), width=1.0, color="#4c72b0", linewidth=0)
    above.set_ylabel("facts that hold")
    above.set_title(
        f"{graph.name or 'graph'}: {len(graph):,} facts, {len(graph.predicates):,} predicates,"
        f" {len(graph.timeline):,} timestamps",
        loc="left",
    )
    above.spines[["top", "right"]].set_visible(False)
    share = holding / np.maximum(holding.max(axis=1, keepdims=True), 1)
    image = below.imshow(
        share, aspect="auto", cmap="YlGnBu", interpolation="nearest", vmin=0, vmax=1
    )
    labels = [f"{_short(graph.predicates[p])}  ({counts[p]:,})" for p in order.tolist()]
    below.set_yticks(range(len(order)), labels, fontsize=8)
    _date_axis(below, graph.timeline)
    bar = figure.colorbar(image, ax=below, pad=0.01, fraction=0.03)
    bar.set_label("share of the predicate's own maximum")
    left_out = len(graph.predicates) - len(order)
    if left_out > 0:
        below.set_xlabel(f"{left_out:,} less frequent predicates are not shown")
    return figure


def plot_segmentation(
    segmentation: Segmentation, graph: TemporalGraph, *, most: int = _MOST
) -> Figure:
    """Predicates as rows, time from left to right: the segments coloured, the facts behind them.

    Neighbouring segments get different colours; the height of the dark bars is the number of facts
    that hold, scaled to the predicate's own maximum.
    """
    figure_class = _figure_class()
    scopes = segmentation.predicates
    counts = np.bincount(graph.facts().predicate, minlength=len(graph.predicates))
    order = np.argsort(-counts, kind="stable")[:most]
    holding = facts_over_time(graph)[order]
    figure: Figure = figure_class(figsize=(10, 1.4 + 0.42 * len(order)), layout="constrained")
    axes = figure.subplots()
    times = np.arange(len(graph.timeline))
    for row, name in enumerate(order.tolist()):
        # A piece reaches from cut to cut; the ends of time are half a timestamp further out.
        edges = [-0.5, *(scopes.cuts_of(name) / 2).tolist(), len(times) - 0.5]
        for piece, (left, right) in enumerate(pairwise(edges)):
            color = _COLORS[piece % len(_COLORS)]
            axes.barh(row, right - left, 0.92, left, color=color, edgecolor="white", linewidth=0.4)
        share = holding[row] / max(int(holding[row].max()), 1)
        axes.bar(times, -0.9 * share, 1.0, row + 0.46, color="#1b2a41", alpha=0.55, linewidth=0)
    labels = [
        f"{_short(graph.predicates[p])}  ({len(scopes.cuts_of(p)) + 1:,})" for p in order.tolist()
    ]
    axes.set_yticks(range(len(order)), labels, fontsize=8)
    axes.set_ylim(len(order) - 0.5, -0.5)
    axes.set_xlim(-0.5, len(times) - 0.5)
    _date_axis(axes, graph.timeline)
    method = segmentation.method.get("method", "segmentation")
    axes.set_title(
        f"{graph.name or 'graph'}, {method}: {len(scopes.names):,} predicates in"
        f" {len(scopes):,} segments (numbers of segments in brackets)",
        loc="left",
        fontsize=10,
    )
    left_out = len(graph.predicates) - len(order)
    if left_out > 0:
        axes.set_xlabel(f"{left_out:,} less frequent predicates are not shown")
    return figure


def check_picture(path: Path) -> None:
    """Raise unless a picture can be made there: the kind of file is known, matplotlib is here."""
    if path.suffix.lower() not in _FORMATS:
        raise UsageError(f"{path}: pictures are {', '.join(_FORMATS)} files")
    _figure_class()


def save_picture(figure: Figure, path: Path) -> None:
    """Write a picture to a file, by its suffix."""
    check_picture(path)
    with written_beside(path) as beside:
        figure.savefig(beside, format=path.suffix[1:].lower(), dpi=150)


def _date_axis(axes: Axes, timeline: Timeline, *, most: int = 12) -> None:
    step = max(1, -(-len(timeline) // most))
    ticks = list(range(0, len(timeline), step))
    axes.set_xticks(ticks, [timeline.label(tick) for tick in ticks], rotation=45, ha="right")


def _short(name: str, length: int = 48) -> str:
    # Matplotlib would read dollars as formulas.
    name = name.replace("$", r"\$")
    return name if len(name) <= length else name[: length - 1] + "…"


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SplimeError(
            "pictures need matplotlib; install it with: pip install 'splime[plot]'"
        ) from None
    return Figure
