"""The picture of what mattered."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

from splime.report.importance import plot_importance
from splime.report.style import save_picture

METHODS = ("vanilla", "split", "merge")


def trials(count: int) -> list[dict[str, Any]]:
    draw = random.Random(0)
    return [
        {
            "method": draw.choice(METHODS),
            "n3": 10 ** draw.uniform(-3, 0),
            "smooth": draw.choice([0.0, 0.1, 1.0]),
            "$a_b": draw.choice([True, False]),
        }
        for _ in range(count)
    ]


def test_every_trial_is_there(tmp_path: Path) -> None:
    chosen = trials(20)
    values = [0.3 + number / 100 for number in range(20)]
    shares = {"n3": 0.6, "method": 0.3, "smooth": 0.1, "$a_b": 0.0}
    done = [number % 3 > 0 for number in range(20)]
    figure = plot_importance(chosen, values, shares, finished=done, name="demo")
    bars, *panels = figure.axes
    assert [round(bar.get_width()) for bar in bars.containers[0]] == [60, 30, 10]
    assert [axes.get_xlabel() for axes in panels] == ["n3", "method", "smooth", r"\$a_b"]
    for axes in panels:
        heights = [np.ravel(line.get_ydata()).item() for line in axes.lines]
        assert sorted({round(height, 2) for height in heights}) == [round(v, 2) for v in values]
        assert len(axes.lines) == 21  # and a ring around the best finished one
    assert panels[0].get_xscale() == "log"
    hollow = [line for line in panels[0].lines if line.get_markerfacecolor() == "none"]
    assert len(hollow) == 1 + done.count(False)
    save_picture(figure, tmp_path / "importance.png")


def test_few_and_alike(tmp_path: Path) -> None:
    for number, chosen in enumerate((trials(1), trials(3), [{"method": "split"}] * 4)):
        figure = plot_importance(chosen, [0.5] * len(chosen), {})
        save_picture(figure, tmp_path / f"{number}.svg")
        assert (tmp_path / f"{number}.svg").stat().st_size > 1_000
