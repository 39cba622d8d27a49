"""Transform a file of facts that need not fit into memory."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from splime.errors import DataError, SplimeError, UsageError
from splime.graph import SPLITS, SplitName
from splime.io.files import working_folder
from splime.io.options import OWN_BEGIN, OWN_END, ReadOptions
from splime.io.parquet import FactFile, kinds_of_times
from splime.io.sealed import check_seal
from splime.methods.base import Known, Method
from splime.progress import Progress, silent
from splime.reading import LOG, Reading, Source
from splime.segmentation import Scopes, Segmentation
from splime.splitting import check_shares, time_limits
from splime.streaming.duplicates import files_for, with_duplicates, write_fingerprints
from splime.streaming.passes import Clock, Frame, count, cut, join, settle, spans, summed
from splime.timeline import Timeline
from splime.times import Kinds, infer_granularity, tick_range

Engine: TypeAlias = Callable[..., Iterator[Any]]
"""Called like `map`; function, arguments and results may have to go to another process."""
in_one_process: Engine = map
"""One part after the other."""

_LARGE = 5_000_000
_BATCH = 1 << 20
# With several processes: how many facts a part has, at most.
_PART = 10_000_000
_IN_MEMORY = "; splime.load and `splime transform --no-stream` load the facts into memory"


def in_processes(workers: int) -> Engine:
    """Several parts at a time, each in a process of this machine."""
    if workers < 1:
        raise UsageError(f"there must be at least 1 process, not {workers}")

    def engine(function: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import get_context

        # Started anew: a fork of a process with threads, which Arrow has, can hang.
        pool = ProcessPoolExecutor(workers, get_context("spawn"))
        try:
            yield from pool.map(function, *arguments)
        except BrokenProcessPool:
            raise SplimeError(
                "a worker process ended before its work was done; if it ran out of memory, take"
                " fewer processes or smaller batches"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)

    return engine


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
    """Of each step: reading times, finding duplicates, counting, choosing and applying."""


def is_large(path: Path, method: Method) -> bool:
    """Whether a path is a Parquet file of more than 5 million rows, and the method can stream."""
    streams = not method.needs_facts and method.target == "predicates"
    if not streams or path.suffix.lower() != ".parquet":
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
    batch_rows: int | None = None,
    engine: Engine = in_one_process,
    progress: Progress = silent,
    **reading: Any,
) -> StreamResult:
    """Transform a Parquet file of facts into one of triples, without ever holding all of either.

    The table is the one that `splime.export` writes as parquet of
    `method.fit_transform(splime.read(source, **reading))`, whatever the engine. What cannot be
    streamed is an error that says why.

    Not all options of `splime.read` can be chosen:

    - `columns`, `granularity`, `first`, `last` (times, not "end" and "begin"), `keep_duplicates`,
      `allow_loss`, `split="none"`, `bucket` and `bucket_on` work as there.
    - `split="time"` (with `valid` and `test`) needs `allow_unseen=True`: which names train knows is
      not collected. The default, `split="random"`, is refused: it is drawn from a permutation of
      all facts, which would have to be in memory.
    - `entities`, `predicates`, `times`, `origin` and `end_before_begin` other than "drop" are
      refused.
    - In a saved graph only the buckets can be chosen, as in `splime.read`.

    In memory are a few batches, the predicates, the timestamps, and a dozen numbers for each
    predicate at each timestamp; entities are passed through and never collected. Finding
    duplicates is a pass of its own, which writes 16 bytes a fact to a folder beside the target
    and keeps 8 for each duplicate; saved graphs, and `keep_duplicates=True`, do without. Buckets
    and a split by time need a second pass to count; buckets keep three numbers for each pair of
    begin and end that occurs.

    Args:
        source: the file of facts, with columns as `splime.read` takes them.
        target: the file to write; it must not exist.
        method: one that needs only counts, with predicates as its target.
        batch_rows: how many facts to hold at once; about a million by default.
        engine: what maps over the parts of the source, `in_one_process` or `in_processes(4)`.
        progress: gets what is being done, how many facts are done, and how many there are.
        reading: options of `splime.read`.
    """
    options = ReadOptions.of(reading)
    batch_rows = _BATCH if batch_rows is None else batch_rows
    file = FactFile(source, options.columns)
    _check(file, target, method, batch_rows, options)
    check_seal(source)
    rows, graph = file.rows, file.graph
    parts = file.parts(rows if engine is in_one_process else _PART, batch_rows)
    seconds: dict[str, float] = {}

    def over(what: str, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """Map over the parts; a list has an argument for each, anything else is for all."""
        given = [each if isinstance(each, list) else repeat(each) for each in arguments]
        if engine is in_one_process:
            tell = partial(function, progress=lambda _, done: progress(what, done, rows))
            yield from engine(tell, parts, *given)
            return
        for part, result in zip(parts, engine(function, parts, *given), strict=True):
            progress(what, part.fact + part.rows, rows)
            yield result

    # All times decide how one of them is read; splime's own files have times of one kind.
    forced, among = options.granularity or file.granularity, None
    if file.granularity is None:
        with _timed(seconds, what := "reading times"):
            among = sum(over(what, kinds_of_times, forced), Kinds())
    parts = [replace(part, forced=forced, among=among) for part in parts]
    granularity = forced or infer_granularity(among or Kinds())
    first, last = (
        None if when is None else tick_range(when, granularity)[side]
        for side, when in enumerate((options.first, options.last))
    )
    frame = Frame(granularity, method.fit_on == "all", graph, first, last)
    with working_folder(target) as folder:
        if graph is None and not options.keep_duplicates:
            with _timed(seconds, what := "finding duplicates"):
                files = files_for(rows)
                for _ in over(what, write_fingerprints, granularity, files, folder):
                    pass
                parts = with_duplicates(parts, files, folder)
        with _timed(seconds, "counting"):
            # New buckets are made from the ticks of facts, not from the timeline of a saved graph.
            timeline = graph.timestamps if graph and options.bucket is None else None
            own = Clock(timeline.starts, timeline) if timeline else None
            tallies = over("counting", count, frame, own)
            clock, predicates, counts, begins = settle(tallies, frame, own, source)
            if options.split == "time":
                limits = time_limits(clock.ticks, begins, granularity, **_shares(options))
                valid_at, test_at = np.searchsorted(clock.ticks, limits).tolist()
                clock = replace(clock, split_at=(valid_at, test_at))
            if options.bucket is not None:
                on_all = options.bucket_on != "train"
                begin, end, facts = summed(over("counting", spans, clock, on_all))
                if not len(facts):
                    raise UsageError("there are no facts to make buckets from")
                ticks = Timeline.of(np.concatenate([begin, end]), granularity)
                buckets = ticks.bucket(begin, end, min_facts=options.bucket, facts=facts)
                clock = replace(clock, timeline=buckets)
            if options.split == "time" or options.bucket is not None:
                tallies = over("counting", count, frame, clock)
                clock, predicates, counts, _ = settle(tallies, frame, clock, source)
        with _timed(seconds, "choosing"):
            none = np.empty(0, np.int32)
            cuts = method.choose(Known(counts, *[none] * 5), progress=progress)
            scopes = Scopes.of(predicates, clock.timeline, cuts, counts)
            scopes.check_distinct()
        with _timed(seconds, "applying"):
            targets = [folder / f"{part.fact}.parquet" for part in parts]
            if len(parts) == 1:
                targets = [target]
            results = [*over("applying", cut, clock, scopes, targets)]
            if len(parts) > 1:
                join(targets, [totals[0] for totals, _ in results], target)
    facts_made, triples_made, rows_read = sum(totals for totals, _ in results).tolist()
    dropped = dict(sum((dropped for _, dropped in results), Counter()))
    read = Reading(
        (Source(source.name, None, rows, sum(facts_made), dropped),),
        emptied=tuple(
            split
            for split, had, has in zip(SPLITS, rows_read, facts_made, strict=True)
            if had and not has
        ),
    )
    if not options.allow_loss:
        try:
            read.check()
        except DataError:
            target.unlink()
            raise
    LOG.info("%s: %s", source.name, read)
    return StreamResult(
        rows,
        dict(zip(SPLITS, facts_made, strict=True)),
        dropped,
        dict(zip(SPLITS, triples_made, strict=True)),
        Segmentation(scopes, None, method.parameters()),
        seconds,
    )


@contextmanager
def _timed(seconds: dict[str, float], what: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[what] = time.perf_counter() - started


def _shares(options: ReadOptions) -> dict[str, float]:
    return {"valid": 0.1, "test": 0.1, **options.chosen("valid", "test")}


def _check(
    file: FactFile, target: Path, method: Method, batch_rows: int, options: ReadOptions
) -> None:
    """An error for what cannot be streamed."""
    refused = options.chosen(
        "entities", "predicates", "times", "origin", "unknown_time", "without_time"
    )
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
            f"{type(method).__name__} needs the facts themselves, not only how many there are, so"
            f" it cannot stream{_IN_MEMORY}"
        )
    if method.target != "predicates":
        raise UsageError(f"streaming cuts predicates only, not {method.target}{_IN_MEMORY}")
    if batch_rows < 1:
        raise UsageError(f"a batch has at least 1 row, not {batch_rows}")
    if target.exists():
        raise UsageError(f"{target} exists already; delete it first, or choose another name")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"{target.parent}: there is no such folder to write to")
    has_splits = "split" in file.names
    options.check_effect(file.path, saved=file.graph is not None, has_splits=has_splits)
    if has_splits:
        if options.split is not None:
            raise UsageError(f"{file.path}: streaming keeps the splits of a file{_IN_MEMORY}")
        return
    check_shares(**_shares(options))
    if options.split == "none":
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
