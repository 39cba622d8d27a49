"""Transform facts that need not fit into memory: in this process, or part by part on many."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from splime.errors import DataError, UsageError
from splime.graph import SPLITS, SplitName
from splime.io.files import working_folder
from splime.io.options import OWN_BEGIN, OWN_END, ReadOptions
from splime.io.parquet import FactFile, Part, kinds_of_times
from splime.io.parts import check_whole, files_of, has_parts, is_triples
from splime.methods.base import Known, Method
from splime.progress import Progress, silent
from splime.reading import LOG, Reading, Source
from splime.segmentation import Scopes, Segmentation
from splime.splitting import check_shares, time_limits
from splime.streaming.duplicates import (
    duplicates_in,
    files_for,
    with_duplicates,
    write_fingerprints,
)
from splime.streaming.passes import (
    Clock,
    Cutting,
    Frame,
    Made,
    count,
    settle,
    spans,
    summed,
    triples_of,
    write_all,
)
from splime.timeline import Timeline
from splime.times import Ints, Kinds, infer_granularity, tick_range

LARGE = 5_000_000
"""Files of more rows are streamed, unless somebody says something else."""
PART = 10_000_000
"""How many facts a part has, about; sources of more facts are for several processes."""
_BATCH = 1 << 20
_IN_MEMORY = "; splime.load and `splime transform --no-stream` load the facts into memory"


@dataclass(frozen=True)
class StreamResult:
    """What became of the facts of a source."""

    rows: int
    facts: Mapping[SplitName, int]
    dropped: Mapping[str, int]
    """Rows that are no facts, by reason."""
    triples: Mapping[SplitName, int]
    segmentation: Segmentation
    seconds: Mapping[str, float]
    """Of each step: reading times, finding duplicates, counting, choosing and applying."""


class Engine(Protocol):
    """What does the same with each part, or each number; results come in any order."""

    def __call__(
        self, what: str, function: Callable[..., Any], tasks: Sequence[Any]
    ) -> Iterator[tuple[int, Any]]:
        """Give the number of a task, and its result."""


def rows_to_stream(source: str | PathLike[str], method: Method) -> int:
    """How many rows a source has, if it is one of Parquet and the method can stream; else 0."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if method.needs_facts or method.target != "predicates":
        return 0
    if not has_parts(source) and Path(source).suffix.lower() != ".parquet":
        return 0
    try:
        return sum(pq.read_metadata(file).num_rows for file in files_of(source))
    except (pa.ArrowException, OSError, DataError):
        return 0  # reading it will say what is wrong


def stream_transform(
    source: str | PathLike[str],
    target: Path,
    method: Method,
    *,
    batch_rows: int | None = None,
    progress: Progress = silent,
    **reading: Any,
) -> StreamResult:
    """Transform Parquet files of facts into one of triples, without ever holding all of either.

    The table is the one that `splime.export` writes as parquet of
    `method.fit_transform(splime.read(source, **reading))`. What cannot be streamed is an error that
    says why.

    Not all options of `splime.read` can be chosen:

    - `columns`, `granularity`, `first`, `last` (times, not "end" and "begin"), `keep_duplicates`,
      `allow_loss`, `split="none"`, `bucket` and `bucket_on` work as there.
    - `split="time"` (with `valid` and `test`) needs `allow_unseen=True`: which names train knows is
      not collected. The default, `split="random"`, is refused: it is drawn from a permutation of
      all facts, which would have to be in memory.
    - `entities`, `predicates`, `times`, `origin` and `end_before_begin` other than "drop" are
      refused.
    - In a saved graph only the buckets can be chosen, as in `splime.read`.

    In memory are a few batches, the predicates, the timestamps, and some numbers for each
    predicate at each timestamp; entities are passed through and never collected. Finding
    duplicates is a pass of its own, which writes 16 bytes a fact to a folder beside the target
    and keeps 8 for each duplicate; saved graphs, and `keep_duplicates=True`, do without. Buckets
    and a split by time need a second pass to count; buckets keep three numbers for each pair of
    begin and end that occurs.

    Args:
        source: the file of facts, a folder of such files or a pattern like `facts/*.parquet`, with
            columns as `splime.read` takes them.
        target: the file to write; it must not exist.
        method: one that needs only counts, with predicates as its target.
        batch_rows: how many facts to hold at once; about a million by default.
        progress: gets what is being done, how many facts are done, and how many there are.
        reading: options of `splime.read`.
    """
    facts = Facts.of(source, method, reading, batch_rows)
    if target.exists():
        raise UsageError(f"{target} exists already; delete it first, or choose another name")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"{target.parent}: there is no such folder to write to")
    seconds: dict[str, float] = {}

    def tell(step: str) -> Progress:
        def told(what: str, done: int, total: int | None = None, note: str = "") -> None:  # noqa: ARG001
            progress(step, done, facts.rows)

        return told

    def here(
        what: str, function: Callable[..., Any], tasks: Sequence[Any]
    ) -> Iterator[tuple[int, Any]]:
        for number, task in enumerate(tasks):
            told = {"progress": tell(what)} if isinstance(task, Part) else {}
            yield number, function(task, **told)

    made = Made()
    with working_folder(target) as folder:
        parts = facts.parts(facts.rows)
        parts, cutting, before = choose(facts, parts, here, folder, seconds, progress)

        def triples() -> Iterator[tuple[int, Any]]:
            for part, earlier in zip(parts, before, strict=True):
                own = Made()
                yield from triples_of(part, cutting, earlier, own, tell("applying"))
                made.add(own)

        with timed(seconds, "applying"):
            write_all(triples(), cutting, target)
    try:
        return facts.result(made, cutting, seconds)
    except DataError:
        target.unlink()
        raise


@dataclass(frozen=True)
class Facts:
    """What is to be transformed, and how."""

    name: str
    """The source, as it was given."""
    files: Sequence[FactFile]
    method: Method
    options: ReadOptions
    batch_rows: int

    @classmethod
    def of(
        cls,
        source: str | PathLike[str],
        method: Method,
        reading: Mapping[str, Any],
        batch_rows: int | None = None,
    ) -> Facts:
        """An error for what cannot be streamed."""
        options = ReadOptions.of(reading).for_triples(is_triples(source))
        files = [FactFile(path, options.columns) for path in files_of(source)]
        facts = cls(
            str(source), files, method, options, _BATCH if batch_rows is None else batch_rows
        )
        facts._check()
        return facts

    @property
    def rows(self) -> int:
        """How many rows all files have."""
        return sum(file.rows for file in self.files)

    def parts(self, most_rows: int) -> list[Part]:
        """The parts of all files, which have so many rows at most, or one row group."""
        parts, fact = [], 0
        for file in self.files:
            parts += file.parts(most_rows, self.batch_rows, fact)
            fact += file.rows
        return parts

    def result(self, made: Made, cutting: Cutting, seconds: Mapping[str, float]) -> StreamResult:
        """What came of it; an error if too much was lost."""
        facts, triples, rows_read = made.totals.tolist()
        read = Reading(
            (Source(Path(self.name).name, None, self.rows, sum(facts), dict(made.dropped)),),
            emptied=tuple(
                split
                for split, had, has in zip(SPLITS, rows_read, facts, strict=True)
                if had and not has
            ),
        )
        if not self.options.allow_loss:
            read.check()
        LOG.info("%s: %s", Path(self.name).name, read)
        return StreamResult(
            self.rows,
            dict(zip(SPLITS, facts, strict=True)),
            dict(made.dropped),
            dict(zip(SPLITS, triples, strict=True)),
            Segmentation(cutting.scopes, None, self.method.parameters()),
            seconds,
        )

    def _check(self) -> None:
        options, method = self.options, self.method
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
                f"{type(method).__name__} needs the facts themselves, not only how many there are,"
                f" so it cannot stream{_IN_MEMORY}"
            )
        if method.target != "predicates":
            raise UsageError(f"streaming cuts predicates only, not {method.target}{_IN_MEMORY}")
        if self.batch_rows < 1:
            raise UsageError(f"a batch has at least 1 row, not {self.batch_rows}")
        self._check_files()
        if "split" in self.files[0].names:
            if options.split is not None:
                raise UsageError(f"{self.name}: streaming keeps the splits of a file{_IN_MEMORY}")
            return
        check_shares(**_shares(options))
        if options.split == "none":
            return
        if options.split != "time":
            raise UsageError(
                f"{self.name}: has no column of splits, and a random split of facts, the default,"
                " needs all of them in memory; choose split='none' (--split none: all in train) or"
                " 'time'" + _IN_MEMORY
            )
        if not options.allow_unseen:
            raise UsageError(
                f"{self.name}: a split by time drops facts with names that train does not know, and"
                " streaming does not collect the names; keep those facts with allow_unseen=True"
                " (--allow-unseen)" + _IN_MEMORY
            )

    def _check_files(self) -> None:
        """An error if the files do not belong together."""
        first, *others = self.files
        if others and any(file.graph for file in self.files):
            raise UsageError(
                f"{self.name}: saved graphs have timelines of their own, so one of them is"
                " transformed at a time"
            )
        for file in others:
            if file.names.keys() != first.names.keys():
                raise DataError(
                    f"{file.path}: has columns for {', '.join(sorted(file.names))}, but"
                    f" {first.path} for {', '.join(sorted(first.names))}"
                )
        has_splits = "split" in first.names
        self.options.check_effect(first.path, saved=first.graph is not None, has_splits=has_splits)


def choose(
    facts: Facts,
    parts: list[Part],
    engine: Engine,
    folder: Path,
    seconds: dict[str, float],
    progress: Progress,
) -> tuple[list[Part], Cutting, Ints]:
    """Count the facts and choose the cuts.

    Returns the parts, with what is known of them by now; what makes triples of them; and how many
    facts of each split stand before each part. `folder` is for files that are needed meanwhile.
    """
    options, method, rows = facts.options, facts.method, facts.rows
    graph = facts.files[0].graph
    for _ in engine("checking", check_whole, [file.path for file in facts.files]):
        pass
    # All times decide how one of them is read; splime's own files have times of one kind.
    said = {file.granularity for file in facts.files}
    stated = said.pop() if len(said) == 1 else None
    forced, among = options.granularity or stated, None
    if stated is None:
        with timed(seconds, what := "reading times"):
            kinds = engine(what, partial(kinds_of_times, granularity=forced), parts)
            among = sum((each for _, each in kinds), Kinds())
    parts = [replace(part, forced=forced, among=among) for part in parts]
    granularity = forced or infer_granularity(among or Kinds())
    first, last = (
        None if when is None else tick_range(when, granularity)[side]
        for side, when in enumerate((options.first, options.last))
    )
    frame = Frame(granularity, method.fit_on == "all", graph, first, last)
    if graph is None and not options.keep_duplicates:
        with timed(seconds, what := "finding duplicates"):
            files = files_for(rows)
            write = partial(write_fingerprints, granularity=granularity, files=files, folder=folder)
            for _ in engine(what, write, parts):
                pass
            find = partial(duplicates_in, parts=[part.fact for part in parts], folder=folder)
            repeated = [own for _, own in engine(what, find, range(files))]
            parts = with_duplicates(parts, repeated)

    def counted(clock: Clock | None) -> Any:
        tallies = engine("counting", partial(count, frame=frame, clock=clock), parts)
        return settle(tallies, frame, clock, facts.name)

    with timed(seconds, "counting"):
        # New buckets are made from the ticks of facts, not from the timeline of a saved graph.
        timeline = graph.timestamps if graph and options.bucket is None else None
        settled = counted(Clock(timeline.starts, timeline) if timeline else None)
        clock = settled.clock
        if options.split == "time":
            limits = time_limits(clock.ticks, settled.begins, granularity, **_shares(options))
            valid_at, test_at = np.searchsorted(clock.ticks, limits).tolist()
            clock = replace(clock, split_at=(valid_at, test_at))
        if options.bucket is not None:
            on_all = options.bucket_on != "train"
            found = engine("counting", partial(spans, clock=clock, on_all=on_all), parts)
            begin, end, held = summed(own for _, own in found)
            if not len(held):
                raise UsageError("there are no facts to make buckets from")
            ticks = Timeline.of(np.concatenate([begin, end]), granularity)
            buckets = ticks.bucket(begin, end, min_facts=options.bucket, facts=held)
            clock = replace(clock, timeline=buckets)
        if options.split == "time" or options.bucket is not None:
            settled = counted(clock)
    with timed(seconds, "choosing"):
        none = np.empty(0, np.int32)
        cuts = method.choose(Known(settled.counts, *[none] * 5), progress=progress)
        scopes = Scopes.of(settled.predicates, settled.clock.timeline, cuts, settled.counts)
        scopes.check_distinct()
    before = np.cumsum(settled.facts, axis=0) - settled.facts
    return parts, Cutting(settled.clock, scopes), before


@contextmanager
def timed(seconds: dict[str, float], what: str) -> Iterator[None]:
    """Note how long a step takes."""
    started = time.perf_counter()
    yield
    seconds[what] = time.perf_counter() - started


def _shares(options: ReadOptions) -> dict[str, float]:
    return {"valid": 0.1, "test": 0.1, **options.chosen("valid", "test")}
