"""Questions to a trained run: who, what, which relation, when, and what is near."""

from splime.query.answers import Answer, Answers
from splime.query.bins import Reliability, reliability
from splime.query.calibration import Calibration
from splime.query.known import KnownFact
from splime.query.many import write_answers
from splime.query.query import Query
from splime.query.question import Question

__all__ = [
    "Answer",
    "Answers",
    "Calibration",
    "KnownFact",
    "Query",
    "Question",
    "Reliability",
    "reliability",
    "write_answers",
]
