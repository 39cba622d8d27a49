"""What all pictures share: names, dates along an axis, files."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import splime
from splime.errors import SplimeError, UsageError
from splime.report import plots, style
from splime.timeline import Timeline
from splime.times import Granularity, format_ticks, tick_range


@given(st.text(max_size=80), st.integers(2, 60))
def test_short_names(name: str, length: int) -> None:
    shown = style.short(name, length)
    plain = shown.replace(r"\$", "$")
    assert len(plain) <= length
    assert "\n" not in shown
    assert not re.search(r"(?<!\\)\$", shown)  # no dollar is left to begin a formula
    letters = " ".join(name.split()).replace("$", "")
    if letters.isascii() and letters.isprintable():  # others may be escaped
        assert plain == " ".join(name.split()) or plain.endswith("…")


def test_a_formula_is_not_read() -> None:
    """Which would be an error, since it is none."""
    figure = style.make_figure(2, 2)
    figure.subplots().set_title(style.short(r"$\frac{$ and 60 characters of $x_$" + "$" * 40))
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    assert drawn.getvalue().startswith(b"\x89PNG")


def dates(first: str, last: str, granularity: Granularity) -> Timeline:
    return Timeline.of(
        np.arange(tick_range(first, granularity)[0], tick_range(last, granularity)[1] + 1),
        granularity,
    )


@pytest.mark.parametrize(
    ("line", "labels"),
    [
        (dates("1950", "2020", "year"), [f"{year}" for year in range(1950, 2021, 10)]),
        (dates("1953", "1961", "year"), [f"{year}" for year in range(1953, 1962)]),
        (
            dates("2014-01-01", "2014-12-31", "day"),
            [f"2014-{month:02}" for month in range(1, 13, 2)],
        ),
        (dates("2012-03", "2013-02", "month"), [f"2012-{m:02}" for m in (3, 5, 7, 9, 11)]
         + ["2013-01"]),
        (dates("2014-01-05", "2014-01-07", "day"), ["2014-01-05", "2014-01-06", "2014-01-07"]),
        (dates("1990", "1990", "year"), ["1990"]),
    ],
)  # fmt: skip
def test_round_dates(line: Timeline, labels: list[str]) -> None:
    assert style.date_ticks(line)[1] == labels


@given(
    st.lists(st.integers(-3_000, 20_000), min_size=1, max_size=60),
    st.sampled_from(["step", "year", "month", "day", "hour"]),
    st.integers(3, 12),
)
def test_dates_of_any_timeline(ticks: list[int], granularity: Granularity, most: int) -> None:
    line = Timeline.of(np.array(ticks), granularity)
    places, labels = style.date_ticks(line, most=most)
    assert 1 <= len(places) == len(labels) <= most
    assert places == sorted(set(places))
    full = format_ticks(line.starts, granularity)
    assert all(full[place].startswith(label) for place, label in zip(places, labels, strict=True))
    if len(places) > 1:  # so that the labels have room
        assert np.diff(places).min() * 2 * most >= len(line)


def test_letters_that_the_font_does_not_have(tmp_path: Path) -> None:
    graph = splime.read([("a", "出生地", "b", 1990), ("a", "_p", "b", 1991)], split="none")
    figure = plots.plot_facts_over_time(graph)
    style.save_picture(figure, tmp_path / "facts.png")  # a warning would be an error here
    labels = [label.get_text() for label in figure.axes[1].get_yticklabels()]
    # As they are where some font has them, else with escapes: never as boxes.
    assert labels[0].split()[0] == "_p"
    assert labels[1].split()[0] in ("出生地", r"\u51fa\u751f\u5730")


def test_files(tmp_path: Path) -> None:
    figure = style.make_figure(1, 1)
    with pytest.raises(UsageError, match=r"a\.gif: pictures are \.png, \.svg, \.pdf files"):
        style.save_picture(figure, tmp_path / "a.gif")
    with pytest.raises(SplimeError, match="cannot be written"):
        style.save_picture(figure, tmp_path / "nowhere" / "a.png")
    style.save_picture(figure, tmp_path / "A.PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["A.PNG"]


def test_pictures_of_graphs_need_no_torch() -> None:
    code = (
        "import sys, splime.report.plots, splime.report.style, splime.cli.main\n"
        "print(sorted({'torch', 'matplotlib', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.stdout == "[]\n"


# Scopes over facts


def test_segments_are_drawn_from_cut_to_cut() -> None:
    graph = splime.load("demo")
    cuts = splime.Merge(shrink=4).fit(graph)
    (axes,) = plots.plot_segmentation(cuts, graph).axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert len(labels) == len(axes.collections) == len(axes.patches) == len(graph.predicates)
    for row, (label, bars) in enumerate(zip(labels, axes.collections, strict=True)):
        name, count = label.split("  ")
        own = cuts.predicates.cuts_of(graph.predicates.id(name)) / 2
        boxes = [path.get_extents() for path in bars.get_paths()]
        assert count == f"({len(boxes)})"
        assert [box.x0 for box in boxes] == pytest.approx([-0.5, *own])
        assert [box.x1 for box in boxes] == pytest.approx([*own, len(graph.timeline) - 0.5])
        assert all(abs((box.y0 + box.y1) / 2 - row) < 1e-9 for box in boxes)
        colors = np.asarray(bars.get_facecolor()).tolist()
        assert len(colors) == len(boxes)
        assert all(a != b for a, b in pairwise(colors))


@pytest.mark.parametrize("rows", [[("a", "p", "b", 1990)], [("a", "p", "b", 1990, 1999)]])
def test_a_single_predicate(rows: list[tuple[Any, ...]], tmp_path: Path) -> None:
    graph = splime.read(rows, split="none")
    for number, figure in enumerate(
        (
            plots.plot_facts_over_time(graph),
            plots.plot_segmentation(splime.Timestamp().fit(graph), graph),
        )
    ):
        style.save_picture(figure, tmp_path / f"{number}.png")
        labels = [
            text.get_text() for text in figure.axes[-2 if number == 0 else 0].get_yticklabels()
        ]
        assert [label.split()[0] for label in labels] == ["p"]


def test_many_segments_stay_small_as_svg(tmp_path: Path) -> None:
    rows = [("a", f"{'x' * 60}{p}", "b", year) for p in range(30) for year in range(1700, 2020)]
    graph = splime.read(rows, split="none", granularity="year")
    figure = plots.plot_segmentation(splime.Timestamp().fit(graph), graph)
    style.save_picture(figure, tmp_path / "many.svg")
    assert (tmp_path / "many.svg").stat().st_size < 400_000
    assert figure.get_supxlabel().endswith("; 5 less frequent predicates are not shown")


def test_remarks_are_not_wider_than_the_picture() -> None:
    figure = style.make_figure(4, 2)
    style.remark(figure, "word " * 40 + "\nend")
    lines = figure.get_supxlabel().splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[-1] == "end"
    assert sum(line.count("word") for line in lines) == 40
