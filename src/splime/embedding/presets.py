"""Settings by name: the paper's set-ups, and a strong one for each model.

`paper` is the TransE behind the figures of the paper; `hyte`, `rotate` and `ampligraph` are the
columns of the table in its appendix (`paper` is `ampligraph` with the margin that was really used).
An epoch of theirs takes each triple once, as the paper's did. `strong` was chosen on valid for each
model (docs/training.md says how, and what else was tried); it takes each fact once, as protocol
`fact` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from splime.embedding.initial import check_initialiser
from splime.embedding.losses import check_loss
from splime.embedding.models import MODELS
from splime.embedding.settings import Settings
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

# Products: reciprocal predicates, all entities as negatives, N3 and Adagrad (Lacroix et al.).
_PRODUCTS: Mapping[str, Any] = {
    "dimension": 200,
    "init": "small_normal",
    "reciprocal": True,
    "loss": "softmax",
    "n3": 0.03,
    "smooth": 0.1,
    "optimizer": "adagrad",
    "learning_rate": 0.1,
    "batch_size": 1000,
    "each": "fact",
    "epochs": 200,
    "precision": "tf32",
}
# Distances: many shared negatives, weighted by how hard they are (Sun et al.).
_DISTANCES: Mapping[str, Any] = {
    "dimension": 200,
    "loss": "self_adversarial",
    "margin": 6.0,
    "temperature": 1.0,
    "negatives": 500,
    "batch_size": 500,
    "learning_rate": 1e-3,
    "smooth": 0.01,
    "each": "fact",
    "epochs": 300,
}
_STRONG: Mapping[str, Mapping[str, Any]] = {
    "transe": {**_DISTANCES, "smooth": 0.1},
    "transh": {**_DISTANCES, "margin": 1.0},
    "rotate": _DISTANCES,
    "distmult": {**_PRODUCTS, "n3": 0.05},
    "cp": _PRODUCTS,
    "simple": _PRODUCTS,
    "complex": _PRODUCTS,
}
STRONG = "strong"


def make_settings(
    model: str | None = None, preset: str | None = None, *, engine: str = "splime", **given: Any
) -> Settings:
    """Settings of a preset (by default the strong one of the model), changed by what is given.

    >>> make_settings("complex").loss, make_settings(preset="paper", margin=1.0).margin
    ('softmax', 1.0)
    """
    check_name("engine", engine, ("splime", "pykeen"))
    if engine == "pykeen":
        from splime.runs.pykeen import check_pykeen

        if model is None or preset is not None:
            raise UsageError("the engine pykeen needs a model, and has no presets")
        return check_pykeen(model, given)
    preset = preset or STRONG
    if preset == STRONG:
        name = check_model(model or Settings.model)
        found: Mapping[str, Any] = {"model": name, **_STRONG[name]}
    else:
        check_name("preset", preset, [*PRESETS, STRONG])
        found = PRESETS[preset]
        if model is not None:
            found = {**found, "model": check_model(model)}
    settings = Settings.of({**found, **given})
    check_loss(settings.loss)
    check_initialiser(settings.init)
    return settings


def check_model(name: str) -> str:
    """The name of a model in the registry; an error that suggests the nearest if there is none."""
    if name.lower() not in MODELS:
        raise UsageError(
            f"there is no model {name!r}; there are {', '.join(MODELS)}, and with the engine pykeen"
            f" those of PyKEEN.{nearest(name.lower(), MODELS)}"
        )
    return name.lower()
