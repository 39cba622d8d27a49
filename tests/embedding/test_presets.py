"""Presets: the paper's go through triples, the strong ones through facts."""

from __future__ import annotations

from typing import Any

import pytest

from splime.embedding.models import MODELS
from splime.embedding.presets import PRESETS
from splime.errors import UsageError
from splime.training.registry import make_settings


@pytest.mark.parametrize("model", MODELS)
def test_strong_ones_take_each_fact_once_and_stop_by_themselves(model: str) -> None:
    settings = make_settings(model)
    assert (settings.model, settings.each) == (model, "fact")
    # Looks at valid end a training long before its last epoch, where there is nothing to gain.
    assert 0 < settings.validate_every * settings.patience < settings.epochs


@pytest.mark.parametrize("preset", PRESETS)
def test_those_of_the_paper_take_each_triple(preset: str) -> None:
    settings = make_settings(preset=preset)
    assert (settings.model, settings.each, settings.validate_every) == ("transe", "triple", 0)


def test_what_is_given_counts() -> None:
    assert make_settings("complex", each="triple").each == "triple"
    assert make_settings(preset="paper", each="fact").each == "fact"


@pytest.mark.parametrize("given", [{"past": "all"}, {"layers": 2}, {"relative": "none"}])
def test_settings_of_the_path_model_are_not_for_others(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="no effect on complex"):
        make_settings("complex", **given)
    assert make_settings("path", **given)
