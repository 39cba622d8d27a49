"""Probabilities from scores: one temperature for each kind of question, fitted on valid."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import exp
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
import torch
from torch.nn.functional import pad

from splime.device import one_thread
from splime.errors import DataError, SplimeError, counted
from splime.graph import Facts, SplitName
from splime.io.files import read_json, validated, write_json
from splime.runs import Run
from splime.runs.folder import fingerprint
from splime.scoring.queries import Scoring
from splime.scoring.scoping import Kind
from splime.times import Ints

CALIBRATION = "calibration.json"
"""The temperatures, in the folder of the run."""
MOST = 500
"""Facts of valid that a temperature is fitted on."""
FEWEST = 50
"""With fewer facts there are no probabilities."""
_FORMAT = 1
# Scores that are kept at once, and that are worked on at once: so many stay in the cache.
_NUMBERS, _BLOCK = 1 << 23, 1 << 19
AFFORDED = 30_000
"""Questions to a model that takes the time as an input, which takes longer for each."""
# The temperature is searched within so many powers of e around the spread of the scores.
_FAR = 7.0


class Calibration(msgspec.Struct, frozen=True, omit_defaults=True):
    """A temperature, or why there is none."""

    temperature: Annotated[float, msgspec.Meta(gt=0, le=sys.float_info.max)] | None
    facts: Annotated[int, msgspec.Meta(ge=0)]
    """Which it was fitted on."""
    why: str = ""
    of: str = "facts of valid"

    def __str__(self) -> str:
        if self.temperature is None:
            return f"no probabilities: {self.why}"
        return (
            f"probabilities, if there is such a fact: softmax of score / {self.temperature:.3g}"
            " over all answers that train does not state then, calibrated on"
            f" {self.facts:,} {self.of}"
        )


@dataclass
class StoredTemperatures:
    """The temperatures in the folder of a run, and what they depend on."""

    config: str
    valid: int
    temperatures: dict[str, dict[str, Calibration]]
    """By aggregation and kind."""
    format: int = 0
    """Raised whenever others would be fitted on the same facts."""


class Calibrations:
    """The calibrations of a run, fitted on first use and kept in its folder.

    Those of a graph that is asked without training are made `by_hiding` facts.
    """

    def __init__(
        self, run: Run, scoring: Scoring, by_hiding: Callable[[Kind], Calibration]
    ) -> None:
        self._run, self._scoring, self._by_hiding = run, scoring, by_hiding
        self._path = run.path / CALIBRATION
        self._made: dict[Kind, Calibration] = {}

    def of(self, kind: Kind) -> Calibration:
        """The calibration of one kind of question."""
        if kind not in self._made:
            self._made[kind] = self.kept(kind) or self._fit(kind)
        return self._made[kind]

    def kept(self, kind: Kind) -> Calibration | None:
        """The calibration that the folder keeps; None where it must be fitted first."""
        return self._stored().temperatures.get(self._scoring.how, {}).get(kind)

    def _fit(self, kind: Kind) -> Calibration:
        if not self._run.learned_from_facts:
            return self._by_hiding(kind)
        if (valid := len(self._run.graph.valid)) < FEWEST:
            return _too_few(valid)
        most = AFFORDED // self._scoring.questions_for(kind)
        if most < FEWEST:
            return Calibration(None, 0, "to calibrate them this model would take too long")
        cases = make_cases(self._scoring, kind, "valid", min(most, MOST))
        if len(cases) < FEWEST:
            kept = "predicates that are cut" if kind == "time" else "names and times that train has"
            return _too_few(len(cases), f" of {kept}")
        fitted, stored = Calibration(fit_temperature(cases), len(cases)), self._stored()
        stored.temperatures.setdefault(self._scoring.how, {})[kind] = fitted
        if self._run.own_facts:
            with suppress(SplimeError):  # if it cannot be written, it is fitted again next time
                write_json(self._path, msgspec.to_builtins(stored))
        return fitted

    def _stored(self) -> StoredTemperatures:
        """What the folder keeps; without temperatures if they are those of another model."""
        fresh = StoredTemperatures(
            fingerprint(self._run.config), len(self._run.graph.valid), {}, _FORMAT
        )
        if not self._path.exists():
            return fresh
        try:
            stored = validated(self._path, read_json(self._path), StoredTemperatures)
        except DataError as error:
            raise DataError(f"{error}; remove it, and it is made again") from None
        return stored if replace(stored, temperatures={}) == fresh else fresh


def _too_few(facts: int, kept: str = "") -> Calibration:
    why = f"valid has {counted(facts, 'fact')}{kept}, and {FEWEST} are needed to calibrate them"
    return Calibration(None, facts, why)


class Cases(NamedTuple):
    """Facts of a split as questions, with the scores of all candidates.

    A score of -inf is no candidate, or another answer that train states.
    """

    scores: torch.Tensor
    row: Ints
    """The question of each right answer."""
    column: Ints
    """The right answer."""
    share: torch.Tensor
    """How much of the truth it is: a fact may hold in several scopes."""

    def __len__(self) -> int:
        return len(self.scores)

    @classmethod
    def concat(cls, parts: Sequence[Cases]) -> Cases:
        """The questions of all parts, which may have different numbers of candidates."""
        if not parts:
            empty = np.empty(0, np.int64)
            return cls(torch.zeros(0, 1), empty, empty, torch.zeros(0))
        width = max(part.scores.shape[1] for part in parts)
        padded = [
            pad(part.scores, (0, width - part.scores.shape[1]), value=-torch.inf) for part in parts
        ]
        sizes = np.cumsum([0, *map(len, parts)])
        rows = [part.row + size for part, size in zip(parts, sizes, strict=False)]
        columns = np.concatenate([part.column for part in parts])
        shares = torch.cat([part.share for part in parts])
        return cls(torch.cat(padded), np.concatenate(rows), columns, shares)

    def target(self) -> torch.Tensor:
        """The mean score of the right answers to each question."""
        total = torch.zeros(len(self), dtype=torch.float64)
        weighed = self.scores[self.row, self.column].double() * self.share
        return total.index_add_(0, torch.as_tensor(self.row), weighed)


def make_cases(scoring: Scoring, kind: Kind, split: SplitName, most: int) -> Cases:
    """Facts of a split, at most `most`, drawn with a fixed seed."""
    scoping, graph = scoring.scoping, scoring.graph
    facts: Facts = getattr(graph, split)
    facts = facts.take(~scoring.coverage.asked(kind, facts))  # such questions get no probabilities
    if kind == "time":
        if scoping is not None and scoping.entities is None:
            # Of a predicate that is not cut there is nothing to choose.
            facts = facts.take(np.diff(scoping.static.predicates.offsets)[facts.predicate] > 0)
        candidates = 16 * len(graph.timeline)  # each with the scopes of three names
    else:
        candidates = len(scoring.names(kind))
    most = max(FEWEST, min(most, _NUMBERS // candidates))
    if len(facts) > most:
        chosen = np.random.default_rng(0).choice(len(facts), most, replace=False)
        facts = facts.take(np.sort(chosen))
    return make_cases_of(scoring, kind, facts)


def make_cases_of(scoring: Scoring, kind: Kind, facts: Facts, *, every: bool = False) -> Cases:
    """Some facts as questions; with `every`, answers that other splits state are none, either.

    What a fact states is right, also where train states it: hidden facts are of train.
    """
    if not len(facts):
        return Cases.concat([])
    with torch.inference_mode():
        if kind == "time":
            return _time_cases(scoring, facts)
        return _cases(scoring, kind, facts, every)


def _cases(scoring: Scoring, kind: Kind, facts: Facts, every: bool) -> Cases:
    target = getattr(facts, kind).astype(np.int64)
    scores = torch.empty(len(facts), len(scoring.names(kind)))
    for block in scoring.blocks(kind, facts):
        known = scoring.known.answers(kind, facts.take(block.rows))
        values = block.scores / block.weight[:, None]
        other = (known.learned | every) & (known.id != target[block.rows][known.question])
        values[known.question[other], known.id[other]] = -torch.inf
        scores[block.rows] = values.float().cpu()
    return Cases(scores, np.arange(len(facts)), target, torch.ones(len(facts)))


def _time_cases(scoring: Scoring, facts: Facts) -> Cases:
    spans, timeline = scoring.spans_of(facts), scoring.graph.timeline
    scores = scoring.span_block(spans, len(facts)).scores.cpu()
    begin, end = scoring.graph.timestamps(facts)
    last = np.minimum(end[spans.question], spans.end)
    held = last - np.maximum(begin[spans.question], spans.begin) + 1
    holds = np.flatnonzero(held > 0)
    row, column = spans.question[holds], spans.number[holds]
    share = held[holds] / (end - begin + 1)[row]
    # Who asks when gives no time, so train may state other times of the triple, too.
    first, last = np.full_like(facts.begin, timeline.first), np.full_like(facts.end, timeline.last)
    known = scoring.known_spans(replace(facts, begin=first, end=last), spans)
    width = scores.shape[1]
    other = known.learned & ~np.isin(known.question * width + known.id, row * width + column)
    scores[known.question[other], known.id[other]] = -torch.inf
    return Cases(scores, row, column, torch.as_tensor(share))


def fit_temperature(cases: Cases) -> float:
    """The temperature under which the right answers are most likely.

    The likelihood has a single maximum, so a search between two bounds suffices.
    """
    from scipy.optimize import minimize_scalar

    scores, target = cases.scores.double(), cases.target()
    finite = scores[torch.isfinite(scores)]
    spread = float(finite.std()) if len(finite) > 1 else 0.0
    if not spread > 0:
        return 1.0  # all are equally likely at any temperature

    blocks = scores.split(max(1, _BLOCK // scores.shape[1]))

    def loss(power: float) -> float:
        temperature = spread * exp(power)
        whole = torch.cat([(block / temperature).logsumexp(1) for block in blocks])
        return float((whole - target / temperature).mean())

    with one_thread():
        lowest = minimize_scalar(loss, bounds=(-_FAR, _FAR), options={"xatol": 1e-8})
    return spread * exp(lowest.x)
