"""The weights of counted messages that splime ships: they belong to no graph.

A file has two sets: one for questions about the time of the facts, one for forecasts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from splime.errors import DataError, check_name
from splime.io.files import checksum
from splime.tensors import load_tensors

LATEST = "1"
"""The version that is used unless another one is chosen."""
NONE = "none"
"""In settings: no weights, so that a training begins anew."""
FORECAST = "forecast."
_FOLDER, _SUFFIX = Path(__file__).parent / "weights", ".safetensors"


@dataclass(frozen=True)
class Weights:
    """The parameters of a model, and what is known of them."""

    version: str
    settings: Mapping[str, Any]
    """Of the model: layers and dimension."""
    about: Mapping[str, Any]
    """What they were trained on, and how."""
    tensors: Mapping[str, Any]
    """Those of forecasts have a prefix."""
    sha256: str
    """Of their file."""

    @property
    def can_forecast(self) -> bool:
        """Whether there are parameters for forecasts."""
        return any(name.startswith(FORECAST) for name in self.tensors)

    def parameters(self, *, forecasts: bool) -> dict[str, Any]:
        """Those of one of the two sets."""
        chosen = {
            name.removeprefix(FORECAST): tensor
            for name, tensor in self.tensors.items()
            if name.startswith(FORECAST) == forecasts
        }
        if not chosen:
            kind = "forecasts" if forecasts else "questions about the time of the facts"
            raise DataError(f"the weights {self.version} have no parameters for {kind}")
        return chosen


def weight_versions() -> list[str]:
    """The versions that this splime has.

    >>> LATEST in weight_versions()
    True
    """
    return sorted(path.stem for path in _FOLDER.glob(f"*{_SUFFIX}"))


def load_weights(version: str = LATEST) -> Weights:
    """The weights of a version, or of a file; a damaged one, or another kind, is a DataError."""
    return read_weights(Path(version)) if version.endswith(_SUFFIX) else _shipped(version)


@cache
def _shipped(version: str) -> Weights:
    check_name("version of the weights", version, weight_versions())
    return read_weights(_FOLDER / f"{version}{_SUFFIX}")


def read_weights(path: Path) -> Weights:
    """The weights of a file, shipped or not, which is called by their version."""
    version, (tensors, about) = path.stem, load_tensors(path)
    if about.get("version") != version or "settings" not in about:
        raise DataError(f"{path}: these are not version {version} of the weights")
    return Weights(version, about["settings"], about, tensors, checksum(path))
