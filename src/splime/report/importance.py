"""What mattered in a search, as a picture: shares of the choices, and the MRR against them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from splime.methods import METHODS
from splime.report import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class _Trial(NamedTuple):
    chosen: Mapping[str, Any]
    value: float
    finished: bool


def plot_importance(
    chosen: Sequence[Mapping[str, Any]],
    values: Sequence[float],
    importances: Mapping[str, float],
    *,
    finished: Sequence[bool] | None = None,
    name: str = "",
) -> Figure:
    """The shares of the choices, and the MRR on valid against those with the largest.

    `chosen` is what each trial chose (its method, and more), `values` its MRR, which is not the
    last word for trials that are not `finished` (they were stopped early, and are drawn hollow).
    """
    done = [True] * len(values) if finished is None else finished
    trials = [*map(_Trial, chosen, values, done)]
    names = list(dict.fromkeys(name for one in chosen for name in one))
    differing = [name for name in names if len({one[name] for one in chosen if name in one}) > 1]
    shown = (list(importances) or differing or names[:1])[:4]
    figure = style.make_figure(10, 5.2)
    left, right = figure.subfigures(1, 2, width_ratios=[1, 2], squeeze=False)[0]
    _bars(left.subplots(), importances)
    rows = -(-len(shown) // 2)
    panels = right.subplots(rows, min(2, len(shown)), sharey=True, squeeze=False)
    methods = sorted({str(one["method"]) for one in chosen}, key=list(METHODS).index)
    for axes, what in zip(panels.flat, shown, strict=False):
        _panel(axes, what, [trial for trial in trials if what in trial.chosen], methods)
    for axes in panels.flat[len(shown) :]:
        axes.set_axis_off()
    for row in panels:
        row[0].set_ylabel("MRR on valid", fontsize=style.SMALL)
    _legend(right, methods, all(done))
    title = f"{style.short(name)}: " if name else ""
    figure.suptitle(
        f"{title}what mattered in {len(values):,} trials", x=0.01, ha="left", fontsize=11
    )
    style.remark(
        figure,
        "share: by how much a forest's guesses of the MRR get worse without the choice"
        if importances
        else "too few trials, or too much alike, to tell shares",
    )
    return figure


def _bars(axes: Axes, importances: Mapping[str, float]) -> None:
    names = [name for name, share in importances.items() if share >= 0.005][:8]
    shares = [100 * importances[name] for name in names]
    axes.barh(range(len(names)), shares, 0.6, color="#0072b2")
    for place, share in enumerate(shares):
        axes.annotate(
            f"{share:.0f} %", (share, place), (4, 0), textcoords="offset points", va="center",
            fontsize=style.SMALL, color=style.INK,
        )  # fmt: skip
    axes.set_xlim(0, 1.25 * max(shares, default=1.0))
    axes.set_xticks([])
    style.open_axes(axes, "share in the differences")
    axes.spines[["left", "bottom"]].set_visible(False)
    # There is room for six, so that few bars are no thicker.
    style.label_rows(axes, [style.short(name, 24) for name in names], room=6)


def _panel(axes: Axes, what: str, trials: Sequence[_Trial], methods: Sequence[str]) -> None:
    """The MRR of trials against one of their choices, the best one in a circle."""
    places = _places(axes, what, [trial.chosen[what] for trial in trials])
    finished = (trial for trial in trials if trial.finished)
    best = max(finished, key=lambda trial: trial.value, default=None)
    for trial, place in zip(trials, places, strict=True):
        mark = style.look(methods.index(trial.chosen["method"]))
        hollow: dict[str, Any] = {} if trial.finished else {"markerfacecolor": "none"}
        axes.plot(place, trial.value, markersize=5, alpha=0.8, linewidth=0, **mark, **hollow)
        if trial is best:
            axes.plot(
                place, trial.value, "o", color=style.INK, markerfacecolor="none", markersize=11
            )
    axes.margins(y=0.1)
    style.open_axes(axes, x=style.short(what, 40), grid="y")


def _places(axes: Axes, what: str, given: Sequence[Any]) -> list[float]:
    """Where values stand: numbers as they are, words and numbers that recur side by side."""
    distinct = sorted({*given}, key=lambda value: (isinstance(value, str), value))
    numbers = not any(isinstance(value, str | bool) for value in given)
    # A few distinct numbers stand side by side, like words.
    if numbers and (len(distinct) > 6 or len(distinct) == len(given)):
        if min(distinct) > 0 and max(distinct) / min(distinct) > 8:
            axes.set_xscale("log")
        return [float(value) for value in given]
    labels = [style.short(str(value), 24) for value in distinct]
    crowded = sum(map(len, labels)) > 30  # letters
    turned: dict[str, Any] = {"rotation": 20, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(len(distinct)), labels, **(turned if crowded else {}))
    axes.set_xlim(-0.5, len(distinct) - 0.5)
    aside = np.random.default_rng(len(what)).uniform(-0.15, 0.15, len(given))
    return [distinct.index(value) + each for value, each in zip(given, aside.tolist(), strict=True)]


def _legend(figure: Any, methods: Sequence[str], all_done: bool) -> None:
    """The methods, and what is hollow; drawn above the panels."""
    from matplotlib.lines import Line2D

    hollow: dict[str, Any] = {"marker": "o", "markerfacecolor": "none"}
    marks = {style.short(method): style.look(number) for number, method in enumerate(methods)}
    if not all_done:
        marks["stopped early"] = {"color": "grey", **hollow}
    marks["best"] = {"color": style.INK, "markersize": 9, **hollow}
    handles = [Line2D([], [], linewidth=0, **{"markersize": 5, **mark}) for mark in marks.values()]
    style.add_legend(
        figure, handles, [*marks], loc="outside upper left", ncols=min(len(marks), 8),
        handletextpad=0.2, columnspacing=1.0,
    )  # fmt: skip
