"""Read a graph from wherever its facts are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from splime.errors import DataError, UsageError, nearest
from splime.graph import SPLITS, SplitName, TemporalGraph
from splime.io.assemble import assemble
from splime.io.columns import RawFacts
from splime.io.delimited import read_delimited
from splime.io.files import SUFFIXES, TEXT, is_there, split_files
from splime.io.idfiles import apply_found, apply_ids, read_ids
from splime.io.layout import check_columns
from splime.io.parquet import read_parquet
from splime.io.spans import EndBeforeBegin
from splime.io.tables import is_table, raw_from_rows, raw_from_table
from splime.splitting import HowToSplit, split_graph
from splime.times import Granularity, When

_ENTITY_FILES = ("entity2id.txt", "entities.dict")
_PREDICATE_FILES = ("relation2id.txt", "relations.dict")

BucketOn: TypeAlias = Literal["train", "all"]
FactSource: TypeAlias = str | Path | Iterable[Sequence[object]] | Any


def read(
    source: FactSource | Mapping[str, FactSource],
    *,
    columns: Sequence[str | int] | None = None,
    header: bool | None = None,
    entities: str | Path | None = None,
    predicates: str | Path | None = None,
    granularity: Granularity | None = None,
    first: When | None = None,
    last: When | None = None,
    end_before_begin: EndBeforeBegin | None = None,
    keep_duplicates: bool | None = None,
    split: HowToSplit | None = None,
    valid: float | None = None,
    test: float | None = None,
    seed: int | None = None,
    allow_unseen: bool | None = None,
    bucket: int | None = None,
    bucket_on: BucketOn | None = None,
    name: str = "",
) -> TemporalGraph:
    """Read facts into a graph.

    Args:
        source: a file (`.tsv`, `.csv`, `.txt`, plain, `.gz` or `.zst`; `.parquet`), a folder with
            `train.*` and perhaps `valid.*` and `test.*`, an Arrow-compatible table (pandas,
            polars, DuckDB, …), an iterable of tuples, or a mapping of split names to any of these.
        columns: the 4 columns (subject, predicate, object, time) or 5 (…, begin, end) to use, by
            name or by number from 1. By default the usual names, else the order.
        header: whether the first line of text files holds names; found out by default.
        entities: dictionary file of entity ids, where facts are written with ids.
        predicates: dictionary file of predicate ids.
        granularity: year, month, day, hour, minute, second or step; found out by default.
        first: what an unknown begin becomes; the first time of the facts by default. "end": the
            fact's own end, so that the fact is an instant.
        last: what an unknown end becomes; the last time of the facts by default. "begin": the
            fact's own begin.
        end_before_begin: what to do with facts that end before they begin: drop (the default),
            swap, error, or repair: drop those of train, swap those of valid and test, so that train
            stays clean and no test fact is lost to it. Repair needs a source with splits.
        keep_duplicates: keep facts that are repeated with the same time.
        split: how to split facts without splits: random (the default), time or none (all in
            train). This and the next four are errors where the source has splits.
        valid: share of valid in such a split, by default 0.1.
        test: share of test in such a split, by default 0.1.
        seed: seed of a random split, by default 0.
        allow_unseen: let valid and test name entities and predicates that train does not.
        bucket: merge timestamps until each holds this many facts (the paper uses 300).
        bucket_on: whose facts decide the buckets: all (the default, as in the paper) or train.
        name: what the graph is called.

    >>> graph = read([("Ada", "playsFor", "Ajax", "1990", "1994"), ("Ada", "playsFor", "PSV",
    ...               "1995", "")], split="none")
    >>> [fact.end for fact in graph.rows()]
    ['1994', None]
    """
    columns = check_columns(columns)
    _check_bucket_on(bucket_on, bucket)
    how = {"split": split, "valid": valid, "test": test, "seed": seed, "allow_unseen": allow_unseen}
    fixed = {
        "columns": columns,
        "entities": entities,
        "predicates": predicates,
        "granularity": granularity,
        "first": first,
        "last": last,
        "end_before_begin": end_before_begin,
        "keep_duplicates": keep_duplicates,
    }
    opened = _open(source, columns, header, name)
    if isinstance(opened, TemporalGraph):
        _refuse(source, how, "it has splits of its own; splime.split_graph splits a graph anew")
        _refuse(source, fixed, "it is a saved graph, in which that is settled")
        graph = replace(opened, name=name) if name else opened
    else:
        has_splits = len(opened) > 1 or opened[0].split is not None
        if has_splits:
            where = source if isinstance(source, str | Path) else opened[0].name
            _refuse(where, how, "it has splits of its own; splime.split_graph splits a graph anew")
        elif end_before_begin == "repair":
            # Splits are made of facts that were read; which of them are train's is not known yet.
            raise UsageError(
                f"{opened[0].name}: end_before_begin='repair' treats train, valid and test"
                " differently, and the source has no splits; choose drop or swap"
            )
        _name_ids(opened, source, entities, predicates)
        graph = assemble(
            opened,
            granularity=granularity,
            first=first,
            last=last,
            end_before_begin=end_before_begin or "drop",
            keep_duplicates=bool(keep_duplicates),
            name=name or _name_of(source),
        )
        if not has_splits:
            chosen: dict[str, Any] = {key: value for key, value in how.items() if value is not None}
            graph = split_graph(graph, chosen.pop("split", "random"), **chosen)
    if bucket is None:
        return graph
    return graph.bucket(bucket, "train") if bucket_on == "train" else graph.bucket(bucket)


def _check_bucket_on(bucket_on: str | None, bucket: int | None) -> None:
    if bucket_on not in (None, "train", "all"):
        raise UsageError(f"bucket_on is train or all, not {bucket_on!r}")
    if bucket_on is not None and bucket is None:
        raise UsageError(
            "bucket_on says whose facts decide the buckets; it needs bucket, how many facts each"
            " holds (the paper uses 300)"
        )


def _refuse(source: object, options: dict[str, Any], why: str) -> None:
    """Raise UsageError if options are given that would have no effect."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise UsageError(f"{source}: {', '.join(given)} cannot be chosen: {why}")


def _open(
    source: FactSource, columns: Sequence[str] | None, header: bool | None, name: str
) -> list[RawFacts] | TemporalGraph:
    if isinstance(source, Mapping):
        for split in source:
            if split not in SPLITS:
                raise UsageError(f"unknown split {split!r}; there are train, valid and test")
        if "train" not in source:
            raise UsageError("there is no train among the splits")
        return [_raw(source[split], split, columns, header) for split in SPLITS if split in source]
    if isinstance(source, str) and not source:
        raise UsageError("the path is empty; expected a file or folder")
    if isinstance(source, str | Path):
        path = Path(source)
        if is_there(path) and path.is_dir():
            return [
                _raw(found, split, columns, header) for split, found in _splits_in(path).items()
            ]
        if path.suffix.lower() == ".parquet" and path.is_file():
            opened = read_parquet(path, columns=columns)
            return opened if isinstance(opened, TemporalGraph) else [opened]
    return [_raw(source, None, columns, header, name)]


def _raw(
    source: FactSource,
    split: SplitName | None,
    columns: Sequence[str] | None,
    header: bool | None,
    name: str = "",
) -> RawFacts:
    """One source of facts of one split."""
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
        return read_delimited(path, split=split, columns=columns, header=header)
    if is_table(source):
        return raw_from_table(source, name=name or split or "table", split=split, columns=columns)
    if isinstance(source, Iterable):
        if columns is not None:
            raise UsageError("columns choose from a file or table; rows hold just the facts")
        return raw_from_rows(source, name=name or split or "rows", split=split)
    raise UsageError(
        f"cannot read facts from {type(source).__name__}; expected a path, a table or tuples"
    )


def _splits_in(folder: Path) -> dict[SplitName, Path]:
    """The files of a folder that hold the splits."""
    found: dict[SplitName, Path] = {}
    for split, matches in split_files(folder).items():
        if len(matches) > 1:
            names = " and ".join(path.name for path in matches)
            raise DataError(f"{folder}: both {names} are there; expected one file for {split}")
        found[split] = matches[0]
    if "train" not in found:
        raise DataError(
            f"{folder}: expected a file train{{{','.join(TEXT)},.parquet}} (plain, .gz or .zst),"
            " and perhaps valid and test"
        )
    return {split: found[split] for split in SPLITS if split in found}


def _name_ids(
    raws: list[RawFacts],
    source: FactSource,
    entities: str | Path | None,
    predicates: str | Path | None,
) -> None:
    """Give names to the ids in facts: by the dictionary files named, or those in the folder."""
    if entities is None and predicates is None and isinstance(source, str | Path):
        folder = Path(source)
        beside = [
            next((folder / name for name in names if (folder / name).is_file()), None)
            for names in (_ENTITY_FILES, _PREDICATE_FILES)
        ]
        apply_found(raws, *beside)
        return
    entity_names = None if entities is None else read_ids(Path(entities))
    predicate_names = None if predicates is None else read_ids(Path(predicates))
    for raw in raws:
        apply_ids(raw, entity_names, predicate_names)


def _name_of(source: FactSource) -> str:
    return Path(source).name.split(".")[0] if isinstance(source, str | Path) else ""


def _similar(path: Path) -> str:
    if not path.parent.is_dir():
        return ""
    return nearest(path.name, [other.name for other in path.parent.iterdir()])
