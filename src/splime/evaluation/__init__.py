"""Ranks from scores, honestly: the protocols, their filters and their figures."""

from splime.evaluation.fact import evaluate_facts
from splime.evaluation.intervals import bootstrap
from splime.evaluation.metrics import Metrics
from splime.evaluation.predicate import evaluate_predicates
from splime.evaluation.results import Evaluation
from splime.evaluation.scorer import Scorer
from splime.evaluation.triple import evaluate_triples

__all__ = [
    "Evaluation",
    "Metrics",
    "Scorer",
    "bootstrap",
    "evaluate_facts",
    "evaluate_predicates",
    "evaluate_triples",
]
