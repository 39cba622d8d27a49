"""Learning curves: the loss of every epoch, and the looks at valid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from splime.errors import UsageError
from splime.report.style import (
    SMALL,
    add_legend,
    heading,
    look,
    make_figure,
    open_axes,
    remark,
    short,
    whole_numbers,
)
from splime.runs.names import run_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from splime.runs import Epoch, Run


def plot_learning(runs: Sequence[Run]) -> Figure:
    """Loss and MRR on valid over the epochs, the best epoch of each run marked."""
    if not runs:
        raise UsageError("there are no runs to draw")
    looked = any(one.valid is not None for run in runs for one in run.history)
    figure = make_figure(10, 2.7 * (1 + looked) + 0.5)
    panels = figure.subplots(1 + looked, 1, sharex=True, squeeze=False)[:, 0]
    handles, labels = [], []
    for number, (name, run) in enumerate(zip(run_names(runs), runs, strict=True)):
        color = look(number)["color"]
        epochs = [one.epoch for one in run.history]
        dot = "o" if len(epochs) == 1 else ""  # one point makes no line
        losses = [one.loss for one in run.history]
        handles += panels[0].plot(epochs, losses, color=color, marker=dot, linewidth=1.5)
        best = _draw_valid(panels[1], run.history, color) if looked else ""
        labels.append(short(name) + best)
    for axes, title in zip(panels, ("loss", "MRR on valid"), strict=False):
        open_axes(axes)
        heading(axes, title)
    panels[-1].set_xlabel("epoch", fontsize=SMALL)
    whole_numbers(panels[-1].xaxis)
    add_legend(panels[0], handles, labels, loc="best")
    if looked:
        remark(figure, "MRR by protocol fact, filter exact; star: the best epoch, which is kept")
    return figure


def _draw_valid(axes: Axes, history: Sequence[Epoch], color: str) -> str:
    """The looks at valid, with a star at the best one; what the legend says of it."""
    looks = [(one.epoch, one.valid) for one in history if one.valid is not None]
    if not looks:
        return ""
    axes.plot(*zip(*looks, strict=True), color=color, marker="o", markersize=3, linewidth=1.5)
    epoch, best = max(looks, key=lambda one: one[1])
    axes.plot([epoch], [best], color=color, marker="*", markersize=13, linestyle="")
    return f": best {best:.3f}, epoch {epoch:,}"
