"""What every model of the registry declares, and that packages add models and losses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest

import splime
from splime.embedding.losses import LOSSES
from splime.embedding.models import MODELS
from splime.errors import UsageError
from splime.reporting.showing import PICTURES
from splime.runs import Run, evaluate, train
from splime.settings import ALL_SETTINGS, BaseSettings
from splime.training.engines import Engine
from splime.training.registry import (
    Cuts,
    entry_of_run,
    find_engine,
    find_model,
    make_settings,
    model_names,
)
from tests.runs.small import CUTS, call, small_graph


@pytest.mark.parametrize("name", [*model_names(), "combined"])
def test_a_model_says_everything_about_itself(name: str) -> None:
    entry = find_model(name)
    assert entry.name == name
    assert find_model(name.upper()) == entry == entry_of_run(name, entry.engine)
    assert entry.about
    assert isinstance(find_engine(entry.engine), Engine)
    assert issubclass(entry.settings, BaseSettings)
    assert entry.cuts in get_args(Cuts)
    assert (entry.cuts == "none") == (name not in MODELS)
    # Vectors of entities are those of the entities of train; other models can have others.
    assert not (entry.entity_vectors and entry.reads_facts)


@pytest.mark.parametrize("name", model_names())
@pytest.mark.parametrize("preset", ["strong", "quick"])
def test_presets_are_settings_of_the_model(name: str, preset: str) -> None:
    settings = make_settings(name, preset)
    assert type(settings) is find_model(name).settings
    assert settings.model == name
    assert type(settings).of(settings.values()) == settings
    find_engine(find_model(name).engine).search_space(settings)


def some_value(setting: str) -> Any:
    """A value of the type of a setting."""
    kind, own = ALL_SETTINGS[setting]
    hint = get_type_hints(kind)[own.name]
    hint = get_args(hint)[0] if type(None) in get_args(hint) else hint
    return get_args(hint)[0] if get_origin(hint) else {int: 2, float: 0.5, str: "1"}.get(hint, True)


@pytest.mark.parametrize("name", model_names())
def test_settings_of_other_models_are_refused(name: str) -> None:
    own = find_model(name).settings.names()
    others = [setting for setting in ALL_SETTINGS if setting not in own]
    assert others
    for setting in others:
        with pytest.raises(UsageError, match=f"{setting} has no effect on {name}"):
            make_settings(name, **{setting: some_value(setting)})


@pytest.mark.parametrize("name", MODELS)
def test_settings_of_other_losses_are_refused(name: str) -> None:
    for loss in LOSSES.values():
        of_others = {setting for other in LOSSES.values() for setting in other.settings}
        for setting in of_others - {*loss.settings}:
            given: dict[str, Any] = {setting: some_value(setting), "init": "xavier_normal"}
            with pytest.raises(UsageError, match=rf"{setting} .*leave it out|has no {setting}"):
                make_settings(name, loss=loss.name, **given)


def test_every_setting_belongs_to_a_model() -> None:
    classes = {find_model(name).settings for name in model_names()}
    named = {own.name for kind in classes for own in fields(kind)}
    assert named == {*ALL_SETTINGS, "model"}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--terms", "nan"),
        ("--variance", 2),
        ("--negatives", 1000),
        ("--temperature", 0),
        ("--layers", 3),
        ("--past", "all"),
    ],
)
def test_options_without_effect_are_mistakes(option: str, value: object, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = call("train", "demo", "--model", "complex", option, value, "--out", out)
    assert done.code == 2, done.err
    assert f"{option[2:]} has no effect" in done.err
    assert not out.exists()


# Packages

PACKAGE = '''
from dataclasses import replace

from splime.embedding.losses import Loss
from splime.embedding.models.distmult import DistMult
from splime.reporting.showing import Picture
from splime.reporting.style import make_figure
from splime.training.latest import entry


class Halved(DistMult):
    """Half of DistMult."""

    name = "halved"

    def score(self, s, p, o):
        return super().score(s, p, o) / 2

    def compare(self, query, candidates):
        return super().compare(query, candidates) / 2

    products = False


def squares(positive, negative, settings):
    return (1 - positive) ** 2 + (negative**2).mean(1)


SQUARES = Loss("squares", "squared errors", "sampled", squares, ("negatives",))
EMPTY = Picture("an empty picture", lambda runs, predicate: make_figure(2, 2))
REPEATED = replace(entry, name="repeated", about="The latest facts by another name.")
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package with two models, a loss and a picture."""
    place = tmp_path / "installed"
    about = place / "added_models-1.0.dist-info"
    about.mkdir(parents=True)
    (place / "added_models.py").write_text(PACKAGE, encoding="utf-8")
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: added-models\nVersion: 1.0\n", encoding="utf-8"
    )
    (about / "entry_points.txt").write_text(
        "[splime.models]\nhalved = added_models:Halved\nrepeated = added_models:REPEATED\n"
        "[splime.losses]\nsquares = added_models:SQUARES\n"
        "[splime.pictures]\nempty = added_models:EMPTY\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(place))
    registries: tuple[Any, ...] = (MODELS, LOSSES, PICTURES)
    for registry in registries:  # which look once
        assert len(registry)
        monkeypatch.delitem(vars(registry), "_added")
        monkeypatch.setattr(registry, "_loaded", {**registry._loaded})
    yield
    monkeypatch.undo()
    assert "halved" not in MODELS


@pytest.mark.usefixtures("package")
def test_a_package_adds_a_model_a_loss_and_a_picture(tmp_path: Path) -> None:
    assert {"halved", "repeated"} <= {*model_names()}
    done = call("models")
    assert done.code == 0, done.err
    assert "Half of DistMult." in done.out
    assert "The latest facts by another name." in done.out
    assert "squared errors" in done.out
    with pytest.raises(UsageError, match="margin has no effect with the loss squares"):
        make_settings("halved", loss="squares", margin=1.0)
    given: dict[str, Any] = {"dimension": 4, "batch_size": 32, "epochs": 2, "negatives": 4}
    run = train(small_graph(), CUTS, tmp_path / "run", model="halved", loss="squares", **given)
    assert type(Run(run.path).model).__name__ == "Halved"
    assert run.settings.loss == "squares"
    assert 0 < evaluate(run).metrics["exact"]["both"].mrr <= 1
    drawn = call("plot", run.path, "--what", "empty", "--out", tmp_path / "empty.png")
    assert drawn.code == 0, drawn.err
    assert (tmp_path / "empty.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("package")
def test_a_package_adds_a_model_that_describes_itself(tmp_path: Path) -> None:
    graph = small_graph()
    runs = [train(graph, None, tmp_path / name, model=name) for name in ("repeated", "latest")]
    assert Run(runs[0].path).entry.about == "The latest facts by another name."
    one, other = (evaluate(run, bootstrap=0).metrics["exact"] for run in runs)
    assert one == other
    fact = next(graph.rows("test"))
    assert len(splime.Query(runs[0]).ask(fact.subject, fact.predicate, "?", at=fact.begin)) > 0
