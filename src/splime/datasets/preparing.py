"""Facts before a model sees them: `inspect` shows what they are, `transform` cuts their time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from splime import leakage, streaming
from splime.datasets.loading import DATASETS, load
from splime.errors import UsageError, check_name
from splime.exports import FORMATS, check_folder, export
from splime.graph import TemporalGraph
from splime.io import save_segmentation
from splime.io.files import new_folder
from splime.methods import Method, standard_method
from splime.progress import Progress, silent
from splime.segmentation import Segmentation
from splime.shown import Shown
from splime.static import StaticGraph
from splime.statistics import Statistics, describe

if TYPE_CHECKING:
    from splime.keywords import Reading

SEGMENTATION = "segmentation.json"


@dataclass(frozen=True)
class Inspection(Shown):
    """What is in a graph, what was dropped, and what leaks into the test."""

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


def inspect(data: Any, **reading: Unpack[Reading]) -> Inspection:
    """What is in a graph, what was dropped when it was read, and what leaks into the test.

    Args:
        data: a graph, or what `splime.load` reads one from.
        reading: options of `splime.read`.

    >>> str(inspect("demo").leaks.in_train["test"])
    '176 (17.85 %)'
    """
    graph = data if isinstance(data, TemporalGraph) and not reading else load(data, **reading)
    return Inspection(graph, describe(graph), leakage.report(graph))


@dataclass(frozen=True)
class Transformed(Shown):
    """A graph of facts, and the triples that cuts made of it."""

    graph: TemporalGraph
    whole: StaticGraph
    """All triples."""
    removed: leakage.Filtered
    """How many triples the leak filter removed."""
    static: StaticGraph
    """The triples that are left."""

    @property
    def segmentation(self) -> Segmentation:
        """The cuts."""
        return self.whole.segmentation

    def to_json(self) -> dict[str, Any]:
        """How many facts and triples each split has, as plain values."""
        distinct, _ = self.static.distinct()
        facts = {split: len(part) for split, part in self.graph.splits()}
        kinds = {"triples": self.whole, "left": self.static, "distinct": distinct}
        sizes = {"facts": facts} | {
            kind: {split: len(part) for split, part in of.splits()} for kind, of in kinds.items()
        }
        removed = {"filter": self.removed.kind, "removed": {**self.removed.removed}}
        return sizes | removed | {"scoped_predicates": len(self.segmentation.predicates)}

    def __repr__(self) -> str:
        return f"Transformed({self.static!r}; {self.removed})"


def transform(
    data: Any,
    method: Method | str,
    out: str | Path | None = None,
    *,
    format: str = "parquet",
    filter: str = "none",
    distinct: bool = False,
    overwrite: bool = False,
    stream: bool | None = None,
    engine: str | None = None,
    workers: int | None = None,
    address: str | None = None,
    progress: Progress = silent,
    **reading: Unpack[Reading],
) -> Transformed | streaming.StreamResult:
    """Cut predicates in time, and write the triples that any static model can be trained on.

    Parquet of more than 5 million rows is streamed if the triples are written as Parquet: the facts
    are never all in memory, and the result is a `StreamResult`, which holds numbers instead of
    triples. Some options cannot be streamed; the error says which, and `stream=False` loads the
    facts.

    Args:
        data: a graph, or what `splime.load` reads one from.
        method: what chooses the cuts, or its name, for its standard parameters.
        out: the folder to write the triples and the cuts to; by default nothing is written.
        format: what to write: parquet, tsv, libkge, dglke or ntriples.
        filter: the leak filter to apply to the triples: none, inter, intra or both.
        distinct: keep repeated triples of a split only once.
        overwrite: replace the folder if it exists.
        stream: stream Parquet in this process, to one file; False loads the facts.
        engine: stream Parquet part by part on many workers, to many files: `processes` of this
            machine (the default for more than 10 million rows) or `ray`. The same call again goes
            on where it was interrupted. A script that starts processes needs
            `if __name__ == "__main__":`.
        workers: how many parts to work on at once; by default one for each processor.
        address: that of a Ray cluster; by default RAY_ADDRESS, or else one is started here.
        progress: is called with what is being done; for a bar, see `splime.progress_bar`.
        reading: options of `splime.read`.

    >>> str(transform("demo", "split", filter="inter").removed)
    'filter inter removed 0 of train, ... of valid, ... of test'
    """
    # Mistakes are errors before the facts are read.
    chosen = standard_method(method) if isinstance(method, str) else method
    check_name("format", format, FORMATS)
    check_name("filter", filter, leakage.FILTERS)
    writes_parquet = format == "parquet" and filter == "none" and not distinct
    parts = _stream_parts(data, chosen, stream, engine, writes=out is not None and writes_parquet)
    if engine is None and (workers is not None or address is not None):
        raise UsageError(
            "workers and address (--workers, --address) need an engine: --engine processes or"
            " --engine ray"
        )
    if parts is not None and out is not None:
        options: dict[str, Any] = {"overwrite": overwrite, "progress": progress, **reading}
        if not parts:
            return _stream_to_folder(data, chosen, Path(out), **options)
        options |= {"engine": engine or "processes", "workers": workers, "address": address}
        return streaming.transform_parts(data, out, chosen, **options)
    if out is not None:
        check_folder(out, overwrite=overwrite)
    graph = data
    if reading or not isinstance(data, TemporalGraph):
        progress("reading", 0)
        graph = load(data, **reading)
        progress("reading", len(graph), len(graph))
    whole = chosen.fit_transform(graph, progress=progress)
    static, removed = whole.filter(cast(leakage.LeakFilter, filter))
    if distinct:
        static, _ = static.distinct()
    if out is not None:
        export(
            static,
            out,
            format,
            overwrite=overwrite,
            also=lambda folder: save_segmentation(whole.segmentation, folder / SEGMENTATION),
        )
    return Transformed(graph, whole, removed, static)


def _stream_parts(
    data: Any, method: Method, stream: bool | None, engine: str | None, *, writes: bool
) -> bool | None:
    """Whether to stream in parts (True) or to one file (False); None: load the facts.

    `writes` says whether the result is what streaming can write.
    """
    if engine is not None and stream is not None:
        raise UsageError(
            "an engine (--engine) writes a folder of parts, stream (--stream) one file; choose one"
            " of them"
        )
    is_file = isinstance(data, str | PathLike) and data not in DATASETS
    if engine is None and not stream:
        possible = stream is None and writes and is_file
        rows = streaming.rows_to_stream(data, method) if possible else 0
        return rows > streaming.PART if rows > streaming.LARGE else None
    if not writes:
        raise UsageError(
            "streaming writes Parquet to a folder, without a leak filter (--filter) and --distinct;"
            " stream=False (--no-stream) loads the facts into memory"
        )
    if not is_file:
        raise UsageError(
            "streaming reads Parquet files; stream=False (--no-stream) loads other facts into"
            " memory"
        )
    return engine is not None


def _stream_to_folder(
    source: str | PathLike[str], method: Method, out: Path, *, overwrite: bool, **options: Any
) -> streaming.StreamResult:
    with new_folder(out, partial(check_folder, out, overwrite=overwrite)) as folder:
        target = folder / "triples.parquet"
        result = streaming.stream_transform(source, target, method, **options)
        save_segmentation(result.segmentation, folder / SEGMENTATION)
    return result
