"""How far answers from a graph can be trusted, as tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from splime.analysis.hidden import Measured, Trust
from splime.reporting.tables import make_table

_PREDICATES = 20


def trust_tables(trust: Trust) -> Iterator[RenderableType]:
    """The summary, and a row for each group of questions."""
    yield str(trust)
    table = make_table("each fact hidden in turn", "", "questions", "MRR", "first", "among ten")

    def add(name: str, measured: Measured) -> None:
        if measured.questions:
            shares = (f"{100 * share:.1f} %" for share in (measured.first, measured.ten))
            table.add_row(name, f"{measured.questions:,}", f"{measured.mrr:.3f}", *shares)

    add("all", trust.all)
    for kind, measured in trust.kinds.items():
        add(f"asked for the {kind}", measured)
    add("stated at other times, too", trust.repeated)
    add("stated at one time only", trust.new)
    frequent = sorted(trust.predicates.items(), key=lambda one: (-one[1].questions, one[0]))
    for name, measured in frequent[:_PREDICATES]:
        add(name, measured)
    if trust.all.questions:
        yield table
        yield f"MRR of the most frequent answers of each predicate: {trust.guess:.3f}"
    if trust.error is not None:
        yield f"calibration error of the best answers' probabilities: {100 * trust.error:.1f} %"
