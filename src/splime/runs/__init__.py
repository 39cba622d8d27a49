"""Runs: a training and what came of it, in a folder that explains itself."""

from splime.runs.evaluating import PROTOCOLS, evaluate, evaluations
from splime.runs.run import Epoch, Run
from splime.runs.training import Interrupted, Watch, train

__all__ = [
    "PROTOCOLS",
    "Epoch",
    "Interrupted",
    "Run",
    "Watch",
    "evaluate",
    "evaluations",
    "train",
]
