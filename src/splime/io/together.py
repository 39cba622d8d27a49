"""Several files that are one table, such as one for each year."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from splime.errors import DataError, counted
from splime.io.columns import EncodedColumn, RawFacts, all_remarks
from splime.io.options import ReadOptions
from splime.io.readers import read_named

_LISTED = 5


def read_together(files: Sequence[Path], source: Path, options: ReadOptions) -> RawFacts:
    """The facts of several files, one after the other; their columns must be the same."""
    raws: list[RawFacts] = []
    # The largest shows best which column is what.
    largest = max(files, key=lambda file: file.stat().st_size)
    shown = _facts(largest, options)
    for file in files:
        raw = shown if file == largest else _read_alike(file, shown, options)
        _check_alike(raw, file, raws, files)
        raws.append(raw)
    names = [file.name for file in files]
    more = ", …" if len(names) > _LISTED else ""
    told = (
        f"{counted(len(files), 'file')} are read as one table: {', '.join(names[:_LISTED])}{more}"
    )
    return replace(
        _joined(raws, source.name),
        remarks=(*([told] if len(files) > 1 else []), *all_remarks(raws)),
    )


def _read_alike(file: Path, shown: RawFacts, options: ReadOptions) -> RawFacts:
    """The facts of a file, whose columns may show too little, as another file was read."""
    chosen = replace(options, columns=options.columns or shown.columns or None)
    try:
        raw = _facts(file, options)
    except DataError:
        return _facts(file, chosen)
    alike = raw.header != shown.header or raw.columns == shown.columns
    return raw if alike else _facts(file, chosen)


def _facts(file: Path, options: ReadOptions) -> RawFacts:
    raw = read_named(file, None, options)
    if not isinstance(raw, RawFacts):
        raise DataError(f"{file}: holds a whole graph, expected facts among those of others")
    return raw


def _check_alike(
    raw: RawFacts, file: Path, raws: Sequence[RawFacts], files: Sequence[Path]
) -> None:
    """An error if a file has other columns than the first one."""
    if not raws:
        return
    first = raws[0]
    if raw.header != first.header:
        raise DataError(
            f"{file}: the header is {_header(raw)}, that of {files[0]} is {_header(first)}; files"
            " that are read as one table have the same"
        )
    if len(raw.times) != len(first.times) or (raw.splits is None) != (first.splits is None):
        raise DataError(f"{file}: has other columns than {files[0]}")


def _header(raw: RawFacts) -> str:
    return "missing" if raw.header is None else f"{raw.header!r:.200}"


def _joined(raws: Sequence[RawFacts], name: str) -> RawFacts:
    """The rows of several files as those of one."""
    starts = list(itertools.accumulate((raw.rows for raw in raws), initial=0))

    def locate(rows: Sequence[int]) -> list[str]:
        places = []
        for row in rows:
            at = bisect.bisect_right(starts, row) - 1
            places += raws[at].locate([row - starts[at]])
        return places

    first = raws[0]
    halves = [np.zeros(raw.rows, np.uint8) if raw.halves is None else raw.halves for raw in raws]
    return replace(
        first,
        name=name,
        names=[_column(raw.names[at] for raw in raws) for at in range(3)],
        times=[_column(raw.times[at] for raw in raws) for at in range(len(first.times))],
        written=[_column(raw.written[at] for raw in raws) for at in range(len(first.written))],
        splits=first.splits and _column(raw.splits for raw in raws if raw.splits is not None),
        halves=np.concatenate(halves) if any(one.any() for one in halves) else None,
        labels=dict(itertools.chain.from_iterable(raw.labels.items() for raw in reversed(raws))),
        is_text=all(raw.is_text for raw in raws),
        locate=locate,
    )


def _column(columns: Iterable[EncodedColumn]) -> EncodedColumn:
    """The rows of several columns as those of one."""
    chunks = []
    for column in columns:
        codes = column.all_codes()
        chunks.append(
            pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), column.strings)
        )
    return EncodedColumn(pa.chunked_array(chunks))
