"""Transform a file of facts that need not fit into memory."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from splime.errors import SplimeError, UsageError
from splime.graph import SPLITS, SplitName
from splime.io.options import OWN_BEGIN, OWN_END, ReadOptions
from splime.io.parquet import FactFile, Part, find_granularity
from splime.methods.base import Method
from splime.progress import Progress, silent
from splime.segmentation import Segmentation
from splime.streaming.cutting import Plan, Receipt, cut, join
from splime.streaming.engines import Engine, in_one_process
from splime.streaming.repeats import files_for, without_repeats, write_fingerprints
from splime.streaming.tally import (
    Clock,
    Counted,
    Frame,
    bucket,
    choose,
    count,
    settle,
    spans,
    split_by_time,
    summed,
)
from splime.times import tick_range

_LARGE = 5_000_000
# With several processes a part has about so many facts.
_PART = 10_000_000
_IN_MEMORY = "; splime.load and `splime transform --no-stream` load the facts into memory"


@dataclass(frozen=True)
class StreamResult:
    """What became of the facts of a file."""

    rows: int
    facts: Mapping[SplitName, int]
    dropped: Mapping[str, int]
    """Rows that are no facts, by reason."""
    triples: Mapping[SplitName, int]
    segmentation: Segmentation
    seconds: Mapping[str, float]
    """Of looking for duplicates, counting, choosing and applying."""


def is_large(path: Path, method: Method) -> bool:
    """Whether a path is a Parquet file of more than 5 million rows, and the method can stream."""
    if method.needs_facts or method.target != "predicates":
        return False
    if path.suffix.lower() != ".parquet" or not path.is_file():
        return False
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return bool(pq.read_metadata(path).num_rows > _LARGE)
    except (pa.ArrowException, OSError):
        return False  # reading it will say what is wrong


def stream_transform(
    source: Path,
    target: Path,
    method: Method,
    *,
    batch_rows: int = 1 << 20,
    engine: Engine = in_one_process,
    progress: Progress = silent,
    **reading: Any,
) -> StreamResult:
    """Transform a Parquet file of facts into one of triples, without ever holding all of either.

    The triples are those of `method.fit_transform(splime.read(source, **reading))`, in the order of
    the rows, whatever the engine; what cannot be had so is an error that says why. The columns are
    split, subject, predicate (scoped), object, fact (its row in the source, from 0) and overlap.

    What holds of the options of `splime.read`:

    - `columns`, `granularity`, `first`, `last` (times, not "end" and "begin"), `keep_duplicates`,
      `split="none"`, `bucket` and `bucket_on` are as there.
    - `split="time"` (with `valid` and `test`) needs `allow_unseen=True`: which names train knows is
      not collected. The default, `split="random"`, is refused: it is drawn from a permutation of
      all facts, which would have to be in memory.
    - `entities`, `predicates` and `end_before_begin` other than "drop" are refused.
    - In a saved graph all but the buckets is settled, as in `splime.read`.

    Two exceptions to "the same": times as text are parsed batch by batch, so whether one with a
    time zone among times without, or a long number among dates, is odd, is decided by the others of
    the batch; and without a `granularity`, only the first million different times decide it.

    In memory are a few batches, the predicates, the timestamps, and a dozen numbers for each
    predicate at each timestamp; entities are passed through and never collected. Looking for
    duplicates is a pass of its own, which writes 16 bytes a fact to a folder beside the target
    and keeps 8 for each duplicate; saved graphs, and `keep_duplicates=True`, do without. Buckets
    and a split by time need a second pass to count; buckets keep three numbers for each pair of
    begin and end that occurs.

    Args:
        source: the file of facts, with columns as `splime.read` takes them.
        target: the file to write; it must not exist.
        method: one that needs only counts, with predicates as its target.
        batch_rows: how many facts to hold at once.
        engine: what maps over the parts of the source, `in_one_process` or `in_processes(4)`.
        progress: gets what is being done, how many facts are done, and how many there are.
        reading: options of `splime.read`.
    """
    options = ReadOptions.of(reading)
    _check(method, target, batch_rows, options)
    with FactFile(source, options.columns) as file:
        _check_splits(file, options)
        rows, keeps_all = file.rows, file.graph is not None or bool(options.keep_duplicates)
        parts = file.parts(rows if engine is in_one_process else _PART, batch_rows, options.columns)
        frame = _frame(file, parts, method, options)

    def over(what: str, function: Callable[..., Any], *more: Any) -> Iterator[Any]:
        """Map over the parts; all that is given beside them is the same for each, but for lists."""
        given = [each if isinstance(each, list) else repeat(each) for each in more]
        if engine is in_one_process:
            tell = partial(function, progress=lambda _, done: progress(what, done, rows))
            yield from engine(tell, parts, *given)
            return
        for part, result in zip(parts, engine(function, parts, *given), strict=True):
            progress(what, part.fact + part.rows, rows)
            yield result

    def counted(frame: Frame) -> Counted:
        return settle(reduce(operator.add, over("counting", count, frame)), frame, source)

    seconds: dict[str, float] = {}
    with _folder_beside(target) as folder:
        if not keeps_all:
            with _timed(seconds, "looking for duplicates"):
                files = files_for(rows)
                for _ in over(
                    "looking for duplicates", write_fingerprints, frame.granularity, files, folder
                ):
                    pass
                parts = without_repeats(parts, files, folder)
        with _timed(seconds, "counting"):
            known = counted(frame)
            if options.split == "time":
                shares = options.chosen("valid", "test")
                frame = split_by_time(known, shares.get("valid", 0.1), shares.get("test", 0.1))
            if options.bucket is not None:
                frame = frame if frame.split_at else known.frame
                others = options.bucket_on != "train"
                pairs = summed(over("counting", spans, frame, (True, others, others)))
                frame = bucket(frame, pairs, options.bucket)
            if options.split == "time" or options.bucket is not None:
                known = counted(frame)
        with _timed(seconds, "choosing"):
            segmentation = choose(method, known, progress)
            segmentation.predicates.check_distinct()
        with _timed(seconds, "applying"):
            plan = Plan(known.frame, segmentation.predicates)
            whole = len(parts) == 1
            targets = [target if whole else folder / f"{part.fact}.parquet" for part in parts]
            receipt: Receipt = reduce(operator.add, over("applying", cut, plan, targets))
            if not whole:
                join(targets, target)
    return StreamResult(
        rows,
        dict(zip(SPLITS, receipt.facts.tolist(), strict=True)),
        dict(receipt.dropped),
        dict(zip(SPLITS, receipt.triples.tolist(), strict=True)),
        segmentation,
        seconds,
    )


@contextmanager
def _folder_beside(target: Path) -> Iterator[Path]:
    """A folder for what is needed until the target is written."""
    try:
        with TemporaryDirectory(".part", f".{target.name}.", target.absolute().parent) as folder:
            yield Path(folder)
    except OSError as error:
        raise SplimeError(f"{target}: cannot be written: {error}") from None


@contextmanager
def _timed(seconds: dict[str, float], what: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[what] = time.perf_counter() - started


def _check(method: Method, target: Path, batch_rows: int, options: ReadOptions) -> None:
    """An error for what cannot be streamed, before any file is opened."""
    name = type(method).__name__
    refused = options.chosen("entities", "predicates")
    if options.end_before_begin not in (None, "drop"):
        refused["end_before_begin"] = options.end_before_begin
    for limit, own in (("first", OWN_END), ("last", OWN_BEGIN)):
        if getattr(options, limit) == own:
            refused[limit] = own
    if refused:
        words = ", ".join(f"{option} = {value}" for option, value in refused.items())
        raise UsageError(f"streaming cannot read with {words}{_IN_MEMORY}")
    if method.needs_facts:
        raise UsageError(
            f"{name} needs the facts themselves, not only how many there are, so it cannot stream"
            + _IN_MEMORY
        )
    if method.target != "predicates":
        raise UsageError(f"streaming cuts predicates only, not {method.target}{_IN_MEMORY}")
    if batch_rows < 1:
        raise UsageError(f"a batch has at least 1 row, not {batch_rows}")
    if target.exists():
        raise UsageError(f"{target} exists already; delete it first, or choose another name")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"{target.parent}: there is no such folder to write to")


def _check_splits(file: FactFile, options: ReadOptions) -> None:
    """An error where the splits would be other ones than those of the loaded facts."""
    options.check_effect(file.path, saved=file.graph is not None, has_splits=file.has_splits)
    if file.has_splits or options.split == "none":
        return
    if options.split != "time":
        raise UsageError(
            f"{file.path}: has no column of splits, and a random split of facts, the default, needs"
            " all of them in memory; choose split='none' (--split none: all in train) or 'time'"
            + _IN_MEMORY
        )
    if not options.allow_unseen:
        raise UsageError(
            f"{file.path}: a split by time drops facts with names that train does not know, and"
            " streaming does not collect the names; keep those facts with allow_unseen=True"
            " (--allow-unseen)" + _IN_MEMORY
        )


def _frame(file: FactFile, parts: Sequence[Part], method: Method, options: ReadOptions) -> Frame:
    """What a person says, what the file says about itself, and what its times look like."""
    others = method.fit_on == "all"
    decide = (True, others, others)
    if (graph := file.graph) is not None:
        limits = graph.limits
        frame = Frame(graph.granularity, decide, graph, limits.get("first"), limits.get("last"))
        if options.bucket is not None:
            return frame  # buckets are made from the ticks of facts, not from other buckets
        timeline = graph.timestamps
        first, last = timeline.index(np.array([limits.get("first", 0), limits.get("last", 0)]))
        return replace(frame, clock=Clock(timeline.starts, int(first), int(last), timeline))
    granularity = options.granularity or file.granularity or find_granularity(file, parts)
    return Frame(
        granularity,
        decide,
        first=None if options.first is None else tick_range(options.first, granularity)[0],
        last=None if options.last is None else tick_range(options.last, granularity)[1],
    )
