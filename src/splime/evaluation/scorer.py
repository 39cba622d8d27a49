"""What evaluation needs of a model, and how it asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from splime.errors import SplimeError


class Scorer(Protocol):
    """Scores over the ids of a StaticGraph; higher is better.

    Ids are int64 tensors on `device`, equally long; scores are float tensors on it with a row for
    each pair of ids. -inf is a score, NaN is not.
    """

    @property
    def device(self) -> torch.device:
        """Where ids are wanted and scores are made."""

    def objects(self, subject: torch.Tensor, predicate: torch.Tensor) -> torch.Tensor:
        """A column for each (scoped) entity."""

    def subjects(self, predicate: torch.Tensor, object: torch.Tensor) -> torch.Tensor:
        """A column for each (scoped) entity."""

    def predicates(self, subject: torch.Tensor, object: torch.Tensor) -> torch.Tensor:
        """A column for each scoped predicate."""


Ids: TypeAlias = npt.NDArray[np.integer]
Ask: TypeAlias = Callable[[Ids, Ids], torch.Tensor]
"""The scores of some pairs of ids: of a known entity and a predicate, or of two entities."""


def asking(scorer: Scorer, side: str, columns: int) -> Ask:
    """How to ask a scorer for objects, subjects or predicates, from numpy ids.

    The known entity comes before the predicate whichever side is asked for. What comes back has
    the right shape and no NaN.
    """

    def ask(first: Ids, second: Ids) -> torch.Tensor:
        one, other = (
            torch.as_tensor(ids, dtype=torch.int64).to(scorer.device) for ids in (first, second)
        )
        if side == "subject":
            scores = scorer.subjects(other, one)
        else:
            scores = (scorer.objects if side == "object" else scorer.predicates)(one, other)
        if tuple(scores.shape) != (len(first), columns) or not scores.is_floating_point():
            raise SplimeError(
                f"the model scored {len(first):,} queries for a {side} with {scores.dtype} of shape"
                f" {tuple(scores.shape)}; floats of shape {(len(first), columns)} were expected:"
                " was it trained on this graph and segmentation?"
            )
        no_nan(scores)
        return scores

    return ask


def no_nan(scores: torch.Tensor) -> None:
    """An error where a score is not a number."""
    # The maximum is NaN if any score is, and needs no memory.
    if scores.numel() and bool(torch.isnan(scores.amax())):
        raise SplimeError(
            "the model gave scores that are not numbers (NaN), so nothing can be ranked; its"
            " training diverged (a smaller learning rate may help), or it adds inf to -inf"
        )
