"""Presets with the settings of other models' authors, for events and for facts with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.rows import DATA
from splime.errors import UsageError

_EVENTS = "published"
PUBLISHED = (_EVENTS, "published-yago11k", "published-wikidata12k")
"""The names of these presets, as cases call them."""
_MODELS = DATA["published"]["models"]


def preset_for(dataset: str) -> str:
    """The preset for a dataset; that for events has no dataset in its name."""
    name = f"{_EVENTS}-{dataset}"
    return name if name in PUBLISHED else _EVENTS


def published_settings(model: str, preset: str) -> dict[str, Any]:
    """What the authors of a model trained with, where it differs from the defaults of `Settings`.

    >>> published_settings("tcomplex", "published-yago11k")["n3"]
    0.025
    """
    if model not in _MODELS:
        raise UsageError(f"{model} has no preset {preset}; these have: {', '.join(_MODELS)}")
    declared = _MODELS[model]
    dataset = preset.removeprefix(_EVENTS).removeprefix("-")
    changes = {**declared.get("events", {}), **declared.get(dataset, {})}
    return {**DATA["published"]["setups"][declared["setup"]], **changes, "model": model}


def resolved(training: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords of `splime.train`, where such a preset is given by its settings."""
    preset = training.get("preset")
    if training.get("model") == "path":  # results are of learned messages, unless they say so
        return {"messages": "learned", **training}
    if preset not in PUBLISHED:
        return dict(training)
    return {**training, "preset": published_settings(training["model"], preset)}
