"""Why an answer is given: the facts that it rests on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from splime.errors import UsageError, visible
from splime.graph import Fact, Facts
from splime.paths.relative import Times
from splime.query.questions import Question
from splime.runs import Run
from splime.scoring.combined import CombinedScorer
from splime.training.paths import PathScorer


class Step(NamedTuple):
    """A fact of a chain."""

    fact: Fact
    scope: str
    """How its time lies to the time asked about."""

    def __str__(self) -> str:
        fact = self.fact
        begin, end = fact.begin or "?", fact.end or "?"
        when = begin if begin == end else f"{begin}..{end}"
        return f"{fact.subject} {fact.predicate} {fact.object}, {when} ({self.scope})"


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
            lines = ["no facts lead from the given entity to the answer in so many steps"]
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


def path_scorer(scorer: Any) -> PathScorer | None:
    """The path model of a run; of a combination the one that counts most."""
    if not isinstance(scorer, CombinedScorer):
        return scorer if isinstance(scorer, PathScorer) else None
    weighed = sorted(zip(scorer.weights, scorer.members, strict=True), key=lambda each: -each[0])
    paths = (path_scorer(member.scorer) for weight, member in weighed if weight)
    return next((each for each in paths if each is not None), None)


def make_evidence(run: Run, question: Question, facts: Facts, answer: str, most: int) -> Evidence:
    """The chains that contribute most to an answer."""
    scorer = path_scorer(run.scorer)
    if scorer is None:
        raise UsageError(
            f"{run.path}: only the path model knows the facts that its answers rest on, and there"
            " is none here; train one with --model path"
        )
    if question.kind not in ("object", "subject"):
        raise UsageError("evidence is for questions that ask who or what")
    column = np.array([run.graph.entities.id(answer)], np.int32)
    if question.kind == "object":
        asked = replace(facts, object=column)
    else:
        asked = replace(facts, subject=column)
    chains = scorer.why(question.kind, asked, most=most)  # type: ignore[arg-type]
    count = len(scorer.known)
    numbers = sorted({number % count for chain in chains for number in chain.facts})
    own = scorer.known.take(np.array(numbers, np.int64))
    rows = list(replace(run.graph, train=own).rows("train"))
    scopes = scorer.relative.scopes(Times.of(asked), Times.of(own))[:, 0].tolist()
    names = [scorer.relative.name(scope) for scope in scopes]
    step = {n: Step(fact, name) for n, fact, name in zip(numbers, rows, names, strict=True)}
    return Evidence(
        question,
        answer,
        tuple(
            Reason(chain.contribution, tuple(step[number % count] for number in chain.facts))
            for chain in chains
        ),
    )
