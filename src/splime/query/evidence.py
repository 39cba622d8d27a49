"""Why an answer is given: the facts that it rests on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from splime.errors import UsageError, visible
from splime.graph import Fact, Facts
from splime.query.questions import Question
from splime.runs import Run
from splime.scoring.scoping import SIDES


class Step(NamedTuple):
    """A fact of a chain."""

    fact: Fact
    scope: str
    """How its time relates to the time asked about."""

    @property
    def when(self) -> str:
        """The dates of the fact."""
        begin, end = self.fact.begin or "?", self.fact.end or "?"
        return begin if begin == end else f"{begin}..{end}"

    def __str__(self) -> str:
        return f"{' '.join(self.fact[:3])}, {self.when} ({self.scope})"


class Reason(NamedTuple):
    """A chain of facts from the given entity to the answer."""

    contribution: float
    """What it adds to the score of the answer."""
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return "; ".join(map(str, self.steps))


@dataclass(frozen=True)
class Evidence:
    """What an answer rests on, from the most to the least important chain."""

    question: Question
    answer: str
    reasons: tuple[Reason, ...]

    def __repr__(self) -> str:
        lines = [f"{one.contribution:8.3g}  {one}" for one in self.reasons]
        if not lines:
            lines = ["no chain of facts leads from the given entity to the answer"]
        return visible("\n".join([f"{self.question.text} Why {self.answer}?", *lines]))

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        reasons = [
            {
                "contribution": one.contribution,
                "facts": [{**step.fact._asdict(), "scope": step.scope} for step in one.steps],
            }
            for one in self.reasons
        ]
        return {"question": asdict(self.question), "answer": self.answer, "reasons": reasons}


def make_evidence(run: Run, question: Question, facts: Facts, answer: str, most: int) -> Evidence:
    """The chains that contribute most to an answer."""
    scorer = run.scoring().explainer
    if scorer is None:
        raise UsageError(
            f"{run.path}: only the path model knows the facts that its answers rest on, and there"
            " is none here; train one with --model path"
        )
    if question.kind not in SIDES:
        raise UsageError("evidence is for questions that ask who or what")
    column: Any = np.array([run.graph.entities.id(answer)], np.int32)
    asked = replace(facts, **{question.kind: column})
    chains = scorer.why(question.kind, asked, most=most)
    count = len(scorer.known)
    numbers = sorted({number % count for chain in chains for number in chain.facts})
    used = scorer.known.take(np.array(numbers, np.int64))
    rows = list(replace(run.graph, train=used).rows("train"))
    names = scorer.relations(asked, used)
    step = {n: Step(fact, name) for n, fact, name in zip(numbers, rows, names, strict=True)}
    reasons = tuple(
        Reason(chain.contribution, tuple(step[number % count] for number in chain.facts))
        for chain in chains
    )
    return Evidence(question, answer, reasons)
