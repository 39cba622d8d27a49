"""Random small graphs for property tests, and the plain loops they are compared with."""

from __future__ import annotations

from hypothesis import strategies as st

from splime.graph import TemporalGraph
from splime.io import read

Row = tuple[str, str, str, int | None, int | None]

names = st.sampled_from(["a", "b", "c", "d", "e"])
predicates = st.sampled_from(["p", "q", "r"])
years = st.integers(1990, 2005)


@st.composite
def rows(draw: st.DrawFn, *, least: int = 1, most: int = 25, unknown: bool = True) -> list[Row]:
    """Facts with begin <= end, some of them open; at least one time is known."""
    found: list[Row] = []
    for _ in range(draw(st.integers(least, most))):
        begin, end = sorted((draw(years), draw(years)))
        hidden = draw(st.sampled_from([0, 0, 0, 1, 2])) if unknown else 0
        fact = (draw(names), draw(predicates), draw(names))
        found.append((*fact, None if hidden == 1 else begin, None if hidden == 2 else end))
    return found


@st.composite
def graphs(draw: st.DrawFn, *, unknown: bool = True) -> TemporalGraph:
    """Graphs with all three splits."""
    return read(
        {split: draw(rows(unknown=unknown)) for split in ("train", "valid", "test")},
        granularity="year",
    )
