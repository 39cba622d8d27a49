"""Questions to a trained run: who, what, which relation, when, and what is near."""

from splime.analysis.calibration import Calibration
from splime.query.answers import Answer, Answers
from splime.query.evidence import Evidence
from splime.query.many import write_answers
from splime.query.query import Query, Reliability, ask, reliability
from splime.query.questions import Question
from splime.scoring.scoping import KnownFact

__all__ = [
    "Answer",
    "Answers",
    "Calibration",
    "Evidence",
    "KnownFact",
    "Query",
    "Question",
    "Reliability",
    "ask",
    "reliability",
    "write_answers",
]
