"""The picture of a backtest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from splime.errors import UsageError
from splime.reporting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from splime.analysis.backtest import Backtest


def plot_backtest(found: Backtest) -> Figure:
    """MRR of the model and the baselines over time, and its probabilities beside what came true."""
    from splime.analysis.rules import interval  # it needs PyTorch, as a backtest does

    if not len(found):
        raise UsageError("there are no windows to draw")
    figure = style.make_figure(10, 6)
    above, below = figure.subplots(2, 1, sharex=True)
    handles, x, names = [], range(len(found)), list(found.windows[0].metrics)
    for number, name in enumerate(names):
        mrr = [window.metrics[name].mrr for window in found]
        handles += above.plot(x, mrr, markersize=5, linewidth=1.5, **style.series_style(number))
    style.open_axes(above, "forecasts against what happened", y="MRR", grid="y")
    style.add_legend(above, handles, names)
    said = [window.probability for window in found]
    model = [window.metrics[names[0]] for window in found]
    first, asked = (
        np.array([getattr(one, name) for one in model]) for name in ("first", "questions")
    )
    below.fill_between(x, *interval(asked, asked * first, asked * first), alpha=0.13, linewidth=0)
    lines = below.plot(x, first, markersize=5, linewidth=1.5, **style.series_style(0))
    lines += below.plot(x, said, markersize=5, linestyle="--", **style.series_style(3))
    style.open_axes(below, "first answers of the model", y="share", grid="y")
    style.add_legend(below, lines, ["right, with 95 %", "probability, mean"])
    for axes in (above, below):
        axes.set_ylim(0, 1.08 * axes.get_ylim()[1])  # marks are not cut off
    step = -(-len(found) // 12)
    below.set_xticks([*x][::step], [window.begin for window in found][::step], fontsize=style.SMALL)
    below.set_xlabel("begin of the window", fontsize=style.SMALL)
    return figure
