"""Pictures of a graph, of its cuts, of how runs did on it, and of their embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from splime.errors import UsageError, check_name
from splime.graph import TemporalGraph
from splime.report import style
from splime.report.tables import STRATA, counted
from splime.segmentation import Scopes, Segmentation
from splime.statistics import (
    Window,
    begins_after_train,
    evenly,
    facts_over_time,
    frequent_predicates,
    time_window,
)
from splime.times import Bools, Granularity, Ints, format_ticks, tick_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from splime.analysis.embeddings import Projection, Vectors
    from splime.analysis.findings import ChangeCosts
    from splime.evaluation import Evaluation, Metrics
    from splime.methods.changepoint import Costs
    from splime.query.evidence import Evidence
    from splime.runs import Epoch

_MOST = 25
_CELLS = 1_500
"""How many stretches of time the picture of facts tells apart: its pixels."""
_TINTS = ("#b9d3ec", "#fbdcae")
"""Of neighbouring scopes."""


def plot_facts_over_time(graph: TemporalGraph, *, most: int = _MOST) -> Figure:
    """Facts that hold at each time: all of them above, the frequent predicates below.

    Each row is scaled to its own highest value, so that rare predicates are seen too. Where valid
    or test begins after all facts of train, a line marks it.
    """
    order, counts = frequent_predicates(graph)
    # A part of a graph keeps the names of the whole; those without facts have nothing to show.
    with_facts = max(1, int(np.count_nonzero(counts)))
    order = order[: min(most, with_facts)]
    limits, in_all, of_predicates = facts_over_time(graph, order)
    window = time_window(graph)
    rows = 0.25 * len(order) + 0.3
    figure = style.make_figure(10, rows + 2.6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1.6, rows])
    above.stairs(in_all, limits, fill=True, color="#0072b2")
    above.set_ylim(bottom=0)
    style.whole_numbers(above.yaxis)
    above.yaxis.set_major_formatter("{x:,.0f}")
    style.open_axes(
        above,
        f"{style.short(graph.name) or 'graph'}: {len(graph):,} facts, {len(graph.predicates):,}"
        f" predicates, {len(graph.timeline):,} timestamps",
        y="facts that hold",
    )
    holding = evenly(limits, of_predicates, window, _CELLS)
    highest = holding.max(axis=1, keepdims=True)
    image = below.imshow(
        holding / np.where(highest, highest, 1),
        aspect="auto", cmap="YlGnBu", interpolation="nearest", vmin=0, vmax=1,
        extent=(*window.ends, len(order) - 0.5, -0.5),
    )  # fmt: skip
    style.label_rows(
        below, [f"{style.short(graph.predicates[p])}  ({counts[p]:,})" for p in order.tolist()]
    )
    style.date_axis(below, window, graph.timeline.granularity)
    lines = begins_after_train(graph)
    above.set_ylim(top=above.get_ylim()[1] * (1 + 0.15 * len(lines)))  # room for their names
    for number, (split, begin) in enumerate(lines.items()):
        place = begin - window.origin - 0.5
        for axes in (above, below):
            axes.axvline(place, color="#d55e00", linewidth=1.2, linestyle="--")
        (date,) = format_ticks(np.array([begin]), graph.timeline.granularity)
        above.text(
            place, 0.98 - 0.12 * number, f"{split} begins: {date} ",
            transform=above.get_xaxis_transform(), ha="right", va="top", fontsize=style.SMALL,
            color="#d55e00",
        )  # fmt: skip
    bar = figure.colorbar(
        image, ax=below, pad=0.01, fraction=0.03, aspect=6 * rows, ticks=[0, 0.5, 1]
    )
    bar.ax.tick_params(labelsize=style.SMALL)
    style.remark(
        figure,
        "facts that hold, as a share of the predicate's own maximum; numbers of facts in brackets",
        left_out=with_facts - len(order),
        more=window.remark,
    )
    return figure


def plot_segmentation(
    segmentation: Segmentation, graph: TemporalGraph, *, most: int = _MOST
) -> Figure:
    """Predicates as rows, time from left to right: the scopes tinted, the facts over them.

    Neighbouring scopes have different tints; the height of the dark area is the number of facts
    that hold, scaled to the predicate's own maximum.
    """
    from matplotlib.patches import StepPatch

    scopes = segmentation.predicates
    order, _ = frequent_predicates(graph)
    cuts = {source: scopes.cuts_of(source) for source in order[:most].tolist()}
    heavy = sum(len(each) + 1 + len(graph.timeline) for each in cuts.values()) > style.HEAVY
    limits, _, holding = facts_over_time(graph, order[:most])
    window = time_window(graph)
    figure = style.make_figure(10, 1.1 + 0.4 * len(cuts))
    axes = figure.subplots()
    starts, ends = (ticks - window.origin for ticks in (graph.timeline.starts, graph.timeline.ends))
    for row, own in enumerate(cuts.values()):
        # A scope reaches from cut to cut: to the middle of a timestamp, or just before the next.
        at = (own + 1) // 2
        places = np.where(own % 2, starts[at] - 0.5, (starts[at] + ends[at]) / 2)
        bounds = np.concatenate([limits[:1], places, limits[-1:]])
        axes.broken_barh(
            list(zip(bounds[:-1], np.diff(bounds), strict=True)),
            (row - 0.42, 0.84),
            facecolors=[_TINTS[scope % 2] for scope in range(len(own) + 1)],
            linewidths=0,
            rasterized=heavy,
            zorder=1,
        )
        share = holding[row] / max(int(holding[row].max()), 1)
        steps = StepPatch(
            row + 0.42 - 0.84 * share, limits, baseline=row + 0.42, fill=True, color=style.INK,
            alpha=0.6, linewidth=0, rasterized=heavy, zorder=2,
        )  # fmt: skip
        axes.add_artist(steps)  # the bars set the limits; `stairs` looks for them at every step
    style.label_rows(
        axes, [f"{style.short(scopes.names[p])}  ({len(own) + 1:,})" for p, own in cuts.items()]
    )
    axes.spines[:].set_visible(False)
    style.date_axis(axes, window, graph.timeline.granularity)
    method = style.short(str(segmentation.method.get("method", "segmentation")))
    style.heading(
        axes,
        f"{style.short(graph.name) or 'graph'}, {method}: {len(scopes.names):,} predicates in"
        f" {len(scopes):,} scopes",
    )
    style.remark(
        figure,
        "tints change at cuts, scopes in brackets; dark: facts that hold, of the predicate's"
        " maximum",
        left_out=len(order) - len(cuts),
        more=window.remark,
    )
    return figure


def plot_change_costs(graph: TemporalGraph, change_costs: ChangeCosts, *, most: int = 9) -> Figure:
    """Cost against the number of change points, for the most frequent predicates.

    The search begins on the right, with as many change points as there is room for, and removes
    them one by one until the method stops it; the dot is where that was.
    """
    method, costs = change_costs
    order, _ = frequent_predicates(graph)
    names = [name for p in order.tolist() if (name := graph.predicates[p]) in costs][:most]
    if not names:
        raise UsageError("there are no facts to fit on")
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure = style.make_figure(3.3 * columns + 0.4, 2.4 * rows + 0.8)
    panels = figure.subplots(rows, columns, squeeze=False)
    for axes in panels.flat[len(names) :]:
        axes.set_visible(False)
    for name, axes in zip(names, panels.flat, strict=False):
        style.open_axes(axes, style.short(name, 32))
        _draw_costs(axes, costs[name], method.epsilon)
    for axes in panels.flat[max(0, len(names) - columns) : len(names)]:
        axes.set_xlabel("change points", fontsize=style.SMALL)
    for axes in panels[:, 0]:
        axes.set_ylabel("total cost", fontsize=style.SMALL)
    if method.epsilon is not None:
        stop = f"while the cost is below ε = {method.epsilon:g} (dashed)"
    elif method.penalty is not None:
        stop = f"while that raises the cost by less than {method.penalty:g}"
    else:
        stop = f"until {method.changes:,} change points are left"
    style.remark(figure, f"scopes are joined {stop}", left_out=len(costs) - len(names))
    return figure


def _draw_costs(axes: Axes, costs: Costs, epsilon: float | None) -> None:
    axes.plot(costs.changes, costs.costs, color="#0072b2", linewidth=1.5)
    if epsilon is not None:
        axes.axhline(epsilon, color="#666666", linestyle="--", linewidth=1)
    axes.plot([costs.chosen], [costs.cost], color="#d55e00", marker="o", linestyle="")
    axes.text(
        0.97, 0.95, f"{counted(costs.chosen, 'change point')},\ncost {costs.cost:.3g}",
        transform=axes.transAxes, ha="right", va="top", fontsize=style.SMALL, color="#d55e00",
    )  # fmt: skip
    axes.set_ylim(bottom=0)
    style.whole_numbers(axes.xaxis)


def plot_learning(histories: Mapping[str, Sequence[Epoch]]) -> Figure:
    """Loss and MRR on valid over the epochs of each run, the best epoch marked."""
    if not histories:
        raise UsageError("there are no runs to draw")
    validated = any(one.valid is not None for history in histories.values() for one in history)
    figure = style.make_figure(10, 2.7 * (1 + validated) + 0.5)
    panels = figure.subplots(1 + validated, 1, sharex=True, squeeze=False)[:, 0]
    handles, labels = [], []
    for number, (name, history) in enumerate(histories.items()):
        color = style.look(number)["color"]
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


def plot_strata(evaluations: Mapping[str, Evaluation], *kinds: str, most: int = _MOST) -> Figure:
    """MRR of groups of facts: a panel for each kind of groups, a mark for each evaluation.

    The kinds are those of `Evaluation.strata`: predicate and period (drawn if none is named), time,
    train. Of the predicates those with the most queries are shown; periods are in order of time.
    """
    kinds = kinds or ("predicate", "period")
    _check_alike(evaluations, kinds)
    one = next(iter(evaluations.values()))
    name = one.filters[0]
    strata = {kind: [each.strata[name][kind] for each in evaluations.values()] for kind in kinds}
    labels = {kind: _labels(strata[kind], kind, most) for kind in kinds}
    sizes = [0.25 * len(each) + 0.55 for each in labels.values()]
    figure = style.make_figure(9, sum(sizes) + 0.5)
    panels = figure.subplots(len(kinds), 1, sharex=True, squeeze=False, height_ratios=sizes)[:, 0]
    for axes, kind in zip(panels, kinds, strict=True):
        handles = _draw_groups(axes, strata[kind], labels[kind])
        shown, total = len(labels[kind]), len({group for each in strata[kind] for group in each})
        few = f" (the {shown} most asked for of {total:,})" if shown < total else ""
        style.heading(axes, f"MRR by {STRATA.get(kind, kind)}{few}")
    panels[-1].set_xlim(0, None)
    if len(evaluations) > 1:
        style.add_legend(panels[0], handles, [style.short(each) for each in evaluations])
    style.remark(
        figure,
        f"protocol {one.protocol}, {one.split}, filter {name}; numbers of queries in brackets",
    )
    return figure


def _check_alike(evaluations: Mapping[str, Evaluation], kinds: Sequence[str]) -> None:
    """An error where evaluations cannot be compared."""
    if not evaluations:
        raise UsageError("there is nothing to draw")
    one = next(iter(evaluations.values()))
    name = one.filters[0]
    for label, each in evaluations.items():
        for what in ("protocol", "split", "ties", "leak_filter"):
            if getattr(each, what) != getattr(one, what):
                raise UsageError(
                    f"{label}: was evaluated with {what} {getattr(each, what)}, not"
                    f" {getattr(one, what)} as the first; such metrics do not compare"
                )
        for kind in kinds:
            check_name("kind of groups", kind, each.strata.get(name, {}))
        if "period" in kinds and [*each.strata[name]["period"]] != [*one.strata[name]["period"]]:
            raise UsageError(f"{label}: has other periods than the first; they do not compare")


def _labels(strata: Sequence[Mapping[str, Metrics]], kind: str, most: int) -> dict[str, str]:
    """The groups to show, each with its label: the name and its numbers of queries."""
    queries: dict[str, list[int]] = {}
    for each in strata:
        for group, metrics in each.items():
            queries.setdefault(group, []).append(metrics.queries)
    shown = [*queries]
    if kind == "predicate":
        shown = sorted(shown, key=lambda group: -max(queries[group]))[:most]
    ends = {group: sorted({min(queries[group]), max(queries[group])}) for group in shown}
    return {
        group: f"{style.short(group)}  ({' to '.join(f'{end:,}' for end in ends[group])})"
        for group in shown
    }


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
        handles += axes.plot(
            values, rows, linestyle="", markersize=6, alpha=0.9, zorder=2, **style.look(number)
        )
    style.open_axes(axes, grid="x")
    style.label_rows(axes, [*labels.values()])
    axes.tick_params(axis="x", labelbottom=True)
    return handles


# Maps of predicate embeddings by t-SNE, as in the paper's figures 1 and 2

_PANEL = 6.0
"""Inches, of a panel's width and height."""
_MEANING = (
    "smoothness: mean distance between scopes that are neighbours in time / between the others, of"
    " the vectors themselves; 1: time does not matter"
)


def plot_evidence(evidence: Evidence, granularity: Granularity) -> Figure:
    """Chains of facts on a time axis, beside the time asked about, with their relative scopes."""
    question = evidence.question
    if not evidence.reasons:
        raise UsageError(f"no facts lead to {evidence.answer}: there is nothing to draw")
    asked = _span(question.begin, question.end, granularity)
    assert asked is not None, "who and what are asked at a time"
    steps = [step for reason in evidence.reasons for step in reason.steps]
    spans = [_span(step.fact.begin, step.fact.end, granularity) for step in steps]
    known = [asked, *(span for span in spans if span is not None)]
    first, last = min(begin for begin, _ in known), max(end for _, end in known)
    room = max(1, (last - first) // 8)
    window = Window(first - room, last + room)
    figure = style.make_figure(10, 1.1 + 0.22 * (len(steps) + 0.6 * len(evidence.reasons)))
    axes = figure.subplots()
    axes.axvspan(
        asked[0] - window.origin - 0.5, asked[1] - window.origin + 0.5, color="#fbdcae", zorder=0
    )
    rows: list[float] = []
    labels: list[str] = []
    reached: list[str] = []
    row = 0.0
    for number, reason in enumerate(evidence.reasons):
        color = style.look(number)["color"]
        place = question.subject if question.kind == "object" else question.object
        middles: list[tuple[float, float]] = []
        for step in reason.steps:
            fact = step.fact
            place = fact.object if place == fact.subject else fact.subject
            rows.append(row)
            labels.append(style.short(f"{fact.subject} {fact.predicate} {fact.object}", 64))
            reached.append(f"→ {style.short(place, 28)}")
            span = _span(fact.begin, fact.end, granularity)
            begin, end = (x - window.origin for x in (span or (window.first, window.last)))
            # An instant must still be seen where a unit of time is less than a point.
            width = max(end - begin + 1, (window.last - window.first) / 120)
            middle = (begin + end) / 2
            axes.barh(row, width, left=middle - width / 2, height=0.5, color=color, zorder=2)
            right = middle < (window.first + window.last) / 2 - window.origin
            axes.annotate(
                step.scope, (middle + (width if right else -width) / 2, row),
                xytext=(4 if right else -4, 0), textcoords="offset points",
                ha="left" if right else "right", va="center", fontsize=style.SMALL,
                color=style.INK, zorder=4,
            )  # fmt: skip
            middles.append((middle, row))
            row += 1
        reached[-1] += f"  +{reason.contribution:.2g}"
        for (x, y), (to_x, to_y) in pairwise(middles):
            # Between the rows, where no words stand.
            axes.plot([x, x, to_x, to_x], [y, y + 0.5, y + 0.5, to_y], color=color, linewidth=1.0)
        row += 0.6
    axes.set_yticks(rows, labels, fontsize=style.SMALL)
    axes.set_ylim(row - 1.0, -0.7)
    axes.tick_params(axis="y", length=0)
    axes.spines[["left", "top", "right"]].set_visible(False)
    for at, text in zip(rows, reached, strict=True):
        axes.text(
            1.01, at, text, transform=axes.get_yaxis_transform(), va="center",
            fontsize=style.SMALL, color=style.INK,
        )  # fmt: skip
    style.date_axis(axes, window, granularity)
    style.heading(axes, style.short(f"{question.text}: why {evidence.answer}?", 100))
    style.remark(
        figure,
        "tinted: the time asked about. A bar is a known fact; its scope says how its time lies to"
        " that. A chain leads down to the answer, and its number is what it adds to the score.",
    )
    return figure


def _span(begin: str | None, end: str | None, granularity: Granularity) -> tuple[int, int] | None:
    """The ticks of a fact, with the known end for an unknown one; None where both are unknown."""
    texts = [text for text in (begin, end) if text is not None]
    if not texts:
        return None
    return tick_range(texts[0], granularity)[0], tick_range(texts[-1], granularity)[1]


def plot_predicates(projection: Projection, *, most: int = 10) -> Figure:
    """Figure 1: all scoped predicates on a map by t-SNE, those of the most frequent ones drawn."""
    from splime.analysis.comparing import run_names

    graph = projection.run.graph
    figure = style.make_figure(_PANEL + 3.2, _PANEL)
    axes = figure.subplots()
    order, _ = frequent_predicates(graph)
    handles, names = [], []
    for number, predicate in enumerate(order[:most].tolist()):
        own = projection.positions[_sources(projection) == predicate]
        handles.append(
            axes.scatter(own[:, 0], own[:, 1], s=26, linewidths=0, alpha=0.85, **style.look(number))
        )
        names.append(f"{style.short(graph.predicates[predicate])}  ({len(own):,})")
    _bare(axes)
    style.add_legend(axes, handles, names)
    style.heading(
        axes,
        f"{_title(projection, run_names([projection.run])[0])}: t-SNE of"
        f" {len(projection.scopes):,} scoped predicates"
        f"\nsmoothness over time: {_ratio(projection.smoothness.overall)}",
    )
    shown = f"; drawn: the {most} most frequent predicates" if len(order) > most else ""
    style.remark(figure, f"numbers of scopes in brackets{shown}\n{_MEANING}")
    return figure


def plot_predicate(projections: Sequence[Projection], predicate: str | None = None) -> Figure:
    """Figure 2: the scopes of one predicate on the map, run beside run, joined in order of time.

    Without a name it is the one that is cut most in the run that cuts it least, since how smooth a
    predicate is depends on its facts more than on the method that cut it; where no predicate is
    cut in all runs, each shows its own most cut one. Colours go by the end of the scope, from red
    (long ago) to blue (recent).
    """
    from splime.analysis.comparing import run_names

    if not projections:
        raise UsageError("there are no runs to draw")
    names = run_names([projection.run for projection in projections])
    figure = style.make_figure(_PANEL * len(projections), _PANEL + 0.6)
    panels = figure.subplots(1, len(projections), squeeze=False)[0]
    predicate = _most_cut(*projections) if predicate is None else predicate
    for axes, projection, name in zip(panels, projections, names, strict=True):
        scopes = projection.run.segmentation.predicates
        label = predicate or _most_cut(projection) or ""
        own = _sources(projection) == scopes.names.id(label)
        if not own.any():
            raise UsageError(f"{projection.run.path}: train has no facts of {label!r}")
        window = time_window(projection.run.graph)
        _draw_path(axes, scopes, projection.scopes[own], projection.positions[own], window)
        smooth = projection.smoothness
        ratio = smooth.predicates[label].ratio if label in smooth.predicates else None
        count = counted(int(own.sum()), "scope")
        style.heading(
            axes,
            f"{_title(projection, name)}\n{style.short(label, 30)}: {count}, smoothness"
            f" {_ratio(ratio)} (all predicates {_ratio(smooth.overall)})",
        )
    style.remark(figure, _MEANING)
    return figure


def _most_cut(*projections: Projection) -> str | None:
    """The predicate with the most scopes in the run with the fewest; None if nobody has two."""
    counts = []
    for projection in projections:
        graph = projection.run.graph
        names, (order, _) = graph.predicates, frequent_predicates(graph)
        scopes = np.bincount(_sources(projection), minlength=len(names)).tolist()
        counts.append({names[predicate]: scopes[predicate] for predicate in order.tolist()})
    fewest = {name: min(each.get(name, 0) for each in counts) for name in counts[0]}
    best = max(fewest, key=lambda name: fewest[name])
    return best if fewest[best] > 1 or len(projections) == 1 else None


def _sources(projection: Projection) -> Ints:
    sources = projection.run.segmentation.predicates.sources
    return sources[projection.scopes].astype(np.int64)


def _draw_path(axes: Axes, scopes: Scopes, shown: Ints, positions: Vectors, window: Window) -> None:
    """Points in the order of time, the lines between them, and as many dates as there is room."""
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
    ticks, texts = style.date_ticks(window, scopes.timeline.granularity, most=7)
    bar.set_ticks([tick - window.origin for tick in ticks], labels=texts, fontsize=7)
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
