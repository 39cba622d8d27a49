"""The engine of combinations, which add up the scores of other runs. It has nothing to train."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from splime.errors import UsageError
from splime.scoring.combined import CombinedScorer
from splime.scoring.timed import TimedScoring
from splime.settings import CombinedSettings
from splime.training.engines import Engine, Learner, ModelInput
from splime.training.registry import ModelEntry


class CombinedEngine(Engine[CombinedSettings]):
    """Adds up the members of a run."""

    def learner(self, settings: CombinedSettings, source: ModelInput) -> Learner:
        """There is none."""
        raise UsageError("a combination is not trained: splime combine makes one of finished runs")

    def open(
        self, settings: CombinedSettings, source: ModelInput, tensors: Mapping[str, Tensor]
    ) -> TimedScoring:
        """The weighted scores of the members."""
        weights = settings.weights
        if len(weights) != len(source.members) or not any(weights):
            raise ValueError(f"{len(weights)} weights of {len(source.members)} members")
        scorings = [member.scoring() for member in source.members]
        return TimedScoring(CombinedScorer(scorings, weights), source.graph)


engine = CombinedEngine()
entry = ModelEntry(
    "combined", "The weighted scores of other runs.", "combined", CombinedSettings, trained=False
)
