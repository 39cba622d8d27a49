"""Read a graph from wherever its facts are; ids in facts get the names of dictionary files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splime.errors import DataError, UsageError, check_name, nearest
from splime.graph import SPLITS, SplitName, TemporalGraph
from splime.io.assemble import assemble
from splime.io.columns import EncodedColumn, RawFacts
from splime.io.delimited import Dialect, read_delimited, rows_of
from splime.io.files import JSON, SUFFIXES, TEXT, is_binary, is_there, split_files
from splime.io.options import SPLITTING, ReadOptions
from splime.io.parquet import read_parquet, read_parquets
from splime.io.parts import files_of, has_parts, is_triples
from splime.io.qualifiers import qualify, read_mixed, without_times
from splime.io.records import is_export, name_items, read_export, read_json
from splime.io.tables import is_table, raw_from_rows, raw_from_table
from splime.splitting import split_graph
from splime.times import KNOWN, Granularity, When, format_ticks, parse_times, tick_range

if TYPE_CHECKING:
    from splime.keywords import Reading

# The usual dictionary files, which give names to the ids that facts are written with.
_STEMS = {
    "entity": ("entity2id", "ent2id", "entities2id", "entity_ids", "ent_ids"),
    "predicate": ("relation2id", "rel2id", "predicate2id", "relation_ids", "rel_ids"),
    "time": ("time2id", "ts2id", "timestamp2id", "times2id", "time_ids", "time_id"),
}
_ID_FILES = {
    kind: [*(stem + end for stem in stems for end in (".txt", ".tsv", ".dict", "")), usual]
    for (kind, stems), usual in zip(
        _STEMS.items(), ("entities.dict", "relations.dict", "times.dict"), strict=True
    )
}

_NEARLY_ALL = 0.9

FactSource: TypeAlias = str | Path | Iterable[Sequence[object]] | Any


def read(
    source: FactSource | Mapping[str, FactSource], **options: Unpack[Reading]
) -> TemporalGraph:
    """Read facts into a graph.

    Args:
        source: a file (text with columns or JSON, plain, `.gz` or `.zst`; `.parquet`), a folder
            with files for train and perhaps valid and test, a folder or pattern of Parquet files
            (`facts/*.parquet`), an Arrow-compatible table (pandas,
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
    if isinstance(source, str | Path) and source:
        chosen = chosen.for_triples(is_triples(source))
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
    # Parquet can be streamed too, where every name and column is taken as it is.
    if not any(raw.name.lower().endswith(".parquet") for raw in raws):
        raws = [qualify(raw) for raw in raws]
        name_items(raws)
    if options.columns is None:
        _leave_out_fifth(raws)
        _doubt_columns(raws)
    _name_ids(raws, source, options)
    if options.unknown_time is not None:
        raws = [without_times(raw, str(options.unknown_time)) for raw in raws]
    if options.origin is not None and options.granularity is not None:
        _date_numbers(raws, options.granularity, options.origin)
        if options.granularity != "year":  # hours that all stand at midnight are days
            options = replace(options, origin=None, granularity=None)
    graph = assemble(raws, options, name=options.name or _name_of(source))
    how = options.chosen(*SPLITTING)
    if has_splits:
        if not how:
            return graph
        # What was dropped from a file is no longer what a split lacks.
        sources = tuple(replace(each, split=None) for each in graph.reading.sources)
        graph = replace(graph, reading=replace(graph.reading, sources=sources))
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
        if has_parts(path):
            name = path.name if path.suffix.lower() == ".parquet" else f"{path.name}/*.parquet"
            opened = read_parquets(files_of(path), name, columns=options.columns)
            return opened if isinstance(opened, TemporalGraph) else [opened]
        if is_there(path) and path.is_dir():
            return _folder(path, options)
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
        if not path.name.lower().endswith(SUFFIXES) and is_binary(path):
            raise DataError(
                f"{path}: unknown kind of file; expected {', '.join(TEXT)} or any other text,"
                " .jsonl, .ndjson or .json (plain, .gz or .zst), or .parquet"
            )
        if path.name.lower().endswith(JSON):
            return read_json(path, split=split, columns=columns)
        if options.header is not False and is_export(path):
            return read_export(path, split=split, columns=columns)
        try:
            return read_delimited(path, split=split, columns=columns, header=options.header)
        except DataError as error:
            asked = options.without_time is not None
            return read_mixed(path, error, split=split, columns=columns, asked=asked)
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


def _folder(folder: Path, options: ReadOptions) -> list[RawFacts]:
    """The facts of the files of a folder that hold the splits."""
    files = split_files(folder)
    if "train" not in files:
        raise DataError(_without_train(folder))
    raws = []
    for split in SPLITS:
        if split in files:
            best = [path for rank, path in files[split] if rank == files[split][0][0]]
            if len(best) > 1:
                names = " and ".join(path.name for path in best)
                raise DataError(
                    f"{folder}: both {names} are there; expected one file for {split}. Keep one of"
                    " them in the folder, or choose in Python:"
                    f" splime.read({{{split!r}: {str(best[0])!r}, …}})"
                )
            raws.append(_raw(best[0], split, options))
            raws[-1].guesses += [
                f"{path.name} was left alone: {best[0].name} is there"
                for _, path in files[split][1:]
            ]
    return raws


def _without_train(folder: Path) -> str:
    """What to say of a folder without train."""
    others = sorted(path.name for path in folder.iterdir() if path.is_file())
    # Not those of ids, which are dictionaries.
    numbered = [name for name in others if re.fullmatch(r"(?!.*id)\w*[a-z]_?[1-9](\.\w+)?", name)]
    message = (
        f"{folder}: expected a file train.txt (or .tsv, .csv, .parquet, …), or another with the"
        " word train in its name, and perhaps valid and test"
    )
    if others:
        more = ", …" if len(others) > 8 else ""
        message += f"; there are {', '.join(others[:8])}{more}"
    if len(numbered) > 1:
        message += (
            f". {numbered[0]} and {numbered[1]} may be parts of one graph or two graphs: read one"
            f" of them, {folder / numbered[0]}, or make one file of them"
        )
    return message


def _name_of(source: FactSource) -> str:
    if not isinstance(source, str | Path):
        return ""
    path = Path(source)
    is_pattern = has_parts(path) and not path.is_dir()
    return (path.absolute().parent if is_pattern else path).name.split(".")[0]


def _similar(path: Path) -> str:
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    return nearest(path.name, [other.name for other in beside])


def _leave_out_fifth(raws: Sequence[RawFacts]) -> None:
    """Take a fifth column for no end if it is the same number everywhere, and before the begins.

    Many benchmarks write quadruples as `s r o t 0`. A number that nearly all rows have is only
    mentioned.
    """
    own = [raw for raw in raws if raw.is_text and raw.header is None and len(raw.times) == 2]
    own = [raw for raw in own if raw.halves is None and len(raw.times[1].values)]
    rows, empty = sum(raw.rows for raw in own), 0
    common = Counter[str]()
    for raw in own:
        values, counts = raw.times[1].values, raw.times[1].counts()
        most = int(counts.argmax())
        common[values[most].as_py().strip()] += int(counts[most])
        empty += int(counts[pc.equal(values, "").to_numpy(zero_copy_only=False)].sum())
    end, count = common.most_common(1)[0] if common else ("", 0)
    if count < max(2, _NEARLY_ALL * rows) or not re.fullmatch("[+-]?[0-9]{1,18}", end):
        return
    earlier = later = 0
    for raw in own:
        begin = raw.times[0]
        # Years are enough to compare dates, and numbers stay themselves.
        parsed = parse_times(begin.values, granularity="year")
        counts = begin.counts() * (parsed.state == KNOWN)
        earlier += int(counts[parsed.ticks < int(end)].sum())
        later += int(counts[parsed.ticks > int(end)].sum())
    if later > earlier:
        for raw in own:
            if count + empty == rows:
                raw.times = raw.times[:1]
                or_empty = " or empty" if empty else ""
                raw.guesses.append(f"the fifth column is always {end}{or_empty} and was left out")
            else:
                raw.guesses.append(
                    f"the fifth column is {end} in {count:,} of {rows:,} rows, and was read as the"
                    " end; --columns 1,2,3,4 leaves it out"
                )


def _doubt_columns(raws: Sequence[RawFacts]) -> None:
    """Say it where files have other columns than the first, or the third may be the predicate."""
    own = [raw for raw in raws if raw.is_text and raw.header is None]
    for raw in own[1:]:
        if len(raw.times) != len(own[0].times):
            here, there = 3 + len(raw.times), 3 + len(own[0].times)
            raw.guesses.append(f"it has {here} columns of facts, but {own[0].name} has {there}")
    columns = [(raw.names[1], raw.names[2]) for raw in own]
    if all(len(predicates.values) <= 2 * len(objects.values) for predicates, objects in columns):
        return  # as usual; the sets below would be large
    second, third = ({each for pair in columns for each in _used(pair[at])} for at in (0, 1))
    if len(second) > 2 * len(third) and all(map(_is_id, second | third)):
        for raw in own:
            raw.guesses.append(
                f"the second column, with {len(second):,} different ids, was taken for the"
                f" predicate, and the third, with {len(third):,}, for the object; if it is the"
                " other way around: --columns 1,3,2,4"
            )


def _date_numbers(raws: Sequence[RawFacts], unit: Granularity, origin: When) -> None:
    """Turn numbers of units since the origin into dates."""
    first = tick_range(origin, unit)[0]
    for raw in raws:
        for column in raw.times:
            texts = [value.strip() for value in column.values.cast(pa.string()).to_pylist()]
            ticks = np.full(len(texts), first, np.int64)
            for code, text in enumerate(texts):
                if re.fullmatch("[+-]?[0-9]{1,12}", text):
                    ticks[code] += int(text)
                elif text.strip("-#"):
                    where = raw.locate([column.first_row(code)])[0]
                    raise DataError(
                        f"{where}: {text!r} is no number of {unit}s since {origin}; leave `origin`"
                        " out where times are dates"
                    )
            dates = zip(format_ticks(ticks, unit), texts, strict=True)
            known = [date if text.strip("-#") else "" for date, text in dates]
            column.values = pa.array(known, pa.string())


def _name_ids(raws: Sequence[RawFacts], source: object, options: ReadOptions) -> None:
    """Give names to the ids in facts: by the dictionary files named, or those beside the facts."""
    named = {"entity": options.entities, "predicate": options.predicates, "time": options.times}
    for kind, path in named.items():
        if path is not None:
            _apply(raws, kind, read_ids(Path(path)), "the dictionary file")
        elif isinstance(source, str | Path):
            is_folder = Path(source).is_dir()
            folder = Path(source) if is_folder else Path(source).parent
            usual = (folder / name for name in _ID_FILES[kind])
            beside = next((path for path in usual if path.is_file()), None)
            if beside is not None and (is_folder or raws[0].is_text):
                _name_by(beside, kind, raws, is_folder=is_folder)


def _name_by(beside: Path, kind: str, raws: Sequence[RawFacts], *, is_folder: bool) -> None:
    """Use a dictionary file that was not named, where the facts are written with its ids."""
    used = {
        value.strip(" ")
        for raw in raws
        for column in _columns(raw, kind)
        for value in _used(column)
        if kind != "time" or value.strip(" -#")
    }
    # A folder belongs together; beside a single file, and for times, other things may lie.
    strict = is_folder and kind != "time"
    try:
        names = read_ids(beside)
    except DataError as error:
        if strict:
            raise
        names, why = {}, str(error).removeprefix(f"{beside}, ").removeprefix(f"{beside}: ")
    else:
        why = f"the facts are not written with the {kind} ids in it"
    ids, labels = len(used & names.keys()), len(used & set(names.values()))
    if names and labels == len(used):
        return  # facts that only use names of a dictionary are written with names already
    if strict or ids == len(used) or (is_folder and ids > labels):
        _apply(raws, kind, names, f"{beside.name}, which lies beside it")
        guess = f"{kind} ids are named by {beside.name}"
    else:
        guess = f"{beside.name} was left alone: {why}"
    for raw in raws:
        raw.guesses.append(guess)


def read_ids(path: Path) -> dict[str, str]:
    """Id to name, from lines of a name and an id, or an id and a name.

    They are separated by a tab, and further columns are ignored; or by spaces.
    """
    rows = [row for row in rows_of(path, Dialect("\t")) if row[1][0].strip() or len(row[1]) > 1]
    if len(rows) > 1 and len(rows[0][1]) == 1 and _is_id(rows[0][1][0].strip()):
        rows = rows[1:]  # OpenKE writes the number of lines first
    if not rows:
        raise DataError(f"{path}: the file is empty; expected lines of a name and an id")
    spaced = all(len(cells) == 1 for _, cells in rows)
    # Id and name of each line, if the id comes last, and if it comes first.
    last, first = [], []
    for number, cells in rows:
        text = cells[0].strip(" ")
        front, back = (text.split(" ", 1), text.rsplit(" ", 1)) if spaced else (cells, cells)
        if len(front) < 2:
            raise DataError(
                f"{path}, line {number}: expected a name and an id with a tab or spaces between"
                f" them, found {cells[0]!r}"
            )
        last.append((back[1].strip(), back[0].rstrip(" ") if spaced else back[0]))
        first.append((front[0].strip(), front[1].strip()))
    heads = [last[0][0].lower(), first[0][0].lower()]
    if not any(map(_is_id, heads)) and any(head.endswith("id") for head in heads):
        rows, last, first = rows[1:], last[1:], first[1:]  # a header
    sides = [side for side in (last, first) if all(_is_id(identifier) for identifier, _ in side)]
    if not sides or not rows:
        raise DataError(f"{path}: neither the first nor the second column holds ids 0, 1, 2, …")
    if len(sides) == 2 and [each for each, _ in last] != [each for each, _ in first]:
        # Years look like ids too, but do not count from 0 or 1.
        sides = [side for side in sides if _counts_up([int(identifier) for identifier, _ in side])]
        if len(sides) != 1:
            raise DataError(f"{path}: both columns look like ids; which one is meant is not clear")
    names: dict[str, str] = {}
    lines: dict[str, int] = {}
    for (number, _), (identifier, name) in zip(rows, sides[0], strict=True):
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
    return text.isascii() and text.isdigit() and len(text) < 19


def _counts_up(numbers: list[int]) -> bool:
    """Whether they are 0, 1, 2, … or 1, 2, 3, … in any order."""
    low = min(numbers)
    return low in (0, 1) and sorted(numbers) == list(range(low, low + len(numbers)))


def _columns(raw: RawFacts, kind: str) -> Sequence[EncodedColumn]:
    """The columns that a dictionary is for."""
    subject, predicate, object = raw.names
    return {"entity": (subject, object), "predicate": (predicate,), "time": raw.times}[kind]


def _apply(raws: Sequence[RawFacts], kind: str, names: dict[str, str], file: str) -> None:
    """Replace the ids in facts by their names; an unknown time has none."""
    for raw in raws:
        for column in _columns(raw, kind):
            for value, code in _used(column).items():
                if value.strip(" ") not in names and (kind != "time" or value.strip(" -#")):
                    where = raw.locate([column.first_row(code)])[0]
                    swapped = kind == "predicate" and names.keys() >= _used(raw.names[2]).keys()
                    advice = "; is the predicate in column 3? --columns 1,3,2,4" if swapped else ""
                    raise DataError(
                        f"{where}: the {kind} id {value!r} is not in {file}; expected one of its"
                        f" {len(names):,} ids{advice}"
                    )
            values = [names.get(value.strip(" "), value) for value in column.values.to_pylist()]
            column.values = pa.array(values, pa.string())


def _used(column: EncodedColumn) -> dict[str, int]:
    """The values that occur, and their codes."""
    values = column.values.to_pylist()
    return {values[code]: int(code) for code in np.flatnonzero(column.counts())}
