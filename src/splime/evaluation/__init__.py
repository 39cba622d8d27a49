"""Ranks from scores: the protocols, their filters and their metrics."""

from splime.evaluation.metrics import COMPARED, METRICS, Evaluation, Metrics, bootstrap
from splime.evaluation.protocols import (
    EvaluationOptions,
    evaluate_facts,
    evaluate_predicates,
    evaluate_triples,
)

__all__ = [
    "COMPARED",
    "METRICS",
    "Evaluation",
    "EvaluationOptions",
    "Metrics",
    "bootstrap",
    "evaluate_facts",
    "evaluate_predicates",
    "evaluate_triples",
]
