"""Runs: a training and what came of it, in a folder that explains itself."""

from splime.runs.evaluating import PROTOCOLS, evaluate, evaluations
from splime.runs.folder import is_finished
from splime.runs.history import Epoch
from splime.runs.run import ENGINES, Run
from splime.runs.training import Interrupted, Watch, train

__all__ = [
    "ENGINES",
    "PROTOCOLS",
    "Epoch",
    "Interrupted",
    "Run",
    "Watch",
    "evaluate",
    "evaluations",
    "is_finished",
    "train",
]
