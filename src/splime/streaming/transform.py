"""Transform a file of facts that need not fit into memory."""

from __future__ import annotations

import operator
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from splime.io.layout import check_columns
from splime.io.parquet import FactFile, Part, find_granularity
from splime.io.saved import damages
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
    Tally,
    bucket,
    choose,
    count,
    settle,
    split_by_time,
)
from splime.times import check_granularity, tick_range

_LARGE = 5_000_000
# With several processes a part has about so many facts.
_PART = 10_000_000
_HOW_TO_SPLIT = ("split", "valid", "test", "allow_unseen")
_SETTLED = (*_HOW_TO_SPLIT, "columns", "granularity", "first", "last", "keep_duplicates")
_OPTIONS = (*_SETTLED, "bucket", "bucket_on")
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
    given = _given(reading)
    _check(method, target, batch_rows)
    columns = check_columns(given.get("columns"))
    with FactFile(source, columns) as file:
        rows = file.rows
        _check_reading(file, given)
        parts = file.parts(rows if engine is in_one_process else _PART, batch_rows, columns)
        frame = _frame(file, parts, method, given)
        keeps_all = file.graph is not None or bool(given.get("keep_duplicates"))

    def over(what: str, function: Callable[..., Any], *more: Iterable[Any]) -> Iterator[Any]:
        """Map over the parts, and tell how far that is."""

        def done(rows_done: int) -> None:
            progress(what, rows_done, rows)

        if engine is in_one_process:
            yield from engine(partial(function, done=done), parts, *more)
            return
        for part, result in zip(parts, engine(function, parts, *more), strict=True):
            done(part.fact + part.rows)
            yield result

    def tallied() -> Tally:
        return reduce(operator.add, over("counting", count, repeat(frame)))

    seconds: dict[str, float] = {}
    with _folder_beside(target) as folder:
        if not keeps_all:
            with _timed(seconds, "duplicates"):
                files = files_for(rows)
                same = (repeat(frame.granularity), repeat(files), repeat(folder))
                deque(over("looking for duplicates", write_fingerprints, *same), maxlen=0)
                parts = without_repeats(parts, files, folder)
        with _timed(seconds, "counting"):
            tally = tallied()
            counted = settle(tally, frame, source)
            if refined := _refined(tally, counted, given):
                frame = refined
                counted = settle(tallied(), frame, source)
        with _timed(seconds, "choosing"):
            segmentation = choose(method, counted, progress)
            segmentation.predicates.check_distinct()
        with _timed(seconds, "applying"):
            plan = Plan(counted.frame, segmentation.predicates)
            targets = [folder / f"{part.fact}.parquet" for part in parts]
            if len(parts) == 1:
                targets = [target]
            receipt: Receipt = reduce(operator.add, over("applying", cut, repeat(plan), targets))
            if len(parts) > 1:
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
        with TemporaryDirectory(
            prefix=f".{target.name}.", suffix=".part", dir=target.absolute().parent
        ) as folder:
            yield Path(folder)
    except OSError as error:
        raise SplimeError(f"{target}: cannot be written: {error}") from None


@contextmanager
def _timed(seconds: dict[str, float], what: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[what] = time.perf_counter() - started


def _given(reading: Mapping[str, Any]) -> dict[str, Any]:
    """The options of reading that are chosen; one that streaming cannot do is an error."""
    given = {name: value for name, value in reading.items() if value is not None}
    if given.get("end_before_begin") == "drop":
        del given["end_before_begin"]
    if unknown := sorted(given.keys() - set(_OPTIONS)):
        raise UsageError(f"streaming does not know {', '.join(unknown)}{_IN_MEMORY}")
    for limit, own in (("first", "end"), ("last", "begin")):
        if given.get(limit) == own:
            raise UsageError(f"streaming does not know {limit}={own!r}, only a time{_IN_MEMORY}")
    if given.get("bucket_on", "all") not in ("train", "all"):
        raise UsageError(f"bucket_on is train or all, not {given['bucket_on']!r}")
    if "bucket_on" in given and "bucket" not in given:
        raise UsageError("bucket_on says whose facts decide the buckets; it needs bucket")
    return given


def _check_reading(file: FactFile, given: Mapping[str, Any]) -> None:
    """An error where the triples would be other ones than those of the loaded facts."""
    if file.graph is not None:
        settled, why = _SETTLED, "it is a saved graph, in which that is settled"
    elif file.has_splits:
        settled, why = _HOW_TO_SPLIT, "it has splits of its own"
    else:
        settled, why = (), ""
    if refused := [name for name in settled if name in given]:
        raise UsageError(f"{file.path}: {', '.join(refused)} cannot be chosen: {why}")
    if file.has_splits:
        return
    split = given.get("split", "random")
    if split == "random":
        raise UsageError(
            f"{file.path}: has no column of splits, and a random split of facts, the default, needs"
            " all of them in memory; choose split='none' (--split none: all in train) or 'time'"
            + _IN_MEMORY
        )
    if split == "time" and not given.get("allow_unseen"):
        raise UsageError(
            f"{file.path}: a split by time drops facts with names that train does not know, and"
            " streaming does not collect the names; keep those facts with allow_unseen=True"
            " (--allow-unseen)" + _IN_MEMORY
        )
    if split not in ("time", "none"):
        raise UsageError(f"unknown way to split {split!r}; it is random, time or none")


def _frame(
    file: FactFile, parts: Sequence[Part], method: Method, given: Mapping[str, Any]
) -> Frame:
    """What a person says, what the file says about itself, and what its times look like."""
    others = method.fit_on == "all"
    frame = Frame("year", (True, others, others))
    if "bucket" in given:
        others = given.get("bucket_on") != "train"
        frame = replace(frame, buckets_from=(True, others, others))
    if (graph := file.graph) is not None:
        first, last = graph.limits.get("first"), graph.limits.get("last")
        frame = replace(frame, granularity=graph.granularity, graph=graph, first=first, last=last)
        if "bucket" in given:
            return frame  # buckets are made from the ticks of facts, not from other buckets
        timeline = graph.timestamps
        limits = timeline.index(np.array([first or 0, last or 0]))
        clock = Clock(timeline.starts, *limits.tolist())
        return replace(frame, clock=clock, timeline=timeline)
    granularity = given.get("granularity")
    if granularity is None and file.granularity is not None:
        granularity = file.granularity
        with damages(file.path):
            check_granularity(granularity)
    granularity = granularity or find_granularity(file, parts)
    check_granularity(granularity)
    return replace(
        frame,
        granularity=granularity,
        first=tick_range(given["first"], granularity)[0] if "first" in given else None,
        last=tick_range(given["last"], granularity)[1] if "last" in given else None,
    )


def _refined(tally: Tally, counted: Counted, given: Mapping[str, Any]) -> Frame | None:
    """The frame with which facts are counted again, for buckets and a split by time."""
    frame = counted.frame
    if by_time := given.get("split") == "time":
        frame = split_by_time(counted, given.get("valid", 0.1), given.get("test", 0.1))
    if "bucket" in given:
        train_only = given.get("bucket_on") == "train"
        return bucket(tally.spans, frame, given["bucket"], train_only=train_only)
    return frame if by_time else None


def _check(method: Method, target: Path, batch_rows: int) -> None:
    name = type(method).__name__
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
