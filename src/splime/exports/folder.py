"""Folders written beside and renamed into place, so that nothing half-written is ever found."""

from __future__ import annotations

import os
import shutil
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path

from splime.errors import SplimeError, UsageError


@contextmanager
def written_folder(folder: Path) -> Iterator[Path]:
    """An empty folder to write into; when the block ends well, it is moved to where it belongs.

    What was there before is replaced.
    """
    place = folder.resolve()  # the target of a link is replaced, not the link
    beside = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        yield beside
        for path in beside.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        _move(beside, place)
    except OSError as error:
        raise SplimeError(f"{folder}: cannot be written: {error}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def check_replaceable(folder: Path, names: Container[str], *, overwrite: bool) -> None:
    """An error if a folder is not empty, or, with `overwrite`, holds other files than `names`."""
    try:
        found = sorted(folder.iterdir()) if folder.exists() else []
    except NotADirectoryError:
        raise UsageError(f"{folder}: this is a file; an export makes a folder") from None
    except OSError as error:
        raise SplimeError(f"{folder}: cannot be read: {error}") from None
    if found and not overwrite:
        raise UsageError(
            f"{folder}: the folder is not empty; choose another one, or replace it with"
            " overwrite=True (--overwrite on the command line)"
        )
    for path in found:
        if path.name not in names or path.is_dir():
            raise UsageError(
                f"{folder}: holds {path.name!r}, which no export writes, so the folder is not"
                " replaced; choose another one, or move that away"
            )


def _move(beside: Path, place: Path) -> None:
    """Rename, keeping what was there until the new folder has its place."""
    if not place.exists():
        beside.rename(place)
        return
    old = place.with_name(f".{place.name}.{os.getpid()}.old")
    place.rename(old)
    try:
        beside.rename(place)
    except OSError:
        old.rename(place)
        raise
    shutil.rmtree(old)
