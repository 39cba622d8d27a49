"""Transform a file of facts that need not fit into memory."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from splime.errors import UsageError
from splime.graph import SPLITS, SplitName
from splime.io.batches import FactFile
from splime.methods.base import Method
from splime.progress import Progress, silent
from splime.segmentation import Scopes, Segmentation
from splime.streaming.applying import Applying
from splime.streaming.frame import Frame
from splime.streaming.tally import Tally
from splime.times import Granularity, When


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
    """Of counting, choosing and applying."""


def stream_transform(
    source: Path,
    target: Path,
    method: Method,
    *,
    batch_rows: int = 1 << 20,
    progress: Progress | None = None,
    granularity: Granularity | None = None,
    first: When | None = None,
    last: When | None = None,
) -> StreamResult:
    """Transform a Parquet file of facts into one of triples, without ever holding all of either.

    The triples are those of `method.fit_transform(splime.read(source, split="none"))`, with
    columns split, subject, predicate (scoped), object, fact (its row in the source, from 0) and
    overlap. In memory are a few batches, the predicates, the timestamps, and a dozen numbers
    for each predicate at each timestamp; entities are passed through and never collected. Facts
    without a column `split` are all of train.

    What reading does, and this does not: look for duplicates, make buckets (those of a saved graph
    are kept), split facts, read ids with dictionary files, show examples of dropped facts. Times
    as text are read batch by batch: whether one with a time zone, or a number among dates, is odd
    is decided by the others of the batch.

    Args:
        source: the file of facts, with columns as `splime.read` takes them.
        target: the file to write; it must not exist.
        method: one that needs only counts, with predicates as its target.
        batch_rows: how many facts to hold at once.
        progress: gets what is being done, how many facts are done, and how many there are.
        granularity: as in `splime.read`; else that of the saved graph, else found out from a look
            at all times first.
        first: what an unknown begin becomes.
        last: what an unknown end becomes.
    """
    _check(method, target, batch_rows)
    update = progress or silent
    with FactFile(source, batch_rows) as file:
        clock = time.perf_counter()
        frame = Frame.of(file, granularity, first, last)
        counted = Tally(file, frame, everything_decides=method.fit_on == "all").count(update)
        counting, clock = time.perf_counter() - clock, time.perf_counter()
        cuts = method.choose(counted.known(), progress=update)
        scopes = Scopes.of(counted.predicates, counted.timeline, cuts, counted.counts)
        choosing, clock = time.perf_counter() - clock, time.perf_counter()
        applied = Applying(file, frame, counted, scopes)
        applied.write(target, update)
        applying = time.perf_counter() - clock
    return StreamResult(
        file.rows,
        dict(zip(SPLITS, applied.facts.tolist(), strict=True)),
        dict(applied.dropped),
        dict(zip(SPLITS, applied.triples.tolist(), strict=True)),
        Segmentation(scopes, None, method.parameters()),
        {"counting": counting, "choosing": choosing, "applying": applying},
    )


def _check(method: Method, target: Path, batch_rows: int) -> None:
    name = type(method).__name__
    if method.needs_facts:
        raise UsageError(
            f"{name} needs the facts themselves, not only how many there are, so it cannot stream;"
            " load the graph into memory instead, with splime.load"
        )
    if method.target != "predicates":
        raise UsageError(
            f"streaming cuts predicates only, not {method.target}; load the graph into memory"
            " instead, with splime.load"
        )
    if batch_rows < 1:
        raise UsageError(f"a batch has at least 1 row, not {batch_rows}")
    if target.exists():
        raise UsageError(f"{target} exists already; delete it first, or choose another name")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"{target.parent}: there is no such folder to write to")
