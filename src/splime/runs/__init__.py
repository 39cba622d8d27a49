"""Runs: a training and what came of it, in a folder that explains itself."""

from splime.errors import Interrupted
from splime.runs.combining import combine
from splime.runs.evaluating import PROTOCOLS, evaluate, evaluations
from splime.runs.folder import Epoch, is_finished
from splime.runs.run import Run
from splime.runs.training import train
from splime.runs.updates import Change
from splime.runs.updating import update
from splime.runs.watching import Watch

__all__ = [
    "PROTOCOLS",
    "Change",
    "Epoch",
    "Interrupted",
    "Run",
    "Watch",
    "combine",
    "evaluate",
    "evaluations",
    "is_finished",
    "train",
    "update",
]
