"""Facts in named fields: JSON (an object a line, an array of objects, SPARQL results), and tables
as Wikidata's query service writes them.

Fields are such as item, itemLabel, property, value, start, startPrecision, end and pointInTime.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splime.errors import DataError, UsageError, counted, nearest, option
from splime.graph import SplitName
from splime.io.columns import (
    EncodedColumn,
    Locate,
    RawFacts,
    RowCollector,
    encoded,
    merged,
    raw_facts,
)
from splime.io.contents import SAMPLE, Contents
from splime.io.inference import find_layout, left_out
from splime.io.inputs import InputFile
from splime.io.layout import NAMES, TIMES, folded, named_otherwise, roles_of
from splime.io.options import ReadOptions
from splime.times import raw_time

_Record: TypeAlias = tuple[str, int, Any]
JSON = (".jsonl", ".ndjson", ".json")
# What queries call their variables, beside the usual names of columns.
_VARIABLES = {"item": "subject", "prop": "predicate", "value": "object", "pointintime": "time"}
_LABEL, _PRECISION = "label", "precision"
_ABOUT = re.compile(rf"(.*?)[ _]?({_LABEL}|{_PRECISION}|altlabel|description)", re.IGNORECASE)
_IRI = re.compile(
    r"<?https?://(?:www\.)?wikidata\.org/(?:entity/|prop/(?:[a-z-]+/)*|wiki/(?:Property:)?)"
    r"([QPL][0-9]+)>?"
)
# A time of which Wikidata knows only that there is one.
_SOME_TIME = re.compile(r"https?://\S*/\.well-known/genid/\S*|_:\S*|t[0-9]{5,}")
_DATE = re.compile(r"[+]?(-?)0*([0-9]+)-([0-9]{2})-([0-9]{2})(?:T.*)?")
_YEAR, _MONTH, _DAY = 9, 10, 11  # Wikidata's precisions: 8 is a decade, 7 a century, 12 an hour
_DEEPEST = 3  # objects in objects in a record
_OF_SPARQL = "results.bindings"


def is_statement(header: Sequence[str]) -> bool:
    """Whether a header names more than the columns that facts have."""
    names = [name.strip().strip('"') for name in header]
    if all(name.startswith("?") for name in names):
        return True
    usual, roles = roles_of(names), _roles(names)
    if not {*NAMES} <= roles.keys() or roles.keys().isdisjoint(TIMES):
        return False
    return {*TIMES} <= roles.keys() or usual != roles or any(map(_ABOUT.fullmatch, names))


def term_text(text: str) -> str:
    """The text of an RDF term: of `<…>`, `"…"@en` or `"…"^^<…>`."""
    match = re.fullmatch(r'<(.*)>|"(.*)"(?:@[\w-]+|\^\^\S+)?', text, re.DOTALL)
    if match is None:
        return text
    return match[1] if match[2] is None else re.sub(r"\\(.)", r"\1", match[2])


def _roles(names: Sequence[str]) -> dict[str, int]:
    """Which columns are what, by the usual names and those of queries."""
    return roles_of([_VARIABLES.get(folded(name), name) for name in names])


def raw_from_fields(
    path: Path,
    fields: Sequence[str],
    column: Callable[[str], EncodedColumn],
    locate: Locate,
    split: SplitName | None,
    options: ReadOptions,
) -> RawFacts:
    """The facts of named fields, of which only those that are needed are made columns."""
    usual = _roles(fields)
    is_named = {*NAMES} <= usual.keys() and not usual.keys().isdisjoint(TIMES)
    if not is_named or options.columns is not None or options.predicate_name is not None:
        layout, told = find_layout(Contents(fields, _reader(fields, column)), options, str(path))
        called = {role: fields[at] for role, at in layout.items()}
        chosen = {role: column(name) for role, name in called.items()}
        raw = raw_facts(path.name, chosen, locate, split, options.predicate_name, called)
        return replace(raw, remarks=(*told, *raw.remarks))
    roles = {role: fields[at] for role, at in usual.items()}
    about = {
        (folded(match[1]), match[2].lower()): name
        for name in fields
        if (match := _ABOUT.fullmatch(name))
    }
    labelled = {role: about.get((folded(roles[role]), _LABEL)) for role in NAMES}
    timed = {role: _precision_of(role, roles[role], about) for role in TIMES if role in roles}
    used = {*roles.values(), *labelled.values(), *timed.values()}
    made = {name: column(name) for name in used if name}
    labels: dict[str, str] = {}
    several: set[str] = set()
    for role, label in labelled.items():
        if label:
            several |= _add_labels(labels, made[roles[role]], made[label])
    written = {role: [made[name] for name in (roles[role], timed[role]) if name] for role in timed}
    dated = {role: _dated(*parts) for role, parts in written.items()}
    times, shown = _spans(dated), list(chain.from_iterable(written.values()))
    unused = [name for name in fields if name not in used]
    remarks = named_otherwise(fields, usual)
    if len(shown) == len(timed):
        remarks += _new_years(shown)
    if several:
        remarks.append(f"{len(several):,} have several labels, of which the first is used")
    remarks += left_out(unused)
    names = [made[roles[role]] for role in NAMES]
    splits = made[roles["split"]] if "split" in roles else None
    raw = RawFacts(path.name, names, times, locate, split, splits)
    return replace(raw, written=shown, labels=labels, remarks=tuple(remarks))


def _reader(
    fields: Sequence[str], column: Callable[[str], EncodedColumn]
) -> Callable[[], list[list[str]]]:
    """What reads the first cells of all fields; none of one that holds no names and no times."""

    def cells(name: str) -> list[str]:
        with suppress(DataError):
            found = column(name)
            return found.texts(range(min(SAMPLE, found.rows)))
        return []

    return lambda: [cells(name) for name in fields]


def _precision_of(role: str, time: str, about: dict[tuple[str, str], str]) -> str | None:
    """The column of the precisions of a time: by its name, by what it is, or for all times."""
    bases = [base for base, kind in about if kind == _PRECISION]
    for base in bases:
        if base == folded(time):
            return about[base, _PRECISION]
    return next((about[b, _PRECISION] for b in bases if not b or role in _roles([b])), None)


def _dated(time: EncodedColumn, precision: EncodedColumn | None = None) -> EncodedColumn:
    """Times with no more than what is known of them: a year is written as the 1st of January."""
    texts = [*time.values.to_pylist(), None]
    levels = [None] if precision is None else [*precision.values.to_pylist(), None]
    level = np.zeros(time.rows, np.int64) if precision is None else precision.all_codes()
    key = time.all_codes().astype(np.int64) % len(texts) * len(levels) + level % len(levels)
    keys, code = np.unique(key, return_inverse=True)
    pairs = (divmod(key, len(levels)) for key in keys.tolist())
    cut = [_cut(texts[text], levels[level]) for text, level in pairs]
    code[np.array([not text for text in cut])[code]] = -1
    return encoded(code, pa.array(cut, pa.string()))


def _cut(text: str | None, precision: str | None) -> str | None:
    """A time down to its precision, as `parse_times` reads it.

    >>> [_cut("1995-01-01T00:00:00Z", level) for level in ("11", "9", "8", None)]
    ['1995-01-01', '1995-##-##', '199#-##-##', '1995-01-01T00:00:00Z']
    """
    if text is None or _SOME_TIME.fullmatch(text):
        return None
    date = _DATE.fullmatch(text.strip())
    if date is None or precision is None or not re.fullmatch("[0-9]{1,2}", precision.strip()):
        return text
    sign, year, month, day = date.groups()
    level = int(precision)
    if level > _DAY:
        return text
    if level >= _YEAR:
        return f"{sign}{year}-{month if level >= _MONTH else '##'}-{day if level >= _DAY else '##'}"
    # A decade or a century, of which the last digits are not known.
    return f"{sign}{year[: level - _YEAR] or year[0]}#-##-##"


def _spans(times: dict[str, EncodedColumn]) -> list[EncodedColumn]:
    """Begin and end; a point in time is both, where neither is given."""
    if {*times} == {"time"}:
        return [times["time"]]
    rows = next(iter(times.values())).rows
    nothing = encoded(np.full(rows, -1), pa.array([], pa.string()))
    begin, end, time = (times.get(role, nothing) for role in TIMES)
    neither = (begin.all_codes() < 0) & (end.all_codes() < 0)
    return [merged(neither, time, column) for column in (begin, end)]


def _new_years(times: Sequence[EncodedColumn]) -> list[str]:
    """A warning where most times look like years that Wikidata wrote as days."""
    texts = pa.concat_arrays([column.values for column in times])
    counts = np.concatenate([column.counts() for column in times])
    first = pc.match_substring_regex(texts, r"^[+-]?[0-9]+-01-01T00:00:00Z$")
    count = int(counts[first.to_numpy(zero_copy_only=False)].sum())
    if 2 * count <= counts.sum():
        return []
    return [
        f"{count:,} of {counts.sum():,} times are a 1st of January, as Wikidata writes years; no"
        f" column says their precision, and {option('granularity', 'year')} makes years of them"
    ]


def _add_labels(labels: dict[str, str], column: EncodedColumn, label: EncodedColumn) -> set[str]:
    """Note the first label of everything that a column names; what has others, too."""
    ids, texts = column.values.to_pylist(), label.values.to_pylist()
    codes, label_codes = column.all_codes(), label.all_codes()
    given = (codes >= 0) & label.lookup(np.array([bool(text) for text in texts], bool))
    codes, label_codes = codes[given], label_codes[given]
    pairs = codes.astype(np.int64) * len(texts) + label_codes
    several = set()
    for row in np.sort(np.unique(pairs, return_index=True)[1]).tolist():
        thing, text = ids[codes[row]], texts[label_codes[row]]
        if labels.setdefault(thing, text) != text:
            several.add(thing)
    return several


def name_items(raws: Sequence[RawFacts]) -> list[RawFacts]:
    """Shorten the IRIs of Wikidata to ids, and name things by their labels where they have some.

    Labels that several things share are followed by the id, in all files alike, so that no two
    things become one.
    """
    raws, labels = list(raws), dict[str, str]()
    differ = 0
    for raw in reversed(raws):
        both = raw.labels.keys() & labels.keys()
        differ += sum(raw.labels[thing] != labels[thing] for thing in both)
        labels |= raw.labels
    if differ:
        said = f"{differ:,} have other labels in other files, of which the first is used"
        raws[0] = raws[0].remarked(said)
    for kind, positions in (("entities", (0, 2)), ("predicates", (1,))):
        values = [raw.names[at].values for raw in raws for at in positions]
        iris = (pc.match_substring(column, "wikidata.org/") for column in values)
        if not labels and not any(pc.any(found).as_py() for found in iris):
            continue
        names, remarks = _item_names(
            [text for texts in values for text in texts.to_pylist()], labels
        )
        for number, raw in enumerate(raws):
            columns = list(raw.names)
            for at in positions:
                columns[at] = columns[at].mapped(names.__getitem__)
            told = [f"{kind}{remark}" for remark in remarks]
            raws[number] = replace(raw, names=columns).remarked(*told)
    return raws


def _item_names(texts: list[str], labels: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """What things are called instead of what was written, and remarks about it."""
    ids = {text: match[1] if (match := _IRI.fullmatch(text)) else text for text in texts}
    things = set(ids.values())
    names = {ids[text]: labels[text] for text in reversed(ids) if text in labels}
    uses = Counter(names.get(thing, thing) for thing in things)
    shared = [thing for thing, label in names.items() if uses[label] > 1 and label != thing]
    names |= {thing: f"{names[thing]} ({thing})" for thing in shared}
    if len({names.get(thing, thing) for thing in things}) < len(things):
        names = {}  # a label that is written like another one with its id
    remarks = []
    if any(thing != text for text, thing in ids.items()):
        remarks.append(": the IRIs of Wikidata are shortened to ids")
    if names:
        told = f"; {len(shared):,} share one, and have their id behind it" if shared else ""
        remarks.append(f" are named by their labels{told}")
    return {text: names.get(thing, thing) for text, thing in ids.items()}, remarks


def read_records(file: InputFile, split: SplitName | None, options: ReadOptions) -> RawFacts:
    """Read facts from objects with named fields."""
    try:
        return raw_from_records(_objects(file, options.table), file.path, split, options)
    except DataError:
        records = [*_objects(file, options.table)]
        lists = {name for *_, record in records for name in _lists_of(record)}
        if len(lists) != 1:
            raise
    (name,) = lists
    raw = raw_from_records(_unfolded(records, name), file.path, split, options)
    return raw.remarked(f"each object in {name!r} is a record, with the fields around it")


def _lists_of(record: Any) -> list[str]:
    """The fields of a record that hold lists of objects."""
    fields = record.items() if isinstance(record, dict) else ()
    return [name for name, value in fields if isinstance(value, list) and _are_objects(value)]


def _unfolded(records: Iterable[_Record], name: str) -> Iterator[_Record]:
    """A record for each object of a list in a record; one where there is none."""
    for unit, number, record in records:
        for inner in record.get(name) or [None]:
            yield unit, number, {**record, name: inner}


def raw_from_records(
    records: Iterable[_Record],
    path: Path,
    split: SplitName | None,
    options: ReadOptions,
) -> RawFacts:
    """The facts of objects, each with what its number counts (such as lines) and its number."""
    rows, unusable = RowCollector(path.name, "line"), dict[str, str]()

    def texts(record: dict[str, Any], where: str) -> Iterator[tuple[str, str | None]]:
        for name, value in _fields(record):
            try:
                yield name, _text(value)
            except TypeError:
                unusable.setdefault(name, f"{where}: {name!r} is {value!r:.60}")

    for rows.unit, number, record in records:
        where = f"{path}, {rows.unit} {number}"
        if not isinstance(record, dict):
            raise DataError(f"{where}: expected an object with named fields, found {record!r:.60}")
        rows.add(number, texts(record, where))
    if not rows.numbers:
        raise DataError(f"{path}: there are no facts in the file")

    def column(name: str) -> EncodedColumn:
        if name in unusable:
            raise DataError(f"{unusable[name]}; expected text or a whole number")
        return rows.column(name)

    fields = list(dict.fromkeys([*rows.keys, *unusable]))
    return raw_from_fields(path, fields, column, rows.locate, split, options)


def _fields(record: dict[str, Any], within: str = "") -> Iterator[tuple[str, Any]]:
    """The fields of an object and, as `customer.name`, those of the objects in it."""
    for name, value in record.items():
        inner = isinstance(value, dict) and not value.keys() >= {"type", "value"}
        if inner and within.count(".") < _DEEPEST:
            yield from _fields(value, f"{within}{name}.")
        else:
            yield f"{within}{name}", value


def _objects(file: InputFile, table: str | None) -> Iterator[_Record]:
    """The records of a file, each with its line or, in an array, its number."""
    lines = ((number, line) for number, line in enumerate(file.lines(), 1) if line.strip())
    start = next(lines, None)
    if start is None:
        raise DataError(f"{file.path}: the file is empty; expected JSON")
    try:
        first = json.loads(start[1])
    except (ValueError, RecursionError):
        first = None  # a value that goes on in the next line, or an error below
    second = next(lines, None) if isinstance(first, dict) else None
    is_one = isinstance(first, dict) and second is None
    if isinstance(first, dict) and not (is_one and (table or _is_around_others(first))):
        if table is not None:
            raise UsageError(f"{file.path}: leave out table: it has an object a line, and no lists")
        yield "line", start[0], first
        for number, line in chain([second] if second else [], lines):
            yield "line", number, _decoded(line, file.path, number)
        return
    value = first if is_one else _decoded("".join(file.lines()), file.path, 1)
    for number, record in enumerate(_list_in(value, table, file), 1):
        yield "record", number, record


def _is_around_others(value: dict[str, Any]) -> bool:
    """Whether an object is no fact, but holds those that are."""
    if {"head", "results"} <= value.keys():
        return True
    return not {*NAMES} <= _roles([*value]).keys() and bool(_lists_in(value))


def _list_in(value: Any, table: str | None, file: InputFile) -> list[Any]:
    """The objects of a file: its own list, or one that lies in an object, by itself or chosen."""
    if isinstance(value, list) and table is None:
        return value
    found = _lists_in(value)
    paths = ", ".join(f"{path} ({counted(len(each), 'object')})" for path, each in found.items())
    if table is not None:
        if table not in found:
            raise UsageError(
                f"{file.path}: there is no list of objects at {table!r}"
                + (f"; there are {paths}.{nearest(table, found)}" if found else "")
            )
        return found[table]
    if len(found) > 1:
        raise DataError(
            f"{file.path}: holds several lists of objects; choose one with"
            f" {option('table', 'NAME')}: {paths}"
        )
    if not found:
        raise DataError(
            f"{file.path}: expected an object a line, an array of objects, an object with a list of"
            " objects in it, or SPARQL results"
        )
    path, records = next(iter(found.items()))
    if path != _OF_SPARQL:
        file.remarks.append(f"the objects in {path!r} are read")
    return records


def _lists_in(value: Any) -> dict[str, list[Any]]:
    """The lists of objects in an object and the objects in it, by their paths: `data.items`."""
    found, waiting = dict[str, list[Any]](), [("", value)]
    for path, part in waiting:  # grows: an object may lie a thousand deep
        if isinstance(part, dict):
            inside = [*part.values()]
            if len(inside) > 1 and _are_objects(inside) and {*inside[0]}.intersection(*inside):
                found[path or "*"] = [{"key": key, **one} for key, one in part.items()]
                continue
            waiting += [(f"{path}.{key}" if path else key, one) for key, one in part.items()]
        elif isinstance(part, list) and (path == _OF_SPARQL or _are_objects(part)):
            found[path] = part
    return found


def _are_objects(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(value, dict) for value in values)


def _decoded(text: str, path: Path, line: int) -> Any:
    """The JSON value that begins in a line."""
    try:
        return json.loads(text)
    except RecursionError:
        raise DataError(f"{path}, line {line}: the JSON is nested too deeply") from None
    except ValueError as error:
        line += getattr(error, "lineno", 1) - 1
        what = getattr(error, "msg", str(error))
        raise DataError(f"{path}, line {line}: not JSON: {what}") from None


def _text(value: object) -> str | None:
    """A value as text, None if it is missing; TypeError for what is no name and no time."""
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, dict) and value.keys() >= {"type", "value"}:  # of SPARQL results
        text = _text(value["value"])
        return f"_:{text}" if value["type"] == "bnode" else text
    if isinstance(value, float):
        if value != value:
            return None
        if value.is_integer():  # pandas writes whole numbers among gaps so
            return str(int(value))
    try:
        return raw_time(value)  # also dates, which are Python's alone
    except UsageError:
        raise TypeError from None
