"""Ranks from scores: the protocols, their filters and their metrics."""

from splime.evaluation.metrics import COMPARED, METRICS, Evaluation, Metric, Metrics, bootstrap
from splime.evaluation.protocols import (
    EvaluationOptions,
    evaluate_facts,
    evaluate_predicates,
    evaluate_triples,
)
from splime.scoring.scorer import Scorer

__all__ = [
    "COMPARED",
    "METRICS",
    "Evaluation",
    "EvaluationOptions",
    "Metric",
    "Metrics",
    "Scorer",
    "bootstrap",
    "evaluate_facts",
    "evaluate_predicates",
    "evaluate_triples",
]
