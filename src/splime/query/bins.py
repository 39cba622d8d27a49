"""How far probabilities can be trusted: what they promise against what comes true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from splime.errors import UsageError, check_name
from splime.graph import SplitName, check_split
from splime.query.cases import make_cases
from splime.query.question import KINDS, Kind

if TYPE_CHECKING:
    from splime.query.query import Query

_MOST = 2000


class Bin(NamedTuple):
    """Questions whose best answer has about the same probability."""

    questions: int
    probability: float
    """The mean probability of their best answers."""
    right: float
    """The share of those that are right."""


@dataclass(frozen=True)
class Reliability:
    """Whether the best answers to questions are right as often as their probabilities say."""

    kind: Kind
    split: SplitName
    temperature: float
    questions: int
    error: float
    """The expected calibration error: the mean over questions of |probability - right| in bins."""
    loss: float
    """The mean of -log probability of the right answers."""
    bins: list[Bin]


def reliability(
    query: Query,
    kind: Kind,
    *,
    split: SplitName = "test",
    temperature: float | None = None,
    bins: int = 10,
) -> Reliability:
    """The calibration error of a kind of question on a split, at most 2,000 facts of it.

    Without a temperature it is the fitted one.
    """
    check_name("kind of question", kind, KINDS)
    check_split(split)
    if temperature is None:
        fitted = query.calibration(kind)
        if fitted.temperature is None:
            raise UsageError(f"{fitted}")
        temperature = fitted.temperature
    cases = make_cases(query.answering, kind, split, _MOST)
    if not len(cases):
        raise UsageError(f"{split} has no facts to ask about")
    logits = cases.scores.double() / temperature
    whole = logits.logsumexp(1)
    best = logits.max(1)
    sure = (best.values - whole).exp().numpy()
    right = np.zeros(len(cases))
    hit = best.indices.numpy()[cases.row] == cases.column
    right[cases.row[hit]] = cases.share.numpy()[hit]
    number = np.minimum((sure * bins).astype(int), bins - 1)
    found = [
        Bin(int(own.sum()), float(sure[own].mean()), float(right[own].mean()))
        for own in (number == one for one in range(bins))
        if own.any()
    ]
    error = sum(one.questions * abs(one.probability - one.right) for one in found) / len(cases)
    loss = torch.mean(whole - cases.target() / temperature)
    return Reliability(kind, split, temperature, len(cases), error, float(loss), found)
