"""Several models as one: the weighted sum of the log-probabilities that they give."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from splime.graph import Facts
from splime.scoring.queries import Scoring
from splime.scoring.scoping import Kind
from splime.scoring.timed import likelihoods


class CombinedScorer:
    """Scores of all entities, added up over members; one with weight 0 is never asked."""

    def __init__(self, members: Sequence[Scoring], weights: Sequence[float]) -> None:
        self.members, self.weights = members, weights
        self.device = members[0].scorer.device
        pasts = {getattr(member.scorer, "past", None) for member in members}
        self.past = pasts.pop() if len(pasts) == 1 else None

    def entities(self, kind: Kind, facts: Facts) -> torch.Tensor:
        """A row for each fact: its object (or subject) is asked for, at its time."""
        names = self.members[0].scoping.names(kind)
        total = torch.zeros(len(facts), len(names), device=self.device)
        for member, weight in zip(self.members, self.weights, strict=True):
            if weight:
                total += weight * log_probabilities(member, kind, facts).to(self.device)
        return total

    def facts(self, facts: Facts) -> torch.Tensor:
        """How likely each fact is: the mean log-probability of its object and of its subject."""
        return likelihoods(self, facts)


def log_probabilities(scoring: Scoring, kind: Kind, facts: Facts) -> torch.Tensor:
    """Of every entity as the object (or subject) of each fact, at its time."""
    made = torch.empty(len(facts), len(scoring.scoping.names(kind)), device=scoring.scorer.device)
    with torch.inference_mode():
        for block in scoring.blocks(kind, facts):
            made[block.rows] = (block.scores / block.weight[:, None]).float().log_softmax(1)
    return made
