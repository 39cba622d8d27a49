"""Files: which ones hold facts; written whole or not at all; JSON, TOML and locks."""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from splime.errors import DataError, SplimeError, UsageError
from splime.graph import SplitName

TEXT = (".tsv", ".csv", ".txt", ".tab", ".dat", ".data", ".quad", ".quads")
_PACKED = ("", ".gz", ".zst")
JSON = tuple(kind + packed for kind in (".jsonl", ".ndjson", ".json") for packed in _PACKED)
SUFFIXES = (*(text + packed for text in TEXT for packed in _PACKED), *JSON, ".parquet")
_STEMS: dict[str, SplitName] = {
    "train": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
}


def split_files(folder: Path) -> dict[SplitName, list[tuple[int, Path]]]:
    """The files of a folder that may hold the facts of a split, each with a rank, best first.

    The name has one of the words for the split, in any case: `train.txt` (rank 0), `train` without
    a suffix (1), or `icews_2014_train.txt`, `train2id.txt` and `icews.train`, with other words (2).
    """
    files: dict[SplitName, list[tuple[int, Path]]] = {}
    try:
        for path in sorted(folder.iterdir()):
            name = path.name.lower()
            suffix = max((each for each in SUFFIXES if name.endswith(each)), key=len, default="")
            stem = name.removesuffix(suffix)
            ending = Path(stem).suffix.removeprefix(".")
            if not suffix and ending and ending not in _STEMS and not ending.isdigit():
                continue  # such as train.log and train.py
            splits = {_STEMS[word] for word in re.findall("[a-z]+", stem) if word in _STEMS}
            if len(splits) == 1 and path.is_file():
                rank = 2 if stem not in _STEMS else 0 if suffix else 1
                files.setdefault(splits.pop(), []).append((rank, path))
    except OSError as error:
        raise DataError(f"{folder}: cannot be opened: {error}") from None
    return {split: sorted(some) for split, some in files.items()}


def is_there(path: Path) -> bool:
    """Whether there is such a file or folder; a name that no file can have is an error."""
    try:
        return path.exists()
    except OSError as error:
        raise DataError(f"{path}: cannot be opened: {error}") from None


def is_binary(path: Path) -> bool:
    """Whether a file that has none of the usual suffixes is no text."""
    try:
        with path.open("rb") as file:
            return b"\0" in file.read(1 << 13)
    except OSError as error:
        raise DataError(f"{path}: cannot be opened: {error}") from None


def check_one_line(labels: Any, format: str, advice: str, *, kind: str = "") -> None:
    """An error if a text holds a tab or a line break, which has no place in lines and columns."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(labels, list):
        labels = pa.array(labels, pa.large_string())
    broken = labels.filter(pc.match_substring_regex(labels, "[\t\r\n]"))
    if len(broken):
        whose = f"the {kind} " if kind else ""
        raise UsageError(
            f"{whose}{broken[0].as_py()!r} holds a tab or a line break, which {format} cannot;"
            f" {advice}"
        )


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


@contextmanager
def written_folder(folder: Path) -> Iterator[Path]:
    """An empty folder to write into; when the block ends well, it is moved to where it belongs.

    What was there before is replaced.
    """
    place = folder.resolve()  # the target of a link is replaced, not the link
    beside, old = (place.with_name(f".{place.name}.{os.getpid()}.{end}") for end in ("part", "old"))
    try:
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        yield beside
        for path in beside.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        if place.exists():  # it is kept until the new folder has its place
            place.rename(old)
        try:
            beside.rename(place)
        except OSError:
            if old.exists():
                old.rename(place)
            raise
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise SplimeError(f"{folder}: cannot be written: {error}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


LOCK = "lock"
"""The file that a folder has while a process works in it."""


@contextmanager
def locked(folder: Path, *, wait: float = 0.0) -> Iterator[None]:
    """Keep other processes from working in a folder; the lock ends with this process.

    The folder is made if need be, and removed again if it is still empty afterwards.
    """
    from filelock import FileLock, Timeout

    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK, timeout=wait)
        lock.acquire()
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"{folder}: there is a file of this name; expected a folder") from None
    except Timeout:
        raise UsageError(
            f"{folder}: another process is working in this folder; wait for it, or choose another"
            " one"
        ) from None
    except OSError as error:
        raise SplimeError(f"{folder}: cannot be written: {error}") from None
    try:
        yield
    finally:
        with suppress(OSError):
            (folder / LOCK).unlink()  # while it is ours: whoever waits for it makes a new one
        lock.release()
        with suppress(OSError):
            for path in missing:
                path.rmdir()


def write_json(path: Path, value: Any) -> None:
    """Write JSON for people and programs."""
    with written_beside(path) as beside:
        beside.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; a DataError where it is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise DataError(f"{path}: expected a JSON object, which splime writes there")
    return value


def write_toml(path: Path, tables: Mapping[str, Any]) -> None:
    """Write a TOML file of whatever JSON can hold; None is left out."""
    with written_beside(path) as beside:
        beside.write_text(to_toml(tables), encoding="utf-8")


def to_toml(tables: Mapping[str, Any]) -> str:
    """The text of a TOML file.

    >>> print(to_toml({"method": {"name": "merge", "shrink": 4.0, "limit": None}}), end="")
    [method]
    name = "merge"
    shrink = 4.0
    """
    import tomli_w

    return tomli_w.dumps(_without_none(tables))


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_none(each) for key, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_without_none(each) for each in value if each is not None]
    return value.item() if hasattr(value, "item") else value  # numpy's numbers


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; one that is not TOML is an error that names line and column."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not a TOML file: {error}") from None


def whole_numbers(value: Any) -> Any:
    """The same with 4 for 4.0, which are the same parameter.

    >>> whole_numbers({"shrink": 4.0, "grow": [1.5, 2.0]})
    {'shrink': 4, 'grow': [1.5, 2]}
    """
    if isinstance(value, Mapping):
        return {key: whole_numbers(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [whole_numbers(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
