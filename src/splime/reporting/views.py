"""Which tables show a result: in the terminal and, as HTML, in notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from splime.reporting import tables
from splime.reporting.html import rendered
from splime.shown import Shown

# By name: graphs are shown without PyTorch, which the classes of runs would import.
_PARTS: dict[str, Callable[[Any], Any]] = {
    "TemporalGraph": tables.graph_tables,
    "Segmentation": tables.segmentation_table,
    "StaticGraph": tables.static_tables,
    "Inspection": tables.inspection_tables,
    "Transformed": tables.transformed_tables,
    "StreamResult": tables.stream_table,
    "Faithfulness": str,
}


def parts_of(result: Any) -> Iterable[RenderableType]:
    """The tables and lines of a result."""
    name = type(result).__name__
    if name not in _PARTS:  # all need PyTorch
        from splime.reporting.answers import answer_parts, explained_parts
        from splime.reporting.backtests import backtest_tables
        from splime.reporting.comparison import comparison_table
        from splime.reporting.doubts import doubt_parts
        from splime.reporting.predictions import prediction_parts
        from splime.reporting.results import evaluation_tables, run_table
        from splime.reporting.rules import rule_tables
        from splime.reporting.trust import trust_tables

        _PARTS.update(Answers=answer_parts, Comparison=comparison_table, Rules=rule_tables)
        _PARTS.update(Run=run_table, Evaluation=evaluation_tables, Predictions=prediction_parts)
        _PARTS.update(Backtest=backtest_tables, Doubts=doubt_parts, Trust=trust_tables)
        _PARTS.update(Explained=explained_parts)
    parts = _PARTS[name](result)
    return [parts] if isinstance(parts, str | Table) else parts


def html_of(result: Shown) -> str:
    """What a notebook shows of a result."""
    return str(rendered(parts_of(result)))
