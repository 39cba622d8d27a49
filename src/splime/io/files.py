"""Files: which ones hold facts; written whole or not at all; JSON, TOML and locks."""

from __future__ import annotations

import datetime
import glob
import hashlib
import json
import os
import re
import shutil
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from splime.errors import DataError, UsageError, WriteError
from splime.graph import SplitName

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")
_LONG = 3600.0  # seconds
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


def checksum(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
    beside = _beside(path, "part")
    try:
        _sweep(path)
        beside.touch()
        with _held(beside):
            yield beside
            with beside.open("rb") as file:
                os.fsync(file.fileno())
            beside.replace(path)
    except OSError as error:
        raise WriteError(f"{path}: cannot be written: {error}") from None
    finally:
        with suppress(OSError):
            beside.unlink()


@contextmanager
def written_folder(folder: Path) -> Iterator[Path]:
    """An empty folder to write into; when the block ends well, it is moved to where it belongs.

    What was there before is replaced.
    """
    place = folder.resolve()  # the target of a link is replaced, not the link
    old = _beside(place, "old")
    try:
        with working_folder(place, "part") as beside:
            yield beside
            for path in beside.rglob("*"):
                if path.is_file():
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
        raise WriteError(f"{folder}: cannot be written: {error}") from None


@contextmanager
def working_folder(path: Path, kind: str = "work") -> Iterator[Path]:
    """An empty folder beside a path, for what is needed until the path is written."""
    path = path.absolute()
    beside = _beside(path, kind)
    try:
        _sweep(path)
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        with _held(beside):
            yield beside
    except OSError as error:
        raise WriteError(f"{path}: cannot be written: {error}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _beside(path: Path, kind: str) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{kind}")


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold a lock on a file or folder, so that no other process takes it for one left behind."""
    place = _open(path)
    try:
        _lock(place, wait=True)  # somebody may just look whether it is held
        yield
    finally:
        os.close(place)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)


def _lock(place: int, *, wait: bool = False) -> bool | None:
    """Lock an open file until it is closed; False if another holds it, None if nobody can."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(place, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _sweep(path: Path) -> None:
    """Remove what killed processes left beside a path."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.([0-9]+)\.(part|old|work)")
    for left in path.parent.glob(f".{glob.escape(path.name)}.*"):
        match = pattern.fullmatch(left.name)
        if match is None or not _is_left_behind(left, int(match[1])):
            continue
        if match[2] == "old" and not path.exists():
            left.rename(path)  # its process was killed before the new folder had its place
        elif left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def _is_left_behind(path: Path, process: int) -> bool:
    """Whether a process that is no more wrote a file or folder, and nobody is writing to it.

    Its number may be that of another process by now, or of one on another machine. So what nobody
    holds also counts as left behind an hour after it was written or moved. Until then it may be a
    file that a library put in the place of the one that is held, which is about to be moved.
    """
    try:
        place = _open(path)
    except OSError:
        return False  # it is gone, or not ours
    try:
        if (locked := _lock(place)) is False:
            return False
        about = os.fstat(place)
        if time.time() - max(about.st_mtime, about.st_ctime) > _LONG:
            return True
        # In containers, this process often has the number that the one before it had.
        return locked is True and (process == os.getpid() or not _is_alive(process))
    finally:
        os.close(place)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True  # that of somebody else
    return True


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
        raise WriteError(f"{folder}: cannot be written: {error}") from None
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
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not a TOML file: {error}") from None
    for place, value in _leaves(tables, ""):
        if isinstance(value, datetime.date | datetime.time):  # a datetime is a date
            raise DataError(f'{path}: {place}: times are written in quotes: "{value}"')
    return tables


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """The values in tables and lists, each with the keys that lead to it."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for number, each in enumerate(value, 1):
            yield from _leaves(each, f"{place}, number {number}")
    else:
        yield place, value


def validated(path: Path, value: Any, kind: type[T]) -> T:
    """What a file holds as what it must be; else an error that says which key is wrong."""
    import msgspec

    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise DataError(f"{path}: not what splime writes there: {error}") from None


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
