"""Learning curves, metrics by group, costs of change points; and all pictures together."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

import splime
from splime.analysis.comparing import kept_evaluations
from splime.errors import DataError, UsageError
from splime.evaluation import Evaluation
from splime.graph import TemporalGraph
from splime.methods import ChangePointSplit
from splime.methods.changepoint import change_costs
from splime.reporting.plots import plot_change_costs, plot_cuts, plot_learning, plot_strata
from splime.reporting.showing import PICTURES, draw_pictures
from splime.runs import Run, evaluate
from tests.runs.small import small_graph, small_run


@pytest.fixture(scope="module")
def graph() -> TemporalGraph:
    return small_graph()


@pytest.fixture(scope="module")
def runs(graph: TemporalGraph, tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    out = tmp_path_factory.mktemp("runs")
    return [
        small_run(graph, out / "_first"),
        small_run(graph, out / "second", ChangePointSplit(changes=2), epochs=3, validate_every=1),
    ]


@pytest.fixture(scope="module")
def evaluations(runs: list[Run]) -> dict[str, Evaluation]:
    return {run.path.name: evaluate(run) for run in runs}


def drawn(axes: Axes) -> list[list[tuple[float, float]]]:
    return [[(float(x), float(y)) for x, y in np.asarray(line.get_xydata())] for line in axes.lines]


def legend(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


# Learning


def test_learning_curves(runs: list[Run]) -> None:
    loss, valid = plot_learning({run.path.name: run.history for run in runs}).axes
    assert drawn(loss) == [[(e.epoch, e.loss) for e in run.history] for run in runs]
    lines = iter(drawn(valid))
    stars, names = [], []
    for run in runs:
        validations = [(e.epoch, e.valid) for e in run.history if e.valid is not None]
        assert next(lines) == validations
        highest = max(v for _, v in validations)
        best = [(e, v) for e, v in validations if v == highest][:1]  # the first of the best is kept
        assert next(lines) == best
        stars += best
        names.append(f"{run.path.name}: best {highest:.3f}, epoch {best[0][0]}")
    assert legend(loss) == names
    assert [line.get_marker() for line in valid.lines] == ["o", "*"] * 2
    assert len({line.get_color() for line in loss.lines}) == len(runs)


def test_without_valid(graph: TemporalGraph, tmp_path: Path) -> None:
    run = small_run(graph, tmp_path / "run", epochs=1, validate_every=0)
    (loss,) = plot_learning({"run": run.history}).axes
    assert drawn(loss) == [[(1, run.history[0].loss)]]
    assert loss.lines[0].get_marker() == "o"  # a line of one point would not be seen
    assert legend(loss) == ["run"]
    with pytest.raises(UsageError, match="there are no runs"):
        plot_learning({})


# By group


def test_metrics_by_predicate_and_period(evaluations: dict[str, Evaluation]) -> None:
    figure = plot_strata(evaluations)
    for axes, kind in zip(figure.axes, ("predicate", "period"), strict=True):
        strata = [each.strata["exact"][kind] for each in evaluations.values()]
        groups = [label.get_text().split("  ")[0] for label in axes.get_yticklabels()]
        assert set(groups) == set(strata[0])
        counts = [strata[0][group].queries for group in groups]
        if kind == "predicate":
            assert counts == sorted(counts, reverse=True)
        else:
            assert groups == list(strata[0])  # in the order of time
        assert [label.get_text() for label in axes.get_yticklabels()] == [
            f"{group}  ({count})" for group, count in zip(groups, counts, strict=True)
        ]
        marks = drawn(axes)[len(groups) :]
        assert marks == [
            [(each[group].mrr, row) for row, group in enumerate(groups)] for each in strata
        ]
        for row, span in enumerate(drawn(axes)[: len(groups)]):
            values = [each[groups[row]].mrr for each in strata]
            assert span == [(min(values), row), (max(values), row)]
    assert legend(figure.axes[0]) == ["_first", "second"]
    assert figure.get_supxlabel().startswith("protocol fact, test, filter exact;")


def test_few_of_many(evaluations: dict[str, Evaluation]) -> None:
    one = {"only": evaluations["second"]}
    (axes,) = plot_strata(one, "predicate", most=2).axes
    assert len(axes.get_yticklabels()) == 2
    assert axes.get_title("left") == "MRR by predicate (the 2 most frequent of 3)"
    assert legend(axes) == []
    (axes,) = plot_strata(one, "time").axes
    assert axes.get_title("left") == "MRR by kind of time"


def test_groups_that_a_run_does_not_have(evaluations: dict[str, Evaluation]) -> None:
    first, second = evaluations.values()
    less = {name: m for name, m in second.strata["exact"]["predicate"].items() if name != "p1"}
    fewer = {name: replace(m, queries=m.queries - 1) for name, m in less.items()}
    second = replace(second, strata={"exact": {"predicate": fewer}})
    (axes,) = plot_strata({"a": first, "b": second}, "predicate").axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert len(drawn(axes)[-1]) == len(labels) - 1 == 2
    queries = first.strata["exact"]["predicate"]["p0"].queries
    assert f"p0  ({queries})" in labels


def test_other_periods(evaluations: dict[str, Evaluation]) -> None:
    first, second = evaluations.values()
    strata = {"exact": {**second.strata["exact"], "period": {}}}
    with pytest.raises(UsageError, match="different periods"):
        plot_strata({"a": first, "b": replace(second, strata=strata)})
    with pytest.raises(UsageError, match="nothing to draw"):
        plot_strata({})


def test_which_evaluations_are_drawn(graph: TemporalGraph, tmp_path: Path) -> None:
    runs = [small_run(graph, tmp_path / name, epochs=1) for name in ("a", "b")]
    with pytest.raises(UsageError, match=r"a: was not evaluated yet; first: splime evaluate .*/a"):
        kept_evaluations(runs)
    evaluate(runs[0])
    evaluate(runs[1], "triple")
    with pytest.raises(UsageError, match="b: was not evaluated yet"):
        kept_evaluations(runs)
    evaluate(runs[1])
    chosen = kept_evaluations(runs)
    assert [*chosen] == ["a", "b"]
    assert {(each.protocol, each.split) for each in chosen.values()} == {("fact", "test")}


# Costs


@pytest.mark.parametrize("stop", [{"epsilon": 2.0}, {"penalty": 0.5}, {"changes": 1}])
def test_costs_of_change_points(graph: TemporalGraph, stop: dict[str, Any]) -> None:
    method = ChangePointSplit(**stop)
    figure = plot_change_costs(method.fit(graph), graph, most=2)
    shown = [axes.get_title("left") for axes in figure.axes]
    facts = {name: len(graph.where(predicate=name).facts()) for name in graph.predicates}
    assert shown == sorted(facts, key=lambda name: -facts[name])[:2]
    cuts = method.fit(graph)
    for axes, name in zip(figure.axes, shown, strict=True):
        costs, chosen = change_costs(graph, method)[name], len(cuts.scopes_of(name)) - 1
        curve, *line, dot = drawn(axes)
        assert curve == list(zip(costs.changes.tolist(), costs.costs.tolist(), strict=True))
        assert dot == [point for point in curve if point[0] == chosen]
        assert [one[0][1] for one in line] == ([2.0] if "epsilon" in stop else [])
        (text,) = axes.texts
        assert text.get_text().startswith(f"{chosen} change point")
    assert figure.get_supxlabel().endswith("; 1 less frequent predicates are not shown")


def test_costs_of_one_predicate_and_timestamp() -> None:
    graph = splime.read([("a", "p", "b", 1990)], split="none")
    method = ChangePointSplit(epsilon=1)
    figure = plot_change_costs(method.fit(graph), graph)
    assert drawn(figure.axes[0])[0] == [(0, 0)]
    figure.savefig(io.BytesIO(), format="png")


def test_cuts_of_several_runs_are_one_picture(runs: list[Run]) -> None:
    shown = {run.path.name: run.segmentation for run in runs}
    figure = plot_cuts(shown, runs[0].graph, most=2)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(labels) == 2 * (len(runs) + 1)
    predicate = labels[0].split("  ")[0]
    for label, run in zip(labels[1:], runs, strict=False):
        assert label.endswith(f"({len(run.segmentation.scopes_of(predicate)):,})")
    with pytest.raises(UsageError, match="no predicate is cut"):
        plot_cuts({"vanilla": splime.Vanilla().fit(runs[0].graph)}, runs[0].graph)
    figure.savefig(io.BytesIO(), format="png")


# All together


def test_all_pictures(runs: list[Run], evaluations: dict[str, Evaluation]) -> None:
    notes: list[str] = []
    done = draw_pictures(runs, "p1", progress=lambda *step: notes.append(step[3]))
    assert set(done.pictures) == {
        "facts", "segmentation-_first", "segmentation-second", "costs-second", "cuts", "learning",
        "strata", "predicates-_first", "predicates-second", "predicate",
    }  # fmt: skip
    assert done.skipped == {
        "costs-_first": "only changepoint has costs of change points; these cuts are of split"
    }
    assert set(notes) == {*done.pictures, *done.skipped}
    assert "\np1: " in done.pictures["predicate"].axes[0].get_title("left")
    alone = draw_pictures(runs[1:])
    assert set(alone.pictures) == set(PICTURES)


def test_what_is_wrong_is_not_skipped(runs: list[Run]) -> None:
    with pytest.raises(UsageError, match="p9"):
        draw_pictures(runs, "p9")
    damaged = Run(runs[0].path)
    damaged.model.predicates.vectors()[:] = float("inf")
    with pytest.raises(DataError, match="not finite"):
        draw_pictures([damaged])


def test_runs_of_pykeen(runs: list[Run], evaluations: dict[str, Evaluation]) -> None:
    other = Run(runs[0].path)
    other.engine = "pykeen"
    done = draw_pictures([other])
    assert set(done.pictures) == {"facts", "segmentation", "cuts", "learning", "strata"}
    assert "no vectors of this model" in done.skipped["predicates"]
    assert "no vectors of this model" in done.skipped["predicate"]


def test_one_picture(runs: list[Run]) -> None:
    for what, message in (
        ("fact", "there is no picture 'fact'.* Did you mean facts"),
        ("segmentation", "the picture segmentation is of one run, not of 2"),
    ):
        with pytest.raises(UsageError, match=message):
            splime.plot(runs, what)
    with pytest.raises(UsageError, match="the picture learning is not of one predicate"):
        splime.plot(runs, "learning", predicate="p1")
