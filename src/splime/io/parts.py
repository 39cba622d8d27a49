"""Tables in many Parquet files: patterns, folders, and the folders of triples that workers write.

Workers write the triples of a part of the facts to files of their own, with a receipt beside them.
The manifest is written when all parts are there, and readers open what it lists: half a result is
never read.
"""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from splime.errors import DataError
from splime.graph import SplitName
from splime.io.files import checksum, is_there, read_json, split_files, validated
from splime.io.sealed import check_seal

MANIFEST = "manifest.json"
RECEIPT = "part-{:05}.json"
TRIPLES = "{}-{:05}.parquet"
SEGMENTATION = "segmentation.json"
UNFINISHED = "unfinished.json"
"""What a folder without a manifest has: for whom to go on."""
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


def has_parts(source: str | os.PathLike[str]) -> bool:
    """Whether a source is a pattern, or a folder of Parquet files without a file for train.

    A file that has the characters of a pattern in its name is that file.
    """
    path = Path(source)
    if not is_there(path):
        return bool(glob.has_magic(str(source))) and path.suffix.lower() == ".parquet"
    if not path.is_dir():
        return False
    if is_triples(path) or (path / UNFINISHED).exists():
        return True
    return "train" not in split_files(path) and any(path.glob("*.parquet"))


def files_of(source: str | os.PathLike[str]) -> list[Path]:
    """The Parquet files of a source in their order: by name, or as the manifest lists them."""
    path = Path(source)
    if is_there(path) and path.is_dir():
        if is_triples(path):
            return triple_files(path)
        if (path / UNFINISHED).exists():
            raise DataError(
                f"{path}: the triples are not complete, there is no {MANIFEST}; go on with the"
                " command that began to write them"
            )
        return sorted(path.glob("*.parquet"))
    if has_parts(source):
        names = glob.glob(str(source), recursive=True)  # noqa: PTH207  # of any folder
        if not names:
            raise DataError(f"{source}: there is no such Parquet file")
        return sorted(map(Path, names))
    return [path]


def triple_files(folder: Path) -> list[Path]:
    """The files that the manifest of a folder lists."""
    return [folder / file.name for file in read_manifest(folder).files]


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
