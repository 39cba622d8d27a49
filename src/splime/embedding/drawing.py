"""One triple of each fact, drawn anew for every epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor


class Draws:
    """Triples that came from facts, of which an epoch takes one for each fact.

    A fact that was cut into many pieces would count as often otherwise; so it counts once, whatever
    its length, as it does in protocol `fact`. Its pieces are drawn by their weight, the number of
    timestamps at which the fact holds in them: that is a timestamp of the fact, drawn at random.
    """

    def __init__(
        self,
        triples: Tensor,
        fact: np.ndarray[Any, np.dtype[np.integer[Any]]],
        weight: np.ndarray[Any, np.dtype[np.integer[Any]]],
    ) -> None:
        if (np.diff(fact) < 0).any():
            raise ValueError("triples must stand in the order of their facts")
        self.triples = triples
        upto = np.cumsum(weight, dtype=np.int64)
        first = np.flatnonzero(np.diff(fact, prepend=-1))
        before = np.append(0, upto)[first]
        self._upto = torch.from_numpy(upto).to(triples.device)
        self._before = torch.from_numpy(before).to(triples.device)
        self._whole = torch.from_numpy(np.diff(np.append(before, upto[-1:]))).to(triples.device)

    def __len__(self) -> int:
        return len(self._before)

    def draw(self, generator: torch.Generator) -> Tensor:
        """A triple for each fact.

        >>> triples = torch.tensor([[0, 0, 1], [0, 1, 1], [2, 0, 3]])
        >>> draws = Draws(triples, np.array([0, 0, 1]), np.array([1, 0, 5]))
        >>> draws.draw(torch.Generator().manual_seed(0)).tolist()
        [[0, 0, 1], [2, 0, 3]]
        """
        device = self.triples.device
        share = torch.rand(len(self), generator=generator, device=device, dtype=torch.float64)
        within = (share * self._whole).long().minimum(self._whole - 1)
        return self.triples[torch.searchsorted(self._upto, self._before + within, right=True)]
