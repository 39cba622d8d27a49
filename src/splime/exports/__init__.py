"""Static graphs for other libraries. One line in `FORMATS` makes a format known everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from splime.errors import SplimeError, UsageError, check_name
from splime.exports import dglke, libkge, ntriples, parquet, tsv
from splime.exports.memory import check_distinct, labelled_triples, to_pykeen
from splime.io.files import check_one_line, written_folder
from splime.static import StaticGraph

__all__ = ["FORMATS", "Format", "check_folder", "export", "labelled_triples", "to_pykeen"]


class Format(NamedTuple):
    """What writes a static graph into an empty folder, and the files that it makes there."""

    write: Callable[[StaticGraph, Path], None]
    files: tuple[str, ...]
    lines: bool = True
    """Whether a name with a tab or a line break has no place in it."""


FORMATS: Mapping[str, Format] = {
    "tsv": Format(tsv.write, tsv.FILES),
    "parquet": Format(parquet.write, parquet.FILES, lines=False),
    "libkge": Format(libkge.write, libkge.FILES),
    "dglke": Format(dglke.write, dglke.FILES),
    "ntriples": Format(ntriples.write, ntriples.FILES, lines=False),
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
    check_name("format", format, FORMATS)
    check_distinct(static)
    if FORMATS[format].lines:
        advice = "export as parquet or ntriples"
        for kind, scopes in (("entity", static.entities), ("predicate", static.predicates)):
            check_one_line(scopes.labels, f"the format {format}", advice, kind=kind)
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
    folder = Path(folder)
    # `splime transform` puts the segmentation beside.
    names = {"segmentation.json", *(file for known in FORMATS.values() for file in known.files)}
    try:
        present = sorted(folder.iterdir()) if folder.exists() else []
    except NotADirectoryError:
        raise UsageError(f"{folder}: this is a file; an export makes a folder") from None
    except OSError as error:
        raise SplimeError(f"{folder}: cannot be read: {error}") from None
    if present and not overwrite:
        raise UsageError(
            f"{folder}: the folder is not empty; choose another one, or replace it with"
            " overwrite=True (--overwrite on the command line)"
        )
    for path in present:
        if path.name not in names or path.is_dir():
            raise UsageError(
                f"{folder}: holds {path.name!r}, which no export writes, so the folder is not"
                " replaced; choose another one, or move that away"
            )
