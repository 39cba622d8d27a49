"""Names of files of facts, and files written beside and renamed over, so that nothing half-written
is ever found.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from splime.errors import DataError, SplimeError
from splime.graph import Split

TEXT = (".tsv", ".csv", ".txt")
SUFFIXES = (*TEXT, *(text + packed for text in TEXT for packed in (".gz", ".zst")), ".parquet")
_STEMS: dict[str, Split] = {
    "train": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
}


def split_files(folder: Path) -> dict[Split, list[Path]]:
    """The files of a folder that hold the facts of a split, by their names in any case."""
    found: dict[Split, list[Path]] = {}
    try:
        for path in sorted(folder.iterdir()):
            stem, dot, suffix = path.name.lower().partition(".")
            if stem in _STEMS and dot + suffix in SUFFIXES and path.is_file():
                found.setdefault(_STEMS[stem], []).append(path)
    except OSError as error:
        raise DataError(f"{folder}: cannot be opened: {error}") from None
    return found


def is_there(path: Path) -> bool:
    """Whether there is such a file or folder; a name that no file can have is an error."""
    try:
        return path.exists()
    except OSError as error:
        raise DataError(f"{path}: cannot be opened: {error}") from None


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """A path to write to; when the block ends well, the file is moved to where it belongs."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield beside
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise SplimeError(f"{path}: cannot be written: {error}") from None
    finally:
        with suppress(OSError):
            beside.unlink()
