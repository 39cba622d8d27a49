"""Dictionary files that give names to the ids which facts are written with."""

from __future__ import annotations

from pathlib import Path

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
    for column, kind, names in (
        (raw.subject, "entity", entities),
        (raw.predicate, "predicate", predicates),
        (raw.object, "entity", entities),
    ):
        if names is not None:
            column.values = _named(raw, column, kind, names)


def written_with_ids(raw: RawFacts, entities: dict[str, str], predicates: dict[str, str]) -> bool:
    """Whether facts beside dictionary files use the ids in them, and not the names."""
    first = raw.texts([0])[0]
    return first[0] in entities and first[1] in predicates and first[2] in entities


def _named(raw: RawFacts, column: EncodedColumn, kind: str, names: dict[str, str]) -> pa.Array:
    given = column.values.to_pylist()
    for code, identifier in enumerate(given):
        if identifier not in names:
            where = raw.locate([column.first_row(code)])[0]
            raise DataError(
                f"{where}: the {kind} id {identifier!r} is not in the dictionary file; expected one"
                f" of its {len(names):,} ids"
            )
    return pa.array([names[identifier] for identifier in given], pa.string())


def _are_ids(values: list[str]) -> bool:
    return all(value.isascii() and value.isdigit() for value in values)
