"""Static graphs for other libraries. One line in `FORMATS` makes a format known everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from splime.errors import UsageError, nearest
from splime.exports import dglke, libkge, ntriples, parquet, tsv
from splime.exports.folder import check_replaceable, written_folder
from splime.exports.memory import labelled_triples, to_pykeen
from splime.exports.names import check_distinct
from splime.static import StaticGraph

__all__ = ["FORMATS", "Format", "check_folder", "export", "labelled_triples", "to_pykeen"]


class Format(NamedTuple):
    """What writes a static graph into an empty folder, and the files that it makes there."""

    write: Callable[[StaticGraph, Path], None]
    files: tuple[str, ...]


FORMATS: Mapping[str, Format] = {
    "tsv": Format(tsv.write, tsv.FILES),
    "parquet": Format(parquet.write, parquet.FILES),
    "libkge": Format(libkge.write, libkge.FILES),
    "dglke": Format(dglke.write, dglke.FILES),
    "ntriples": Format(ntriples.write, ntriples.FILES),
}


def export(
    static: StaticGraph,
    folder: str | Path,
    format: str = "tsv",
    *,
    overwrite: bool = False,
    also: Callable[[Path], object] | None = None,
) -> list[Path]:
    """Write a static graph into a folder, in one of `FORMATS`; returns the files in it.

    The folder appears when all of it is written. One that is not empty is replaced only with
    `overwrite`, and only if nothing but exported files is in it. `also` is called with the folder
    before it gets its place, to put further files into it.

    >>> import splime, tempfile
    >>> graph = splime.read([("Ada", "livesIn", "Norport", 1990)], split="none")
    >>> with tempfile.TemporaryDirectory() as here:
    ...     files = export(splime.Vanilla().fit_transform(graph), Path(here) / "static")
    ...     print(*(file.name for file in files), files[4].read_text().split())
    entities.dict relations.dict test.txt time_map train.txt valid.txt ['Ada', 'livesIn', 'Norport']
    """
    if format not in FORMATS:
        known = ", ".join(FORMATS)
        raise UsageError(
            f"unknown format {format!r}; it is one of {known}.{nearest(format, FORMATS)}"
        )
    check_distinct(static)
    folder = Path(folder)
    check_folder(folder, overwrite=overwrite)
    with written_folder(folder) as beside:
        FORMATS[format].write(static, beside)
        if also is not None:
            also(beside)
        names = sorted(path.name for path in beside.iterdir())
        check_folder(folder, overwrite=overwrite)  # somebody may have made it in the meantime
    return [folder / name for name in names]


def check_folder(folder: str | Path, *, overwrite: bool = False) -> None:
    """An error if `export` would refuse to write there, before any work is done for it."""
    # `splime transform` puts the segmentation beside.
    names = {"segmentation.json", *(file for known in FORMATS.values() for file in known.files)}
    check_replaceable(Path(folder), names, overwrite=overwrite)
