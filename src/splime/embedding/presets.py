"""Settings by name: the paper's set-ups, and a strong one for each model.

`paper` is the TransE behind the figures of the paper; `hyte`, `rotate` and `ampligraph` are the
columns of the table in its appendix (`paper` is `ampligraph` with the margin that was really used).
An epoch of theirs takes each triple once, as the paper's did. `strong` was chosen on valid for each
model (docs/training.md says how, and what else was tried); it takes each fact once, as protocol
`fact` does. `quick` is the same, smaller and shorter, for a first look. `published` is what the
authors of a model that knows time used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from splime.embedding.initial import INITIALISERS
from splime.embedding.losses import LOSSES
from splime.embedding.models import MODELS
from splime.embedding.settings import OF_PATHS, Settings
from splime.errors import UsageError, check_name, nearest

_AMPLIGRAPH: Mapping[str, Any] = {
    "model": "transe",
    "dimension": 100,
    "norm": 1,
    "init": "xavier_normal",
    "loss": "self_adversarial",
    "margin": 1.0,
    "temperature": 0.5,
    "weights": "learned",
    "reduction": "sum",
    "negatives": 500,
    "batch_size": 500,
    "learning_rate": 1e-3,
    "epochs": 200,
    "validate_every": 0,
}

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper": {**_AMPLIGRAPH, "margin": 3.0},
    "ampligraph": _AMPLIGRAPH,
    "hyte": {
        "model": "transe",
        "dimension": 100,
        "norm": 2,
        "init": "xavier_normal",
        "loss": "margin",
        "margin": 1.0,
        "reduction": "sum",
        "negatives": 5,
        "share": "none",
        "batch_size": 50_000,
        "learning_rate": 1e-4,
        "epochs": 500,
        "distinct": False,
        "validate_every": 0,
    },
    "rotate": {
        "model": "transe",
        "dimension": 100,
        "norm": 1,
        "init": "uniform",
        "loss": "self_adversarial",
        "margin": 24.0,
        "temperature": 1.0,
        "negatives": 500,
        "batch_size": 512,
        "learning_rate": 1e-3,
        "steps": 150_000,
        "distinct": False,
        "validate_every": 0,
    },
}

STRONG, QUICK = "strong", "quick"
QUICKER: Mapping[str, Any] = {"dimension": 50, "epochs": 20, "validate_every": 5}
"""How `quick` differs from `strong`."""
PUBLISHED = ("published", "published-yago11k", "published-wikidata12k")
"""What the authors of a model that knows time trained with: on events, and on intervals."""


def preset_settings(model: str | None, preset: str | None, **given: Any) -> Settings:
    """Settings of a preset (by default the strong one of the model), changed by what is given."""
    preset = preset or STRONG
    check_name("preset", preset, [*PRESETS, STRONG, QUICK, *PUBLISHED])
    if preset not in PRESETS:
        name = check_model(model or Settings.model)
        own = MODELS[name]
        values: Mapping[str, Any] = {**own.strong, "model": name}
        if preset == QUICK:
            values = {**values, **QUICKER}
        elif preset in PUBLISHED:
            if not own.published:
                having = ", ".join(each for each, kind in MODELS.items() if kind.published)
                raise UsageError(f"{name} has no preset {preset}; these have: {having}")
            _, _, data = preset.partition("-")
            values = {**own.published["icews14"], **own.published.get(data, {}), "model": name}
    else:
        values = PRESETS[preset]
        if model is not None:
            values = {**values, "model": check_model(model)}
    settings = Settings.of({**values, **given})
    for name in OF_PATHS:
        if getattr(settings, name) is not None:
            raise UsageError(
                f"{name} has no effect on {settings.model}; it belongs to the model path"
            )
    check_name("loss", settings.loss, LOSSES)
    check_name("initialiser", settings.init, INITIALISERS)
    MODELS[settings.model].check(settings)
    if settings.dropout and LOSSES[settings.loss].against == "all":
        raise UsageError(f"the loss {settings.loss} has no dropout; leave it out")
    return settings


def check_model(name: str) -> str:
    """The name of a model in the registry; an error that suggests the nearest if there is none."""
    if name.lower() not in MODELS:
        raise UsageError(
            f"there is no model {name!r}; there are {', '.join(MODELS)}, and with the engine pykeen"
            f" those of PyKEEN.{nearest(name.lower(), MODELS)}"
        )
    return name.lower()
