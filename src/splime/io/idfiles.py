"""Dictionary files that give names to the ids which facts are written with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from splime.errors import DataError
from splime.io.columns import EncodedColumn, RawFacts
from splime.io.delimited import Dialect, rows_of


def read_ids(path: Path) -> dict[str, str]:
    """Id to name, from lines of `name<TAB>id` or `id<TAB>name`; further columns are ignored."""
    dialect = Dialect("\t")
    numbers: list[int] = []
    rows: list[tuple[str, str]] = []
    for number, cells in rows_of(path, dialect):
        if len(cells) == 1 and not rows and cells[0].strip().isdigit():
            continue  # OpenKE writes the number of lines first
        if len(cells) < 2:
            raise DataError(
                f"{path}, line {number}: expected a name and an id with a tab between them, found"
                f" {cells[0]!r}"
            )
        numbers.append(number)
        rows.append((cells[0], cells[1].strip()))
    if not rows:
        raise DataError(f"{path}: the file is empty; expected lines of a name and an id")
    seconds_are_ids = _are_ids([second for _, second in rows])
    firsts_are_ids = _are_ids([first for first, _ in rows])
    if not seconds_are_ids and not firsts_are_ids:
        raise DataError(f"{path}: neither the first nor the second column holds ids 0, 1, 2, …")
    if seconds_are_ids and firsts_are_ids and any(first != second for first, second in rows):
        raise DataError(f"{path}: both columns look like ids; which one is meant is not clear")
    names: dict[str, str] = {}
    used: dict[str, int] = {}
    for number, (first, second) in zip(numbers, rows, strict=True):
        name, identifier = (first, second) if seconds_are_ids else (second, first)
        if identifier in names:
            raise DataError(f"{path}, line {number}: the id {identifier} is given twice")
        if name in used:
            raise DataError(
                f"{path}, line {number}: the name {name!r} is given twice, first in line"
                f" {used[name]}"
            )
        names[identifier] = name
        used[name] = number
    return names


def apply_ids(
    raw: RawFacts, entities: dict[str, str] | None, predicates: dict[str, str] | None
) -> None:
    """Replace the ids in facts by their names."""
    for kind, names in (("entity", entities), ("predicate", predicates)):
        if names is not None:
            for column in _columns(raw, kind):
                column.values = _named(raw, column, kind, names, "the dictionary file")


def apply_found(raws: Sequence[RawFacts], entities: Path | None, predicates: Path | None) -> None:
    """Replace ids by names from dictionary files that lie beside facts, which may not need them.

    Facts that only use names of a dictionary are written with names already.
    """
    for path, kind in ((entities, "entity"), (predicates, "predicate")):
        if path is None:
            continue
        names = read_ids(path)
        columns = [(raw, column) for raw in raws for column in _columns(raw, kind)]
        known = set(names.values())
        if all(value in known for _, column in columns for value in _used(column).values()):
            continue
        for raw, column in columns:
            column.values = _named(raw, column, kind, names, f"{path.name}, which lies beside it")


def _columns(raw: RawFacts, kind: str) -> list[EncodedColumn]:
    subject, predicate, object = raw.names
    return [predicate] if kind == "predicate" else [subject, object]


def _used(column: EncodedColumn) -> dict[int, str]:
    """The values that occur, by their code."""
    values = column.values.to_pylist()
    return {int(code): values[code] for code in np.flatnonzero(column.counts())}


def _named(
    raw: RawFacts, column: EncodedColumn, kind: str, names: dict[str, str], file: str
) -> pa.Array:
    for code, identifier in _used(column).items():
        if identifier not in names:
            where = raw.locate([column.first_row(code)])[0]
            raise DataError(
                f"{where}: the {kind} id {identifier!r} is not in {file}; expected one"
                f" of its {len(names):,} ids"
            )
    given = column.values.to_pylist()
    return pa.array([names.get(identifier, identifier) for identifier in given], pa.string())


def _are_ids(values: list[str]) -> bool:
    return all(value.isascii() and value.isdigit() for value in values)
