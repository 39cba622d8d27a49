"""Penalties that keep embeddings small, and neighbours in time alike."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from splime.embedding.models import Model
from splime.segmentation import Scopes


def size_penalty(model: Model, vectors: list[Tensor], power: int) -> Tensor:
    """The sum of the coordinates' sizes to a power: L2 is power 2, N3 (Lacroix et al.) power 3."""
    return torch.stack([model.sizes(part).pow(power).sum() for part in vectors]).sum()


def smoothness(predicates: Tensor, follows: Tensor) -> Tensor:
    """The mean squared distance between the vectors of scopes that are neighbours in time.

    `follows` tells for every row but the first whether it is the next scope of the row above.
    """
    steps = (predicates[1:] - predicates[:-1]).square().sum(1)
    return (steps * follows).sum() / follows.sum().clamp_min(1)


def follows_in_time(scopes: Scopes, *, reciprocal: bool = False) -> Tensor:
    """1 for each scope but the first that continues the predicate of the one before it, else 0.

    >>> import splime
    >>> graph = splime.read([("a", p, "b", year) for p in "pq" for year in (1, 2, 3)], split="none")
    >>> follows_in_time(splime.Timestamp().fit(graph).predicates).tolist()
    [1.0, 1.0, 0.0, 1.0, 1.0]
    """
    same = (scopes.sources[:-1] == scopes.sources[1:]).astype(np.float32)
    if reciprocal:  # the inverses stand behind all predicates, in the same order
        same = np.concatenate([same, np.zeros(1, np.float32), same])
    return torch.from_numpy(same)
