"""Ranks from scores: the protocols, their filters and their metrics."""

from splime.evaluation.metrics import Evaluation, Metrics, bootstrap
from splime.evaluation.protocols import evaluate_facts, evaluate_predicates, evaluate_triples
from splime.scoring.scorer import Scorer

__all__ = [
    "Evaluation",
    "Metrics",
    "Scorer",
    "bootstrap",
    "evaluate_facts",
    "evaluate_predicates",
    "evaluate_triples",
]
