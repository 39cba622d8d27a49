"""One Parquet file with a row for every triple: names, scope, and the fact it came from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from splime.graph import SPLITS, SplitName
from splime.io.tables import dated
from splime.static import StaticGraph, Triples

FILES = ("triples.parquet",)

_ROWS = 1 << 20


def write(static: StaticGraph, folder: Path) -> None:
    """All splits in one file that any tool can open, written in row groups."""
    import pyarrow.parquet as pq

    schema = to_table(static, "train", static.train.take(slice(0))).schema
    with pq.ParquetWriter(folder / FILES[0], schema, compression="zstd") as writer:
        for split, triples in static.splits():
            for start in range(0, len(triples), _ROWS):
                part = triples.take(slice(start, start + _ROWS))
                writer.write_table(to_table(static, split, part))


def to_table(static: StaticGraph, split: SplitName, triples: Triples) -> pa.Table:
    """Triples (not necessarily all of the split) as a table of names and dates.

    `fact` is the row of the fact in its split, `overlap` the number of timestamps at which it
    holds inside of the scope; `source`, `begin` and `end` are the predicate that was cut, and the
    scope.
    """
    scopes, timeline = static.predicates, static.segmentation.timeline
    code = np.full(len(triples), SPLITS.index(split), np.int32)
    first, last = scopes.first[triples.predicate], scopes.last[triples.predicate]
    return pa.table(
        {
            "split": _named(code, pa.array(SPLITS, pa.string())),
            "subject": _named(triples.subject, static.entities.labels),
            "predicate": _named(triples.predicate, scopes.labels),
            "object": _named(triples.object, static.entities.labels),
            "fact": pa.array(triples.fact, pa.int64()),
            "overlap": pa.array(triples.overlap, pa.int32()),
            "source": _named(scopes.sources[triples.predicate], scopes.names.labels),
            "begin": dated(timeline.starts[first], timeline.granularity),
            "end": dated(timeline.ends[last], timeline.granularity),
        }
    )


def _named(codes: object, labels: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes), labels)
