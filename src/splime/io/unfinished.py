"""Long work that goes on where it was interrupted: what is done, beside the file to write."""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from splime.errors import DataError
from splime.io.files import LARGE, read_json, validated, write_json

T = TypeVar("T")
ENDING = ".unfinished"
SAVE = 10.0
"""Seconds between two times that what is done is saved."""


class Unfinished(Generic[T]):
    """What is done of a piece of work; nothing is kept where no file is to be written.

    `what` is a fingerprint of everything that decides about the result: what was done of other work
    is replaced, as is what was changed since.
    """

    def __init__(self, out: Path | None, what: str, kind: type[T], fresh: T) -> None:
        self._path = None if out is None else out.with_name(out.name + ENDING)
        self._what, self.done = what, fresh
        if self._path is not None and self._path.exists():
            with suppress(DataError):
                there: Any = read_json(self._path, LARGE)
                done = there.get("done")
                if (there.get("what"), there.get("sha256")) == (what, _checksum(done)):
                    self.done = validated(self._path, done, kind)
        self._saved = time.monotonic()
        self.save()  # an error before the work, not after it, where nothing can be written

    def save(self, every: float = 0.0) -> None:
        """Write what is done, unless it was written so many seconds ago or less."""
        if self._path is not None and self.due(every):
            done = msgspec.to_builtins(self.done)
            about = {"what": self._what, "sha256": _checksum(done), "done": done}
            write_json(self._path, about)
            self._saved = time.monotonic()

    def due(self, every: float) -> bool:
        """Whether it was last written so many seconds ago."""
        return time.monotonic() - self._saved >= every

    def remove(self) -> None:
        """Remove the file: the other one is written."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def _checksum(done: Any) -> str:
    return hashlib.sha256(json.dumps(done, sort_keys=True).encode()).hexdigest()
