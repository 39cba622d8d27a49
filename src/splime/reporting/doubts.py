"""Doubtful facts as tables, for the terminal and notebooks."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from splime.errors import counted
from splime.query.answers import percent
from splime.query.doubting import NAME, Doubt, Doubts, stated
from splime.reporting.tables import HEADING, make_table

_SHOWN = 20


def doubt_parts(found: Doubts, most: int = _SHOWN) -> Iterator[RenderableType]:
    """The most doubtful facts, and how far to trust that."""
    yield Text(f"{counted(found.facts, 'fact')}, each hidden in turn: what looks wrong", HEADING)
    if not found.rows:
        yield Text("nothing")
    else:
        table = make_table("", "fact", "kind", "doubt", "more probable", words=("fact", "kind"))
        for row in found.rows[:most]:
            fact = Text(stated(row))
            if row.evidence:
                fact.append(f"\n  {row.evidence}", style="dim")
            table.add_row(fact, row.kind, percent(row.doubt), _instead(row))
        yield table
    if len(found) > most:
        yield Text(f"the first {most} of {len(found):,}", style="dim")
    for remark in found.remarks:
        yield Text(remark, style="dim")


def _instead(row: Doubt) -> str:
    if row.instead is None or row.kind == NAME:
        return ""
    return row.instead if row.probability is None else f"{row.instead} {percent(row.probability)}"
