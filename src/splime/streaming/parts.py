"""Transform facts on many workers, part by part, into a folder of triples.

The parts are counted, the cuts are chosen once, and every part becomes files of its own. A receipt
says what they were made from: the same command again goes on from the receipts that still fit.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from splime.errors import DataError, UsageError
from splime.exports import check_folder
from splime.graph import SPLITS
from splime.io.files import locked, read_json, validated, write_json
from splime.io.parquet import Part
from splime.io.parts import (
    FORMAT,
    MANIFEST,
    MEANWHILE,
    RECEIPT,
    SEGMENTATION,
    TRIPLES,
    UNFINISHED,
    Manifest,
    Receipt,
    is_of_parts,
)
from splime.io.segmentations import save_segmentation
from splime.methods.base import Method
from splime.progress import Progress, silent
from splime.segmentation import Segmentation
from splime.streaming.passes import Cutting, Made, triples_of, write_splits
from splime.streaming.transform import PART, Facts, StreamResult, choose, timed
from splime.times import Ints
from splime.workers import Spread, crew


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

    The files that the manifest lists have, one after the other, the rows of the file that
    `stream_transform` writes, whatever the engine and the number of workers. The folder holds a
    result when it has a manifest. Without one, the same command goes on where it was: parts whose
    receipts still fit are kept. The workers of other machines must see the files under the same
    names.

    Args:
        source: as for `stream_transform`.
        folder: where to write.
        method: as for `stream_transform`.
        engine: `processes` of this machine, or `ray`.
        workers: how many parts to work on at once; by default one for each processor.
        address: that of a Ray cluster; by default RAY_ADDRESS, or else one is started here.
        part_rows: how many facts a part has, about; 10 million by default. Parts are ranges of row
            groups, so one has at least a row group.
        batch_rows: how many facts a worker holds at once; about a million by default.
        overwrite: whether to replace what is in the folder.
        progress: gets what is being done, how many facts are done, and how many there are.
        reading: options of `splime.read`, as for `stream_transform`.
    """
    # Workers may be at work in other folders.
    source, folder = Path(source).absolute(), Path(folder).absolute()
    facts = Facts.of(source, method, reading, batch_rows)
    if part_rows is not None and part_rows < 1:
        raise UsageError(f"a part has at least 1 row, not {part_rows}")
    goes_on = (folder / UNFINISHED).exists() and not (folder / MANIFEST).exists()
    if not goes_on:
        check_folder(folder, overwrite=overwrite)
    with locked(folder):
        try:
            _sweep(folder, lambda name: goes_on and is_of_parts(name))
            write_json(folder / UNFINISHED, {"source": facts.name, "method": method.parameters()})
            with crew(engine=engine, workers=workers, address=address) as spread:
                result, manifest = _transform(facts, folder, part_rows or PART, spread, progress)
            write_json(folder / MANIFEST, asdict(manifest))
            listed = {file.name for file in manifest.files}
            listed |= {RECEIPT.format(number) for number in range(manifest.parts)}
            _sweep(folder, lambda name: name in listed | {MANIFEST, SEGMENTATION})
        except BaseException:
            done = any(folder.glob(RECEIPT.replace("{:05}", "*")))
            _sweep(folder, lambda name: done and is_of_parts(name))
            raise
    return result


def _transform(
    facts: Facts, folder: Path, part_rows: int, spread: Spread, progress: Progress
) -> tuple[StreamResult, Manifest]:
    seconds: dict[str, float] = {}
    method = facts.method

    def engine(
        what: str, function: Callable[..., Any], tasks: Sequence[Any]
    ) -> Iterator[tuple[int, Any]]:
        done = 0
        for number, result in spread(function, tasks):
            if isinstance(task := tasks[number], Part | _Piece):
                done += task.rows
                progress(what, done, facts.rows)
            yield number, result

    meanwhile = folder / MEANWHILE
    meanwhile.mkdir()
    parts = facts.parts(part_rows)
    parts, cutting, before = choose(facts, parts, engine, meanwhile, seconds, progress)
    shutil.rmtree(meanwhile)  # it may be larger than what comes now
    segmentation = Segmentation(cutting.scopes, None, method.parameters())
    save_segmentation(segmentation, folder / SEGMENTATION)
    cutter = _Cutter(folder, cutting, read_json(folder / SEGMENTATION)["sha256"])
    pieces = [_Piece(*each) for each in zip(range(len(parts)), parts, before, strict=True)]
    with timed(seconds, "applying"):
        made_of = dict(engine("applying", cutter, pieces))
    made, receipts = Made(), [made_of[number] for number in range(len(pieces))]
    for receipt in receipts:
        counts = receipt.facts, receipt.triples, receipt.read
        totals = np.array([[of[split] for split in SPLITS] for of in counts])
        made.add(Made(totals, Counter(receipt.dropped)))
    result = facts.result(made, cutting, seconds)
    files = [
        file for split in SPLITS for own in receipts for file in own.files if file.split == split
    ]
    about = facts.name, method.parameters(), facts.rows, len(parts)
    came = dict(result.facts), dict(result.triples), dict(result.dropped)
    return result, Manifest("triples", FORMAT, *about, *came, files)


@dataclass(frozen=True)
class _Piece:
    """A part on its way to become triples."""

    number: int
    part: Part
    before: Ints
    """How many facts each split has before it."""

    @property
    def rows(self) -> int:
        return self.part.rows

    def __str__(self) -> str:
        return str(self.part)


@dataclass(frozen=True)
class _Cutter:
    """Writes the triples of a part, unless they are there already."""

    folder: Path
    cutting: Cutting
    cuts: str
    """The checksum of the segmentation."""

    def __call__(self, piece: _Piece) -> Receipt:
        """The receipt for what is there now."""
        path, made_from = self.folder / RECEIPT.format(piece.number), self.made_from(piece)
        with suppress(DataError):  # there is none yet, or it is damaged
            old = validated(path, read_json(path), Receipt)
            if old.made_from == made_from and all(file.fits(self.folder) for file in old.files):
                return old
        made, part = Made(), piece.part
        targets = [self.folder / TRIPLES.format(split, piece.number) for split in SPLITS]
        triples = triples_of(part, self.cutting, piece.before, made)
        files = write_splits(triples, self.cutting, targets)
        facts, count, read = (dict(zip(SPLITS, row, strict=True)) for row in made.totals.tolist())
        rows = part.row + 1, part.row + part.rows
        about = str(part.path), rows, self.cuts, made_from
        receipt = Receipt(*about, facts, count, read, dict(made.dropped), files)
        write_json(path, asdict(receipt))
        return receipt

    def made_from(self, piece: _Piece) -> str:
        """The checksum of all that decides what is written."""
        part, clock = piece.part, self.cutting.clock
        ticks = [clock.ticks.tolist(), clock.first, clock.last, clock.split_at]
        place = [str(part.path), part.version, part.fact, part.row, part.rows, part.batch_rows]
        reading = [
            part.columns,
            part.forced,
            sorted((part.among or {}).items()),
            piece.before.tolist(),
        ]
        about = [FORMAT, self.cuts, ticks, place, reading, part.duplicates.tolist()]
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def _sweep(folder: Path, keep: Callable[[str], bool]) -> None:
    """Remove what is not kept of what this module writes, such as files of dead attempts."""
    for path in folder.iterdir():
        if path.name == MEANWHILE:
            shutil.rmtree(path, ignore_errors=True)
        elif (is_of_parts(path.name) or path.suffix == ".part") and not keep(path.name):
            path.unlink(missing_ok=True)
