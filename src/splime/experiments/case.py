"""A case: one training and the ways it is evaluated, declared so that a file can remember it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from splime.experiments.readings import Reading
from splime.io.files import whole_numbers


@dataclass(frozen=True)
class Case:
    """One training on one dataset, and what it is asked afterwards."""

    dataset: str
    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    """Model, preset and settings of `splime.train`; the seed among them."""
    evaluations: tuple[Mapping[str, Any], ...] = ()
    """Protocol, split and options of `splime.evaluate`, once for each evaluation."""
    reading: Reading = "paper"

    def to_json(self) -> dict[str, Any]:
        """The case as plain values."""
        return {
            "dataset": self.dataset,
            "reading": self.reading,
            "method": self.method,
            "parameters": dict(self.parameters),
            "training": dict(self.training),
            "evaluations": [dict(one) for one in self.evaluations],
        }

    def key(self) -> str:
        """A name that is the same for equal cases only.

        >>> one = Case("demo", "merge", {"shrink": 4})
        >>> one.key() == Case("demo", "merge", {"shrink": 4.0}).key()
        True
        >>> one.key() == Case("demo", "vanilla").key()
        False
        """
        plain = json.dumps(whole_numbers(self.to_json()), sort_keys=True)
        return hashlib.sha256(plain.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        parameters = "".join(f" {key} {value}" for key, value in self.parameters.items())
        training = "".join(f" {key} {value}" for key, value in self.training.items())
        return f"{self.dataset}: {self.method}{parameters},{training}"
