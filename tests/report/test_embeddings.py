"""The paper's figures 1 and 2: what is drawn, where, and in which colours."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from matplotlib.text import Annotation

import splime
from splime.analysis.embeddings import project, smoothness
from splime.errors import UsageError
from splime.reporting.plots import plot_predicate, plot_predicates
from splime.reporting.plots.embeddings import _halving, _label_points
from splime.reporting.style import make_figure, save_picture
from splime.runs import Run
from tests.runs.small import small_graph, small_run


@pytest.fixture(scope="module")
def fine(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("fine") / "fine"
    return small_run(small_graph(), out, splime.Timestamp(), epochs=2)


@pytest.fixture(scope="module")
def by_chance(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("by_chance") / "random"
    return small_run(small_graph(), out, splime.RandomSplit(predicates=12, seed=4), epochs=2)


def points(figure: Figure, panel: int = 0) -> list[PathCollection]:
    return [one for one in figure.axes[panel].collections if isinstance(one, PathCollection)]


def positions(points: PathCollection) -> Any:
    return np.asarray(points.get_offsets()).tolist()


def rows(run: Run, predicate: str) -> list[list[float]]:
    """The places of a predicate's scopes in the order of time, by name."""
    labels = run.static.predicates.labels.to_pylist()
    projection = project(run)
    own = [labels.index(scope.name) for scope in run.segmentation.scopes_of(predicate)]
    return [
        projection.positions[projection.scopes.tolist().index(scope)].tolist()
        for scope in own
        if scope in projection.scopes
    ]


def test_frequent_predicates(fine: Run) -> None:
    figure = plot_predicates(project(fine), most=2)
    (axes,) = figure.axes
    counts = {name: len(fine.graph.where(predicate=name).facts()) for name in fine.graph.predicates}
    shown = sorted(counts, key=lambda name: -counts[name])[:2]
    assert [positions(one) for one in points(figure)] == [rows(fine, name) for name in shown]
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        f"{name}  ({len(rows(fine, name))})" for name in shown
    ]
    overall = smoothness(fine).overall
    assert axes.get_title("left") == (
        f"fine (Timestamp, distmult): t-SNE of {len(project(fine).scopes)} scoped predicates\n"
        f"smoothness over time: {overall:.2f}"
    )
    assert "drawn: the 2 most frequent predicates" in figure.get_supxlabel()
    everything = plot_predicates(project(fine))
    assert sum(len(positions(one)) for one in points(everything)) == len(project(fine).scopes)
    colors = {tuple(np.ravel(one.get_facecolor())) for one in points(everything)}
    assert len(colors) == len(fine.graph.predicates)


def test_one_predicate_over_time(fine: Run, by_chance: Run) -> None:
    figure = plot_predicate([project(fine), project(by_chance)], "p1")
    for panel, run in enumerate((fine, by_chance)):
        axes = figure.axes[panel]
        expected = rows(run, "p1")
        (drawn,) = points(figure, panel)
        assert positions(drawn) == expected
        (lines,) = [one for one in axes.collections if isinstance(one, LineCollection)]
        segments = [np.asarray(one).tolist() for one in lines.get_segments()]
        assert segments == [[a, b] for a, b in pairwise(expected)]  # from each to the next in time
        smooth = smoothness(run)
        ratio = f"{smooth.predicates['p1'].ratio:.2f}" if "p1" in smooth.predicates else "–"
        overall = f"{smooth.overall:.2f}" if smooth.overall is not None else "–"
        assert axes.get_title("left") == (
            f"{run.path.name} ({run.config['method']['name']}, distmult)\np1: {len(expected)}"
            f" scopes, smoothness {ratio} (all predicates {overall})"
        )


def test_from_red_to_blue(fine: Run) -> None:
    figure = plot_predicate([project(fine)], "p0")
    figure.savefig(io.BytesIO(), format="png")
    (drawn,) = points(figure)
    ends = [int(scope.end) for scope in fine.segmentation.scopes_of("p0")]
    # Colours are linear in time.
    assert np.asarray(drawn.get_array()).tolist() == [end - ends[0] for end in ends]
    red, green, blue, _ = np.asarray(drawn.get_facecolor()).T
    assert red[0] > 0.8 > 0.3 > blue[0]
    assert blue[-1] > 0.8 > 0.3 > red[-1]
    assert (np.diff(blue) > 0).all()  # later scopes are bluer, one by one
    assert (red + blue > green * 2).all()


def test_labels_are_scopes(fine: Run) -> None:
    figure = plot_predicate([project(fine)], "p2")
    known = {scope.begin: scope for scope in fine.segmentation.scopes_of("p2")}
    texts = [one for one in figure.axes[0].texts if isinstance(one, Annotation)]
    assert len(texts) > 3
    places = rows(fine, "p2")
    first, last = min(known), max(known)
    assert {first, last} <= {text.get_text() for text in texts}
    for text in texts:  # each beside the point that it names
        assert list(text.xy) == places[sorted(known).index(text.get_text())]
    merged = plot_predicate([project(fine)], "p2").axes[0]
    assert [text.get_text() for text in merged.texts] == [text.get_text() for text in texts]


def scopes_by_name(run: Run) -> dict[str, int]:
    return {name: len(rows(run, name)) for name in run.graph.predicates}


def test_all_runs_show_the_same_predicate(fine: Run, by_chance: Run) -> None:
    """The one with the most scopes in the run that has the fewest of it, most facts on ties."""
    counts = [scopes_by_name(fine), scopes_by_name(by_chance)]
    facts = {n: len(fine.graph.where(predicate=n).facts()) for n in fine.graph.predicates}
    chosen = max(facts, key=lambda name: (min(c[name] for c in counts), facts[name]))
    assert min(count[chosen] for count in counts) > 1
    figure = plot_predicate([project(fine), project(by_chance)])
    for panel, count in enumerate(counts):
        assert f"\n{chosen}: {count[chosen]} scopes," in figure.axes[panel].get_title("left")


def test_a_run_alone_shows_what_it_cut_most(by_chance: Run) -> None:
    count = scopes_by_name(by_chance)
    chosen = max(count, key=lambda name: count[name])
    assert sorted(count.values())[-2] < count[chosen]
    title = plot_predicate([project(by_chance)]).axes[0].get_title("left")
    assert f"\n{chosen}: {count[chosen]} scopes," in title


@pytest.mark.parametrize("name", ["$p_1^$", "_hidden", "出生地 " + "x" * 60, "line\nbreak"])
def test_odd_names(name: str, tmp_path: Path) -> None:
    facts = [("a", name, "b", 1990 + year) for year in range(8)]
    graph = splime.read({"train": facts}, granularity="year")
    run = small_run(
        graph, tmp_path / "run", splime.Timestamp(), epochs=1, validate_every=0, batch_size=4
    )
    for number, figure in enumerate(
        (plot_predicates(project(run)), plot_predicate([project(run)]))
    ):
        save_picture(figure, tmp_path / f"{number}.svg")
        assert len(positions(points(figure)[0])) == 8
    legend = plot_predicates(project(run)).axes[0].get_legend()
    assert legend is not None
    (text,) = legend.get_texts()
    assert text.get_text().endswith("  (8)")
    assert text.get_text()[:2] in (r"\$", "_h", "出生", r"\u", "li")


def test_errors(fine: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="p9"):
        plot_predicate([project(fine)], "p9")
    with pytest.raises(UsageError, match="there are no runs"):
        plot_predicate([])
    with pytest.raises(UsageError, match="given more than once"):
        plot_predicate([project(fine), project(Run(fine.path))])
    vanilla = small_run(small_graph(), tmp_path / "vanilla", splime.Vanilla(), epochs=1)
    with pytest.raises(UsageError, match="a method that cuts gives more"):
        plot_predicates(project(vanilla))


def labelled(places: Any) -> list[Annotation]:
    figure = make_figure(6, 6)
    axes = figure.subplots()
    axes.scatter(*places.T)
    axes.margins(0.12, 0.06)
    figure.draw_without_rendering()
    _label_points(axes, places, ["1990..1999"] * len(places), ["black"] * len(places))
    return [one for one in axes.texts if isinstance(one, Annotation)]


def test_labels_do_not_lie_on_each_other() -> None:
    draw = np.random.default_rng(0)
    places = draw.normal(size=(300, 2))
    texts = labelled(places)
    assert texts[0].xy == tuple(places[0])
    assert 10 < len(texts) < 150
    boxes = [text.get_window_extent() for text in texts]
    assert not any(box.count_overlaps(boxes[:at]) for at, box in enumerate(boxes))
    few = labelled(np.stack([np.arange(20.0), np.zeros(20)], 1))
    assert {0.0, 19.0} <= {text.xy[0] for text in few}
    assert len(few) < 12
    assert len(labelled(np.zeros((1, 2)))) == 1
    assert len(labelled(np.zeros((6, 2)))) == 1


@pytest.mark.parametrize("count", range(1, 20))
def test_halving_gives_every_place_once(count: int) -> None:
    assert sorted(_halving(count)) == list(range(count))
