"""A cache on disk: folders by key, each with files of what was made from the same input.

The name of a file carries its checksum, so a damaged one is known, removed and made again. Files
appear whole or not at all, and none is ever changed: processes need not wait for each other. All of
it belongs to one user, who alone can read it. Where nothing can be written, nothing is kept.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from splime.errors import SplimeError, WriteError
from splime.io.files import atomic_write, checksum, read_json, scratch_folder, write_json
from splime.reading import LOG

T = TypeVar("T")
MOST = 10**9
"""Bytes that a cache may take; what was used least recently goes first."""
VARIABLE = "SPLIME_NO_CACHE"
"""The environment variable that switches it off for one command."""
_OFF, _ABOUT = "off", "about.json"
_LONG = 16  # of a checksum, in names
_FAILURES = (OSError, SplimeError, ValueError, KeyError, TypeError)


@dataclass(frozen=True)
class Kept:
    """A folder of a cache."""

    folder: Path
    source: str
    """The name of what it was made from."""
    facts: int
    bytes: int
    used: float
    """When it was used last, in seconds since 1970."""


class Cache:
    """The folders below one folder, by their keys."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def is_off(self) -> bool:
        """Whether the user has switched it off."""
        return (self.folder / _OFF).exists()

    def switch(self, on: bool) -> None:
        """Switch it on or off, for all commands to come."""
        if on:
            (self.folder / _OFF).unlink(missing_ok=True)
            return
        try:
            _make_private(self.folder)
        except OSError as error:
            raise WriteError(f"{self.folder}: cannot be written: {error}") from None
        with atomic_write(self.folder / _OFF) as beside:
            beside.chmod(0o600)

    def entry(self, key: str) -> Entry:
        """What is kept under a key; nothing where the cache is off."""
        try:
            if os.environ.get(VARIABLE, "0") not in ("", "0") or self.is_off:
                return Entry()
            if (self.folder / key).exists():
                os.utime(self.folder / key)
        except OSError as error:
            LOG.debug("nothing is kept for later in %s: %s", self.folder, error)
            return Entry()
        return Entry(self, key)

    def kept(self) -> list[Kept]:
        """All that is kept, what was used last first."""
        found = []
        for folder, size, used in self._folders():
            about = Entry(self, folder.name).find(_ABOUT, read_json) or {}
            source, facts = str(about.get("source", "?")), int(about.get("facts", 0))
            found.append(Kept(folder, source, facts, size, used))
        return sorted(found, key=lambda one: -one.used)

    def _folders(self) -> list[tuple[Path, int, float]]:
        """Each folder, its bytes, and when it was used last."""
        found = []
        for folder in self.folder.iterdir() if self.folder.is_dir() else ():
            with suppress(FileNotFoundError):  # another process removes it
                if folder.is_dir():
                    used = folder.stat().st_mtime
                    size = sum(path.stat().st_size for path in folder.rglob("*"))
                    found.append((folder, size, used))
        return found

    def trim(self, most: int) -> None:
        """Remove what was used least recently, until all takes at most so many bytes."""
        folders = self._folders()
        total = sum(size for _, size, _ in folders)
        # First what is too large by itself, for which all the rest would have to go.
        for folder, size, _ in sorted(folders, key=lambda one: (one[1] <= most, one[2])):
            if total <= most:
                break
            shutil.rmtree(folder, ignore_errors=True)
            total -= size

    def clear(self) -> None:
        """Remove all that is kept."""
        for folder, _, _ in self._folders():
            with suppress(FileNotFoundError):
                shutil.rmtree(folder)


class Entry:
    """A folder of a cache; without one, everything is made whenever it is asked for."""

    def __init__(self, cache: Cache | None = None, key: str = "") -> None:
        self._cache, self.key = cache, key

    def get(
        self,
        name: str,
        make: Callable[[], T],
        *,
        read: Callable[[Path], T],
        write: Callable[[T, Path], Any],
    ) -> T:
        """What is kept under the name of a file, or else made and kept."""
        found = self.find(name, read)
        if found is None:
            found = make()
            self._keep(name, found, write)
        return found

    def describe(self, source: str, facts: int) -> None:
        """Say what it was made from, for those who list what is kept."""
        about = {"source": source, "facts": facts}
        self.get(
            _ABOUT, lambda: about, read=read_json, write=lambda one, path: write_json(path, one)
        )

    def forget(self) -> None:
        """Keep nothing from now on."""
        self._cache = None

    def find(self, name: str, read: Callable[[Path], T]) -> T | None:
        """What is kept under a name; None if nothing is, or if it is damaged."""
        if self._cache is None:
            return None
        stem, _, suffix = name.rpartition(".")
        for path in (self._cache.folder / self.key).glob(f"{stem}.*.{suffix}"):
            try:
                if path.name.split(".")[-2] == checksum(path)[:_LONG]:
                    return read(path)
                why = "its checksum differs"
            except _FAILURES as error:
                why = str(error)
            LOG.debug("%s is damaged (%s), and made again", path, why)
            with suppress(OSError):
                path.unlink()
        return None

    def _keep(self, name: str, value: T, write: Callable[[T, Path], Any]) -> None:
        if self._cache is None:
            return
        folder = self._cache.folder / self.key
        stem, _, suffix = name.rpartition(".")
        try:
            _make_private(self._cache.folder)
            _make_private(folder)
            with scratch_folder(folder / name) as beside:
                path = beside / name
                write(value, path)
                path.chmod(0o600)
                path.replace(folder / f"{stem}.{checksum(path)[:_LONG]}.{suffix}")
            self._cache.trim(MOST)
        except _FAILURES as error:
            LOG.debug("nothing is kept for later: %s", error)
            self.forget()


def _make_private(folder: Path) -> None:
    """A folder that its owner alone can open; an error if it belongs to somebody else."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
