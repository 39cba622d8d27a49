"""Negatives: entities that take the place of a positive's subject or object."""

from __future__ import annotations

import numpy as np
import torch
from torch import Generator, Tensor

from splime.errors import UsageError
from splime.settings import Settings


class Negatives:
    """Draws the entities that replace objects and those that replace subjects, all uniformly.

    A draw is `(m,)` where the batch shares its negatives, and `(n, m)` where each positive has its
    own.
    """

    def __init__(self, entities: int, settings: Settings) -> None:
        self.entities = entities
        self.shared = settings.share == "batch"
        as_subjects = settings.negatives // 2 if settings.corrupts_both else 0
        if settings.corrupt == "subject":
            as_subjects = settings.negatives
        self.counts = settings.negatives - as_subjects, as_subjects
        """How many replace the object, and how many the subject."""

    def draw(self, steps: int, positives: int, generator: Generator) -> Tensor:
        """Negatives for some batches of positives, as `(steps, m)` or `(steps, n, m)`.

        The columns that replace objects stand first.
        """
        total = sum(self.counts)
        shape = (steps, total) if self.shared else (steps, positives, total)
        return torch.randint(
            self.entities, shape, generator=generator, device=generator.device, dtype=torch.int64
        )


class Known:
    """Finds negatives that are triples of train."""

    def __init__(self, triples: Tensor, entities: int, predicates: int) -> None:
        self.entities, self.predicates = entities, predicates
        if entities**2 * predicates >= 2**63:
            raise UsageError(
                f"the triples of {entities:,} entities and {predicates:,} predicates are too many"
                " to be numbered, as avoid_known needs; leave it out"
            )
        s, p, o = triples.T
        self._keys = {
            kind: torch.sort(self._key(given, p, wanted)).values
            for kind, given, wanted in (("object", s, o), ("subject", o, s))
        }

    def among(self, kind: str, given: Tensor, p: Tensor, candidates: Tensor) -> Tensor:
        """Whether candidates `(m,)` or `(n, m)` are known as the object (or subject) beside it."""
        keys, known = self._key(given.unsqueeze(1), p.unsqueeze(1), candidates), self._keys[kind]
        place = torch.searchsorted(known, keys).clamp_max(len(known) - 1)
        return known[place] == keys

    def _key(self, given: Tensor, p: Tensor, wanted: Tensor) -> Tensor:
        return (given * self.predicates + p) * self.entities + wanted


def seed_of(*parts: int) -> int:
    """One seed from several numbers (the seed of a run, an epoch, a step), well mixed.

    >>> seed_of(0, 1) != seed_of(1, 0)
    True
    """
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> np.uint64(1))
