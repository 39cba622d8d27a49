"""Files that facts are read from: their bytes, lines and rows; what they begin with, read once."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO

import pyarrow as pa

from splime.errors import DataError

COMPRESSION = {".gz": "gzip", ".zst": "zstd"}
_HEAD_BYTES = 1 << 20
_HEAD_LINES = 1000
_BOM = "\ufeff"


def is_quoted(delimiter: str) -> bool:
    """Whether values may stand in double quotes, with line breaks and delimiters inside.

    A space stands for runs of spaces and tabs.
    """
    return delimiter not in "\t "


class InputFile:
    """A file of facts, plain or compressed; its beginning is read once, for all who look at it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def stream(self) -> pa.NativeFile:
        """The bytes, decompressed."""
        return pa.input_stream(
            str(self.path), compression=COMPRESSION.get(self.path.suffix.lower())
        )

    def open(self) -> IO[bytes]:
        """The same as a Python file."""
        try:
            return io.BufferedReader(self.stream())
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.path}: cannot be opened: {error}") from None

    @cached_property
    def _start(self) -> bytes:
        with self.open() as stream, self._damages():
            return stream.read(_HEAD_BYTES) + stream.readline()

    @property
    def is_binary(self) -> bool:
        """Whether it is no text."""
        return b"\0" in self._start[: 1 << 13]

    @cached_property
    def head(self) -> list[str]:
        """The first lines, at most a thousand."""
        return [*itertools.islice(self._lines(io.BytesIO(self._start)), _HEAD_LINES)]

    def lines(self) -> Iterator[str]:
        """All lines; a broken encoding is an error with its line."""
        with self.open() as stream:
            yield from self._lines(stream)

    @contextmanager
    def _damages(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.path}: the file is damaged: {error}") from None

    def _lines(self, stream: IO[bytes]) -> Iterator[str]:
        text = io.TextIOWrapper(stream, encoding="utf-8", errors="surrogateescape", newline=None)
        for number in itertools.count(1):
            with self._damages():
                line = text.readline().removeprefix(_BOM if number == 1 else "")
            if not line:
                return
            try:
                line.isascii() or line.encode("utf-8")
            except UnicodeEncodeError as error:
                byte = ord(line[error.start]) - 0xDC00
                raise DataError(
                    f"{self.path}, line {number}, character {error.start + 1}: the byte"
                    f" 0x{byte:02x} is not UTF-8; convert the file to UTF-8"
                ) from None
            yield line

    def rows(
        self, delimiter: str, lines: Iterable[str] | None = None
    ) -> Iterator[tuple[int, list[str]]]:
        """Line number and values of every row, or of some lines.

        This is slow: to look at the beginning, and to find the line of an error or example.
        """
        lines = self.lines() if lines is None else lines
        if not is_quoted(delimiter):
            for number, line in enumerate(lines, start=1):
                if delimiter == " ":
                    if cells := spaced_cells(line):
                        yield number, cells
                elif line != "\n":
                    yield number, line.rstrip("\n").split(delimiter)
            return
        reader = csv.reader(lines, delimiter=delimiter)
        start = 1
        try:
            with long_values():
                for cells in reader:
                    if cells:
                        yield start, cells
                    start = reader.line_num + 1
        except csv.Error as error:
            raise DataError(f"{self.path}, line {start}: {error}") from None


def spaced_cells(line: str) -> list[str]:
    """What stands between runs of spaces and tabs."""
    return [cell for cell in re.split("[ \t]+", line.strip("\n")) if cell]


@contextmanager
def long_values() -> Iterator[None]:
    """Let Python's CSV reader take values of any length."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)
