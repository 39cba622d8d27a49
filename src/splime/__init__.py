"""splime: link prediction at a time, with any static embedding model."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from splime import leakage
    from splime.analysis import Comparison, compare, smoothness
    from splime.datasets import World, load
    from splime.embedding.presets import make_settings
    from splime.embedding.settings import Settings
    from splime.errors import DataError, DownloadError, SplimeError, UsageError
    from splime.evaluation import (
        Evaluation,
        evaluate_facts,
        evaluate_predicates,
        evaluate_triples,
    )
    from splime.exports import export, labelled_triples, to_pykeen
    from splime.graph import Fact, Facts, TemporalGraph
    from splime.io import (
        load_segmentation,
        read,
        save,
        save_segmentation,
        to_table,
        write_text,
    )
    from splime.methods import (
        METHODS,
        ChangePointSplit,
        Merge,
        RandomSplit,
        Split,
        Timestamp,
        Vanilla,
        make_method,
    )
    from splime.plans import (
        Plan,
        PlannedRun,
        carry_out,
        read_plan,
        standard_methods,
        write_page,
    )
    from splime.query import Answer, Answers, Query
    from splime.runs import Run, evaluate, train
    from splime.segmentation import Segmentation
    from splime.splitting import split_graph
    from splime.static import StaticGraph, apply
    from splime.statistics import describe
    from splime.timeline import Timeline
    from splime.times import parse_times
    from splime.tuning import Tuned, tune
    from splime.vocabulary import Vocabulary

__version__ = "0.1.0.dev0"

__all__ = [
    "METHODS",
    "Answer",
    "Answers",
    "ChangePointSplit",
    "Comparison",
    "DataError",
    "DownloadError",
    "Evaluation",
    "Fact",
    "Facts",
    "Merge",
    "Plan",
    "PlannedRun",
    "Query",
    "RandomSplit",
    "Run",
    "Segmentation",
    "Settings",
    "SplimeError",
    "Split",
    "StaticGraph",
    "TemporalGraph",
    "Timeline",
    "Timestamp",
    "Tuned",
    "UsageError",
    "Vanilla",
    "Vocabulary",
    "World",
    "apply",
    "carry_out",
    "compare",
    "describe",
    "evaluate",
    "evaluate_facts",
    "evaluate_predicates",
    "evaluate_triples",
    "export",
    "labelled_triples",
    "leakage",
    "load",
    "load_segmentation",
    "make_method",
    "make_settings",
    "parse_times",
    "read",
    "read_plan",
    "save",
    "save_segmentation",
    "smoothness",
    "split_graph",
    "standard_methods",
    "to_pykeen",
    "to_table",
    "train",
    "tune",
    "write_page",
    "write_text",
]

_MODULES = {
    "analysis": ("Comparison", "compare", "smoothness"),
    "datasets": ("World", "load"),
    "embedding.presets": ("make_settings",),
    "embedding.settings": ("Settings",),
    "errors": ("DataError", "DownloadError", "SplimeError", "UsageError"),
    "evaluation": (
        "Evaluation",
        "evaluate_facts",
        "evaluate_predicates",
        "evaluate_triples",
    ),
    "exports": ("export", "labelled_triples", "to_pykeen"),
    "graph": ("Fact", "Facts", "TemporalGraph"),
    "io": (
        "load_segmentation",
        "read",
        "save",
        "save_segmentation",
        "to_table",
        "write_text",
    ),
    "methods": (
        "METHODS",
        "ChangePointSplit",
        "Merge",
        "RandomSplit",
        "Split",
        "Timestamp",
        "Vanilla",
        "make_method",
    ),
    "plans": ("Plan", "PlannedRun", "carry_out", "read_plan", "standard_methods", "write_page"),
    "query": ("Answer", "Answers", "Query"),
    "runs": ("Run", "evaluate", "train"),
    "segmentation": ("Segmentation",),
    "splitting": ("split_graph",),
    "static": ("StaticGraph", "apply"),
    "statistics": ("describe",),
    "timeline": ("Timeline",),
    "tuning": ("Tuned", "tune"),
    "times": ("parse_times",),
    "vocabulary": ("Vocabulary",),
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for, so that `import splime` costs nothing."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"splime.{module}"), name)
    if name == "leakage":
        return import_module("splime.leakage")
    raise AttributeError(f"module 'splime' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
