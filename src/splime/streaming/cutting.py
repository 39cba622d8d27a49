"""Write the triples of the facts of a part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from splime.graph import SPLITS, Ids
from splime.io.files import written_beside
from splime.io.parquet import Batch, FactFile, Part
from splime.progress import Progress, silent
from splime.segmentation import Scopes
from splime.streaming.tally import Frame
from splime.times import Ints

_NAMES = ["split", "subject", "predicate", "object"]
_COLUMNS = pa.schema(
    dict.fromkeys(_NAMES, pa.dictionary(pa.int32(), pa.string()))
    | {"fact": pa.int64(), "overlap": pa.int32()}
)
PARQUET = {
    "compression": "zstd",
    "use_dictionary": [*_NAMES, "overlap"],
    "column_encoding": {"fact": "DELTA_BINARY_PACKED"},
    # Names stay a dictionary however many there are, and their least and greatest help nobody.
    "dictionary_pagesize_limit": 2**26,
    "write_statistics": ["fact"],
}
"""How triples are written."""
# A fact can have many triples: they are made and written so many at a time.
_TRIPLES = 1 << 20


@dataclass(frozen=True)
class Plan:
    """What decides the triples of a fact."""

    frame: Frame
    """With a clock."""
    scopes: Scopes


@dataclass(frozen=True)
class Receipt:
    """What became of the rows of a part; receipts add up."""

    facts: Ints = field(default_factory=lambda: np.zeros(len(SPLITS), np.int64))
    triples: Ints = field(default_factory=lambda: np.zeros(len(SPLITS), np.int64))
    """How many there are of each split."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Rows that are no facts, by reason."""

    def __add__(self, other: Receipt) -> Receipt:
        return Receipt(
            self.facts + other.facts, self.triples + other.triples, self.dropped + other.dropped
        )


def cut(part: Part, plan: Plan, target: Path, progress: Progress = silent) -> Receipt:
    """Write the triples of the facts of a part to a file, which appears when it is whole."""
    receipt = Receipt()
    labels = plan.scopes.labels.cast(pa.string())
    with FactFile(part.path, part.columns) as file, _written(target) as write:
        for batch in file.batches(part, "split", "subject", "predicate", "object", "begin", "end"):
            for triples in _triples(part, batch, plan, labels, receipt):
                write(triples)
            progress("applying", part.fact_of(batch) + len(batch))
    return receipt


def join(sources: Sequence[Path], target: Path) -> None:
    """Write the triples of several files into one, in their order."""
    import pyarrow.parquet as pq

    with _written(target) as write:
        for source in sources:
            with pq.ParquetFile(source, read_dictionary=_NAMES, pre_buffer=False) as file:
                for group in range(file.metadata.num_row_groups):
                    for batch in file.read_row_group(group).to_batches():
                        write(batch)


@contextmanager
def _written(target: Path) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """What writes triples to a file, which appears when it is whole.

    Writing takes longest, so it goes on in a thread while the next triples are made.
    """
    import pyarrow.parquet as pq

    with (
        written_beside(target) as beside,
        pq.ParquetWriter(beside, _COLUMNS, **PARQUET) as writer,
        ThreadPoolExecutor(1) as thread,
    ):
        writing: Future[None] | None = None

        def write(triples: pa.RecordBatch) -> None:
            nonlocal writing
            if writing is not None:
                writing.result()
            writing = thread.submit(writer.write_batch, triples)

        yield write
        if writing is not None:
            writing.result()


def _triples(
    part: Part, batch: Batch, plan: Plan, labels: pa.Array, receipt: Receipt
) -> Iterator[pa.RecordBatch]:
    """The triples of a batch, which are added to the receipt."""
    subject, predicate, object_ = map(batch.labels, ("subject", "predicate", "object"))
    times, ticks = batch.times(plan.frame.granularity), plan.frame.settled.ticks
    splits, begin, end, kept, dropped = plan.frame.place(part, batch, times, ticks)
    sources = plan.scopes.names.ids(predicate.dictionary)[predicate.indices.to_numpy()][kept]
    low, high = plan.scopes.find(sources, begin, end)
    scopes = high - low + 1
    receipt.facts[:] += np.bincount(splits, minlength=len(SPLITS))
    receipt.triples[:] += np.bincount(splits, scopes, len(SPLITS)).astype(np.int64)
    receipt.dropped.update(dropped)
    number = part.fact_of(batch)
    # What is passed from facts to their triples.
    passed = (
        splits,
        subject.indices.to_numpy()[kept],
        object_.indices.to_numpy()[kept],
        np.arange(number, number + len(batch))[kept],
    )
    for some in _slices(scopes):
        count, scope, overlap = plan.scopes.cut(
            sources[some], begin[some], end[some], low[some], high[some]
        )
        split, subjects, objects, facts = (np.repeat(column[some], count) for column in passed)
        arrays = [
            _encoded(split, pa.array(SPLITS)),
            _encoded(subjects, subject.dictionary),
            _encoded(scope, labels),
            _encoded(objects, object_.dictionary),
            pa.array(facts),
            pa.array(overlap),
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=_COLUMNS)


def _slices(count: Ids) -> Iterator[slice]:
    """Facts that stand together, with about so many triples as are made at a time."""
    stop = np.cumsum(count)
    triples = int(stop[-1]) if len(stop) else 0
    slices = -(-triples // _TRIPLES)
    bounds = np.searchsorted(stop, np.arange(1, slices) * triples / max(slices, 1))
    # A fact with more triples than that is alone.
    for low, high in pairwise(np.unique([0, *bounds, len(count)]).tolist()):
        yield slice(low, high)


def _encoded(codes: Ids, labels: pa.Array) -> pa.DictionaryArray:
    if 4 * len(labels) > len(codes):
        # Labels that are not used would be written too, with every row group.
        used = np.zeros(len(labels), bool)
        used[codes] = True
        labels = labels.filter(pa.array(used))
        codes = (np.cumsum(used, dtype=np.int32) - 1)[codes]
    return pa.DictionaryArray.from_arrays(pa.array(codes), labels, safe=False)
