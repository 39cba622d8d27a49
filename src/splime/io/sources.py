"""Read a graph from wherever its facts are."""

from __future__ import annotations

import glob
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from splime.errors import DataError, UsageError, check_name, nearest
from splime.graph import SPLITS, SplitName, TemporalGraph
from splime.io.assemble import assemble
from splime.io.cleaning import date_numbers, doubt_columns, without_constant_end, without_times
from splime.io.columns import RawFacts
from splime.io.databases import is_connection, read_connection
from splime.io.files import is_there
from splime.io.folders import best_files, files_of, has_parts, split_files, table_files
from splime.io.ids import dictionaries_of, name_ids
from splime.io.inputs import STANDARD_INPUT, is_stored, scheme_of, without_password
from splime.io.options import SPLITTING, ReadOptions
from splime.io.parquet import read_parquets
from splime.io.parts import MANIFEST, is_triples
from splime.io.readers import builtin_formats, read_named
from splime.io.recognition import times_as_iso
from splime.io.since_until import qualify
from splime.io.statements import name_items, raw_from_records
from splime.io.tables import is_table, raw_from_rows, raw_from_table
from splime.io.together import read_together
from splime.splitting import HowToSplit, split_graph

if TYPE_CHECKING:
    from splime.keywords import Reading

FactSource: TypeAlias = str | Path | Iterable[Sequence[object]] | Any


def read(
    source: FactSource | Mapping[str, FactSource], **options: Unpack[Reading]
) -> TemporalGraph:
    """Read facts into a graph.

    Args:
        source: a file ({formats}; see `splime.io.READERS`), a folder with
            files for train and perhaps valid and test, a folder or pattern of files that are one
            table (`facts/*.csv`), the address of a database, `-` for standard input, an
            Arrow-compatible table (pandas, polars, DuckDB, …), a connection to a database, an
            iterable of tuples or dictionaries, or a mapping of split names to any of these.
        options: those of `ReadOptions`, which are listed below. Options that would have no effect
            are errors, such as how to split a source that has splits.

    Options:
    {options}

    >>> graph = read([("Ada", "playsFor", "Ajax", "1990", "1994"), ("Ada", "playsFor", "PSV",
    ...               "1995", "")], split="none")
    >>> [fact.end for fact in graph.rows()]
    ['1994', None]
    """
    return _read(source, ReadOptions.of(options), "random")


def read_unsplit(source: Any, **options: Unpack[Reading]) -> TemporalGraph:
    """The same, but facts without splits are not split unless that is chosen."""
    return _read(source, ReadOptions.of(options), "none")


def _read(source: Any, chosen: ReadOptions, how_to_split: HowToSplit) -> TemporalGraph:
    if isinstance(source, str | Path) and source and is_stored(source):
        chosen = chosen.for_triples(is_triples(source))
    opened = _open(source, chosen)
    if isinstance(opened, TemporalGraph):
        chosen.check_effect(source, saved=True, has_splits=True)
        graph = replace(opened, name=chosen.name) if chosen.name else opened
    else:
        graph = _make_graph(opened, source, chosen, how_to_split)
        if not chosen.allow_loss:
            graph.reading.check()
    if chosen.bucket is None:
        return graph
    decide: tuple[SplitName, ...] = ("train",) if chosen.bucket_on == "train" else ()
    return graph.bucket(chosen.bucket, *decide)


read.__doc__ = (
    (read.__doc__ or "")
    .replace("{formats}", builtin_formats())
    .replace("    {options}", ReadOptions.described())
)


def files_read(source: str | Path, options: ReadOptions) -> list[Path]:
    """All files that decide what `read` makes of a file, folder or pattern."""
    path = Path(source)
    if has_parts(path):
        facts = files_of(path) + [path / MANIFEST] * is_triples(path)
    elif files := table_files(path):
        facts = files
    elif path.is_dir():
        facts = [file for ranked in split_files(path).values() for _, file in ranked]
    else:
        facts = [path]
    named = (options.entities, options.predicates, options.times)
    beside = dictionaries_of(path)
    return [*facts, *beside, *(Path(name) for name in named if name is not None)]


def _make_graph(
    raws: list[RawFacts], source: FactSource, options: ReadOptions, how_to_split: HowToSplit
) -> TemporalGraph:
    """The graph of facts as they were read, split if they come without splits."""
    has_splits = len(raws) > 1 or bool(raws[0].split or raws[0].splits)
    is_path = isinstance(source, str | Path) and is_stored(source)
    where = source if is_path else raws[0].name
    options.check_effect(where, saved=False, has_splits=has_splits)
    if not has_splits and options.end_before_begin == "repair":
        # Splits are made of facts that were read; which of them are train's is not known yet.
        raise UsageError(
            f"{raws[0].name}: end_before_begin='repair' treats train, valid and test"
            " differently, and the source has no splits; choose drop or swap"
        )
    # Parquet can be streamed too, where every name and column is taken as it is.
    if not any(raw.name.lower().endswith(".parquet") for raw in raws):
        raws = name_items([qualify(raw) for raw in raws])
    if options.columns is None:
        raws = doubt_columns(raws if options.duration else without_constant_end(raws))
    raws = name_ids(raws, source if is_path else None, options)
    if options.unknown_time is not None:
        given = options.unknown_time
        listed = [given] if isinstance(given, str | int) else given
        unknown = {str(each).strip() for each in listed}
        raws = [without_times(raw, unknown) for raw in raws]
    raws = times_as_iso(raws, options)
    if options.origin is not None and options.granularity is not None:
        raws = date_numbers(raws, options.granularity, options.origin)
        if options.granularity != "year":  # hours that all stand at midnight are days
            options = replace(options, origin=None, granularity=None)
    graph = assemble(raws, options, name=options.name or name_of(source))
    how = options.chosen(*SPLITTING)
    if has_splits:
        if not how:
            return graph
        # What was dropped from a file is no longer what a split lacks.
        sources = tuple(replace(one, split=None) for one in graph.reading.sources)
        graph = replace(graph, reading=replace(graph.reading, sources=sources))
    return split_graph(graph, how.pop("split", how_to_split), **how)


def _open(source: FactSource, options: ReadOptions) -> list[RawFacts] | TemporalGraph:
    if isinstance(source, Mapping):
        for split in source:
            check_name("split", split, SPLITS)
        if "train" not in source:
            raise UsageError("there is no train among the splits")
        return [_raw(source[split], split, options) for split in SPLITS if split in source]
    if isinstance(source, str) and not source:
        raise UsageError("the path is empty; expected a file or folder")
    if not isinstance(source, str | Path):
        return [_raw(source, None, options)]
    if is_stored(source):
        path = Path(source)
        if has_parts(path):
            files = files_of(path)
            if len(files) > 1:
                options.check_taken(source, ())
                is_pattern = path.suffix.lower() == ".parquet"
                name = path.name if is_pattern else f"{path.name}/*.parquet"
                return [read_parquets(files, name, options)]
            source = files[0]
        elif files := table_files(path):
            return [read_together(files, path, options)]
        elif is_there(path) and path.is_dir():
            return _folder(path, options)
    opened = _read_path(source, None, options)
    return [opened] if isinstance(opened, RawFacts) else opened


def _raw(source: FactSource, split: SplitName | None, options: ReadOptions) -> RawFacts:
    """One source of facts, of one split if there are splits."""
    if isinstance(source, str | Path):
        opened = _read_path(source, split, options)
        if isinstance(opened, TemporalGraph):
            raise DataError(f"{source}: holds a whole graph, expected the facts of one split")
        return opened
    columns, name = options.columns, split or options.name
    if is_connection(source):
        options.check_taken("connection", ("query",))
        return read_connection(source, name or "connection", split, options)
    options.check_taken(type(source).__name__, ())
    if is_table(source):
        return raw_from_table(source, name or "table", split, options)
    if isinstance(source, Iterable):
        rows = iter(source)
        first = next(rows, None)
        rows = itertools.chain([] if first is None else [first], rows)
        if isinstance(first, Mapping):
            records = (("row", number, row) for number, row in enumerate(rows, start=1))
            return raw_from_records(records, Path(name or "rows"), split, options)
        if columns is not None:
            raise UsageError("columns choose from a file or table; rows hold just the facts")
        return raw_from_rows(rows, name=name or "rows", split=split)
    raise UsageError(
        f"cannot read facts from {type(source).__name__}; expected a path, a table or tuples"
    )


def _read_path(
    source: str | Path, split: SplitName | None, options: ReadOptions
) -> RawFacts | TemporalGraph:
    """The facts of one file, or of what is no file."""
    if not is_stored(source):
        return read_named(source, split, options)
    path = Path(source)
    if not is_there(path):
        beside = path.parent.iterdir() if path.parent.is_dir() else ()
        similar = nearest(path.name, [other.name for other in beside])
        raise DataError(f"{path}: there is no such file or folder.{similar}")
    if not (path.is_file() or path.is_fifo()):
        raise DataError(f"{path}: expected a file")
    return read_named(path, split, options)


def _folder(folder: Path, options: ReadOptions) -> list[RawFacts]:
    """The facts of the files of a folder that hold the splits."""
    return [
        _raw(path, split, options).remarked(
            *(f"{other.name} was left alone: {path.name} is there" for other in others)
        )
        for split, (path, others) in best_files(folder).items()
    ]


def name_of(source: FactSource) -> str:
    """What a graph is called that is read from somewhere."""
    if not isinstance(source, str | Path):
        return ""
    if source == STANDARD_INPUT:
        return "stdin"
    if scheme_of(source):
        source = without_password(str(source)).partition("?")[0]
    path = Path(source)
    while glob.has_magic(path.name) and not is_there(path):
        path = path.absolute().parent
    return path.name.split(".")[0]
