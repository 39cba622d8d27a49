"""Static graphs for other libraries. One line in `FORMATS` makes a format known everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from splime.errors import SplimeError, UsageError, check_name
from splime.exports import formats
from splime.graph import SPLITS, SplitName, check_split
from splime.io.files import check_one_line, content, new_folder
from splime.io.parts import is_of_parts
from splime.static import StaticGraph

if TYPE_CHECKING:
    from pykeen.triples import TriplesFactory

__all__ = ["FORMATS", "Format", "check_folder", "export", "labelled_triples", "to_pykeen"]


class Format(NamedTuple):
    """What writes a static graph into an empty folder, and the files that it makes there."""

    write: Callable[[StaticGraph, Path], None]
    files: tuple[str, ...]
    lines: bool = True
    """Whether a name with a tab or a line break has no place in it."""


def _files(suffix: str, *others: str) -> tuple[str, ...]:
    return (*(f"{split}{suffix}" for split in SPLITS), *others)


FORMATS: Mapping[str, Format] = {
    "tsv": Format(formats.tsv, _files(".txt", "entities.dict", "relations.dict", "time_map")),
    "parquet": Format(formats.parquet, ("triples.parquet",), lines=False),
    "libkge": Format(
        formats.libkge, _files(".del", "entity_ids.del", "relation_ids.del", "dataset.yaml")
    ),
    "dglke": Format(formats.dglke, _files(".tsv", "entities.tsv", "relations.tsv")),
    "ntriples": Format(formats.ntriples, _files(".nt"), lines=False),
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
    _check_distinct(static)
    if FORMATS[format].lines:
        advice = "export as parquet or ntriples"
        for kind, scopes in (("entity", static.entities), ("predicate", static.predicates)):
            check_one_line(scopes.labels, f"the format {format}", advice, kind=kind)
    folder = Path(folder)
    with new_folder(folder, partial(check_folder, folder, overwrite=overwrite)) as beside:
        FORMATS[format].write(static, beside)
        if also is not None:
            also(beside)
        names = sorted(path.name for path in beside.iterdir())
    return [folder / name for name in names]


def check_folder(folder: str | Path, *, overwrite: bool = False) -> None:
    """An error if `export` would refuse to write there, before any work is done for it."""
    folder = Path(folder)
    # `splime transform` puts the segmentation beside.
    names = {"segmentation.json", *(file for known in FORMATS.values() for file in known.files)}
    present = content(folder)
    if present and not overwrite:
        raise UsageError(
            f"{folder}: the folder is not empty; choose another one, or replace it with"
            " overwrite=True (--overwrite on the command line)"
        )
    for path in present:
        if (path.name not in names and not is_of_parts(path.name)) or path.is_dir():
            raise UsageError(
                f"{folder}: holds {path.name!r}, which no export writes, so the folder is not"
                " replaced; choose another one, or move that away"
            )


def _check_distinct(static: StaticGraph) -> None:
    """An error if two entities or predicates have one name: readers could not distinguish them."""
    for scopes in (static.segmentation.predicates, static.segmentation.entities):
        if scopes is not None:
            scopes.check_distinct()


def labelled_triples(static: StaticGraph, split: SplitName) -> npt.NDArray[np.object_]:
    """Rows of the names of subject, predicate and object, as AmpliGraph and others take them.

    The names are Python strings, shared between the rows.

    >>> import splime
    >>> graph = splime.read([("Ada", "livesIn", "Norport", 1990)], split="none")
    >>> labelled_triples(splime.Vanilla().fit_transform(graph), "train").tolist()
    [['Ada', 'livesIn', 'Norport']]
    """
    check_split(split)
    _check_distinct(static)
    entities, predicates = (
        scopes.labels.to_numpy(zero_copy_only=False)
        for scopes in (static.entities, static.predicates)
    )
    triples = dict(static.splits())[split]
    columns = entities[triples.subject], predicates[triples.predicate], entities[triples.object]
    return np.stack(columns, axis=1)


def to_pykeen(static: StaticGraph) -> dict[str, TriplesFactory]:
    """PyKEEN's triples factories of train, valid and test.

    All of them know all entities and scoped predicates, under the ids that they have here; a split
    without triples is a factory without triples.
    """
    try:
        from pykeen.triples import TriplesFactory
    except ImportError as error:
        raise SplimeError(
            f"PyKEEN cannot be imported ({error}); install it with: pip install 'splime-kg[pykeen]'"
        ) from None
    _check_distinct(static)
    entities, predicates = (
        {name: position for position, name in enumerate(scopes.labels.to_pylist())}
        for scopes in (static.entities, static.predicates)
    )
    return {
        split: TriplesFactory(triples.array(), entity_to_id=entities, relation_to_id=predicates)
        for split, triples in static.splits()
    }
