"""Fetches published files over HTTP(S), with checksum, resume and retries.

By hand with urllib because pooch, the usual choice, cannot resume a download that was cut.
The bytes go to `<name>.part`, appended without a buffer, so that whatever is in there after a kill
or on a full disk is a true beginning of what was sent. The checksum decides about the final name.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import io
import os
import re
import shutil
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from splime.errors import DownloadError
from splime.progress import Update

if sys.platform != "win32":
    import fcntl

TIMEOUT = 30.0  # seconds without a byte after which a connection counts as cut
_CHUNK = 1 << 16


@dataclass(frozen=True)
class RemoteFile:
    """A published file: its name in the target folder, its address, and its checksum in hex."""

    name: str
    url: str
    sha256: str


class _CutError(Exception):
    """A connection that failed in a way that may go better next time."""


class _UnreachableError(_CutError):
    """There was no connection at all."""


def fetch(
    files: Sequence[RemoteFile],
    folder: Path,
    *,
    progress: Update | None = None,
    attempts: int = 4,
    pause: float = 0.5,
) -> list[Path]:
    """Make sure that every file lies in `folder` with the right checksum; return their paths.

    `attempts` bounds the failed connections per file, whether they brought bytes or not: a server
    that gives a few bytes per connection cannot keep us for ever, and giving up loses nothing,
    since the next call resumes. Between them lie `pause` seconds, doubled every time. `progress`
    counts resumed bytes as done.
    """
    return [_Download(file, folder, progress).run(attempts, pause) for file in files]


def sha256_of(path: Path) -> str:
    """The SHA-256 checksum of a file, in hex.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     _ = (Path(name) / "a.txt").write_bytes(b"abc")
    ...     sha256_of(Path(name) / "a.txt")
    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'
    """
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class _Download:
    """One file on its way into the folder."""

    def __init__(self, file: RemoteFile, folder: Path, progress: Update | None) -> None:
        self.file = file
        self.folder = folder
        self.target = folder / file.name
        self.part = folder / f"{file.name}.part"
        self.progress = progress
        self.total: int | None = None
        self.by_hand = (
            f"You can put {file.name} into {folder} by hand, or into a folder of your own and name "
            "that folder in the environment variable SPLIME_DATA."
        )

    def run(self, attempts: int, pause: float) -> Path:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            while not self._is_there():
                with _locked(self.part) as is_ours:
                    # Another process may have finished the file since we looked.
                    if is_ours and not self.target.exists():
                        self._fill_part(attempts, pause)
                        self.part.replace(self.target)
        except OSError as error:  # network trouble never gets here as an OSError
            raise self._disk_error(error) from error
        return self.target

    def _is_there(self) -> bool:
        found = sha256_of(self.target) if self.target.exists() else None
        if found not in (None, self.file.sha256):
            raise DownloadError(
                f"{self.target} is not the published file: its SHA-256 is {found}, expected was "
                f"{self.file.sha256}. Delete it to download it again."
            )
        return found is not None

    def _fill_part(self, attempts: int, pause: float) -> None:
        """Connect until the .part is complete and has the right checksum."""
        failures = 0
        reached = restarted = False
        began_at: int | None = None  # in the file, if the last answer came through to its end
        while (found := sha256_of(self.part)) != self.file.sha256:
            if began_at is not None:
                self.part.write_bytes(b"")  # emptied, not deleted: the lock is on this very file
                if began_at == 0 or restarted:
                    raise DownloadError(
                        f"{self.file.url} sent other bytes than the published ones: their SHA-256 "
                        f"is {found}, expected was {self.file.sha256}. They were thrown away."
                    )
                restarted = True  # the older bytes may be the wrong ones: once more from zero
            try:
                began_at = self._receive(self.part.stat().st_size)
            except _CutError as error:
                began_at = None
                failures += 1
                reached = reached or not isinstance(error, _UnreachableError)
                # With no sign of the server in this run, more than one retry is only waiting.
                if failures >= (attempts if reached else min(attempts, 2)):
                    raise self._gave_up(error) from error
                time.sleep(min(pause * 2 ** (failures - 1), TIMEOUT))

    def _receive(self, size: int) -> int:
        """Append one connection's bytes to the .part; return the offset at which they began."""
        response, first = self._ask(size)
        with response, self.part.open("ab", buffering=0) as out:
            have = out.truncate(first)
            while True:
                try:
                    chunk = response.read1(_CHUNK)
                except (OSError, http.client.HTTPException) as error:
                    raise _CutError(repr(error)) from error
                if not chunk:
                    break
                _write_all(out, chunk)
                have += len(chunk)
                if self.progress:
                    self.progress(self.file.name, have, self.total)
            if self.total is not None and have < self.total:
                raise _CutError("the connection was closed early")
            try:
                os.fsync(out.fileno())
            except OSError:
                out.truncate(0)  # which of the bytes reached the disk, nobody knows
                raise
        return first

    def _ask(self, size: int) -> tuple[http.client.HTTPResponse, int]:
        """The server's answer, and the offset in the file at which its body begins."""
        headers = {"User-Agent": f"splime/{version('splime')}"}
        if size:
            headers["Range"] = f"bytes={size}-"
        try:
            request = urllib.request.Request(self.file.url, headers=headers)
            response: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=TIMEOUT)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416 and size:  # the .part is no beginning of this file
                return self._ask(0)
            if error.code >= 500 or error.code == 429:
                raise _CutError(str(error)) from error
            raise DownloadError(f"{self.file.url}: {error}. {self.by_hand}") from error
        except urllib.error.URLError as error:
            raise _UnreachableError(str(error.reason)) from error
        except (OSError, http.client.HTTPException) as error:
            raise _CutError(repr(error)) from error
        except ValueError as error:
            raise DownloadError(
                f"{self.file.url} is no address of a file on the net: {error}. Is SPLIME_MIRROR"
                f" set to something else? {self.by_hand}"
            ) from error
        if not size or response.status != 206:
            self.total = response.length
            return response, 0
        sent = re.match(r"bytes (\d+)-\d+/(\d+)$", response.headers.get("Content-Range", ""))
        if sent and int(sent[1]) == size:
            self.total = int(sent[2])
            return response, size
        response.close()
        return self._ask(0)

    def _gave_up(self, error: _CutError) -> DownloadError:
        message = f"{self.file.url}: {error}. "
        if isinstance(error, _UnreachableError):
            message += f"There seems to be no network, or the host is down. {self.by_hand} "
        total = "an unknown number of" if self.total is None else self.total
        arrived = f"{self.part.stat().st_size} of {total} bytes arrived so far"
        return DownloadError(f"{message}{arrived}; running the same command again resumes there.")

    def _disk_error(self, error: OSError) -> DownloadError:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not self.folder.is_dir():
            return DownloadError(f"Cannot keep files in {self.folder}: {error}.")
        have = self.part.stat().st_size if self.part.exists() else 0
        more = "an unknown number of" if self.total is None else self.total - have
        return DownloadError(
            f"The disk is full: {self.file.name} needs {more} more bytes in {self.folder}, where "
            f"{shutil.disk_usage(self.folder).free} are free. Make room and run the command again."
        )


@contextmanager
def _locked(part: Path) -> Iterator[bool]:
    """Keep other processes off the .part; False if one of them renamed or deleted it meanwhile."""
    if sys.platform == "win32":  # no flock there, and an open file could not be renamed
        part.touch()
        yield True
    else:
        with part.open("ab") as handle:
            # Some network file systems know no locks: better to go on, the checksum guards.
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
            is_ours = False
            with suppress(FileNotFoundError):
                is_ours = os.path.samestat(os.fstat(handle.fileno()), part.stat())
            try:
                yield is_ours
            finally:
                with suppress(FileNotFoundError):
                    if is_ours and part.stat().st_size == 0:
                        part.unlink()


def _write_all(out: io.FileIO, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[out.write(rest) :]
