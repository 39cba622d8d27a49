"""The search for methods, parameters and settings, on valid only."""

from splime.tuning.results import Tried, Tuned
from splime.tuning.search import tune
from splime.tuning.space import make_space, read_space

__all__ = ["Tried", "Tuned", "make_space", "read_space", "tune"]
