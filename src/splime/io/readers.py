"""The formats that facts are read from. One line in `READERS` makes a format known everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from splime.errors import DataError, UsageError
from splime.graph import SplitName, TemporalGraph
from splime.io import databases, delimited, parquet, spreadsheets, statements
from splime.io.columns import RawFacts
from splime.io.inputs import COMPRESSION, InputFile, NotUtf8Error, scheme_of
from splime.io.options import ReadOptions
from splime.io.unread import address_advice, file_advice
from splime.plugins import Registry

Opened: TypeAlias = RawFacts | TemporalGraph


@dataclass(frozen=True)
class Reader:
    """A format of files; installed packages add theirs as entry points of `splime.readers`."""

    help: str
    """What it is, in a few words."""
    suffixes: tuple[str, ...]
    """How the names of its files end."""
    read: Callable[[InputFile, SplitName | None, ReadOptions], Opened]
    """The facts of a file, of one split if there are splits; a whole graph, if it holds one."""
    compressed: bool = True
    """Whether it may be compressed (.gz, .zst)."""
    begins: tuple[bytes, ...] = ()
    """How its bytes begin, for what has no name: standard input and pipes."""
    options: tuple[str, ...] = ()
    """Which of `encoding`, `query` and `table` it takes."""
    schemes: tuple[str, ...] = ()
    """How the addresses begin that it reads, such as postgresql."""
    read_address: Callable[[str, SplitName | None, ReadOptions], RawFacts] | None = None
    """The facts at an address, which messages and what is written must not hold a password of."""

    def suffix_of(self, name: str) -> str:
        """The suffix by which the name of a file is one of this format; empty if it is none."""
        packed = ("", *COMPRESSION) if self.compressed else ("",)
        endings = (suffix + pack for suffix in self.suffixes for pack in packed)
        return max((end for end in endings if name.lower().endswith(end)), key=len, default="")

    def __str__(self) -> str:
        more = ", also .gz or .zst" if self.compressed else ""
        return f"{self.help} ({', '.join(self.suffixes)}{more})"


BUILTIN: Mapping[str, Reader] = {
    "text": Reader(
        "text with columns", delimited.SUFFIXES, delimited.read_text, options=("encoding",)
    ),
    "json": Reader(
        "JSON",
        statements.JSON,
        statements.read_records,
        begins=(b"{", b"["),
        options=("encoding", "table"),
    ),
    "parquet": Reader(
        "Parquet", (".parquet",), parquet.read_parquet, compressed=False, begins=(b"PAR1",)
    ),
    "spreadsheet": Reader(
        "Excel",
        spreadsheets.SUFFIXES,
        spreadsheets.read_spreadsheet,
        compressed=False,
        begins=(b"PK\x03\x04",),
        options=("table",),
    ),
    "database": Reader(
        "databases",
        databases.SUFFIXES,
        databases.read_file,
        compressed=False,
        options=("query",),
        schemes=databases.SCHEMES,
        read_address=databases.read_address,
    ),
}
READERS = Registry("splime.readers", BUILTIN)


def builtin_formats() -> str:
    """The formats of splime itself in a few words; it is for help, so no package is loaded."""
    return ", ".join(reader.help for reader in BUILTIN.values())


def read_named(
    source: str | Path, split: SplitName | None, options: ReadOptions
) -> RawFacts | TemporalGraph:
    """The facts of a file, of standard input or at an address, by the first reader for them."""
    if scheme := scheme_of(source):
        for reader in READERS.values():
            # SQLAlchemy's addresses name a driver: postgresql+psycopg
            if reader.read_address is not None and scheme.partition("+")[0] in reader.schemes:
                options.check_taken(f"{scheme}://…", reader.options)
                return reader.read_address(str(source), split, options)
        schemes = (one for reader in READERS.values() for one in reader.schemes)
        raise UsageError(address_advice(str(source), schemes))
    return read_file(InputFile.opened(source, options.encoding), split, options)


def read_file(
    file: InputFile, split: SplitName | None, options: ReadOptions
) -> RawFacts | TemporalGraph:
    """The facts of a file, or of what came through a pipe."""
    reader = _reader_of(file)
    options.check_taken(file.path, reader.options)
    try:
        opened = reader.read(file, split, options)
    except NotUtf8Error as error:
        file = file.western(error)
        opened = reader.read(file, split, options)
    return opened.remarked(*file.remarks) if isinstance(opened, RawFacts) else opened


def _reader_of(file: InputFile) -> Reader:
    """The first reader that claims a file; one of no format may be text."""
    readers = READERS.values()
    for reader in readers:
        if file.content is None and reader.suffix_of(file.path.name):
            return reader
        if file.content is not None and file.begin.lstrip().startswith(reader.begins):
            return reader
    if advice := file_advice(file.path):
        raise DataError(f"{file.path}: {advice}")
    if file.is_binary:
        known = "; ".join(map(str, readers))
        raise DataError(f"{file.path}: unknown kind of file; expected {known}; or any other text")
    return READERS["text"]
