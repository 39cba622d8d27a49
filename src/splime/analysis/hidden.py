"""How far answers can be trusted: a graph's own facts, each hidden in turn and asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from splime.analysis.calibration import Calibration, Cases, fit_temperature, make_cases_of
from splime.errors import UsageError, counted
from splime.graph import Facts, TemporalGraph
from splime.paths.scorer import PathScorer
from splime.progress import Progress, silent
from splime.runs import Run
from splime.runs.graph_run import open_source
from splime.scoring.queries import Scoring
from splime.scoring.scoping import SIDES, Kind
from splime.times import Ints

if TYPE_CHECKING:
    from splime.keywords import Reading

MOST, FEWEST = 300, 50
"""Facts that are hidden: so many, or fewer in large graphs, but not fewer than these."""
_READ, _READ_FOR_KIND = 1_500_000, 100_000_000
"""Facts that all questions together read, about; and those for a kind of answer for which a model
is asked about each predicate, or each time."""
_MADE = 400_000
"""Messages that a question may take, one for each predicate and scope; with more it takes seconds,
and to hide facts would take too long."""
_LEAST = 0.05
"""How often the right answer is among ten where answers can be relied on, at least."""
HIDDEN = "facts, each hidden in turn"


class Measured(NamedTuple):
    """How right answers were ranked."""

    questions: int
    mrr: float
    first: float
    """The share of questions whose right answer came first."""
    ten: float
    """And the share where it was among the first ten."""

    @classmethod
    def of(cls, ranks: np.ndarray[Any, Any]) -> Measured:
        """From ranks."""
        if not len(ranks):
            return cls(0, 0.0, 0.0, 0.0)
        shares = (1 / ranks, ranks < 2, ranks <= 10)
        return cls(len(ranks), *(float(share.mean()) for share in shares))


@dataclass(frozen=True)
class Trust:
    """What hiding facts of a graph says about answers to questions like them."""

    facts: int
    """How many were hidden."""
    all: Measured
    repeated: Measured
    """Of facts that the graph also states at another time, which is easier."""
    new: Measured
    """Of the others."""
    guess: float
    """The MRR of the most frequent answers for the predicate."""
    predicates: dict[str, Measured] = field(default_factory=dict)
    kinds: dict[str, Measured] = field(default_factory=dict)
    calibrations: dict[str, Calibration] = field(default_factory=dict)
    error: float | None = None
    """The expected calibration error of the probabilities."""

    @property
    def works(self) -> bool:
        """Whether the facts bear one another out, better than the most frequent answers would."""
        return not self.why_not

    @property
    def why_not(self) -> str:
        """Why answers cannot be relied on, if so."""
        if self.facts < FEWEST // 2:
            return "these are too few to tell"
        if self.all.ten < _LEAST:
            return "the facts hardly bear one another out"
        if self.all.mrr <= 1.1 * self.guess:
            return "that is no better than guessing frequent answers"
        return ""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        calibrations = {kind: one.temperature for kind, one in self.calibrations.items()}
        return {
            "facts": self.facts,
            "works": self.works,
            **{name: getattr(self, name)._asdict() for name in ("all", "repeated", "new")},
            "guess": self.guess,
            "kinds": {name: one._asdict() for name, one in self.kinds.items()},
            "predicates": {name: one._asdict() for name, one in self.predicates.items()},
            "temperatures": calibrations,
            "calibration_error": self.error,
        }

    def __str__(self) -> str:
        if not self.facts:
            return "how far to trust it is not known: no facts were hidden"
        first, ten = 100 * self.all.first, 100 * self.all.ten
        told = (
            f"of {counted(self.facts, 'fact')}, each hidden in turn, {first:.0f} % came first,"
            f" {ten:.0f} % among ten"
        )
        if self.repeated.questions and self.new.questions:
            first, ten = 100 * self.new.first, 100 * self.new.ten
            told += f" ({first:.0f} % and {ten:.0f} % of those stated at one time only)"
        return f"{told}; {self.why_not}: do not rely on this graph" if self.why_not else told


class HiddenFacts:
    """Facts of a graph that is asked without training, each hidden from its own question."""

    def __init__(self, run: Run, scoring: Scoring) -> None:
        self._run, self._scoring = run, scoring
        self._cases: dict[Kind, Cases] = {}
        self._fitted: dict[Kind, Calibration] = {}

    @cached_property
    def scorer(self) -> PathScorer:
        """What can hide facts."""
        if not self._scoring.can_hide:
            raise UsageError(
                f"{self._run.path}: facts can be hidden from a graph, not from a trained run"
            )
        scorer: PathScorer = self._scoring.scorer
        return scorer

    @cached_property
    def numbers(self) -> Ints:
        """The facts that are hidden, a sample with a fixed seed: one of each statement.

        For forecasts they are among the latest quarter, since the first facts have no past. None
        where there are so many predicates that each question takes seconds.
        """
        if self._too_long:
            return np.empty(0, np.int64)
        known = self.scorer.known
        first = np.unique(self.scorer.statements, return_index=True)[1]
        if self.scorer.forecasts and len(first):
            begin = known.begin[first]
            first = first[(begin >= np.quantile(begin, 0.75)) & (begin > begin.min())]
        count = min(MOST, max(FEWEST, _READ // max(len(known), 1)))
        return np.sort(np.random.default_rng(0).permutation(first)[:count])

    @cached_property
    def _too_long(self) -> bool:
        return 2 * len(self._run.graph.predicates) * len(self.scorer.relative) > _MADE

    def cases(self, kind: Kind, progress: Progress = silent) -> Cases:
        """The facts as questions, or of a kind that takes longer the first ones; asked once."""
        if kind not in self._cases:
            self._cases[kind] = Cases.concat(list(self._ask(kind, progress)))
        return self._cases[kind]

    def _some(self, kind: Kind) -> Ints:
        if (questions := self._scoring.questions_for(kind)) == 1:
            return self.numbers
        scorer = self.scorer
        read = min(len(scorer.known), scorer.model.reach or len(scorer.known))
        return self.numbers[: _READ_FOR_KIND // max(1, read * questions)]

    def _ask(self, kind: Kind, progress: Progress) -> Iterator[Cases]:
        numbers, what = self._some(kind), f"hiding facts, {kind}"
        progress(what, 0, len(numbers))
        for place in self.scorer.each_hidden(numbers):
            fact = self.scorer.known.take(numbers[[place]])
            yield make_cases_of(self._scoring, kind, fact)
            progress(what, place + 1, len(numbers), "")

    def calibration(self, kind: Kind) -> Calibration:
        """The temperature of a kind of answer; once for each file."""
        name = f"calibration-{kind}-{self._scoring.how}"
        return self._run.keep(name, Calibration, lambda: self._fit(kind))

    def _fit(self, kind: Kind) -> Calibration:
        if kind in self._fitted:
            return self._fitted[kind]
        count, why = len(self._some(kind)), ""
        if self._too_long or count < FEWEST // 2 <= len(self.numbers):
            why = "to calibrate them would take too long"
        elif count < FEWEST // 2:
            why = f"only {counted(count, 'fact')} can be hidden to calibrate them"
        temperature = None if why else fit_temperature(self.cases(kind))
        self._fitted[kind] = Calibration(temperature, count, why, HIDDEN)
        return self._fitted[kind]

    def trust(self, progress: Progress = silent) -> Trust:
        """What they say about answers; once for each file."""
        name = f"trust-{self._scoring.how}"
        return self._run.keep(name, Trust, lambda: self._measure(progress))

    def _measure(self, progress: Progress) -> Trust:
        scorer, numbers, graph = self.scorer, self.numbers, self._run.graph
        known = scorer.known
        calibrations: dict[str, Calibration] = {}
        ranks, guesses, sure, right = [], [], [], []
        for kind in SIDES:
            cases = self.cases(kind, progress)
            ranks.append(ranks_of(cases))
            guesses.append(_guessed(known, numbers, kind, len(graph.entities)))
            calibrations[kind] = self._fit(kind)
            logits = cases.scores.double() / (calibrations[kind].temperature or 1.0)
            best = logits.softmax(1).max(1)
            sure.append(best.values.numpy())
            right.append(best.indices.numpy()[cases.row] == cases.column)
        every, named = np.concatenate(ranks), np.tile(known.predicate[numbers], 2)
        triples = np.unique(known.array(), axis=0, return_inverse=True)[1].reshape(-1)
        times = np.unique(np.stack([triples, scorer.statements], 1), axis=0)[:, 0]
        again = np.tile(np.bincount(times)[triples[numbers]] > 1, 2)
        return Trust(
            len(numbers),
            Measured.of(every),
            Measured.of(every[again]),
            Measured.of(every[~again]),
            float(np.concatenate(guesses).mean()) if len(numbers) else 0.0,
            {
                graph.predicates[p]: Measured.of(every[named == p])
                for p in np.unique(named).tolist()
            },
            {kind: Measured.of(one) for kind, one in zip(SIDES, ranks, strict=True)},
            calibrations,
            _error(np.concatenate(sure), np.concatenate(right)) if len(numbers) else None,
        )


def ranks_of(cases: Cases) -> np.ndarray[Any, Any]:
    """The rank of each right answer; of equal scores the mean place."""
    if not len(cases):
        return np.empty(0)
    scores, target = cases.scores, cases.scores[cases.row, cases.column].unsqueeze(1)
    above, equal = (scores > target).sum(1), (scores == target).sum(1)
    return (above + (equal + 1) / 2).numpy()


def _guessed(known: Facts, numbers: Ints, kind: Kind, entities: int) -> np.ndarray[Any, Any]:
    """Reciprocal ranks of the right answers by how often they answer the predicate elsewhere."""
    answers: Ints = getattr(known, kind).astype(np.int64)
    results = np.empty(len(numbers))
    counts: dict[int, Ints] = {}
    for row, number in enumerate(numbers.tolist()):
        p = int(known.predicate[number])
        if p not in counts:
            counts[p] = np.bincount(answers[known.predicate == p], minlength=entities)
        own = counts[p][answers[number]] - 1
        above, equal = (counts[p] > own).sum() - 1, (counts[p] == own).sum()
        results[row] = 1 / (max(above, 0) + (equal + 2) / 2)
    return results


def _error(sure: np.ndarray[Any, Any], right: np.ndarray[Any, Any], bins: int = 10) -> float:
    number = np.minimum((sure * bins).astype(int), bins - 1)
    parts = ((number == one) for one in range(bins))
    return float(
        sum(
            inside.sum() * abs(sure[inside].mean() - right[inside].mean())
            for inside in parts
            if inside.any()
        )
        / len(sure)
    )


def trust(
    source: TemporalGraph | str | Path,
    *,
    weights: str | None = None,
    device: str = "auto",
    progress: Progress = silent,
    **reading: Unpack[Reading],
) -> Trust:
    """Hide facts of a graph one by one, and see where the right answers come.

    A hidden fact is absent from the question, its evidence, its neighbours and all counts. Only a
    graph, or a file, can be measured so: a trained run knows its facts.

    Args:
        source: a graph, a file, or the name of a dataset.
        weights: the version of the shipped weights; by default the latest.
        device: cpu, cuda or auto.
        progress: called after each question.
        **reading: how to read the facts, as `splime.load` has it.

    >>> import splime
    >>> splime.trust("demo").works
    True
    """
    run = open_source(source, weights=weights, device=device, **reading)
    return HiddenFacts(run, run.scoring()).trust(progress)
