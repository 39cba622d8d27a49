"""Tables in many Parquet files: patterns, folders, and the folders of triples that workers write.

Workers write the triples of a part of the facts to separate files, with a receipt beside them.
The manifest is written when all parts are there, and readers open what it lists: half a result is
never read.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from splime.errors import DataError
from splime.graph import SplitName
from splime.io.files import checksum, is_there, read_json, validated
from splime.io.sealed import check_seal

MANIFEST = "manifest.json"
RECEIPT = "part-{:05}.json"
TRIPLES = "{}-{:05}.parquet"
SEGMENTATION = "segmentation.json"
UNFINISHED = "unfinished.json"
"""What a folder without a manifest has: the command that resumes it."""
MEANWHILE = "meanwhile"
"""A folder for what is needed until the cuts are chosen."""
FORMAT = 1
_OURS = re.compile(
    r"part-\d+\.json|(train|valid|test)-\d+\.parquet|(manifest|segmentation|unfinished)\.json"
)


@dataclass(frozen=True)
class TripleFile:
    """A file with triples of one part and one split."""

    name: str
    split: SplitName
    triples: int
    bytes: int
    sha256: str

    def fits(self, folder: Path) -> bool:
        """Whether the file is there, byte for byte."""
        path = folder / self.name
        try:
            return path.stat().st_size == self.bytes and checksum(path) == self.sha256
        except OSError:
            return False


@dataclass(frozen=True)
class Receipt:
    """What a worker made of a part."""

    source: str
    """The file of facts."""
    rows: tuple[int, int]
    """The first of its rows, counted from 1, and the last."""
    cuts: str
    """The checksum of the cuts."""
    made_from: str
    """That of all that decides what the files hold."""
    facts: dict[SplitName, int]
    triples: dict[SplitName, int]
    read: dict[SplitName, int]
    """Rows, facts or not."""
    dropped: dict[str, int]
    files: list[TripleFile]


@dataclass(frozen=True)
class Manifest:
    """What a folder of triples holds; the files are in order: those of train, valid and test."""

    splime: Literal["triples"]
    format: int
    source: str
    method: dict[str, Any]
    rows: int
    parts: int
    facts: dict[SplitName, int]
    triples: dict[SplitName, int]
    dropped: dict[str, int]
    files: list[TripleFile]


def is_of_parts(name: str) -> bool:
    """Whether a file of this name can be one of a folder of triples."""
    return _OURS.fullmatch(name) is not None


def is_triples(source: str | os.PathLike[str]) -> bool:
    """Whether a source is a folder of triples."""
    return is_there(Path(source)) and (Path(source) / MANIFEST).is_file()


def read_manifest(folder: Path) -> Manifest:
    """What a folder of triples holds."""
    path = folder / MANIFEST
    about = read_json(path)
    if about.get("splime") != "triples" or about.get("format") != FORMAT:
        raise DataError(f"{path}: not a manifest that this version of splime reads")
    manifest = validated(path, about, Manifest)
    for file in manifest.files:
        if not is_of_parts(file.name):
            raise DataError(f"{path}: lists {file.name!r}, which splime does not write there")
    return manifest


def check_whole(path: Path) -> None:
    """An error if a file is not as it was written: by its own seal, or by the manifest beside it.

    Files of others have neither.
    """
    if is_triples(path.parent):
        for file in read_manifest(path.parent).files:
            if file.name == path.name and not file.fits(path.parent):
                raise DataError(f"{path}: the file is damaged or missing")
    check_seal(path)
