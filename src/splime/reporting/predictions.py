"""Predicted facts as tables, for the terminal and notebooks."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from splime.analysis.existence import ALL, OTHER_TIMES
from splime.query.answers import percent
from splime.query.predicting import Predictions
from splime.reporting.tables import HEADING, make_table

_SHOWN = 20


def prediction_parts(found: Predictions, most: int = _SHOWN) -> Iterator[RenderableType]:
    """The first facts, and how far to trust the estimates whether there are any."""
    yield Text(f"facts that the graph does not state, {found.time}", style=HEADING)
    if not found.rows:
        yield Text("none that is probable enough")
    else:
        numbers = ("probability", "if there is one", "there is one")
        table = make_table("", "fact", *numbers)
        for row in found.rows[:most]:
            fact = Text(" ".join(row[:3]))
            if row.evidence:
                fact.append(f"\n  {row.evidence}", style="dim")
            table.add_row(fact, *(percent(one) for one in row[4:7]))
        yield table
    if len(found) > most:
        yield Text(f"the first {most} of {len(found):,}", style="dim")
    yield Text(f"objects, {found.calibration}", style="dim")
    yield Text(f"there is one: {found.there_is_one}", style="dim")
    for name, check in found.checks.items():
        yield Text(f"{name}: {check}", style="dim")
    if found.checks:
        table = make_table("", "there is one, estimated", "true", "questions")
        for part in found.checks.get(OTHER_TIMES, found.checks[ALL]).bins:
            shares = (percent(one) for one in (part.probability, part.stated))
            table.add_row(*shares, f"{part.questions:,}")
        yield table
