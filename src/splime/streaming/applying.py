"""Write the triples of the facts of a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from splime.graph import SPLITS, Ids
from splime.io.batches import Columns, FactFile, positions, reasons
from splime.io.files import written_beside
from splime.progress import Update
from splime.segmentation import Scopes
from splime.streaming.frame import Frame
from splime.streaming.tally import Counted

_TEXT = pa.dictionary(pa.int32(), pa.string())
_COLUMNS = pa.schema(
    dict.fromkeys(("split", "subject", "predicate", "object"), _TEXT)
    | {"fact": pa.int64(), "overlap": pa.int32()}
)
_PARQUET = {
    "compression": "zstd",
    "use_dictionary": ["split", "subject", "predicate", "object", "overlap"],
    "column_encoding": {"fact": "DELTA_BINARY_PACKED"},
    # Names stay a dictionary however many there are, and their least and greatest help nobody.
    "dictionary_pagesize_limit": 2**26,
    "write_statistics": ["fact"],
}
# A fact can have many triples: they are made and written so many at a time.
_TRIPLES = 1 << 20


class Applying:
    """Puts facts into the pieces that they hold in, and counts them."""

    def __init__(self, file: FactFile, frame: Frame, counted: Counted, scopes: Scopes) -> None:
        self._file = file
        self._frame = frame
        self._counted = counted
        self._stamps = counted.timeline.index(counted.clock)
        self._scopes = scopes
        self._labels = scopes.labels.cast(pa.string())
        self.facts = np.zeros(len(SPLITS), np.int64)
        self.triples = np.zeros(len(SPLITS), np.int64)
        self.dropped: Counter[str] = Counter()

    def write(self, target: Path, update: Update) -> None:
        """Write the triples of all facts."""
        import pyarrow.parquet as pq

        with (
            written_beside(target) as beside,
            pq.ParquetWriter(beside, _COLUMNS, **_PARQUET) as writer,
            ThreadPoolExecutor(1) as thread,
        ):
            # Writing takes longest, so it goes on while the next triples are made.
            writing: Future[None] | None = None
            for row, columns in self._file.batches(
                "split", "subject", "predicate", "object", "begin", "end"
            ):
                for triples in self._cut(row, columns):
                    if writing is not None:
                        writing.result()
                    writing = thread.submit(writer.write_batch, triples)
                update("applying", row + len(columns["predicate"]), self._file.rows)
            if writing is not None:
                writing.result()

    def _cut(self, row: int, columns: Columns) -> Iterator[pa.RecordBatch]:
        """The triples of a batch."""
        subject, predicate, object_ = (
            self._file.labels(columns, role, row) for role in ("subject", "predicate", "object")
        )
        name = self._counted.predicates.ids(predicate.dictionary)[predicate.indices.to_numpy()]
        begin, end = self._spans(columns)
        fact = np.arange(row, row + len(begin))
        # What is passed from facts to their triples.
        passed = [
            self._file.splits(columns, row),
            subject.indices.to_numpy(),
            object_.indices.to_numpy(),
        ]
        kept = begin <= end
        if not kept.all():
            name, begin, end, fact = name[kept], begin[kept], end[kept], fact[kept]
            passed = [column[kept] for column in passed]
        begin, end = self._stamps[begin], self._stamps[end]
        low, high = self._scopes.find(name, begin, end)
        pieces = high - low + 1
        self.facts += np.bincount(passed[0], minlength=len(SPLITS))
        self.triples += np.bincount(passed[0], pieces, len(SPLITS)).astype(np.int64)
        for part in _parts(pieces):
            count, piece, overlap = self._scopes.cut(
                name[part], begin[part], end[part], low[part], high[part]
            )
            splits, subjects, objects = (np.repeat(column[part], count) for column in passed)
            arrays = [
                _encoded(splits, pa.array(SPLITS)),
                _encoded(subjects, subject.dictionary),
                _encoded(piece, self._labels),
                _encoded(objects, object_.dictionary),
                pa.array(np.repeat(fact[part], count)),
                pa.array(overlap),
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=_COLUMNS)

    def _spans(self, columns: Columns) -> tuple[Ids, Ids]:
        clock, first, last = self._counted.clock, self._counted.first, self._counted.last
        times = self._file.times(columns, self._frame.granularity, self._frame.timeline)
        if self._frame.timeline is None:
            begin, end = positions(times, clock, unknown=(first, last))
        else:  # what is filled in gives way to the known time
            begin, end = positions(times, clock, unknown=(-1, len(clock)))
            begin, end = (
                np.where(begin == -1, np.clip(end, 0, first), begin),
                np.where(end == len(clock), np.clip(begin, last, len(clock)), end),
            )
        self.dropped += reasons(begin, end, clock)
        return begin, end


def _parts(count: Ids) -> Iterator[slice]:
    """Facts that stand together, with about so many triples as are made at a time."""
    stop = np.cumsum(count)
    triples = int(stop[-1]) if len(stop) else 0
    parts = -(-triples // _TRIPLES)
    bounds = np.searchsorted(stop, np.arange(1, parts) * triples / max(parts, 1))
    # A fact with more triples than that is a part of its own.
    for low, high in pairwise(np.unique([0, *bounds, len(count)]).tolist()):
        yield slice(low, high)


def _encoded(codes: Ids, labels: pa.Array) -> pa.DictionaryArray:
    if 4 * len(labels) > len(codes):
        # Labels that are not used would be written too, with every part.
        used = np.zeros(len(labels), bool)
        used[codes] = True
        labels = labels.filter(pa.array(used))
        codes = (np.cumsum(used, dtype=np.int32) - 1)[codes]
    return pa.DictionaryArray.from_arrays(pa.array(codes), labels, safe=False)
