"""The search for methods, parameters and settings, on valid only."""

from splime.tuning.results import TrialResult, TuningResult
from splime.tuning.search import tune
from splime.tuning.space import make_space

Tuned = TuningResult  # its name until 1.1

__all__ = ["TrialResult", "Tuned", "TuningResult", "make_space", "tune"]
