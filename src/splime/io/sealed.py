"""Parquet files in which a single damaged bit is an error.

Parquet's own checksums cover neither the footer, which holds names and timeline, nor what stands
between the pages. So the SHA-256 of all other bytes stands before the footer, where readers of
Parquet do not look; a copy that another program makes of the table does not have it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from splime.errors import DataError
from splime.io.files import check_plain

_SEAL = b"splime-sha256:"
_LENGTH = len(_SEAL) + 64
_MAGIC = b"PAR1"
_BLOCK = 1 << 20


@contextmanager
def sealed_writer(path: Path, schema: pa.Schema, **options: Any) -> Iterator[Any]:
    """Arrow's writer of a Parquet file, which is sealed when the block ends well."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, schema, **options) as writer:
        yield writer
    with path.open("r+b") as file:
        start = _footer(file)
        file.seek(start)
        footer = file.read()
        seal = _seal(file, start, footer)
        file.seek(start)
        file.write(seal + footer)


def check_seal(path: Path) -> None:
    """An error if a file was sealed, and a byte of it is another one now.

    Files of others and of older versions have no seal.
    """
    try:
        check_plain(path)
        with path.open("rb") as file:
            start = max(0, _footer(file) - _LENGTH)
            file.seek(start)
            seal = file.read(_LENGTH)
            damaged = seal.startswith(_SEAL) and seal != _seal(file, start, file.read())
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
    if damaged:
        raise DataError(f"{path}: the file is damaged (its checksum differs)")


def _footer(file: IO[bytes]) -> int:
    """Where the footer of a Parquet file begins; 0 if there is none."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    end = file.read(8)
    start = size - 8 - int.from_bytes(end[:4], "little")
    return max(0, start) if end[4:] == _MAGIC else 0


def _seal(file: IO[bytes], start: int, footer: bytes) -> bytes:
    """The seal of a file whose footer begins, or began, at a place."""
    digest = hashlib.sha256()
    file.seek(0)
    for at in range(0, start, _BLOCK):
        digest.update(file.read(min(_BLOCK, start - at)))
    digest.update(footer)
    return _SEAL + digest.hexdigest().encode()
