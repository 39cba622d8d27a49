"""Dictionary files that give names to the ids which facts are written with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from splime.errors import DataError
from splime.io.columns import EncodedColumn, RawFacts
from splime.io.delimited import Dialect, rows_of
from splime.io.options import ReadOptions

_USUAL = {
    "entity": ("entity2id.txt", "entities.dict"),
    "predicate": ("relation2id.txt", "relations.dict"),
}
_COLUMNS = {"entity": (0, 2), "predicate": (1,)}


def name_ids(raws: Sequence[RawFacts], source: object, options: ReadOptions) -> None:
    """Give names to the ids in facts: by the dictionary files named, or those in the folder."""
    named = {"entity": options.entities, "predicate": options.predicates}
    if any(named.values()):
        for kind, path in named.items():
            if path is not None:
                _apply(raws, kind, read_ids(Path(path)), "the dictionary file")
    elif isinstance(source, str | Path):
        for kind, usual in _USUAL.items():
            beside = next((p for name in usual if (p := Path(source) / name).is_file()), None)
            if beside is not None:
                names = read_ids(beside)
                # Facts that only use names of a dictionary are written with names already.
                if not _are_names(raws, kind, set(names.values())):
                    _apply(raws, kind, names, f"{beside.name}, which lies beside it")


def read_ids(path: Path) -> dict[str, str]:
    """Id to name, from lines of `name<TAB>id` or `id<TAB>name`; further columns are ignored."""
    rows: list[tuple[int, str, str]] = []
    for number, cells in rows_of(path, Dialect("\t")):
        if len(cells) == 1 and not rows and cells[0].strip().isdigit():
            continue  # OpenKE writes the number of lines first
        if len(cells) < 2:
            raise DataError(
                f"{path}, line {number}: expected a name and an id with a tab between them, found"
                f" {cells[0]!r}"
            )
        rows.append((number, cells[0], cells[1].strip()))
    if not rows:
        raise DataError(f"{path}: the file is empty; expected lines of a name and an id")
    left_are_ids = all(_is_id(left) for _, left, _ in rows)
    right_are_ids = all(_is_id(right) for _, _, right in rows)
    if not left_are_ids and not right_are_ids:
        raise DataError(f"{path}: neither the first nor the second column holds ids 0, 1, 2, …")
    if left_are_ids and right_are_ids and any(left != right for _, left, right in rows):
        raise DataError(f"{path}: both columns look like ids; which one is meant is not clear")
    names: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, left, right in rows:
        name, identifier = (left, right) if right_are_ids else (right, left)
        if identifier in names:
            raise DataError(f"{path}, line {number}: the id {identifier} is given twice")
        if name in lines:
            raise DataError(
                f"{path}, line {number}: the name {name!r} is given twice, first in line"
                f" {lines[name]}"
            )
        names[identifier], lines[name] = name, number
    return names


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _are_names(raws: Sequence[RawFacts], kind: str, known: set[str]) -> bool:
    columns = (raw.names[at] for raw in raws for at in _COLUMNS[kind])
    return all(value in known for column in columns for value in _used(column).values())


def _apply(raws: Sequence[RawFacts], kind: str, names: dict[str, str], file: str) -> None:
    """Replace the ids in facts by their names."""
    for raw, at in ((raw, at) for raw in raws for at in _COLUMNS[kind]):
        column = raw.names[at]
        for code, identifier in _used(column).items():
            if identifier not in names:
                where = raw.locate([column.first_row(code)])[0]
                raise DataError(
                    f"{where}: the {kind} id {identifier!r} is not in {file}; expected one"
                    f" of its {len(names):,} ids"
                )
        values = column.values.to_pylist()
        column.values = pa.array([names.get(value, value) for value in values], pa.string())


def _used(column: EncodedColumn) -> dict[int, str]:
    """The values that occur, by their code."""
    values = column.values.to_pylist()
    return {int(code): values[code] for code in np.flatnonzero(column.counts())}
