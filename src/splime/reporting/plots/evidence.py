"""The picture of an answer's evidence."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from splime.errors import UsageError
from splime.reporting import style
from splime.statistics import Window
from splime.times import Granularity, tick_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from splime.query.evidence import Evidence, Step


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
    axes.axvspan(asked[0] - 0.5, asked[1] + 0.5, color="#fbdcae", zorder=0)
    rows: list[float] = []
    row = 0.0
    for number, reason in enumerate(evidence.reasons):
        color = style.series_style(number)["color"]
        middles = []
        place = question.subject if question.kind == "object" else question.object
        for nth, step in enumerate(reason.steps, 1):
            middles.append((_draw_step(axes, step, row, window, granularity, color), row))
            place = step.fact.object if place == step.fact.subject else step.fact.subject
            adds = f"  +{reason.contribution:#.2g}" if nth == len(reason.steps) else ""
            axes.text(
                1.01, row, f"→ {style.short(place, 28)}{adds}", va="center", fontsize=style.SMALL,
                transform=axes.get_yaxis_transform(), color=style.INK,
            )  # fmt: skip
            rows.append(row)
            row += 1
        for (x, y), (to_x, to_y) in pairwise(middles):
            # Between the rows, where no words stand.
            axes.plot([x, x, to_x, to_x], [y, y + 0.5, y + 0.5, to_y], color=color, linewidth=1.0)
        row += 0.6
    labels = [f"{fact.subject} {fact.predicate} {fact.object}" for fact, _ in steps]
    axes.set_yticks(rows, [style.short(label, 64) for label in labels], fontsize=style.SMALL)
    axes.set_ylim(row - 1.0, -0.7)
    axes.tick_params(axis="y", length=0)
    axes.spines[["left", "top", "right"]].set_visible(False)
    style.date_axis(axes, window, granularity)
    style.heading(axes, style.short(f"{question.text}: why {evidence.answer}?", 100))
    style.remark(
        figure,
        "Tint: the time asked about. Bars: known facts, and how their times relate to it."
        " Each chain leads down to the answer; its number is what it adds to the score.",
    )
    return figure


def _draw_step(
    axes: Axes, step: Step, row: float, window: Window, granularity: Granularity, color: str
) -> float:
    """A bar for a fact, with its scope beside it; returns where its middle is."""
    span = _span(step.fact.begin, step.fact.end, granularity)
    begin, end = span or (window.first, window.last)
    # An instant must still be seen where a unit of time is less than a point.
    width = max(end - begin + 1, (window.last - window.first) / 120)
    middle = (begin + end) / 2
    axes.barh(row, width, left=middle - width / 2, height=0.5, color=color, zorder=2)
    right = middle < (window.first + window.last) / 2
    axes.annotate(
        step.scope, (middle + (width if right else -width) / 2, row),
        xytext=(4 if right else -4, 0), textcoords="offset points",
        ha="left" if right else "right", va="center", fontsize=style.SMALL,
        color=style.INK, zorder=4,
    )  # fmt: skip
    return middle


def _span(begin: str | None, end: str | None, granularity: Granularity) -> tuple[int, int] | None:
    """The ticks of a fact, with the known end for an unknown one; None where both are unknown."""
    texts = [text for text in (begin, end) if text is not None]
    if not texts:
        return None
    return tick_range(texts[0], granularity)[0], tick_range(texts[-1], granularity)[1]
