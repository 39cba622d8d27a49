"""Find duplicate facts, in memory that does not grow with the number of facts.

Every fact gets a fingerprint of 96 bits. Each part writes its fingerprints to numbered files. The
first bits of a fingerprint choose the number, so equal facts go to files of the same number, and
these are sorted together. The probability that two different facts among a billion have the same
fingerprint is below 10^-10.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splime.arrays import expand, repeated
from splime.io.parquet import ROLES, Batch, Part
from splime.progress import Progress, silent
from splime.times import Granularity, Ints

Hashes = npt.NDArray[np.uint64]

_RECORD = np.dtype([("key", np.uint64), ("check", np.uint32), ("row", np.uint32)])
# About how many fingerprints are sorted at a time.
_SORTED = 1 << 21
_UNKNOWN, _UNREADABLE = 1, 2
# For the two hashes. Arbitrary, but odd, so that multiplying loses no bits.
_FACTORS = np.array([[0x9E3779B97F4A7C15], [0xC2B2AE3D27D4EB4F]], np.uint64)


def files_for(rows: int) -> int:
    """How many files a part writes, given the number of rows of the whole source."""
    return min(rows // _SORTED + 1, 1 << 9)  # all are open at once; a usual limit is 1,024


def write_fingerprints(
    part: Part, granularity: Granularity, files: int, folder: Path, progress: Progress = silent
) -> None:
    """Write the fingerprints of the facts of a part to its files."""
    with ExitStack() as stack:
        outputs = [
            stack.enter_context(_path(folder, part.fact, number).open("wb"))
            for number in range(files)
        ]
        for batch in part.batches(*ROLES, progress=progress):
            key, check = _fingerprints(batch, granularity)
            records = np.empty(len(batch), _RECORD)
            records["key"], records["check"] = key, check >> np.uint64(32)
            records["row"] = np.arange(len(batch)) + (batch.row - part.row)
            of_file = ((key >> np.uint64(32)) * np.uint64(files) >> np.uint64(32)).astype(np.uint16)
            order = np.argsort(of_file, kind="stable")
            bounds = np.cumsum(np.bincount(of_file, minlength=files))
            by_file = np.split(records[order], bounds[:-1])
            for output, chunk in zip(outputs, by_file, strict=True):
                chunk.tofile(output)


def duplicates_in(number: int, parts: Sequence[int], folder: Path) -> Ints:
    """The facts in the files of one number that repeat an earlier fact.

    A part is given by the number of its first fact.
    """
    records = [np.fromfile(_path(folder, part, number), _RECORD) for part in parts]
    rows = [part_records["row"].astype(np.int64) for part_records in records]
    facts = [part + part_rows for part, part_rows in zip(parts, rows, strict=True)]
    return np.concatenate(facts)[_repeated(np.concatenate(records))]


def with_duplicates(parts: Sequence[Part], found: Sequence[Ints]) -> list[Part]:
    """The parts, with the facts of each that repeat an earlier fact."""
    duplicates = np.sort(np.concatenate(found))
    by_part = np.split(duplicates, np.searchsorted(duplicates, [part.fact for part in parts[1:]]))
    return [replace(part, duplicates=facts) for part, facts in zip(parts, by_part, strict=True)]


def _path(folder: Path, part: int, number: int) -> Path:
    return folder / f"{part}-{number}"


def _repeated(records: npt.NDArray[np.void]) -> Ints:
    """The positions of records that repeat an earlier one."""
    return repeated(
        lambda: records["key"].copy(),
        lambda rows: (records["check"][rows], records["key"][rows]),
    )


def _fingerprints(batch: Batch, granularity: Granularity) -> Hashes:
    """Two hashes of the split, names and times of every fact."""
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
    """Two hashes of every name, computed from eight bytes at a time."""
    _, offsets, data = names.buffers()
    starts = np.frombuffer(offsets, np.int32)[names.offset :][: len(names) + 1].astype(np.int64)
    # The last word may reach beyond the end.
    text = np.concatenate([np.frombuffer(data or b"", np.uint8), np.zeros(8, np.uint8)])
    lengths = np.diff(starts)
    words = lengths // 8 + 1
    stops = np.cumsum(words)
    owner, place = expand(np.zeros_like(words), words)
    at = starts[:-1][owner] + 8 * place
    word = np.ndarray((len(text) - 7,), "<u8", text, strides=(1,))[at]
    # The bytes after the name are masked; its length marks the end.
    left = np.minimum(lengths[owner] - 8 * place, 8).astype(np.uint64)
    word = np.where(left < 8, word & ((np.uint64(1) << (left * np.uint64(8))) - np.uint64(1)), word)
    mixed = _mixed((word ^ _mixed(place.astype(np.uint64) * _FACTORS[0] + left)) * _FACTORS)
    upto = np.pad(np.cumsum(mixed, axis=1, dtype=np.uint64), ((0, 0), (1, 0)))
    return _mixed(upto[:, stops] - upto[:, stops - words])


def _mixed(values: Hashes) -> Hashes:
    """Mix numbers so that every bit depends on all bits."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
