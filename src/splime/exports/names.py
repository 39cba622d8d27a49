"""What the names of scoped predicates and entities must be like for an export."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from splime.errors import UsageError
from splime.static import StaticGraph


def check_distinct(static: StaticGraph) -> None:
    """Two things of one name cannot be told apart by any reader."""
    for kind, labels in _labels(static):
        check_labels(kind, labels)


def check_labels(kind: str, labels: pa.Array) -> None:
    """The same for the names of scopes alone."""
    counts = pc.value_counts(labels)
    twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    if len(twice):
        raise UsageError(
            f"two different ones of the graph come to be called {twice[0].as_py()!r}: a {kind} has"
            " the name of a scope of another one; rename it"
        )


def check_one_line(static: StaticGraph, format: str) -> None:
    """Formats of lines and tabs have no way to hold them in a name."""
    for kind, labels in _labels(static):
        bad = labels.filter(pc.match_substring_regex(labels, "[\t\r\n]"))
        if len(bad):
            raise UsageError(
                f"the {kind} {bad[0].as_py()!r} holds a tab or a line break, which the format"
                f" {format} cannot; export as parquet or ntriples"
            )


def _labels(static: StaticGraph) -> Iterator[tuple[str, pa.Array]]:
    yield "entity", static.entities.labels
    yield "predicate", static.predicates.labels
