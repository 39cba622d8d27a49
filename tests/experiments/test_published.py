"""The settings of other models' authors, as presets of `splime.train`."""

from __future__ import annotations

import itertools

import pytest

from experiments.published import PUBLISHED, preset_for, resolved
from splime.embedding.models import MODELS
from splime.errors import UsageError
from splime.training.registry import make_settings

TIMED = [name for name, model in MODELS.items() if model.cuts == "timestamps"]


def test_every_temporal_model_has_them() -> None:
    for name, preset in itertools.product(TIMED, PUBLISHED):
        assert make_settings(**resolved({"model": name, "preset": preset})).model == name


def test_intervals_change_what_is_for_events() -> None:
    events = make_settings(**resolved({"model": "telm", "preset": preset_for("icews14")}))
    intervals = make_settings(**resolved({"model": "telm", "preset": preset_for("yago11k")}))
    assert (events.each, intervals.each, intervals.dimension) == ("triple", "ends", 2000)
    assert intervals.default_aggregate == "ends"


def test_settings_that_are_given_come_last() -> None:
    given = {"model": "hyte", "preset": "published-wikidata12k", "dimension": 8}
    settings = make_settings(**resolved(given))
    assert (settings.dimension, settings.batch_size, settings.default_aggregate) == (
        8,
        50_000,
        "begin",
    )
    assert resolved({"model": "hyte", "seed": 1}) == {"model": "hyte", "seed": 1}


def test_static_models_have_none() -> None:
    with pytest.raises(UsageError, match="complex has no preset published; these have: ttranse"):
        resolved({"model": "complex", "preset": "published"})


def test_the_package_names_the_clone() -> None:
    with pytest.raises(UsageError, match="a clone of the repository has"):
        make_settings("tero", "published-yago11k")
