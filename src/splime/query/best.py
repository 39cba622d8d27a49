"""The best candidates of rows of scores, and how probable they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from splime.evaluation.metrics import Floats
from splime.query.known import KnownAnswers
from splime.query.scoring import Block
from splime.times import Ints


class Best(NamedTuple):
    """Answers, by question and from the best to the worst."""

    question: Ints
    id: Ints
    score: Floats
    probability: Floats
    """NaN where there is none: without a temperature, and of what train states."""
    fact: Ints
    """Where the answer is known from, -1 if it is not."""

    @property
    def rank(self) -> Ints:
        """From 1 for each question."""
        new = np.flatnonzero(np.append(True, self.question[1:] != self.question[:-1]))
        length = np.diff(np.append(new, len(self.question)))
        return np.arange(len(self.question)) - np.repeat(new, length) + 1

    def take(self, rows: Ints) -> Best:
        """Some of them, by positions."""
        return Best(*(column[rows] for column in self))  # type: ignore[arg-type]

    @classmethod
    def concat(cls, parts: list[Best]) -> Best:
        """Those of different questions together, in the order of the questions."""
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        together = cls(*columns)
        return together.take(np.argsort(together.question, kind="stable"))


def best_of(
    block: Block,
    known: KnownAnswers,
    *,
    limit: int | None,
    drop: bool = False,
    temperature: float | None = None,
) -> Best:
    """The best candidates of each row of a block, in which known answers may be left out.

    `known` are the known answers to the questions of the block, by their positions in it. The
    probability is a softmax of score / temperature over all candidates that train does not state.
    """
    scores, weight = block.scores, block.weight
    row, id_ = (torch.as_tensor(ids).to(scores.device) for ids in (known.question, known.id))
    most = scores.shape[1] if limit is None else min(limit, scores.shape[1])
    top = None if drop else torch.topk(scores, most, dim=1)
    learned = torch.as_tensor(known.learned).to(scores.device)
    scores[row[learned], id_[learned]] = -torch.inf
    whole = None
    if temperature is not None:
        whole = (scores / (weight * temperature)[:, None]).logsumexp(1).cpu().numpy()
    if top is None:
        scores[row, id_] = -torch.inf
        top = torch.topk(scores, most, dim=1)
    values, ids = (part.cpu().numpy() for part in top)
    own = weight.cpu().numpy().astype(np.float64)
    means = values.astype(np.float64) / own[:, None]
    probability = np.full(means.shape, np.nan)
    if whole is not None:
        with np.errstate(invalid="ignore"):  # where nothing is unknown
            probability = np.exp(means / temperature - whole.astype(np.float64)[:, None])
    question = np.repeat(np.arange(len(ids)), most)
    at = _places(known, question, ids.ravel(), scores.shape[1])
    # The last is of those that are not known.
    fact, seen = np.append(known.fact, -1)[at], np.append(known.learned, False)[at]
    probability = np.where(seen, np.nan, probability.ravel()).clip(max=1.0)
    flat = values.ravel()
    # What is -inf is no candidate, was left out, or cannot be; equal ones are in the order of ids.
    order = np.lexsort((ids.ravel(), -flat, question))
    order = order[flat[order] > -np.inf]
    found = Best(question, ids.ravel(), means.ravel(), probability, fact).take(order)
    return found._replace(question=block.rows[found.question])


def _places(known: KnownAnswers, question: Ints, id_: Ints, width: int) -> Ints:
    """Where pairs of question and id stand among what is known, -1 if they do not."""
    if not len(known.question):
        return np.full(len(question), -1, np.int64)
    keys = known.question * width + known.id
    order = np.argsort(keys)
    key = question * width + id_
    at = order[np.searchsorted(keys, key, sorter=order).clip(max=len(keys) - 1)]
    return np.where(keys[at] == key, at, -1)
