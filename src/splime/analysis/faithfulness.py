"""Whether the facts shown as evidence are those that an answer rests on, measured.

The graph is an input, so facts can be taken away and the question asked again, without training:

    necessity     the evidence is taken away: how far the answer's score falls
    sufficiency   nothing but the evidence is kept: how often the answer still comes first

each beside as many other facts, drawn from those at the entities of the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from splime.errors import UsageError, check_kind
from splime.graph import Facts, SplitName, check_split
from splime.paths.scorer import PathScorer
from splime.progress import Progress, silent
from splime.runs import Run
from splime.scoring.scoping import SIDES, Kind
from splime.times import Ints

CHAINS = 5
"""That are shown for an answer, and taken for its evidence."""
QUESTIONS = 1_000


class ScoreChange(NamedTuple):
    """What happens to answers when facts are taken away, or kept alone."""

    fall: float
    """Of the answer's score without these facts, the mean."""
    lost: float
    """How often it no longer comes first without them."""
    alone: float
    """How often it comes first with these facts alone."""


@dataclass(frozen=True)
class Faithfulness:
    """How far first answers rest on their evidence."""

    questions: int
    without: int
    """Answers that no chain of facts leads to; they are not counted below."""
    facts: float
    """Of the evidence of an answer, the mean."""
    evidence: ScoreChange
    others: ScoreChange
    """The same for as many other facts nearby."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        changes = {"evidence": self.evidence._asdict(), "others": self.others._asdict()}
        return {"questions": self.questions, "without": self.without, "facts": self.facts} | changes

    def __str__(self) -> str:
        one, other = self.evidence, self.others
        return (
            f"{self.questions:,} first answers, {self.facts:.1f} facts of evidence each: without"
            f" them the score falls by {one.fall:.2f} (without as many others nearby"
            f" {other.fall:.2f}), and {100 * one.lost:.0f} % no longer come first"
            f" ({100 * other.lost:.0f} %); with them alone {100 * one.alone:.0f} % come first"
            f" (with others {100 * other.alone:.0f} %)"
        )


def check_evidence(
    run: Run,
    *,
    split: SplitName = "test",
    questions: int | Literal["all"] = QUESTIONS,
    progress: Progress = silent,
) -> Faithfulness:
    """Check the evidence of the first answers to questions made of the facts of a split.

    Args:
        run: a run of the path model, or a graph that is asked without training.
        split: whose facts are asked for.
        questions: how many, half for objects and half for subjects, drawn with a fixed seed.
        progress: called after each question.
    """
    most = max(1, 2 * len(run.graph)) if questions == "all" else questions
    check_kind("questions", most, int)
    if most < 1:
        raise UsageError(f"questions is a number from 1 on, not {questions}")
    scoring, facts = run.scoring(), getattr(run.graph, check_split(split))
    if not scoring.can_hide:
        raise UsageError(f"{run.path}: only a path model has evidence to check")
    if not len(facts):
        raise UsageError(f"{split} has no facts to ask for; splime.split_graph makes splits")
    random = np.random.default_rng(0)
    drawn = facts.take(random.permutation(len(facts))[: -(-most // 2)])
    asked = [(kind, drawn.take(np.array([row]))) for row in range(len(drawn)) for kind in SIDES]
    rows = []
    progress("evidence", 0, len(asked))
    for number, (kind, fact) in enumerate(asked, 1):
        rows.append(_check(scoring.scorer, kind, fact, random))
        progress("evidence", number, len(asked))
    found = [row for row in rows if row is not None]
    if not found:
        raise UsageError(f"{run.path}: no answer has evidence")
    sizes, *changes = (np.array(column, float) for column in zip(*found, strict=True))
    evidence, others = (ScoreChange(*change.mean(0).tolist()) for change in changes)
    missing = len(rows) - len(found)
    return Faithfulness(len(found), missing, float(sizes.mean()), evidence, others)


def _check(
    scorer: PathScorer, kind: Kind, fact: Facts, random: np.random.Generator
) -> tuple[int, ScoreChange, ScoreChange] | None:
    """How many facts are evidence, and what changes with them and with others; None without any."""
    score = scorer.entities(kind, fact)[0]
    answer = int(score.argmax())
    answered = Facts.owning(
        *(np.array([answer], "i4") if name == kind else getattr(fact, name)
          for name in ("subject", "predicate", "object")),
        *fact.columns()[3:],
    )  # fmt: skip
    chains = scorer.why(kind, answered, most=CHAINS)
    known = len(scorer.known)
    numbers = np.unique([number % known for chain in chains for number in chain.facts])
    if not len(numbers):
        return None
    others = random.permutation(_near(scorer.known, numbers.astype(np.int64)))[: len(numbers)]
    changes = [
        _change(scorer, kind, fact, answer, float(score[answer]), some)
        for some in (numbers, others)
    ]
    return len(numbers), *changes  # type: ignore[return-value]


def _near(known: Facts, numbers: Ints) -> Ints:
    """The other facts at the entities of some facts."""
    some = known.take(numbers)
    entities = np.unique(np.concatenate([some.subject, some.object]))
    near = np.isin(known.subject, entities) | np.isin(known.object, entities)
    near[numbers] = False
    return np.flatnonzero(near)


def _change(
    scorer: PathScorer, kind: Kind, fact: Facts, answer: int, before: float, numbers: Ints
) -> ScoreChange:
    """What changes without some facts, and with them alone."""
    chosen = torch.from_numpy(numbers).to(scorer.device)
    without = scorer.read.weights(chosen)
    scores = []
    for weights in (without, 1 - without):
        with scorer.weighing(weights):
            scores.append(scorer.entities(kind, fact)[0])
    first = [float(score.argmax() == answer) for score in scores]
    return ScoreChange(before - float(scores[0][answer]), 1 - first[0], first[1])
