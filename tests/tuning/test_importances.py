"""Which choices mattered: optuna's importances, and their picture."""

from __future__ import annotations

import random
from pathlib import Path

import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

from splime.reporting.style import save_picture
from splime.tuning import make_space
from splime.tuning.results import plot_importances
from splime.tuning.search import Search
from tests.runs.small import small_graph


@pytest.fixture
def search(tmp_path: Path) -> Search:
    graph = small_graph()
    space = make_space(graph, ["split", "merge"], ["distmult"], fixed={"epochs": 2})
    return Search(tmp_path, graph, space, 0)


def add_trials(search: Search, count: int, *, alike: bool = False) -> None:
    """The parameter of split decides, and only some trials have it."""
    draw = random.Random(0)
    for _ in range(count):
        method = draw.choice(["split", "merge"])
        of: dict[str, BaseDistribution] = {
            "method": CategoricalDistribution(["split", "merge"]),
            "n3": FloatDistribution(0.0, 1.0),
        }
        parameters = {"method": method, "n3": draw.random()}
        value = 0.1
        if method == "split":
            of["split.grow"] = FloatDistribution(0.0, 1.0)
            parameters["split.grow"] = value = draw.random()
        value = 0.5 if alike else value
        trial = optuna.trial.create_trial(params=parameters, distributions=of, value=value)
        search.study.add_trial(trial)


def test_the_choice_that_matters(search: Search) -> None:
    add_trials(search, 60)
    shares = search.importances()
    assert sum(shares.values()) == pytest.approx(1)
    assert next(iter(shares)) == "split.grow"


def test_few_trials_and_equal_ones_have_none(search: Search, tmp_path: Path) -> None:
    assert search.importances() == {}
    add_trials(search, 3)
    assert search.importances() == {}
    other = Search(tmp_path / "other", small_graph(), search.space, 0)
    other.folder.mkdir()
    add_trials(other, 20, alike=True)
    assert other.importances() == {}


def test_the_picture(tmp_path: Path) -> None:
    figure = plot_importances({"n3": 0.6, "$a_b": 0.399, "method": 0.001}, "demo", 20)
    (axes,) = figure.axes
    assert [round(bar.get_width()) for bar in axes.containers[0]] == [60, 40]
    save_picture(figure, tmp_path / "importance.svg")
    save_picture(plot_importances({}, "", 1), tmp_path / "none.svg")
    assert (tmp_path / "none.svg").stat().st_size > 1_000
