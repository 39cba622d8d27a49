"""Write the triples of facts to Parquet files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa

from splime.arrays import batches
from splime.graph import SPLITS, Ids
from splime.io.files import written_beside
from splime.io.parquet import ROLES, Part
from splime.progress import Progress, silent
from splime.segmentation import Scopes
from splime.streaming.tally import Clock, place
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
    # Names stay a dictionary however many there are, and their minimum and maximum help nobody.
    "dictionary_pagesize_limit": 2**26,
    "write_statistics": ["fact"],
}
"""How Arrow writes the triples."""
# A fact can have many triples, so this many are made and written at a time.
_TRIPLES = 1 << 20


def cut(
    part: Part, clock: Clock, scopes: Scopes, target: Path, progress: Progress = silent
) -> tuple[Ints, Counter[str]]:
    """Write the triples of the facts of a part to a file, which appears when it is complete.

    Returns how many facts and triples each split has (2 x splits), and how many rows were dropped
    for each reason.
    """
    totals, reasons = np.zeros((2, len(SPLITS)), np.int64), Counter[str]()
    labels = scopes.labels.cast(pa.string())

    def triples() -> Iterator[pa.RecordBatch]:
        for batch in part.batches(*ROLES, progress=progress):
            times = batch.times(clock.timeline.granularity)
            splits, begin, end, kept, dropped = place(batch, times, clock.ticks, clock)
            subject, predicate, object_ = map(batch.labels, ("subject", "predicate", "object"))
            sources = scopes.names.ids(predicate.dictionary)[predicate.indices.to_numpy()][kept]
            low, high = scopes.find(sources, begin, end)
            counts = high - low + 1
            totals[0] += np.bincount(splits, minlength=len(SPLITS))
            totals[1] += np.bincount(splits, counts, len(SPLITS)).astype(np.int64)
            reasons.update(dropped)
            subjects, objects = (column.indices.to_numpy()[kept] for column in (subject, object_))
            facts = np.arange(batch.fact, batch.fact + len(batch))[kept]
            for some in batches(counts, _TRIPLES):
                count, scope, overlap = scopes.cut(
                    sources[some], begin[some], end[some], low[some], high[some]
                )
                split_of, subject_of, object_of, fact = (
                    np.repeat(column[some], count) for column in (splits, subjects, objects, facts)
                )
                arrays = [
                    _encoded(split_of, pa.array(SPLITS)),
                    _encoded(subject_of, subject.dictionary),
                    _encoded(scope, labels),
                    _encoded(object_of, object_.dictionary),
                    pa.array(fact),
                    pa.array(overlap),
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=_COLUMNS)

    _write(triples(), target)
    return totals, reasons


def join(sources: Sequence[Path], target: Path) -> None:
    """Write the triples of several files into one, in their order."""
    import pyarrow.parquet as pq

    def triples() -> Iterator[pa.RecordBatch]:
        for source in sources:
            with pq.ParquetFile(source, read_dictionary=_NAMES, pre_buffer=False) as file:
                for group in range(file.metadata.num_row_groups):
                    yield from file.read_row_group(group).to_batches()

    _write(triples(), target)


def _write(triples: Iterator[pa.RecordBatch], target: Path) -> None:
    """Write triples to a file, which appears when it is complete.

    Writing takes longest, so a thread does it while the next triples are made.
    """
    import pyarrow.parquet as pq

    with (
        written_beside(target) as beside,
        pq.ParquetWriter(beside, _COLUMNS, **PARQUET) as writer,
        ThreadPoolExecutor(1) as thread,
    ):
        writing = thread.submit(int)  # nothing yet
        for batch in triples:
            writing.result()
            writing = thread.submit(writer.write_batch, batch)
        writing.result()


def _encoded(codes: Ids, labels: pa.Array) -> pa.DictionaryArray:
    if 4 * len(labels) > len(codes):
        # Every row group would hold the labels that it does not use, too.
        used = np.zeros(len(labels), bool)
        used[codes] = True
        labels = labels.filter(pa.array(used))
        codes = (np.cumsum(used, dtype=np.int32) - 1)[codes]
    return pa.DictionaryArray.from_arrays(pa.array(codes), labels, safe=False)
