"""Settings by name: the paper's set-ups, and a strong one for each model.

`paper` is the TransE behind the figures of the paper; `hyte`, `rotate` and `ampligraph` are the
columns of the table in its appendix (`paper` is `ampligraph` with the margin that was really used).
An epoch of theirs takes each triple once, as the paper's did. `strong` was chosen on valid for each
model (docs/training.md says how, and what else was tried); it takes each fact once, as protocol
`fact` does. `quick` is the same, smaller and shorter, for a first look.

"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_AMPLIGRAPH: Mapping[str, Any] = {
    "model": "transe",
    "dimension": 100,
    "norm": 1,
    "init": "xavier_normal",
    "loss": "self_adversarial",
    "margin": 1.0,
    "temperature": 0.5,
    "weighting": "learned",
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
