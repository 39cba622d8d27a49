"""Probabilities from scores: one temperature for each kind of question, fitted on valid."""

from __future__ import annotations

from contextlib import suppress
from math import exp
from typing import Any, NamedTuple

import torch

from splime.errors import DataError, SplimeError
from splime.io.files import read_json, write_json
from splime.query.answering import Answering
from splime.query.cases import Cases, make_cases
from splime.query.question import Kind
from splime.runs.config import fingerprint

CALIBRATION = "calibration.json"
"""The temperatures, in the folder of the run."""
MOST = 500
"""Facts of valid that a temperature is fitted on."""
FEWEST = 50
"""Fewer tell nothing."""
# The temperature is looked for within so many powers of e around the spread of the scores.
_FAR = 7.0
_STEPS = 40
_GOLDEN = (5**0.5 - 1) / 2


class Calibration(NamedTuple):
    """A temperature, or why there is none."""

    temperature: float | None
    facts: int
    """Of valid, which it was fitted on."""
    why: str = ""

    def __str__(self) -> str:
        if self.temperature is None:
            return f"no probabilities: {self.why}"
        return (
            f"probabilities: softmax of score / {self.temperature:.3g} over all answers that"
            f" train does not state then, calibrated on {self.facts:,} facts of valid"
        )


class Calibrations:
    """The calibrations of a run, fitted when they are asked for and kept in its folder."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._run = answering.scoring.run
        self._found: dict[Kind, Calibration] = {}

    def of(self, kind: Kind) -> Calibration:
        """The calibration of one kind of question."""
        if kind not in self._found:
            self._found[kind] = self._kept(kind) or self._fit(kind)
        return self._found[kind]

    def _fit(self, kind: Kind) -> Calibration:
        valid = len(self._run.graph.valid)
        needed = f"{FEWEST} are needed to calibrate them"
        if valid < FEWEST:
            return Calibration(None, valid, f"valid has {valid:,} facts, and {needed}")
        cases = make_cases(self._answering, kind, "valid", MOST)
        if len(cases) < FEWEST:
            why = f"valid has {len(cases):,} facts of predicates that are cut, and {needed}"
            return Calibration(None, len(cases), why)
        found = Calibration(fit_temperature(cases), len(cases))
        self._keep(kind, found)
        return found

    def _conditions(self) -> dict[str, Any]:
        """What a temperature depends on."""
        return {"config": fingerprint(self._run.config), "valid": len(self._run.graph.valid)}

    def _stored(self) -> dict[str, Any]:
        """The temperatures in the folder, by aggregation and kind; none if of another model."""
        path = self._run.path / CALIBRATION
        if not path.exists():
            return {}
        stored = read_json(path)
        if any(stored.get(name) != value for name, value in self._conditions().items()):
            return {}
        kept = stored.get("temperatures")
        if not isinstance(kept, dict):
            raise self._damaged("it has no temperatures")
        return kept

    def _kept(self, kind: Kind) -> Calibration | None:
        try:
            of_kind = self._stored().get(self._answering.scoring.how, {}).get(kind)
            if of_kind is None:
                return None
            temperature, facts = of_kind["temperature"], of_kind["facts"]
            if not (isinstance(temperature, float) and 0 < temperature < float("inf")):
                raise ValueError(f"{temperature!r} is no temperature")
            return Calibration(temperature, int(facts))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._damaged(repr(error)) from None

    def _keep(self, kind: Kind, found: Calibration) -> None:
        stored, how = self._stored(), self._answering.scoring.how
        of_kind = {"temperature": found.temperature, "facts": found.facts}
        kept = {**stored, how: {**stored.get(how, {}), kind: of_kind}}
        with suppress(SplimeError):  # a folder that cannot be written only means to fit again
            write_json(self._run.path / CALIBRATION, {**self._conditions(), "temperatures": kept})

    def _damaged(self, why: str) -> DataError:
        path = self._run.path / CALIBRATION
        return DataError(
            f"{path}: not what splime writes there: {why}; remove it, and it is made again"
        )


def fit_temperature(cases: Cases) -> float:
    """The temperature under which the right answers are most likely.

    The likelihood has one maximum, so halving in the golden section finds it.
    """
    scores, target = cases.scores.double(), cases.target()
    finite = scores[torch.isfinite(scores)]
    spread = float(finite.std()) if len(finite) > 1 else 0.0
    if not spread > 0:
        return 1.0  # all are equally likely at any temperature

    def loss(power: float) -> float:
        temperature = spread * exp(power)
        return float(((scores / temperature).logsumexp(1) - target / temperature).mean())

    low, high = -_FAR, _FAR
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = loss(left), loss(right)
    for _ in range(_STEPS):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = loss(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = loss(right)
    return spread * exp((low + high) / 2)
