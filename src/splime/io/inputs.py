"""What facts are read from: its bytes, lines and rows, how it begins, how text is encoded."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import IO

import pyarrow as pa

from splime.errors import DataError, UsageError, option

COMPRESSION = {".gz": "gzip", ".zst": "zstd"}
STANDARD_INPUT = "-"
"""What stands for standard input in place of a path."""
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)
UTF_8 = "utf-8"
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
"""How compressed bytes begin, where no name says that they are."""
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # which begins as UTF-16 does
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_WESTERN = "windows-1252"
"""Latin-1 too: where it has letters and signs, they are the same."""
# What other encodings of one byte, and damaged bytes, look like as Windows-1252: words of nothing
# but accents, signs where letters belong, and the byte 0xff alone.
_UNLIKELY = re.compile(
    r"[^\x00-\x7f]{4}|[^\W\d_][¡¢£¤¥¦§¨¬¯±²³¶¸¹¼½¾¿×÷†‡ˆ‰„][^\W\d_]|[¢£¤¥¯³¹¼¾][^\W\d_]"
    r"|(?<![^\W\d_])ÿ(?![^\W\d_])"
)
_WORD = re.compile(r"""[^\s,;|"]*[^\x00-\x7f][^\s,;|"]*""")
_HEAD_BYTES = 1 << 20
_HEAD_LINES = 1000
_BOM = "\ufeff"


def scheme_of(source: object) -> str:
    """How an address begins, such as https; empty for what is none.

    >>> scheme_of("postgresql://ada@localhost/staff"), scheme_of("staff.csv")
    ('postgresql', '')
    """
    match = _ADDRESS.match(source) if isinstance(source, str) else None
    return match[1].lower() if match else ""


def without_password(source: str) -> str:
    """An address as it may be shown and written; anything else as it is.

    >>> without_password("postgresql://ada:secret@localhost/staff?password=secret&port=5433")
    'postgresql://ada@localhost/staff?port=5433'
    """
    if not (scheme := scheme_of(source)):
        return source
    rest = source[len(scheme) + 3 :]
    # Up to the last @, since some write a password that has one as it is.
    user, at, place = rest.rpartition("@")
    place = re.sub(r"(?<=[?&])(ssl)?password=[^&]*&?", "", place, flags=re.IGNORECASE)
    return f"{scheme}://{user.partition(':')[0]}{at}{place.rstrip('?&')}"


def is_stored(source: object) -> bool:
    """Whether a text names files, which can be read again: not an address, not standard input."""
    return not scheme_of(source) and source != STANDARD_INPUT


def is_quoted(delimiter: str) -> bool:
    """Whether values may stand in double quotes, with line breaks and delimiters inside.

    A space stands for runs of spaces and tabs.
    """
    return delimiter not in "\t "


class NotUtf8Error(DataError):
    """Text that is not UTF-8, as it was thought to be."""


class InputFile:
    """A file of facts, plain or compressed; its beginning is read once, for all who look at it.

    With `content` the bytes are these, and the path is only a name.
    """

    def __init__(
        self, path: Path, *, encoding: str | None = None, content: bytes | None = None
    ) -> None:
        self.path, self.content = path, content
        self.remarks: list[str] = []
        self._encoding = encoding

    @classmethod
    def opened(cls, source: str | Path, encoding: str | None = None) -> InputFile:
        """A file, or all that comes through a pipe, which can be read only once."""
        if source == STANDARD_INPUT:
            return cls(Path("standard input"), encoding=encoding, content=_standard_input())
        path = Path(source)
        try:
            content = path.read_bytes() if path.is_fifo() else None
        except OSError as error:
            raise DataError(f"{path}: cannot be opened: {error}") from None
        return cls(path, encoding=encoding, content=content)

    def unpacked(self) -> pa.NativeFile:
        """The bytes, decompressed."""
        if self.content is None:
            packing = COMPRESSION.get(self.path.suffix.lower())
            return pa.input_stream(str(self.path), compression=packing)
        packing = next(
            (how for mark, how in _PACKED.items() if self.content.startswith(mark)), None
        )
        return pa.input_stream(pa.BufferReader(self.content), compression=packing)

    def stream(self) -> pa.NativeFile:
        """The same, with text as UTF-8."""
        if self.encoding == UTF_8:
            return self.unpacked()
        return pa.transcoding_input_stream(self.unpacked(), self.encoding, UTF_8)

    @cached_property
    def encoding(self) -> str:
        """How the text is encoded, as was chosen, or as it begins; else UTF-8, until it fails."""
        if self._encoding is not None:
            return codecs.lookup(self._encoding).name
        found = next((name for mark, name in _MARKS.items() if self.begin.startswith(mark)), "")
        found = found or _without_mark(self.begin)
        if found:
            self.remarks.append(f"the text is {found.upper()}, and is read as such")
        return found or UTF_8

    def western(self, error: NotUtf8Error) -> InputFile:
        """The same file as Windows-1252, where all that is not ASCII looks like it.

        Else the error that there was: of a damaged file, not every name must become another one.
        """
        if self._encoding is not None or self.encoding != UTF_8:
            raise error
        word = ""
        with self.open() as stream, self._damages():
            for number, line in enumerate(stream, start=1):
                if line.isascii():
                    continue
                if _decodes(line, UTF_8):
                    raise NotUtf8Error(f"{error} (line {number} is UTF-8)")
                text = line.decode(_WESTERN, errors="replace")
                if "\ufffd" in text or _UNLIKELY.search(text):
                    raise error
                word = word or _WORD.findall(text)[0]
        other = InputFile(self.path, encoding=_WESTERN, content=self.content)
        other.remarks.append(
            f"the text is not UTF-8, and is read as Windows-1252 (Latin-1), such as {word!r:.60};"
            f" {option('encoding', 'NAME')} reads it otherwise"
        )
        return other

    def open(self) -> IO[bytes]:
        """The same as a Python file."""
        try:
            return io.BufferedReader(self.stream())
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.path}: cannot be opened: {error}") from None

    @cached_property
    def begin(self) -> bytes:
        """The first bytes, decompressed."""
        with self._damages(), io.BufferedReader(self.unpacked()) as stream:
            return stream.read(_HEAD_BYTES) + stream.readline()

    @cached_property
    def _start(self) -> bytes:
        """The same, with text as UTF-8."""
        if self.encoding == UTF_8:
            return self.begin
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
        except UnicodeDecodeError as error:
            raise DataError(f"{self.path}: the text is not {self.encoding}: {error}") from None
        except FileNotFoundError as error:
            raise DataError(f"{self.path}: cannot be opened: {error}") from None
        except (pa.ArrowException, OSError, EOFError) as error:
            raise DataError(f"{self.path}: the file is damaged: {error}") from None

    def _lines(self, stream: IO[bytes]) -> Iterator[str]:
        text = io.TextIOWrapper(stream, encoding="utf-8", errors="surrogateescape", newline=None)
        with self._damages():
            for number in itertools.count(1):
                line = text.readline().removeprefix(_BOM if number == 1 else "")
                if not line:
                    return
                try:
                    line.isascii() or line.encode("utf-8")
                except UnicodeEncodeError as error:
                    byte = ord(line[error.start]) - 0xDC00
                    raise NotUtf8Error(
                        f"{self.path}, line {number}, character {error.start + 1}: the byte"
                        f" 0x{byte:02x} is not UTF-8; where the text is encoded otherwise,"
                        f" {option('encoding', 'windows-1250')} or another name says how"
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


@cache
def _standard_input() -> bytes:
    """All of standard input."""
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("- reads standard input, and nothing is sent there: cat FILE | splime …")
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise DataError(f"standard input: cannot be read: {error}") from None


def _without_mark(begin: bytes) -> str:
    """The kind of UTF-16 without a mark, if it is one: each other byte of ASCII is 0 there."""
    sample = begin[:4096]
    sample = sample[: len(sample) // 2 * 2]
    even, odd = (sample[at::2].count(0) for at in (0, 1))
    for zeros, others, name in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if zeros > len(sample) // 10 and not others:
            text = sample.decode(name, errors="replace")
            return "" if re.search(r"[\x00-\x08\x0e-\x1f]", text) else name
    return ""


def _decodes(text: bytes, encoding: str) -> bool:
    try:
        text.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


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
