"""Files: written whole or not at all; JSON, TOML and locks."""

from __future__ import annotations

import datetime
import glob
import hashlib
import itertools
import json
import os
import platform
import re
import shutil
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from splime.errors import DataError, SplimeError, UsageError, WriteError

T = TypeVar("T")


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
def atomic_write(path: Path) -> Iterator[Path]:
    """A path to write to; when the block ends well, the file is moved to where it belongs."""
    with _temporary(path, "part") as temporary:
        temporary.touch()
        yield temporary
        _sync(temporary)
        temporary.replace(path)


@contextmanager
def atomic_folder(folder: Path, check: Callable[[], None] = lambda: None) -> Iterator[Path]:
    """An empty folder to write into; when the block ends well, it is moved to where it belongs.

    What was there before is replaced, unless `check`, called at the end, refuses; a lock stays.
    """
    place = folder.resolve()  # the target of a link is replaced, not the link
    with scratch_folder(place, "part") as temporary:
        yield temporary
        for path in temporary.rglob("*"):
            if path.is_file():
                _sync(path)
        check()
        with suppress(FileNotFoundError):
            os.link(place / LOCK, temporary / LOCK)
        old = temporary.with_suffix(".old")
        if place.exists():  # it is kept until the new folder has its place
            place.rename(old)
        try:
            temporary.rename(place)
        except OSError:
            if old.exists():
                old.rename(place)
            raise
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def new_folder(folder: Path, check: Callable[[], None]) -> Iterator[Path]:
    """The same, where no other process works meanwhile.

    `check` is called before the block, and last of all; it refuses what must not be replaced.
    """
    place = folder.resolve()
    _sweep(place)  # before the lock makes the folder, which a killed process may have moved away
    check()
    with locked(place), atomic_folder(place, check) as temporary:
        check()
        yield temporary


@contextmanager
def scratch_folder(path: Path, kind: str = "work") -> Iterator[Path]:
    """An empty folder beside a path, for what is needed until the path is written."""
    with _temporary(path, kind) as temporary:
        temporary.mkdir(parents=True)
        yield temporary


_MACHINE = re.sub(r"\W", "", platform.node())[:40]
_NUMBERS = itertools.count()
_ACTIVE: set[str] = set()
"""What this process is writing, without suffixes."""


@contextmanager
def _temporary(path: Path, kind: str) -> Iterator[Path]:
    """A new name beside a path; what has it is removed when the block ends.

    Machine and process are part of it, so that the next process that writes the path knows what
    a killed one left from what a living one is writing.
    """
    stem = f".{path.name}.{_MACHINE}-{os.getpid()}-{next(_NUMBERS)}"
    temporary = path.absolute().with_name(f"{stem}.{kind}")
    _ACTIVE.add(stem)
    try:
        _sweep(path.absolute())
        yield temporary
    except OSError as error:
        raise WriteError(f"{path}: cannot be written: {error}") from None
    finally:
        with suppress(OSError):
            _remove(temporary)
        _ACTIVE.discard(stem)


def _sweep(path: Path) -> None:
    """Remove what killed processes of this machine left beside a path."""
    pattern = re.compile(
        rf"(\.{re.escape(path.name)}\.{_MACHINE}-([0-9]+)-[0-9]+)\.(part|old|work)"
    )
    for left in path.parent.glob(f".{glob.escape(path.name)}.*"):
        match = pattern.fullmatch(left.name)
        if match is None or match[1] in _ACTIVE or _is_alive(int(match[2])):
            continue
        if match[3] == "old" and not path.exists():
            left.rename(path)  # its process was killed before the new folder had its place
        else:
            _remove(left)


def _is_alive(process: int) -> bool:
    """Whether another process of this number is running; one of ours knows what it is writing."""
    if process == os.getpid():
        return False  # in containers, the process before often had the same number
    if os.name == "nt":
        return True  # os.kill would end it
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True  # a process of another user
    return True


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    with path.open("r+b" if os.name == "nt" else "rb") as file:  # Windows syncs what it may write
        os.fsync(file.fileno())


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
            (folder / LOCK).unlink()  # while it is ours: a process that waits makes a new one
        lock.release()
        with suppress(OSError):
            for path in missing:
                path.rmdir()


def content(folder: Path) -> list[Path]:
    """What is in a folder, but for a lock; nothing if there is no folder."""
    try:
        there = [path for path in folder.iterdir() if path.name != LOCK]
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        raise UsageError(f"{folder}: this is a file; expected a folder") from None
    except OSError as error:
        raise SplimeError(f"{folder}: cannot be read: {error}") from None
    return sorted(there)


def check_empty(folder: Path) -> None:
    """An error where there is something in a folder already."""
    if content(folder):
        raise UsageError(f"{folder}: is there already; choose another folder")


_TEXT, LARGE = 1 << 26, 1 << 32
"""Bytes that a text of ours may have; LARGE where it grows with the facts."""


def check_plain(path: Path, most: int | None = None) -> None:
    """An error where a path is no plain file, as a pipe or /dev/zero, or larger than `most`.

    A folder may come from a stranger: to read a pipe never ends, and a device has no end. What is
    not there at all is an OSError.
    """
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise DataError(f"{path}: expected a plain file, not a folder, pipe or device")
    if most is not None and about.st_size > most:
        raise DataError(
            f"{path}: has {about.st_size:,} bytes, more than splime writes there ({most:,})"
        )


def read_plain(path: Path, most: int = _TEXT) -> str:
    """The text of a file that splime wrote."""
    check_plain(path, most)
    return path.read_text(encoding="utf-8")


_DEEPEST = 50


def _check_depth(value: Any) -> None:
    """A ValueError where lists and tables are nested so deep that Python may give up on them."""
    level: list[Any] = [[value]]
    for _ in range(_DEEPEST):
        inside = (one.values() if isinstance(one, dict) else one for one in level)
        level = [item for items in inside for item in items if isinstance(item, dict | list)]
        if not level:
            return
    raise ValueError(f"its values are nested more than {_DEEPEST} deep")


def write_json(path: Path, value: Any) -> None:
    """Write JSON for people and programs."""
    with atomic_write(path) as beside:
        beside.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: Path, most: int = _TEXT) -> dict[str, Any]:
    """Read a JSON object; a DataError where it is none, or has more bytes than `most`."""
    try:
        value = json.loads(read_plain(path, most))
        _check_depth(value)
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise DataError(f"{path}: expected a JSON object, which splime writes there")
    return value


def write_toml(path: Path, tables: Mapping[str, Any]) -> None:
    """Write a TOML file of whatever JSON can hold; None is left out."""
    with atomic_write(path) as beside:
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
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_without_none(item) for item in value if item is not None]
    return value.item() if hasattr(value, "item") else value  # numpy's numbers


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; one that is not TOML is an error that names line and column."""
    try:
        tables = tomllib.loads(read_plain(path))
        _check_depth(tables)
        dates = [
            (place, value)
            for place, value in _leaves(tables, "")
            if isinstance(value, datetime.date | datetime.time)  # a datetime is a date
        ]
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not a TOML file: {error}") from None
    for place, value in dates:
        raise DataError(f'{path}: {place}: times are written in quotes: "{value}"')
    return tables


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """The values in tables and lists, each with the keys that lead to it."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield from _leaves(item, f"{place}, number {number}")
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
        return {key: whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
