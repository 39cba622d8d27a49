"""What a loss is: how scores become a number to make small, and the settings that it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from splime.axes import Axis
from splime.settings import Settings

LEFT_OUT = -1e30
"""The score of negatives that are left out: the losses and their gradients do not feel it.

Minus infinity would do, but for a positive whose negatives are all left out, and temperature 0.
"""


@dataclass(frozen=True)
class Loss:
    """A loss, compared with sampled negatives or with all entities."""

    name: str
    about: str
    against: Literal["sampled", "all"]
    compute: Callable[[Tensor, Tensor, Settings], Tensor]
    """The loss of each example. Sampled: from the scores of the positives `(n,)` and of their
    negatives `(n, m)`. All: from the scores of all entities `(n, e)` and the right ones `(n,)`."""
    settings: tuple[str, ...] = ()
    """The settings that have an effect with it, beside those of all losses."""
    search: Mapping[str, Axis] = field(default_factory=dict)
    """What `splime tune` tries for settings."""
    of_products: Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor] | None = None
    """A short way from queries, entities and targets to the sum, for models of products."""
