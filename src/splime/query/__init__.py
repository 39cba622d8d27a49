"""Questions to a trained run: who, what, which relation, when, and what is near."""

from splime.analysis.calibration import Calibration
from splime.query.answers import Answer, Answers
from splime.query.doubting import Doubt, Doubts, doubts
from splime.query.evidence import Evidence
from splime.query.many import write_answers
from splime.query.predicting import Prediction, Predictions, predict
from splime.query.query import Query, ask, reliability

__all__ = [
    "Answer",
    "Answers",
    "Calibration",
    "Doubt",
    "Doubts",
    "Evidence",
    "Prediction",
    "Predictions",
    "Query",
    "ask",
    "doubts",
    "predict",
    "reliability",
    "write_answers",
]
