"""Read a graph from wherever its facts are; ids in facts get the names of dictionary files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from splime.errors import DataError, UsageError, check_name, nearest
from splime.graph import SPLITS, SplitName, TemporalGraph
from splime.io.assemble import assemble
from splime.io.columns import EncodedColumn, RawFacts
from splime.io.delimited import Dialect, read_delimited, rows_of
from splime.io.files import SUFFIXES, TEXT, is_there, split_files
from splime.io.options import SPLITTING, ReadOptions
from splime.io.parquet import read_parquet
from splime.io.tables import is_table, raw_from_rows, raw_from_table
from splime.splitting import split_graph

# The usual dictionary files, which give names to the ids that facts are written with; and the
# columns that they are for.
_ID_FILES = {
    "entity": ("entity2id.txt", "entities.dict"),
    "predicate": ("relation2id.txt", "relations.dict"),
}
_COLUMNS = {"entity": (0, 2), "predicate": (1,)}

FactSource: TypeAlias = str | Path | Iterable[Sequence[object]] | Any


def read(source: FactSource | Mapping[str, FactSource], **options: Any) -> TemporalGraph:
    """Read facts into a graph.

    Args:
        source: a file (`.tsv`, `.csv`, `.txt`, plain, `.gz` or `.zst`; `.parquet`), a folder with
            `train.*` and perhaps `valid.*` and `test.*`, an Arrow-compatible table (pandas,
            polars, DuckDB, …), an iterable of tuples, or a mapping of split names to any of these.
        options: those of `ReadOptions`, which are listed below. Options that would have no effect
            are errors, such as how to split a source that has splits.

    Options:
    {options}

    >>> graph = read([("Ada", "playsFor", "Ajax", "1990", "1994"), ("Ada", "playsFor", "PSV",
    ...               "1995", "")], split="none")
    >>> [fact.end for fact in graph.rows()]
    ['1994', None]
    """
    chosen = ReadOptions.of(options)
    opened = _open(source, chosen)
    if isinstance(opened, TemporalGraph):
        chosen.check_effect(source, saved=True, has_splits=True)
        graph = replace(opened, name=chosen.name) if chosen.name else opened
    else:
        graph = _make_graph(opened, source, chosen)
        if not chosen.allow_loss:
            graph.reading.check()
    if chosen.bucket is None:
        return graph
    decide: tuple[SplitName, ...] = ("train",) if chosen.bucket_on == "train" else ()
    return graph.bucket(chosen.bucket, *decide)


read.__doc__ = (read.__doc__ or "").replace("    {options}", ReadOptions.described())


def _make_graph(raws: list[RawFacts], source: FactSource, options: ReadOptions) -> TemporalGraph:
    """The graph of facts as they were read, split if they come without splits."""
    has_splits = len(raws) > 1 or bool(raws[0].split or raws[0].splits)
    where = source if isinstance(source, str | Path) else raws[0].name
    options.check_effect(where, saved=False, has_splits=has_splits)
    if not has_splits and options.end_before_begin == "repair":
        # Splits are made of facts that were read; which of them are train's is not known yet.
        raise UsageError(
            f"{raws[0].name}: end_before_begin='repair' treats train, valid and test"
            " differently, and the source has no splits; choose drop or swap"
        )
    _name_ids(raws, source, options)
    graph = assemble(raws, options, name=options.name or _name_of(source))
    if has_splits:
        return graph
    how = options.chosen(*SPLITTING)
    return split_graph(graph, how.pop("split", "random"), **how)


def _open(source: FactSource, options: ReadOptions) -> list[RawFacts] | TemporalGraph:
    if isinstance(source, Mapping):
        for split in source:
            check_name("split", split, SPLITS)
        if "train" not in source:
            raise UsageError("there is no train among the splits")
        return [_raw(source[split], split, options) for split in SPLITS if split in source]
    if isinstance(source, str) and not source:
        raise UsageError("the path is empty; expected a file or folder")
    if isinstance(source, str | Path):
        path = Path(source)
        if is_there(path) and path.is_dir():
            return [_raw(file, split, options) for split, file in _splits_in(path).items()]
        if path.suffix.lower() == ".parquet" and path.is_file():
            opened = read_parquet(path, columns=options.columns)
            return opened if isinstance(opened, TemporalGraph) else [opened]
    return [_raw(source, None, options)]


def _raw(source: FactSource, split: SplitName | None, options: ReadOptions) -> RawFacts:
    """One source of facts, of one split if there are splits."""
    columns = options.columns
    if isinstance(source, str | Path):
        path = Path(source)
        if not is_there(path):
            raise DataError(f"{path}: there is no such file or folder.{_similar(path)}")
        if not path.is_file():
            raise DataError(f"{path}: expected a file")
        if path.suffix.lower() == ".parquet":
            opened = read_parquet(path, split=split, columns=columns)
            if isinstance(opened, TemporalGraph):
                raise DataError(f"{path}: holds a whole graph, expected the facts of one split")
            return opened
        if not path.name.lower().endswith(SUFFIXES):
            raise DataError(f"{path}: unknown kind of file; expected {', '.join(SUFFIXES)}")
        return read_delimited(path, split=split, columns=columns, header=options.header)
    name = split or options.name
    if is_table(source):
        return raw_from_table(source, name=name or "table", split=split, columns=columns)
    if isinstance(source, Iterable):
        if columns is not None:
            raise UsageError("columns choose from a file or table; rows hold just the facts")
        return raw_from_rows(source, name=name or "rows", split=split)
    raise UsageError(
        f"cannot read facts from {type(source).__name__}; expected a path, a table or tuples"
    )


def _splits_in(folder: Path) -> dict[SplitName, Path]:
    """The files of a folder that hold the splits."""
    files = split_files(folder)
    for split, matches in files.items():
        if len(matches) > 1:
            names = " and ".join(path.name for path in matches)
            raise DataError(f"{folder}: both {names} are there; expected one file for {split}")
    if "train" not in files:
        raise DataError(
            f"{folder}: expected a file train{{{','.join(TEXT)},.parquet}} (plain, .gz or .zst),"
            " and perhaps valid and test"
        )
    return {split: files[split][0] for split in SPLITS if split in files}


def _name_of(source: FactSource) -> str:
    return Path(source).name.split(".")[0] if isinstance(source, str | Path) else ""


def _similar(path: Path) -> str:
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    return nearest(path.name, [other.name for other in beside])


def _name_ids(raws: Sequence[RawFacts], source: object, options: ReadOptions) -> None:
    """Give names to the ids in facts: by the dictionary files named, or those in the folder."""
    named = {"entity": options.entities, "predicate": options.predicates}
    if any(named.values()):
        for kind, path in named.items():
            if path is not None:
                _apply(raws, kind, read_ids(Path(path)), "the dictionary file")
    elif isinstance(source, str | Path):
        for kind, usual in _ID_FILES.items():
            beside = next((p for name in usual if (p := Path(source) / name).is_file()), None)
            if beside is not None:
                names = read_ids(beside)
                used = (v for raw in raws for at in _COLUMNS[kind] for v in _used(raw.names[at]))
                # Facts that only use names of a dictionary are written with names already.
                if not set(names.values()).issuperset(used):
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
    left_are_ids, right_are_ids = (
        all(text.isascii() and text.isdigit() for text in column)
        for column in ([left for _, left, _ in rows], [right for _, _, right in rows])
    )
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


def _apply(raws: Sequence[RawFacts], kind: str, names: dict[str, str], file: str) -> None:
    """Replace the ids in facts by their names."""
    for raw, at in ((raw, at) for raw in raws for at in _COLUMNS[kind]):
        column = raw.names[at]
        for identifier, code in _used(column).items():
            if identifier not in names:
                where = raw.locate([column.first_row(code)])[0]
                raise DataError(
                    f"{where}: the {kind} id {identifier!r} is not in {file}; expected one"
                    f" of its {len(names):,} ids"
                )
        values = column.values.to_pylist()
        column.values = pa.array([names.get(value, value) for value in values], pa.string())


def _used(column: EncodedColumn) -> dict[str, int]:
    """The values that occur, and their codes."""
    values = column.values.to_pylist()
    return {values[code]: int(code) for code in np.flatnonzero(column.counts())}
