"""Figures by predicate and by period: where runs are good, and where they are not."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from splime.errors import UsageError, check_name
from splime.evaluation import Evaluation, Metrics
from splime.report.figures import STRATA
from splime.report.style import (
    SMALL,
    add_legend,
    heading,
    look,
    make_figure,
    open_axes,
    remark,
    short,
)
from splime.runs.names import run_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from splime.runs import Run

_ROW = 0.25
_ORDER = [(protocol, split) for split in ("test", "valid") for protocol in ("fact", "triple")]


def kept_evaluations(runs: Sequence[Run]) -> dict[str, Evaluation]:
    """An evaluation of each run that was made before, by the run's name.

    By protocol fact on test if all have that, else by protocol triple, else on valid.
    """
    from splime.runs import evaluations

    found = {}
    for name, run in zip(run_names(runs), runs, strict=True):
        found[name] = {(one.protocol, one.split): one for one in reversed(evaluations(run))}
        if not found[name]:
            path = shlex.quote(str(run.path))
            raise UsageError(f"{run.path}: was not evaluated yet; first: splime evaluate {path}")
    for wanted in _ORDER:
        if all(wanted in each for each in found.values()):
            return {name: each[wanted] for name, each in found.items()}
    raise UsageError(
        "no protocol and split were evaluated for all runs: first splime evaluate them"
    )


def plot_strata(evaluations: Mapping[str, Evaluation], *kinds: str, most: int = 25) -> Figure:
    """MRR of groups of facts: a panel for each kind of groups, a mark for each evaluation.

    The kinds are those of `Evaluation.strata`: predicate and period (drawn if none is named), time,
    train. Of the predicates the most asked for are shown; periods are in the order of time.
    """
    kinds = kinds or ("predicate", "period")
    name = _check(evaluations, kinds)
    groups = {kind: _groups(evaluations, name, kind, most) for kind in kinds}
    sizes = [_ROW * len(each) + 0.55 for each in groups.values()]
    figure = make_figure(9, sum(sizes) + 0.5)
    panels = figure.subplots(len(kinds), 1, sharex=True, squeeze=False, height_ratios=sizes)[:, 0]
    for axes, (kind, shown) in zip(panels, groups.items(), strict=True):
        handles = _draw(axes, [each.strata[name][kind] for each in evaluations.values()], shown)
        total = len({group for e in evaluations.values() for group in e.strata[name][kind]})
        few = f" (the {len(shown)} most asked for of {total:,})" if len(shown) < total else ""
        heading(axes, f"MRR by {STRATA.get(kind, kind)}{few}")
    panels[-1].set_xlim(0, None)
    if len(evaluations) > 1:
        names = [short(each) for each in evaluations]
        add_legend(panels[0], handles, names, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    first = next(iter(evaluations.values()))
    remark(
        figure,
        f"protocol {first.protocol}, {first.split}, filter {name}; numbers of queries in brackets",
    )
    return figure


def _check(evaluations: Mapping[str, Evaluation], kinds: Sequence[str]) -> str:
    """The filter that is drawn; an error where evaluations cannot stand beside each other."""
    if not evaluations:
        raise UsageError("there is nothing to draw")
    first = next(iter(evaluations.values()))
    name = first.filters[0]
    for label, each in evaluations.items():
        for what in ("protocol", "split", "ties", "leak_filter"):
            if getattr(each, what) != getattr(first, what):
                raise UsageError(
                    f"{label}: was evaluated with {what} {getattr(each, what)}, not"
                    f" {getattr(first, what)} as the first; such figures do not compare"
                )
        for kind in kinds:
            check_name("kind of groups", kind, each.strata.get(name, {}))
        if "period" in kinds and [*each.strata[name]["period"]] != [*first.strata[name]["period"]]:
            raise UsageError(f"{label}: has other periods than the first; they do not compare")
    return name


def _groups(
    evaluations: Mapping[str, Evaluation], name: str, kind: str, most: int
) -> dict[str, str]:
    """The groups to show, and what to call them; with the queries that the evaluations have."""
    queries: dict[str, list[int]] = {}
    for each in evaluations.values():
        for group, metrics in each.strata[name][kind].items():
            queries.setdefault(group, []).append(metrics.queries)
    shown = [*queries]
    if kind == "predicate":
        shown = sorted(shown, key=lambda group: -max(queries[group]))[:most]
    found = {}
    for group in shown:
        low, high = min(queries[group]), max(queries[group])
        count = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        found[group] = f"{short(group)}  ({count})"
    return found


def _draw(
    axes: Axes, strata: Sequence[Mapping[str, Metrics]], groups: Mapping[str, str]
) -> list[object]:
    rows = {group: row for row, group in enumerate(groups)}
    for group, row in rows.items():
        values = [each[group].mrr for each in strata if group in each]
        axes.plot([min(values), max(values)], [row, row], color="#bbbbbb", linewidth=1, zorder=1)
    handles: list[object] = []
    for number, each in enumerate(strata):
        own = [group for group in rows if group in each]
        points = axes.plot(
            [each[group].mrr for group in own],
            [rows[group] for group in own],
            linestyle="",
            markersize=6,
            alpha=0.9,
            zorder=2,
            **look(number),
        )
        handles += points
    axes.set_yticks(range(len(rows)), [*groups.values()])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="x", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    open_axes(axes)
    axes.tick_params(axis="y", length=0, labelsize=SMALL)
    axes.tick_params(axis="x", labelbottom=True)
    return handles
