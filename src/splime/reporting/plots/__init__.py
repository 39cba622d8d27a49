"""Pictures of graphs, cuts, runs, evidence, rules, backtests and maps; none needs PyTorch."""

from splime.reporting.plots.backtests import plot_backtest
from splime.reporting.plots.embeddings import plot_predicate, plot_predicates
from splime.reporting.plots.evidence import plot_evidence
from splime.reporting.plots.graph import (
    plot_change_costs,
    plot_cuts,
    plot_facts_over_time,
    plot_segmentation,
)
from splime.reporting.plots.results import plot_learning, plot_strata
from splime.reporting.plots.rules import plot_rules

__all__ = [
    "plot_backtest",
    "plot_change_costs",
    "plot_cuts",
    "plot_evidence",
    "plot_facts_over_time",
    "plot_learning",
    "plot_predicate",
    "plot_predicates",
    "plot_rules",
    "plot_segmentation",
    "plot_strata",
]
