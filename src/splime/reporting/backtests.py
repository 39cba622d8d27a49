"""Backtests as tables, for the terminal and notebooks."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from splime.analysis.backtest import FORECASTERS, PATH, Backtest
from splime.query.answers import percent
from splime.reporting.tables import make_table


def backtest_tables(found: Backtest) -> Iterator[RenderableType]:
    """A row for each window, and the means."""
    heads = ("probability", "right", *(f"MRR {name}" for name in FORECASTERS))
    table = make_table("", "begins in", "facts", *heads)
    table.title = Text(f"{found.source}: forecasts and what happened")
    for window in found:
        span = window.begin if window.begin == window.end else f"{window.begin}..{window.end}"
        said = "–" if window.probability is None else percent(window.probability)
        mrr = (f"{window.metrics[name].mrr:.3f}" for name in FORECASTERS)
        first = percent(window.metrics[PATH].first)
        last = window is found.windows[-1]
        table.add_row(span, f"{window.facts:,}", said, first, *mrr, end_section=last)
    facts = sum(window.facts for window in found)
    means = [found.mean(name) for name in FORECASTERS]
    mrr = (f"{mean.mrr:.3f}" for mean in means)
    table.add_row("all", f"{facts:,}", "", percent(means[0].first), *mrr)
    yield table
    yield Text(
        f"{means[0].questions:,} questions for objects and subjects of facts that begin in a"
        " window, answered from those that began before it. probability: the mean of the model's"
        " first answers, calibrated on the window before; right: how many of them came true."
        " Other right answers at the time are left out.",
        style="dim",
    )
