"""Which facts of a source stand there twice, found in memory that does not grow with them.

Every fact gets a fingerprint of 96 bits. Part by part they are written to files, divided by their
first bits, so that those of equal facts come to files of the same number; then one number after the
other is sorted. Of a billion facts, two different ones have the same fingerprint with a probability
below 10^-10.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splime.io.parquet import Batch, FactFile, Part
from splime.progress import Progress, silent
from splime.times import Granularity

Hashes = npt.NDArray[np.uint64]

_RECORD = np.dtype([("key", np.uint64), ("check", np.uint32), ("row", np.uint32)])
# About so many fingerprints are sorted at a time.
_SORTED = 1 << 21
_UNKNOWN, _UNREADABLE = 1, 2
# Two hashes of everything: numbers from which nothing follows, odd, so that multiplying loses
# nothing.
_FACTORS = np.array([[0x9E3779B97F4A7C15], [0xC2B2AE3D27D4EB4F]], np.uint64)


def files_for(rows: int) -> int:
    """Into how many files the fingerprints of so many facts are divided."""
    return min(rows // _SORTED + 1, 1 << 10)


def write_fingerprints(
    part: Part, granularity: Granularity, files: int, folder: Path, progress: Progress = silent
) -> None:
    """Write the fingerprints of the facts of a part to files of its own."""
    with FactFile(part.path, part.columns) as file, ExitStack() as stack:
        outs = [
            stack.enter_context(_path(folder, part, number).open("wb")) for number in range(files)
        ]
        for batch in file.batches(part, "split", "subject", "predicate", "object", "begin", "end"):
            key, check = _fingerprints(batch, granularity)
            records = np.empty(len(batch), _RECORD)
            records["key"], records["check"] = key, check >> np.uint64(32)
            records["row"] = np.arange(len(batch)) + (batch.row - part.row)
            of_file = ((key >> np.uint64(32)) * np.uint64(files) >> np.uint64(32)).astype(np.uint16)
            order = np.argsort(of_file, kind="stable")
            bounds = np.cumsum(np.bincount(of_file, minlength=files))
            for out, some in zip(outs, np.split(records[order], bounds[:-1]), strict=True):
                some.tofile(out)
            progress("looking for duplicates", part.fact_of(batch) + len(batch))


def without_repeats(parts: Sequence[Part], files: int, folder: Path) -> list[Part]:
    """The parts, knowing which of their facts stand before already."""
    repeats: list[list[npt.NDArray[np.uint32]]] = [[] for _ in parts]
    for number in range(files):
        records = [np.fromfile(_path(folder, part, number), _RECORD) for part in parts]
        owner = np.repeat(np.arange(len(parts)), [len(own) for own in records])
        repeated, rows = _repeated(np.concatenate(records))
        for index in range(len(parts)):
            repeats[index].append(rows[owner[repeated] == index])
    return [
        replace(part, repeats=np.sort(np.concatenate(own)).astype(np.int64) + part.row)
        for part, own in zip(parts, repeats, strict=True)
    ]


def _path(folder: Path, part: Part, number: int) -> Path:
    return folder / f"{part.fact}-{number}"


def _repeated(records: npt.NDArray[np.void]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.uint32]]:
    """The records that stand before already, and their rows."""
    ordered = np.sort(records["key"])
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    suspects = (
        np.flatnonzero(np.isin(records["key"], twice)) if len(twice) else np.empty(0, np.intp)
    )
    some = records[suspects]
    # lexsort is stable: of equal facts the first one comes first.
    order = np.lexsort((some["check"], some["key"]))
    some = some[order]
    same = (some["key"][1:] == some["key"][:-1]) & (some["check"][1:] == some["check"][:-1])
    return suspects[order[1:][same]], some["row"][1:][same]


def _fingerprints(batch: Batch, granularity: Granularity) -> Hashes:
    """Two hashes of every fact, of its split, names and times."""
    hashes = np.zeros((2, len(batch)), np.uint64)
    columns = [batch.splits().astype(np.uint64)[None]]
    for role in ("subject", "predicate", "object"):
        labels = batch.labels(role)
        columns.append(_of_names(labels.dictionary)[:, labels.indices.to_numpy()])
    for times in batch.times(granularity):
        mixed = _mixed(times.ticks.view(np.uint64) * _FACTORS[0])
        columns.append(times.lookup(mixed, unknown=_UNKNOWN, unreadable=_UNREADABLE)[None])
    for column in columns:
        hashes ^= column
        hashes *= _FACTORS
        hashes ^= hashes >> np.uint64(29)
    return hashes


def _of_names(names: pa.Array) -> Hashes:
    """Two hashes of every name, of which eight bytes at a time are taken."""
    _, offsets, data = names.buffers()
    starts = np.frombuffer(offsets, np.int32)[names.offset :][: len(names) + 1].astype(np.int64)
    # Words may reach beyond the end.
    text = np.concatenate([np.frombuffer(data or b"", np.uint8), np.zeros(8, np.uint8)])
    lengths = np.diff(starts)
    words = lengths // 8 + 1
    stops = np.cumsum(words)
    owner = np.repeat(np.arange(len(names)), words)
    place = np.arange(len(owner)) - (stops - words)[owner]
    at = starts[:-1][owner] + 8 * place
    word = np.ndarray((len(text) - 7,), "<u8", text, strides=(1,))[at]
    # What follows the name is taken away; its length marks where it ends.
    left = np.minimum(lengths[owner] - 8 * place, 8).astype(np.uint64)
    word = np.where(left < 8, word & ((np.uint64(1) << (left * np.uint64(8))) - np.uint64(1)), word)
    mixed = _mixed((word ^ _mixed(place.astype(np.uint64) * _FACTORS[0] + left)) * _FACTORS)
    upto = np.pad(np.cumsum(mixed, axis=1, dtype=np.uint64), ((0, 0), (1, 0)))
    return _mixed(upto[:, stops] - upto[:, stops - words])


def _mixed(values: Hashes) -> Hashes:
    """Numbers of which every bit depends on all bits of the given ones."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
