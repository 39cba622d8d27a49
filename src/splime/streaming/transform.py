"""Transform facts that need not fit into memory: in this process, or part by part on many workers.

The facts are counted, the cuts are chosen once, and the triples are written to one file, or those
of every part to files of its own. A receipt records what these were made from: the same call again
resumes from the receipts that fit.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from splime.errors import DataError, UsageError, WriteError
from splime.exports import check_folder
from splime.graph import SPLITS, SplitName
from splime.io import parts as layout
from splime.io.files import LOCK, locked, read_json, scratch_folder, validated, write_json
from splime.io.folders import files_of, has_parts
from splime.io.options import OWN_BEGIN, OWN_END, ReadOptions
from splime.io.parquet import NOT_STREAMED, FactFile, Part, check_numbers, kinds_of_times
from splime.io.segmentations import save_segmentation
from splime.methods.base import FitInput, Method
from splime.progress import Progress, silent
from splime.reading import LOG, Reading, Source
from splime.segmentation import Scopes, Segmentation
from splime.shown import Shown
from splime.splitting import check_shares, time_limits
from splime.streaming import duplicates, passes
from splime.streaming.passes import Cutting, PartResult, ReadPlan, TickIndex
from splime.timeline import Timeline
from splime.times import Granularity, Kinds, infer_granularity, tick_range
from splime.workers import Parallel, WorkerPool, worker_pool

LARGE = 5_000_000
"""Files of more rows are streamed by default."""
PART = 10_000_000
"""About how many facts a part has; more facts are streamed by several processes by default."""
_BATCH = 1 << 20
_IN_MEMORY = "; stream=False (--no-stream) loads the facts into memory"


@dataclass(frozen=True)
class StreamResult(Shown):
    """The numbers of facts and triples of a transform that was streamed, and its cuts."""

    rows: int
    facts: Mapping[SplitName, int]
    dropped: Mapping[str, int]
    """Rows that are no facts, by reason."""
    triples: Mapping[SplitName, int]
    segmentation: Segmentation
    seconds: Mapping[str, float]
    """For each step: reading times, finding duplicates, counting, choosing and applying."""


TaskRunner: TypeAlias = Callable[
    [str, Callable[..., Any], Sequence[Any]], Iterator[tuple[int, Any]]
]
"""Takes the name of a step, a function and tasks; yields the number of each task and its result."""


def rows_to_stream(source: str | PathLike[str], method: Method) -> int:
    """The number of rows of a source that can be streamed with a method; 0 if it cannot."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if method.needs_facts or method.target != "predicates":
        return 0
    if not has_parts(source) and Path(source).suffix.lower() != ".parquet":
        return 0
    try:
        return sum(pq.read_metadata(file).num_rows for file in files_of(source))
    except (pa.ArrowException, OSError, DataError):
        return 0  # reading it reports what is wrong


def stream_transform(
    source: str | PathLike[str],
    target: Path,
    method: Method,
    *,
    batch_rows: int | None = None,
    progress: Progress = silent,
    **reading: Any,
) -> StreamResult:
    """Transform Parquet files of facts into one file of triples, a batch at a time.

    The file has the rows that `splime.export` writes as Parquet for
    `method.fit_transform(splime.read(source, **reading))`, or there is an error that says why it
    cannot be streamed. Not all options of `splime.read` are supported:

    - `columns`, `granularity`, `first`, `last` (times, not "end" and "begin"), `keep_duplicates`,
      `allow_loss`, `split="none"`, `bucket` and `bucket_on` work as there.
    - `split="time"` (with `valid` and `test`) needs `allow_unseen=True`, because the names in train
      are not collected. The default, `split="random"`, is refused: it needs a permutation of all
      facts in memory.
    - `entities`, `predicates`, `times`, `origin`, `time_format`, `since`, `duration`,
      `unknown_time`, `missing_name`, `without_time` and `end_before_begin` other than "drop" are
      refused. So are times that only all facts together say how to read, such as dates without
      separators and far times that may stand for unknown ones.
    - A saved graph takes only the options of buckets, as in `splime.read`.

    Memory holds a few batches, the predicates, the timestamps, and some numbers for each predicate
    at each timestamp; entities are not collected. Finding duplicates is a separate pass. It writes
    16 bytes for each fact to a folder beside the target and keeps 8 for each duplicate; saved
    graphs and `keep_duplicates=True` skip it. Buckets and a split by time need a second pass to
    count; buckets keep three numbers for each distinct pair of begin and end.

    Args:
        source: the file of facts, a folder of such files or a pattern like `facts/*.parquet`, with
            columns as `splime.read` takes them.
        target: the file to write; it must not exist.
        method: one that needs only counts, with predicates as its target.
        batch_rows: how many facts to read at once; about a million by default.
        progress: called with the step, the facts that are done, and their number.
        reading: options of `splime.read`.
    """
    stream = StreamSource.of(source, method, reading, batch_rows)
    if target.exists():
        raise UsageError(f"{target} exists already; delete it first, or choose another name")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"{target.parent}: there is no such folder to write to")
    seconds: dict[str, float] = {}

    def progress_of(step: str) -> Progress:
        def report(what: str, done: int, total: int | None = None, note: str = "") -> None:  # noqa: ARG001
            progress(step, done, stream.rows)

        return report

    def run(
        what: str, function: Callable[..., Any], tasks: Sequence[Any]
    ) -> Iterator[tuple[int, Any]]:
        for number, task in enumerate(tasks):
            reporting = {"progress": progress_of(what)} if isinstance(task, Part) else {}
            yield number, function(task, **reporting)

    total = PartResult()
    with scratch_folder(target) as folder:
        parts = stream.parts(stream.rows)
        parts, cutting = _choose(stream, parts, run, folder, seconds, progress)
        applied = (
            passes.triples_of(part, cutting, total, progress_of("applying")) for part in parts
        )
        with _timed(seconds, "applying"):
            passes.write_all(chain.from_iterable(applied), target)
    try:
        return stream.result(total, cutting, seconds)
    except DataError:
        target.unlink()
        raise


def transform_parts(
    source: str | PathLike[str],
    folder: str | PathLike[str],
    method: Method,
    *,
    engine: str = "processes",
    workers: int | None = None,
    address: str | None = None,
    part_rows: int | None = None,
    batch_rows: int | None = None,
    overwrite: bool = False,
    progress: Progress = silent,
    **reading: Any,
) -> StreamResult:
    """Transform Parquet files of facts into a folder of triples, on many workers.

    The files that the manifest lists hold, in that order, the rows that `stream_transform` writes
    to one file, whatever the engine and the number of workers. A folder with a manifest is
    complete. Without one, the same call resumes: parts whose receipts still fit are kept. Workers
    on other machines must see the files under the same paths.

    Args:
        source: as for `stream_transform`.
        folder: where to write.
        method: as for `stream_transform`.
        engine: `processes` of this machine, or `ray`.
        workers: how many parts to work on at once; by default one for each processor.
        address: that of a Ray cluster; by default RAY_ADDRESS, or else one is started here.
        part_rows: about how many facts a part has; 10 million by default. Parts are ranges of row
            groups, so a part has at least one row group.
        batch_rows: how many facts a worker reads at once; about a million by default.
        overwrite: whether to replace what is in the folder.
        progress: called with the step, the facts that are done, and their number.
        reading: options of `splime.read`, as for `stream_transform`.
    """
    # Workers may have another working directory.
    source, folder = Path(source).absolute(), Path(folder).absolute()
    stream = StreamSource.of(source, method, reading, batch_rows)
    if part_rows is not None and part_rows < 1:
        raise UsageError(f"a part has at least 1 row, not {part_rows}")
    _resumes(folder, overwrite=overwrite)  # an error before the folder is made
    with locked(folder):
        resumes = _resumes(folder, overwrite=overwrite)
        try:
            _sweep(folder, lambda name: resumes and layout.is_of_parts(name), all_files=not resumes)
            write_json(
                folder / layout.UNFINISHED, {"source": stream.name, "method": method.parameters()}
            )
            with worker_pool(Parallel(engine, workers, address=address)) as pool:
                result, manifest = _transform(stream, folder, part_rows or PART, pool, progress)
            write_json(folder / layout.MANIFEST, asdict(manifest))
            listed = {file.name for file in manifest.files}
            listed |= {layout.RECEIPT.format(number) for number in range(manifest.parts)}
            _sweep(folder, lambda name: name in listed | {layout.MANIFEST, layout.SEGMENTATION})
        except BaseException as error:
            done = any(folder.glob(layout.RECEIPT.replace("{:05}", "*")))
            _sweep(folder, lambda name: done and layout.is_of_parts(name))
            if isinstance(error, OSError):
                raise WriteError(f"{folder}: cannot be written: {error}") from None
            raise
    return result


def _resumes(folder: Path, *, overwrite: bool) -> bool:
    """Whether a transform goes on in a folder; an error if it may not begin there."""
    resumes = (folder / layout.UNFINISHED).exists() and not (folder / layout.MANIFEST).exists()
    if not resumes:
        check_folder(folder, overwrite=overwrite)
    return resumes


def _transform(
    stream: StreamSource, folder: Path, part_rows: int, pool: WorkerPool, progress: Progress
) -> tuple[StreamResult, layout.Manifest]:
    seconds: dict[str, float] = {}
    method = stream.method

    def run(
        what: str, function: Callable[..., Any], tasks: Sequence[Any]
    ) -> Iterator[tuple[int, Any]]:
        done = 0
        for number, result in pool.map_unordered(function, tasks):
            if isinstance(task := tasks[number], Part):
                done += task.rows
                progress(what, done, stream.rows)
            yield number, result

    scratch = folder / layout.MEANWHILE
    scratch.mkdir()
    parts = stream.parts(part_rows)
    parts, cutting = _choose(stream, parts, run, scratch, seconds, progress)
    shutil.rmtree(scratch)  # it may be larger than the triples
    segmentation = Segmentation(cutting.scopes, None, method.parameters())
    save_segmentation(segmentation, folder / layout.SEGMENTATION)
    cutter = _Cutter(folder, cutting, read_json(folder / layout.SEGMENTATION)["sha256"])
    with _timed(seconds, "applying"):
        by_number = dict(run("applying", cutter, parts))
    total, receipts = PartResult(), [by_number[number] for number in range(len(parts))]
    for receipt in receipts:
        counts = receipt.facts, receipt.triples, receipt.read
        total.totals += [[by_split[split] for split in SPLITS] for by_split in counts]
        total.dropped += Counter(receipt.dropped)
    result = stream.result(total, cutting, seconds)
    files = sorted(
        (file for receipt in receipts for file in receipt.files),
        key=lambda file: SPLITS.index(file.split),
    )
    about = stream.name, method.parameters(), stream.rows, len(parts)
    numbers = dict(result.facts), dict(result.triples), dict(result.dropped)
    return result, layout.Manifest("triples", layout.FORMAT, *about, *numbers, files)


@dataclass(frozen=True)
class _Cutter:
    """Writes the triples of a part, unless they are already written."""

    folder: Path
    cutting: Cutting
    cuts: str
    """The checksum of the segmentation."""

    def __call__(self, part: Part) -> layout.Receipt:
        """The receipt of the files."""
        path, made_from = self.folder / layout.RECEIPT.format(part.number), self.made_from(part)
        with suppress(DataError):  # no receipt yet, or it is damaged
            old = validated(path, read_json(path), layout.Receipt)
            if old.made_from == made_from and all(file.fits(self.folder) for file in old.files):
                return old
        result = PartResult()
        targets = [self.folder / layout.TRIPLES.format(split, part.number) for split in SPLITS]
        triples = passes.triples_of(part, self.cutting, result)
        files = passes.write_splits(triples, targets)
        facts, count, read = (dict(zip(SPLITS, row, strict=True)) for row in result.totals.tolist())
        rows = part.row + 1, part.row + part.rows
        about = str(part.path), rows, self.cuts, made_from
        receipt = layout.Receipt(*about, facts, count, read, dict(result.dropped), files)
        write_json(path, asdict(receipt))
        return receipt

    def made_from(self, part: Part) -> str:
        """The checksum of everything that the triples depend on."""
        index = self.cutting.index
        ticks = [index.ticks.tolist(), index.first, index.last, index.split_at]
        place = [str(part.path), part.version, part.fact, part.row, part.rows, part.batch_rows]
        among = sorted((part.among or {}).items())
        reading = [part.columns, part.forced, among, part.before.tolist()]
        about = [layout.FORMAT, self.cuts, ticks, place, reading, part.duplicates.tolist()]
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def _sweep(folder: Path, keep: Callable[[str], bool], *, all_files: bool = False) -> None:
    """Remove files of this module that are not kept, such as those of dead attempts.

    With `all_files` also those of other exports, which are being replaced.
    """
    for path in folder.iterdir():
        ours = layout.is_of_parts(path.name) or path.suffix == ".part" or all_files
        if path.name == layout.MEANWHILE:
            shutil.rmtree(path, ignore_errors=True)
        elif ours and path.name != LOCK and not keep(path.name):
            path.unlink(missing_ok=True)


@dataclass(frozen=True)
class StreamSource:
    """Parquet files of facts to stream, the method, and how to read them."""

    name: str
    """As the user gave it."""
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
    ) -> StreamSource:
        """Open the files; an error if they, the method or the options cannot be streamed."""
        options = ReadOptions.of(reading).for_triples(layout.is_triples(source))
        files = [FactFile(path, options) for path in files_of(source)]
        stream = cls(
            str(source), files, method, options, _BATCH if batch_rows is None else batch_rows
        )
        stream._check()
        return stream

    @property
    def rows(self) -> int:
        """How many rows all files have."""
        return sum(file.rows for file in self.files)

    def parts(self, most_rows: int) -> list[Part]:
        """The parts of all files: at most `most_rows` rows each, or one row group."""
        parts, fact = [], 0
        for file in self.files:
            parts += file.parts(most_rows, self.batch_rows, fact)
            fact += file.rows
        return parts

    def result(
        self, total: PartResult, cutting: Cutting, seconds: Mapping[str, float]
    ) -> StreamResult:
        """The result from the sum over all parts; an error if too many rows were dropped."""
        facts, triples, rows_read = total.totals.tolist()
        read = Reading(
            (Source(Path(self.name).name, None, self.rows, sum(facts), dict(total.dropped)),),
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
            dict(total.dropped),
            dict(zip(SPLITS, triples, strict=True)),
            Segmentation(cutting.scopes, None, self.method.parameters()),
            seconds,
        )

    def _check(self) -> None:
        method = self.method
        if refused := self._not_streamed():
            words = ", ".join(f"{option} = {value}" for option, value in refused.items())
            raise UsageError(f"streaming cannot read with {words}{_IN_MEMORY}")
        if method.needs_facts:
            raise UsageError(
                f"{type(method).__name__} needs the facts themselves, not only their counts, so it"
                f" cannot stream{_IN_MEMORY}"
            )
        if method.target != "predicates":
            raise UsageError(f"streaming cuts predicates only, not {method.target}{_IN_MEMORY}")
        if self.batch_rows < 1:
            raise UsageError(f"a batch has at least 1 row, not {self.batch_rows}")
        self._check_files()
        options = self.options
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

    def _not_streamed(self) -> dict[str, Any]:
        """The reading options that were chosen and need the facts in memory."""
        refused = self.options.chosen(
            "predicate_name",
            "entities",
            "predicates",
            "times",
            "origin",
            "time_format",
            "since",
            "duration",
            "unknown_time",
            "missing_name",
            "without_time",
        )
        if self.options.end_before_begin not in (None, "drop"):
            refused["end_before_begin"] = self.options.end_before_begin
        for limit, other_end in (("first", OWN_END), ("last", OWN_BEGIN)):
            if getattr(self.options, limit) == other_end:
                refused[limit] = other_end
        return refused

    def _check_files(self) -> None:
        """An error if the files do not belong together."""
        first, *others = self.files
        if others and any(file.graph for file in self.files):
            raise UsageError(
                f"{self.name}: each saved graph has its own timeline, so only one can be"
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


def _choose(
    stream: StreamSource,
    parts: list[Part],
    run: TaskRunner,
    folder: Path,
    seconds: dict[str, float],
    progress: Progress,
) -> tuple[list[Part], Cutting]:
    """Count the facts and choose the cuts; `folder` is for temporary files.

    Returns the parts, with what was found out about them, and the cuts, ready to be applied.
    """
    options, method = stream.options, stream.method
    for _ in run("checking", layout.check_whole, [file.path for file in stream.files]):
        pass
    parts, plan = _read_plan(stream, parts, run, seconds)
    graph, granularity = plan.graph, plan.granularity
    if graph is None and not options.keep_duplicates:
        with _timed(seconds, "finding duplicates"):
            parts = _with_duplicates(stream, parts, run, granularity, folder)

    def counted(index: TickIndex | None) -> passes.CountResult:
        tallies = run("counting", partial(passes.count, plan=plan, index=index), parts)
        return passes.sum_tallies(tallies, plan, index, stream.name)

    with _timed(seconds, "counting"):
        # New buckets are made from the ticks of facts, not from the timeline of a saved graph.
        timeline = graph.timestamps if graph and options.bucket is None else None
        result = counted(TickIndex(timeline.starts, timeline) if timeline else None)
        index = result.index
        if options.split == "time":
            limits = time_limits(index.ticks, result.begins, granularity, **_shares(options))
            valid_at, test_at = np.searchsorted(index.ticks, limits).tolist()
            index = replace(index, split_at=(valid_at, test_at))
        if options.bucket is not None:
            on_all = options.bucket_on != "train"
            counts = run("counting", partial(passes.count_spans, index=index, on_all=on_all), parts)
            begin, end, held = passes.sum_spans(spans for _, spans in counts)
            if not len(held):
                raise UsageError("there are no facts to make buckets from")
            ticks = Timeline.of(np.concatenate([begin, end]), granularity)
            buckets = ticks.bucket(begin, end, min_facts=options.bucket, facts=held)
            index = replace(index, timeline=buckets)
        if options.split == "time" or options.bucket is not None:
            result = counted(index)
    with _timed(seconds, "choosing"):
        none = np.empty(0, np.int32)
        cuts = method.choose(FitInput(result.counts, *[none] * 5), progress=progress)
        scopes = Scopes.of(result.predicates, result.index.timeline, cuts, result.counts)
        scopes.check_distinct()
    before = np.cumsum(result.facts, axis=0) - result.facts
    parts = [replace(part, number=at, before=before[at]) for at, part in enumerate(parts)]
    return parts, Cutting(result.index, scopes)


def _with_duplicates(
    stream: StreamSource, parts: list[Part], run: TaskRunner, granularity: Granularity, folder: Path
) -> list[Part]:
    """The parts, with the facts in them that repeat an earlier one."""
    files = duplicates.files_for(stream.rows)
    write = partial(
        duplicates.write_fingerprints, granularity=granularity, files=files, folder=folder
    )
    for _ in run("finding duplicates", write, parts):
        pass
    find = partial(duplicates.duplicates_in, parts=[part.fact for part in parts], folder=folder)
    found = run("finding duplicates", find, range(files))
    return duplicates.with_duplicates(parts, [facts for _, facts in found])


def _read_plan(
    stream: StreamSource, parts: list[Part], run: TaskRunner, seconds: dict[str, float]
) -> tuple[list[Part], ReadPlan]:
    """The parts, with how to read their times, which all times decide together; and the plan."""
    options = stream.options
    # How a time is read depends on all times; in files that splime wrote they are of one kind.
    stated_in_files = {file.granularity for file in stream.files}
    stated = stated_in_files.pop() if len(stated_in_files) == 1 else None
    forced, among = options.granularity or stated, None
    if stated is None:
        with _timed(seconds, what := "reading times"):
            results = run(what, partial(kinds_of_times, granularity=forced), parts)
            among = sum((kinds for _, kinds in results), Kinds())
        check_numbers(among, stream.name)
        for file in stream.files:
            if file.is_open:
                raise DataError(f"{file.path}: a column called since holds begins. {NOT_STREAMED}")
    parts = [replace(part, forced=forced, among=among) for part in parts]
    granularity = forced or infer_granularity(among or Kinds())
    first, last = (
        None if when is None else tick_range(when, granularity)[side]
        for side, when in enumerate((options.first, options.last))
    )
    graph, fit_on_all = stream.files[0].graph, stream.method.fit_on == "all"
    return parts, ReadPlan(granularity, fit_on_all, graph, first, last)


@contextmanager
def _timed(seconds: dict[str, float], what: str) -> Iterator[None]:
    """Record how long a step takes."""
    started = time.perf_counter()
    yield
    seconds[what] = time.perf_counter() - started


def _shares(options: ReadOptions) -> dict[str, float]:
    return {"valid": 0.1, "test": 0.1, **options.chosen("valid", "test")}
