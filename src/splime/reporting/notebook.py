"""Results in a notebook: the tables that the terminal has for them, as HTML."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from splime.reporting import tables
from splime.reporting.html import rendered
from splime.shown import Shown

# By name: graphs are shown without PyTorch, which the classes of runs would import.
_TABLES: dict[str, Callable[[Any], Any]] = {
    "TemporalGraph": tables.graph_tables,
    "Segmentation": tables.segmentation_table,
    "StaticGraph": tables.static_tables,
    "Inspection": tables.inspection_tables,
    "Transformed": tables.transformed_tables,
    "StreamResult": tables.stream_table,
}


def html_of(result: Shown) -> str:
    """What a notebook shows of a result."""
    name = type(result).__name__
    if name not in _TABLES:  # all need PyTorch
        from splime.reporting.answers import answer_parts
        from splime.reporting.backtests import backtest_tables
        from splime.reporting.comparison import comparison_table
        from splime.reporting.doubts import doubt_parts
        from splime.reporting.predictions import prediction_parts
        from splime.reporting.results import evaluation_tables, run_table
        from splime.reporting.rules import rule_tables

        _TABLES.update(Answers=answer_parts, Comparison=comparison_table, Rules=rule_tables)
        _TABLES.update(Run=run_table, Evaluation=evaluation_tables, Predictions=prediction_parts)
        _TABLES.update(Backtest=backtest_tables, Doubts=doubt_parts)
    return str(rendered(_TABLES[name](result)))
