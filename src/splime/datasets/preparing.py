"""What becomes of facts before a model sees them: `inspect` and `transform`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Unpack, cast

from splime import leakage
from splime.datasets.loading import load
from splime.errors import check_name, checked
from splime.exports import FORMATS, check_folder, export
from splime.graph import TemporalGraph
from splime.io import save_segmentation
from splime.methods import Method, standard_method
from splime.progress import Progress, silent
from splime.shown import Shown
from splime.static import StaticGraph
from splime.statistics import Statistics, describe

if TYPE_CHECKING:
    from splime.keywords import Reading

SEGMENTATION = "segmentation.json"


@dataclass(frozen=True)
class Inspection(Shown):
    """What is in a graph, what was dropped, and what leaks into the test."""

    shown_by: ClassVar = "splime.report.tables:inspection_tables"

    graph: TemporalGraph
    statistics: Statistics
    leaks: leakage.LeakReport

    def __repr__(self) -> str:
        return f"Inspection({self.graph!r})"

    def to_json(self) -> dict[str, Any]:
        """The same as plain lists and dictionaries."""
        return {
            "statistics": self.statistics.to_json(),
            "reading": self.graph.reading.to_json(),
            "leakage": self.leaks.to_json(),
        }


@checked
def inspect(data: Any, **reading: Unpack[Reading]) -> Inspection:
    """What is in a graph, what was dropped when it was read, and what leaks into the test.

    Args:
        data: a graph, or what `splime.load` reads one from.
        reading: options of `splime.read`.

    >>> str(inspect("demo").leaks.in_train["test"])
    '176 (17.85 %)'
    """
    graph = _graph(data, reading)
    return Inspection(graph, describe(graph), leakage.report(graph))


@dataclass(frozen=True)
class Transformed(Shown):
    """The triples that cuts made of a graph."""

    shown_by: ClassVar = "splime.report.tables:transformed_tables"

    graph: TemporalGraph
    whole: StaticGraph
    """All triples."""
    removed: leakage.Filtered
    """Those that the leak filter took."""
    static: StaticGraph
    """Those that are left."""

    def __repr__(self) -> str:
        return f"Transformed({self.static!r}; {self.removed})"


@checked
def transform(
    data: Any,
    method: Method | str,
    out: str | Path | None = None,
    *,
    format: str = "parquet",
    filter: str = "none",
    distinct: bool = False,
    overwrite: bool = False,
    progress: Progress = silent,
    **reading: Unpack[Reading],
) -> Transformed:
    """Cut predicates in time, and write the triples that any static model can be trained on.

    Args:
        data: a graph, or what `splime.load` reads one from.
        method: what chooses the cuts, or its name, for its standard parameters.
        out: the folder to write the triples and the cuts to; by default nothing is written.
        format: what to write: parquet, tsv, libkge, dglke or ntriples.
        filter: the leak filter to apply to the triples: none, inter, intra or both.
        distinct: keep repeated triples of a split only once.
        overwrite: replace the folder if it exists.
        progress: is told of the cuts; for a bar, see `splime.progress_bar`.
        reading: options of `splime.read`.

    >>> str(transform("demo", "split", filter="inter").removed)
    'filter inter removed 0 of train, ... of valid, ... of test'
    """
    # Mistakes are errors before the facts are read.
    chosen = standard_method(method) if isinstance(method, str) else method
    check_name("format", format, FORMATS)
    check_name("filter", filter, leakage.FILTERS)
    if out is not None:
        check_folder(out, overwrite=overwrite)
    graph = _graph(data, reading)
    whole = chosen.fit_transform(graph, progress=progress)
    static, removed = whole.filter(cast(leakage.LeakFilter, filter))
    if distinct:
        static, _ = static.distinct()
    if out is not None:
        cuts = whole.segmentation
        export(
            static,
            out,
            format,
            overwrite=overwrite,
            also=lambda folder: save_segmentation(cuts, folder / SEGMENTATION),
        )
    return Transformed(graph, whole, removed, static)


def _graph(data: Any, reading: Any) -> TemporalGraph:
    if isinstance(data, TemporalGraph) and not reading:
        return data
    return load(data, **reading)
