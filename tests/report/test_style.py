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
from matplotlib.patches import StepPatch

import splime
from splime.errors import SplimeError, UsageError
from splime.graph import TemporalGraph
from splime.reporting import plots, style, tables
from splime.statistics import Window
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


@pytest.mark.parametrize(
    ("first", "last", "granularity", "labels"),
    [
        ("1950", "2020", "year", [f"{year}" for year in range(1950, 2021, 10)]),
        ("1953", "1961", "year", [f"{year}" for year in range(1953, 1962)]),
        ("2014-01-01", "2014-12-31", "day", [f"2014-{month:02}" for month in range(1, 13, 2)]),
        ("2012-03", "2013-02", "month", [f"2012-{m:02}" for m in (3, 5, 7, 9, 11)] + ["2013-01"]),
        ("2014-01-05", "2014-01-07", "day", ["2014-01-05", "2014-01-06", "2014-01-07"]),
        ("1990", "1990", "year", ["1990"]),
    ],
)
def test_round_dates(first: str, last: str, granularity: Granularity, labels: list[str]) -> None:
    window = Window(tick_range(first, granularity)[0], tick_range(last, granularity)[1])
    assert style.date_ticks(window, granularity)[1] == labels


@given(
    st.integers(-3_000, 20_000),
    st.integers(0, 10**6),
    st.sampled_from(["step", "year", "month", "day", "hour"]),
    st.integers(3, 12),
)
def test_dates_of_any_time(first: int, length: int, granularity: Granularity, most: int) -> None:
    window = Window(first, first + length)
    places, labels = style.date_ticks(window, granularity, most=most)
    assert 1 <= len(places) == len(labels) <= most
    assert places == sorted(set(places))
    assert window.first <= places[0]
    assert places[-1] <= window.last
    # A label is the date at its place, which the axis has at its place.
    full = format_ticks(np.array(places), granularity)
    assert all(date.startswith(label) for date, label in zip(full, labels, strict=True))
    if len(places) > 1:  # so that the labels have room
        assert np.diff(places).min() * 4 * most >= length


# Time along an axis


FAR_APART = {
    "train": [
        ("a", "p", "b", 1950, 1952),
        ("a", "q", "c", 1951, 1990),
        ("c", "p", "b", 1990, 1990),
    ],
    "test": [("a", "p", "c", 2000, 2001), ("a", "q", "b", 2001, 2001)],
}


def held(graph: TemporalGraph, predicate: str, year: int) -> int:
    own = graph.facts().take(graph.facts().predicate == graph.predicates.id(predicate))
    return int(((own.begin <= year) & (year <= own.end)).sum())


def spread() -> TemporalGraph:
    """Five timestamps of fifty years."""
    return splime.read(FAR_APART, granularity="year")


def test_every_year_of_a_picture_is_equally_long() -> None:
    graph = spread()
    figure = plots.plot_facts_over_time(graph)
    above, below = figure.axes[:2]
    (steps,) = above.findobj(StepPatch)
    values, limits, _ = steps.get_data()
    (image,) = below.get_images()
    shown, (left, right, *_) = np.asarray(image.get_array()), image.get_extent()
    assert (left, right) == (-0.5, 51.5) == below.get_xlim()  # from 1950 to 2001
    assert shown.shape == (2, 52)
    names = [label.get_text().split("  ")[0] for label in below.get_yticklabels()]
    for year in range(1950, 2002):
        counts = [held(graph, name, year) for name in names]
        assert values[np.searchsorted(limits, year - 1950) - 1] == sum(counts), year
        highest = [max(held(graph, name, at) for at in range(1950, 2002)) for name in names]
        assert shown[:, year - 1950].tolist() == [
            count / most for count, most in zip(counts, highest, strict=True)
        ]
    for tick, label in zip(below.get_xticks(), below.get_xticklabels(), strict=True):
        assert int(label.get_text()) == 1950 + tick


def test_scopes_are_as_long_as_they_last() -> None:
    graph = spread()
    (axes,) = plots.plot_segmentation(splime.Timestamp().fit(graph), graph).axes
    labels = [label.get_text().split("  ")[0] for label in axes.get_yticklabels()]
    boxes = [path.get_extents() for path in axes.collections[labels.index("p")].get_paths()]
    # Facts of p in train begin or end in 1950, 1952 and 1990.
    assert boxes[0].x0 == -0.5
    assert boxes[-1].x1 == 51.5
    assert all(one.x1 == other.x0 for one, other in pairwise(boxes))
    years = {box.x0 + 1950.5 for box in boxes[1:]}
    assert years
    assert years <= {1951, 1952, 1990, 2000, 2001}


def test_a_chronological_split_is_a_line() -> None:
    figure = plots.plot_facts_over_time(spread())
    above, below = figure.axes[:2]
    lines = [
        np.asarray(line.get_xdata()).tolist() for axes in (above, below) for line in axes.lines
    ]
    assert lines == [[49.5, 49.5]] * 2
    assert [text.get_text().strip() for text in above.texts] == ["test begins: 2000"]
    random = splime.load("demo")
    assert not plots.plot_facts_over_time(random).axes[0].texts


@pytest.mark.parametrize("times", [[10**17, 10**17 + 1], [-(10**17), 0, 10**17], [10**17]])
def test_times_beyond_what_floats_tell_apart(times: list[int], tmp_path: Path) -> None:
    graph = splime.read([("a", "p", "b", time) for time in times], split="none")
    bars = list(tables.predicate_table(graph).columns[2].cells)
    assert "█" in str(bars[0])
    figures = (
        plots.plot_facts_over_time(graph),
        plots.plot_segmentation(splime.Timestamp().fit(graph), graph),
    )
    for figure in figures:  # a warning would be an error here
        style.save_picture(figure, tmp_path / "times.png")


def test_a_far_time_does_not_take_the_room() -> None:
    rows = [("a", "p", f"b{year}", year) for year in [*range(1900, 2000), 19433]]
    figure = plots.plot_facts_over_time(splime.read(rows, split="none", granularity="year"))
    assert figure.axes[1].get_xlim()[1] < 200
    assert "1 fact ends after" in figure.get_supxlabel()
    assert "19433" in figure.get_supxlabel()


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


@pytest.mark.system
def test_pictures_of_graphs_need_no_torch() -> None:
    code = (
        "import sys, splime.reporting.plots, splime.reporting.style, splime.cli.main\n"
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
