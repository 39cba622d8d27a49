"""Several models as one: the weighted sum of the log-probabilities that they give."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from splime.graph import Facts
from splime.scoring.queries import Scoring
from splime.scoring.scoping import Kind
from splime.scoring.timed import Explainer, TimedScorer


class CombinedScorer(TimedScorer):
    """Scores of all entities, added up over members; one with weight 0 is never asked."""

    def __init__(self, members: Sequence[Scoring], weights: Sequence[float]) -> None:
        self.members, self.weights = members, weights
        self.device = members[0].device
        self.forecasts = all(member.forecasts for member in members)

    def entities(self, kind: Kind, facts: Facts) -> torch.Tensor:
        """A row for each fact: scores of all entities as its object (or subject), at its time."""
        names = self.members[0].names(kind)
        total = torch.zeros(len(facts), len(names), device=self.device)
        for member, weight in zip(self.members, self.weights, strict=True):
            if weight:
                total += weight * log_probabilities(member, kind, facts).to(self.device)
        return total

    @property
    def explainer(self) -> Explainer | None:
        """Of the members that know the facts behind an answer, the one that counts most."""
        weighed = sorted(zip(self.weights, self.members, strict=True), key=lambda pair: -pair[0])
        known = (member.explainer for weight, member in weighed if weight)
        return next((explainer for explainer in known if explainer is not None), None)


def log_probabilities(scoring: Scoring, kind: Kind, facts: Facts) -> torch.Tensor:
    """Of every entity as the object (or subject) of each fact, at its time."""
    made = torch.empty(len(facts), len(scoring.names(kind)), device=scoring.device)
    with torch.inference_mode():
        for block in scoring.blocks(kind, facts):
            made[block.rows] = (block.scores / block.weight[:, None]).float().log_softmax(1)
    return made
