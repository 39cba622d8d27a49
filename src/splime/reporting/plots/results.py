"""Pictures of how runs learned, and of their metrics by groups of facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from splime.errors import UsageError
from splime.reporting import style
from splime.reporting.plots.graph import MOST
from splime.reporting.tables import STRATA

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from splime.evaluation import Evaluation, Metrics
    from splime.runs import Epoch


def plot_learning(histories: Mapping[str, Sequence[Epoch]]) -> Figure:
    """Loss and MRR on valid over the epochs of each run, the best epoch marked."""
    if not histories:
        raise UsageError("there are no runs to draw")
    validated = any(one.valid is not None for history in histories.values() for one in history)
    figure = style.make_figure(10, 2.7 * (1 + validated) + 0.5)
    panels = figure.subplots(1 + validated, 1, sharex=True, squeeze=False)[:, 0]
    handles, labels = [], []
    for number, (name, history) in enumerate(histories.items()):
        color = style.series_style(number)["color"]
        epochs, losses = [one.epoch for one in history], [one.loss for one in history]
        dot = "o" if len(epochs) == 1 else ""  # one point makes no line
        handles += panels[0].plot(epochs, losses, color=color, marker=dot, linewidth=1.5)
        labels.append(
            style.short(name) + (_draw_valid(panels[1], history, color) if validated else "")
        )
    for axes, title in zip(panels, ("loss", "MRR on valid"), strict=False):
        style.open_axes(axes, title)
    panels[-1].set_xlabel("epoch", fontsize=style.SMALL)
    style.whole_numbers(panels[-1].xaxis)
    style.add_legend(panels[0], handles, labels, loc="best")
    if validated:
        style.remark(
            figure, "MRR by protocol fact, filter exact; star: the best epoch, which is kept"
        )
    return figure


def _draw_valid(axes: Axes, history: Sequence[Epoch], color: str) -> str:
    """The MRR of each validation, with a star at the best one; what the legend says of it."""
    points = [(one.epoch, one.valid) for one in history if one.valid is not None]
    if not points:
        return ""
    axes.plot(*zip(*points, strict=True), color=color, marker="o", markersize=3, linewidth=1.5)
    epoch, best = max(points, key=lambda point: point[1])
    axes.plot([epoch], [best], color=color, marker="*", markersize=13, linestyle="")
    return f": best {best:.3f}, epoch {epoch:,}"


def plot_strata(evaluations: Mapping[str, Evaluation], *kinds: str, most: int = MOST) -> Figure:
    """MRR of groups of facts: a panel for each kind of groups, a mark for each evaluation.

    The kinds are those of `Evaluation.strata`: predicate and period (drawn if none is named), time,
    train. Of the predicates those with the most queries are shown; periods are in order of time.
    """
    if not evaluations:
        raise UsageError("there is nothing to draw")
    kinds = kinds or ("predicate", "period")
    one = next(iter(evaluations.values()))
    name = one.filters[0]
    strata = {kind: [each.strata[name][kind] for each in evaluations.values()] for kind in kinds}
    if len({tuple(groups) for groups in strata.get("period", ())}) > 1:
        raise UsageError("these runs have different periods; they do not compare")
    labels = {kind: _labels(strata[kind], kind, most) for kind in kinds}
    sizes = [0.25 * len(each) + 0.55 for each in labels.values()]
    figure = style.make_figure(9, sum(sizes) + 0.5)
    panels = figure.subplots(len(kinds), 1, sharex=True, squeeze=False, height_ratios=sizes)[:, 0]
    for axes, kind in zip(panels, kinds, strict=True):
        handles = _draw_groups(axes, strata[kind], labels[kind])
        shown, total = len(labels[kind]), len({group for each in strata[kind] for group in each})
        few = f" (the {shown} most frequent of {total:,})" if shown < total else ""
        style.heading(axes, f"MRR by {STRATA.get(kind, kind)}{few}")
    panels[-1].set_xlim(0, None)
    if len(evaluations) > 1:
        style.add_legend(panels[0], handles, [style.short(each) for each in evaluations])
    style.remark(
        figure,
        f"protocol {one.protocol}, {one.split}, filter {name}; numbers of queries in brackets",
    )
    return figure


def _labels(strata: Sequence[Mapping[str, Metrics]], kind: str, most: int) -> dict[str, str]:
    """The groups to show, each with its label: the name and its number of queries."""
    queries: Counter[str] = Counter()
    for each in strata:
        queries |= Counter({group: metrics.queries for group, metrics in each.items()})
    shown = queries.most_common(most) if kind == "predicate" else queries.items()
    return {group: f"{style.short(group)}  ({count:,})" for group, count in shown}


def _draw_groups(
    axes: Axes, strata: Sequence[Mapping[str, Metrics]], labels: Mapping[str, str]
) -> list[object]:
    """A row for each group, with a mark for each evaluation that has it; the marks' handles."""
    for row, group in enumerate(labels):
        values = [each[group].mrr for each in strata if group in each]
        axes.plot([min(values), max(values)], [row, row], color="#bbbbbb", linewidth=1, zorder=1)
    handles: list[object] = []
    for number, each in enumerate(strata):
        rows = [row for row, group in enumerate(labels) if group in each]
        values = [each[group].mrr for group in labels if group in each]
        marks = {"markersize": 6, **style.series_style(number)}
        handles += axes.plot(values, rows, linestyle="", alpha=0.9, zorder=2, **marks)
    style.open_axes(axes, grid="x")
    style.label_rows(axes, [*labels.values()])
    axes.tick_params(axis="x", labelbottom=True)
    return handles
