"""The space of a search: its defaults, what a file changes, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import optuna
import pytest

from splime.axes import Range, Values
from splime.embedding.models import MODELS
from splime.errors import DataError, UsageError
from splime.graph import TemporalGraph
from splime.io.files import read_toml
from splime.methods import METHODS
from splime.training.registry import make_settings
from splime.tuning import make_space
from splime.tuning.space import Configuration, Space
from tests.runs.small import small_graph


@pytest.fixture(scope="module")
def graph() -> TemporalGraph:
    return small_graph()


def suggestions(space: Space, count: int = 60) -> list[Configuration]:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    return [space.suggest(study.ask()) for _ in range(count)]


def test_defaults_cover_everything_and_can_be_made(graph: TemporalGraph) -> None:
    space = make_space(graph, None, MODELS)
    assert [*space.methods] == [*METHODS]
    suggested = suggestions(space, 150)
    assert {one.method for one in suggested} == {*METHODS}
    assert {one.model for one in suggested} == {*MODELS}
    for one in suggested:
        segmentation = one.make_method().fit(graph)
        assert len(segmentation.predicates) >= len(graph.predicates)
        make_settings(one.model, **one.settings)


def test_only_settings_that_the_loss_uses(graph: TemporalGraph) -> None:
    space = make_space(graph, None, ["complex", "transe"])
    assert {*space.models["complex"]} == {"dimension", "learning_rate", "n3", "smooth"}
    assert {*space.models["transe"]} == {
        "dimension", "learning_rate", "smooth", "negatives", "margin", "temperature",
    }  # fmt: skip
    space = make_space(graph, None, ["transe"], fixed={"loss": "margin", "dimension": 4})
    assert {*space.models["transe"]} == {"learning_rate", "smooth", "negatives", "margin"}
    fast = make_space(graph, None, ["complex"]).models["complex"]["learning_rate"]
    slow = make_space(graph, None, ["complex"], fixed={"optimizer": "adam"}).models["complex"]
    assert fast != slow["learning_rate"]


def test_vanilla_has_nothing_to_smooth(graph: TemporalGraph) -> None:
    for one in suggestions(make_space(graph, ["vanilla", "timestamp"])):
        assert ("smooth" in one.settings) == (one.method != "vanilla")


def test_a_file_changes_the_defaults(graph: TemporalGraph, tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    path.write_text(
        """
        [method.split]
        grow = {low = 2, high = 4}
        by = "count"
        [method.merge]
        predicates = [5, 7]
        [method.random]
        predicates = 6
        [settings]
        n3 = [0.001, 0.01]
        batch_size = {low = 16, high = 64, log = true}
        """,
        encoding="utf-8",
    )
    space = make_space(graph, ["split", "merge", "random"], given=read_toml(path))
    assert space.methods["split"] == {"by": Values(("count",)), "grow": Range(2, 4)}
    assert space.methods["merge"] == {"predicates": Values((5, 7))}
    for one in suggestions(space):
        assert one.settings["n3"] in (0.001, 0.01)
        assert 16 <= one.settings["batch_size"] <= 64
        assert isinstance(one.settings["batch_size"], int)
        if one.method == "split":
            assert one.parameters == {"by": "count", "grow": one.parameters["grow"]}
            assert one.parameters["grow"] in (2, 3, 4)
        if one.method == "random":
            assert one.parameters == {"predicates": 6}


def test_numbers_stay_inside_and_are_short() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for low, high in ((0.1234567, 0.1234599), (2.0, 50.0), (1e-9, 1e9)):
        for _ in range(50):
            value = Range(low, high, log=True).suggest(study.ask(), "x")
            assert low <= value <= high
            assert value in (low, high) or float(f"{value:.3g}") == value


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"methods": {}}, "there is no table 'methods'; .*Did you mean method"),
        ({"method": {"spilt": {}}}, "Did you mean split"),
        ({"method": {"merge": {}}}, "merge is not among the methods to try"),
        ({"method": {"split": 3}}, "split must be a table"),
        ({"method": {"split": {"grwo": 3}}}, "parameter of split 'grwo'.*Did you mean grow"),
        ({"method": {"split": {"grow": {"low": 1}}}}, r"\[method.split\] grow: .*low and high"),
        ({"method": {"split": {"grow": {"low": 3, "high": 2}}}}, "low must not be above high"),
        ({"method": {"split": {"grow": {"low": 0.5, "high": 2}}}}, "grow must be at least 1"),
        ({"method": {"split": {"grow": {"low": "a", "high": 2}}}}, "must be numbers"),
        ({"method": {"split": {"grow": {"low": 1, "hihg": 2}}}}, "Did you mean high"),
        ({"method": {"split": {"grow": {"low": 0, "high": 2, "log": True}}}}, "above 0"),
        ({"method": {"split": {"grow": {"low": 1, "high": 2, "log": 1}}}}, "log is true or false"),
        ({"method": {"split": {"grow": 3, "predicates": 9}}}, "one of grow, predicates"),
        ({"method": {"split": {"by": ["time", "size"]}}}, "by is one of time, count, not 'size'"),
        ({"method": {"split": {"by": []}}}, "at least one value"),
        ({"method": {"split": {"by": [[1]]}}}, "values are words, numbers"),
        ({"settings": {"margn": 1}}, "there is no setting 'margn'.*Did you mean margin"),
        ({"settings": {"margin": [1, 2]}}, "margin: has no effect on complex"),
        ({"settings": {"epochs": [1, 2]}}, "epochs: it is fixed as 3"),
        ({"settings": {"batch_size": [0, 2]}}, r"\[settings\]: batch_size must be at least 1"),
    ],
)
def test_nonsense(graph: TemporalGraph, given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_space(graph, ["split"], fixed={"epochs": 3}, given=given)


def test_wrong_names(graph: TemporalGraph) -> None:
    with pytest.raises(UsageError, match="Did you mean split"):
        make_space(graph, ["spilt"])
    with pytest.raises(UsageError, match="Did you mean complex"):
        make_space(graph, None, ["complx"])
    with pytest.raises(UsageError, match="at least one method"):
        make_space(graph, [])
    with pytest.raises(UsageError, match="at least one method and one model"):
        make_space(graph, None, [])
    with pytest.raises(UsageError, match="no setting 'epoch'"):
        make_space(graph, fixed={"epoch": 3})
    with pytest.raises(UsageError, match="validate_every must not be 0"):
        make_space(graph, fixed={"validate_every": 0})


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_toml(tmp_path / "nothing.toml")
    path = tmp_path / "space.toml"
    path.write_text("[settings\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"space\.toml: not a TOML file: .*line 1"):
        read_toml(path)
