"""The formats that facts are read from. One line in `READERS` makes a format known everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from splime.errors import DataError
from splime.graph import SplitName, TemporalGraph
from splime.io import delimited, parquet, statements
from splime.io.columns import RawFacts
from splime.io.inputs import COMPRESSION, InputFile
from splime.io.options import ReadOptions
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

    def suffix_of(self, name: str) -> str:
        """The suffix by which the name of a file is one of this format; empty if it is none."""
        packed = ("", *COMPRESSION) if self.compressed else ("",)
        endings = (suffix + pack for suffix in self.suffixes for pack in packed)
        return max((end for end in endings if name.lower().endswith(end)), key=len, default="")

    def __str__(self) -> str:
        more = ", also .gz or .zst" if self.compressed else ""
        return f"{self.help} ({', '.join(self.suffixes)}{more})"


BUILTIN: Mapping[str, Reader] = {
    "text": Reader("text with columns", delimited.SUFFIXES, delimited.read_text),
    "json": Reader("JSON", statements.JSON, statements.read_records),
    "parquet": Reader("Parquet", (".parquet",), parquet.read_parquet, compressed=False),
}
READERS = Registry("splime.readers", BUILTIN)


def builtin_formats() -> str:
    """The formats of splime itself in a few words; it is for help, so no package is loaded."""
    return ", ".join(reader.help for reader in BUILTIN.values())


def read_file(
    file: InputFile, split: SplitName | None, options: ReadOptions
) -> RawFacts | TemporalGraph:
    """The facts of a file, by the first reader that claims it; a file of no format may be text."""
    for reader in READERS.values():
        if reader.suffix_of(file.path.name):
            return reader.read(file, split, options)
    if file.is_binary:
        known = "; ".join(map(str, READERS.values()))
        raise DataError(f"{file.path}: unknown kind of file; expected {known}; or any other text")
    return READERS["text"].read(file, split, options)
