"""The picture of a predicate's rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from splime.errors import UsageError
from splime.reporting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from splime.analysis.rules import Curve, Rules

_FEWEST = 5
"""Known facts of a point, at least."""


def plot_rules(rules: Rules) -> Figure:
    """How often known facts lead to the answer, by how long before or after the question they are.

    A panel for each question, a curve for each predicate of the known fact.
    """
    if not rules.curves:
        of = rules.predicate or "one predicate, which must be named"
        raise UsageError(f"there are no rules of {of}: there is nothing to draw")
    questions = list(dict.fromkeys(curve.question for curve in rules.curves))
    figure = style.make_figure(10, 3.1 * len(questions) + 0.8)
    panels = figure.subplots(len(questions), 1, squeeze=False, sharex=True)[:, 0]
    for axes, question in zip(panels, questions, strict=True):
        curves = [curve for curve in rules.curves if curve.question == question]
        handles = [_draw(axes, curve, number) for number, curve in enumerate(curves)]
        style.open_axes(axes, style.short(question), y="lead to the answer", grid="y")
        axes.axvline(0, color="#c4c9d1", linewidth=1, zorder=0)
        axes.set_ylim(0, None)
        axes.yaxis.set_major_formatter(_percent)
        axes.tick_params(axis="x", labelbottom=True)
        style.add_legend(axes, handles, [style.short(curve.fact) for curve in curves])
    _label_distances(panels[-1], rules)
    style.remark(
        figure,
        "X is given, ? is the answer. Each point: the share of the known facts of X of this kind"
        " and time that lead to the answer, over all questions, each without the fact it asks for."
        f" Bands: 95 % intervals, with pairs as cases. Points of fewer than {_FEWEST} facts are"
        " left out.",
    )
    return figure


def _percent(share: float, _: object) -> str:
    return f"{100 * share:.3g} %"


def _draw(axes: Axes, curve: Curve, number: int) -> object:
    """A curve with its band; positions without enough facts are gaps."""
    share, low, high = curve.confidence(_FEWEST)
    x = np.arange(len(share)) - len(share) // 2
    looks = {"markersize": 5, "linewidth": 1.5, **style.series_style(number)}
    axes.fill_between(x, low, high, color=looks["color"], alpha=0.13, linewidth=0)
    (line,) = axes.plot(x, share, **looks)
    return line


def _label_distances(axes: Axes, rules: Rules) -> None:
    """The distances of the points in the graph's unit of time."""
    spans = [
        f"{first}" if last == first else f"{first}–{last}"
        for first, last in zip(rules.edges, (edge - 1 for edge in rules.edges[1:]), strict=False)
    ]
    spans.append(f"≥ {rules.edges[-1]}")
    labels = [*reversed(spans), "same\ntime", *spans]
    axes.set_xticks(range(-len(spans), len(spans) + 1), labels, fontsize=style.SMALL)
    unit = rules.granularity
    axes.set_xlabel(
        f"← {unit}s since the known fact ended          {unit}s until it begins →",
        fontsize=style.SMALL,
    )
