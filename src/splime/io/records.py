"""Facts in records with named fields: JSON, and what Wikidata's query service exports.

JSON is an object a line, an array of objects, or SPARQL results. An export is a CSV or TSV file
with columns such as item, itemLabel, property, value, start, startPrecision, end and pointInTime.
"""

from __future__ import annotations

import itertools
import json
import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splime.errors import DataError
from splime.graph import SplitName
from splime.io.columns import EncodedColumn, Encoder, RawFacts, encoded
from splime.io.delimited import Dialect, rows_of
from splime.io.layout import by_name, roles_of
from splime.io.qualifiers import is_marker

_TAB = Dialect("\t")
_NAMES = ("subject", "predicate", "object")
_TIMES = ("begin", "end", "time")
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
_SHOWN, _LISTED = 60, 10
_SPACE = re.compile(r"\s*")
_DECODER = json.JSONDecoder()

Records: TypeAlias = Iterable[tuple[int, dict[str, Any]]]


def read_json(
    path: Path, *, split: SplitName | None = None, columns: Sequence[str] | None = None
) -> RawFacts:
    """Read facts from a JSON file: an object a line, an array of objects, or SPARQL results."""
    return _read(path, _objects(path), split, columns)


def is_export(path: Path) -> bool:
    """Whether the first line of a text file names more than the columns that facts have."""
    dialect, names = _header(path)
    usual, own = roles_of(names), _roles(names)
    if all(name.startswith("?") for name in names):
        return True
    if not {*_NAMES} <= own.keys() or own.keys().isdisjoint(_TIMES):
        return False
    if {*_TIMES} <= own.keys() or usual != own or any(map(_ABOUT.fullmatch, names)):
        return True
    # A column of since and until has no usual name.
    rows = itertools.islice(rows_of(path, dialect), 1, 2)
    return any(is_marker(cell) for _, cells in rows for cell in cells)


def read_export(
    path: Path, *, split: SplitName | None = None, columns: Sequence[str] | None = None
) -> RawFacts:
    """Read facts from a CSV or TSV file that a query service wrote."""
    dialect, header = _header(path)
    as_terms = all(name.startswith("?") for name in header)
    names = [name.removeprefix("?") for name in header]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise DataError(f"{path}, line 1: several columns are called {_shown(twice[0])}")

    def records() -> Records:
        rows = rows_of(path, dialect)
        next(rows)
        for number, cells in rows:
            if len(cells) != len(names):
                raise DataError(
                    f"{path}, line {number}: expected {len(names)} columns as in the first line,"
                    f" found {len(cells)}: {_shown(cells)}"
                )
            yield number, dict(zip(names, map(_term, cells) if as_terms else cells, strict=True))

    raw = _read(path, records(), split, columns)
    raw.header, raw.is_text = " ".join(header), True
    return raw


def _header(path: Path) -> tuple[Dialect, list[str]]:
    line = "\t".join(next((cells for _, cells in rows_of(path, _TAB)), []))
    dialect = _TAB if "\t" in line else Dialect(",")
    return dialect, [name.strip().strip('"') for name in line.split(dialect.delimiter)]


def _term(text: str) -> str:
    """The text of an RDF term: of `<…>`, `"…"@en` or `"…"^^<…>`."""
    match = re.fullmatch(r'<(.*)>|"(.*)"(?:@[\w-]+|\^\^\S+)?', text, re.DOTALL)
    if match is None:
        return text
    return match[1] if match[2] is None else re.sub(r"\\(.)", r"\1", match[2])


def _roles(names: Sequence[str]) -> dict[str, int]:
    """Which columns are what, by the usual names and those of queries."""
    return roles_of([_VARIABLES.get(_folded(name), name) for name in names])


def _folded(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def _read(
    path: Path, records: Records, split: SplitName | None, columns: Sequence[str] | None
) -> RawFacts:
    """The facts of records, each of which comes with its line."""
    encoders: dict[str, Encoder] = {}
    unusable: dict[str, tuple[int, object]] = {}
    lines = array("q")
    for number, record in records:
        for name, value in record.items():
            if name not in encoders:
                encoders[name] = Encoder()
            try:
                text = _text(value)
            except TypeError:
                unusable.setdefault(name, (number, value))
                continue
            if text is not None:
                encoders[name].put(len(lines), text)
        lines.append(number)
    if not lines:
        raise DataError(f"{path}: there are no facts in the file")

    def locate(rows: Sequence[int]) -> list[str]:
        return [f"{path.name}, line {lines[row]}" for row in rows]

    used = set()

    def column(name: str) -> EncodedColumn:
        used.add(name)
        if name in unusable:
            number, value = unusable[name]
            raise DataError(
                f"{path}, line {number}: {name!r} is {_shown(value)}; expected text or a whole"
                " number"
            )
        return encoders[name].encoded(len(lines), locate)

    roles = _chosen(path, [*encoders], columns)
    about = {
        (_folded(match[1]), match[2].lower()): name
        for name in encoders
        if (match := _ABOUT.fullmatch(name))
    }
    raw = RawFacts(path.name, [column(roles[role]) for role in _NAMES], [], locate, split)
    for role, own in zip(_NAMES, raw.names, strict=True):
        if label := about.get((_folded(roles[role]), _LABEL)):
            _add_labels(raw.labels, own, column(label))
    written, times = [], {}
    for role in (role for role in _TIMES if role in roles):
        time, precision = column(roles[role]), _precision_of(role, roles[role], about)
        written += [time] if precision is None else [time, column(precision)]
        times[role] = _dated(*written[-1 if precision is None else -2 :])
    raw.written = written
    raw.times = [times["time"]] if {*times} == {"time"} else _spans(times, len(lines))
    for name in encoders.keys() - roles.values() if len(raw.times) == 1 else ():
        values = encoders[name].values
        if values and all(map(is_marker, values)):
            raw.times, raw.written = [column(name), times["time"]], ()
    if len(written) == len(times):
        raw.guesses += _new_years(written)
    if "split" in encoders:
        raw = replace(raw, splits=column("split"))
    told = [f"{_shown(name)} is the {role}" for role, name in roles.items() if name.lower() != role]
    if told and columns is None:
        raw.guesses.insert(0, f"by their names: {', '.join(told)}")
    if unused := [_printable(name) for name in encoders if name not in used]:
        more = f" and {len(unused) - _LISTED} more" if len(unused) > _LISTED else ""
        raw.guesses.append(f"fields that are not used: {', '.join(unused[:_LISTED])}{more}")
    return raw


def _chosen(path: Path, names: list[str], columns: Sequence[str] | None) -> dict[str, str]:
    """The fields that hold what."""
    if columns is not None:
        facts = by_name(names, columns, str(path)).facts
        wanted = (*_NAMES, "time") if len(facts) == 4 else (*_NAMES, "begin", "end")
        return {role: names[at] for role, at in zip(wanted, facts, strict=True)}
    roles = _roles(names)
    missing = [role for role in _NAMES if role not in roles]
    if roles.keys().isdisjoint(_TIMES):
        missing.append("time")
    if missing:
        raise DataError(
            f"{path}: the names of the fields do not say which is the {' and the '.join(missing)}"
            f" (among {', '.join(map(_printable, names))[:500]}); choose 4 or 5 of them with"
            " columns (--columns)"
        )
    return {role: names[at] for role, at in roles.items()}


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
    elif isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise TypeError


def _printable(text: str) -> str:
    return text if text.isprintable() and len(text) <= _SHOWN else _shown(text)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _objects(path: Path) -> Records:
    """The objects of a JSON file and their lines."""
    # A tab is no part of a text in JSON, so the cells between tabs are a line again.
    lines = ((number, "\t".join(cells)) for number, cells in rows_of(path, _TAB))
    number, line = next(lines, (0, ""))
    if not number:
        raise DataError(f"{path}: the file is empty; expected JSON")
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or {"head", "results"} <= record.keys():
        yield from _items(path, [(number, line), *lines])
        return
    yield number, record

    def where(_: int) -> str:
        return f"{path}, line {number}"

    for number, line in lines:
        if line.strip():
            _, record = _decoded(line, 0, where, whole=True)
            yield number, _checked(record, where(0))


def _items(path: Path, lines: list[tuple[int, str]]) -> Records:
    """The objects of an array, which is all of the file or in SPARQL results."""
    text = "\n".join(text for _, text in lines)
    starts = np.cumsum([0, *(len(text) + 1 for _, text in lines)])

    def line(at: int) -> int:
        return lines[min(bisect_right(starts, at), len(lines)) - 1][0]

    def where(at: int) -> str:
        return f"{path}, line {line(at)}"

    bindings = re.match(r"\s*\[", text) or re.search(r'"bindings"\s*:\s*\[', text)
    if bindings is None:
        _decoded(text, 0, where, whole=True)
        raise DataError(
            f"{path}: expected an object a line, an array of objects, or SPARQL results"
        )
    at = _space(text, bindings.end())
    while text[at : at + 1] != "]":
        stop, value = _decoded(text, at, where)
        yield line(at), _checked(value, where(at))
        at = stop
        if text[at : at + 1] == ",":
            at = _space(text, at + 1)
        elif text[at : at + 1] != "]":
            raise DataError(f"{where(at)}: the array is not closed; expected a comma or ]")
    # What stands around the objects has to be JSON too.
    gap = at - bindings.end()
    around = text[: bindings.end()] + text[at:]
    _decoded(around, 0, lambda at: where(at + gap if at >= bindings.end() else at), whole=True)


def _space(text: str, at: int) -> int:
    """Where the white space ends that begins at a place."""
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _decoded(
    text: str, at: int, where: Callable[[int], str], *, whole: bool = False
) -> tuple[int, Any]:
    """Where the JSON value at a place ends, and the value."""
    try:
        value, stop = _DECODER.raw_decode(text, _space(text, at))
        stop = _space(text, stop)
        if whole and stop < len(text):
            more = _shown(text[stop : stop + 2 * _SHOWN])
            raise DataError(f"{where(stop)}: there is more behind the JSON: {more}")
    except RecursionError:
        raise DataError(f"{where(at)}: the JSON is nested too deeply") from None
    except ValueError as error:
        place = getattr(error, "pos", at)
        what = getattr(error, "msg", str(error))
        raise DataError(
            f"{where(place)}: not JSON: {what}, at {_shown(text[place : place + 2 * _SHOWN])}"
        ) from None
    return stop, value


def _checked(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{where}: expected an object with named fields, found {_shown(value)}")
    return value


def _precision_of(role: str, time: str, about: dict[tuple[str, str], str]) -> str | None:
    """The column of the precisions of a time: by its name, by what it is, or for all times."""
    bases = [base for base, kind in about if kind == _PRECISION]
    for base in bases:
        if base == _folded(time):
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
    # A decade or a century: so many digits are not known.
    known = max(len(year) - (_YEAR - level), 1)
    return f"{sign}{year[:known]}{'#' * max(len(year) - known, 1)}-##-##"


def _spans(times: dict[str, EncodedColumn], rows: int) -> list[EncodedColumn]:
    """Begin and end; a point in time is both, where neither is given."""
    nothing = encoded(np.full(rows, -1), pa.array([], pa.string()))
    begin, end, time = (times.get(role, nothing) for role in _TIMES)
    neither = (begin.all_codes() < 0) & (end.all_codes() < 0)
    filled = []
    for column in (begin, end):
        point = time.all_codes()
        point = np.where(point < 0, -1, point + len(column.values))
        codes = np.where(neither, point, column.all_codes())
        filled.append(encoded(codes, pa.concat_arrays([column.values, time.values])))
    return filled


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
        " column says their precision, and --granularity year makes years of them"
    ]


def _add_labels(labels: dict[str, list[str]], column: EncodedColumn, label: EncodedColumn) -> None:
    """Note the labels of everything that a column names."""
    ids, texts = column.values.to_pylist(), label.values.to_pylist()
    given = label.lookup(np.array([bool(text) for text in texts], bool))
    codes, own = column.all_codes()[given], label.all_codes()[given]
    _, rows = np.unique(codes.astype(np.int64) * len(texts) + own, return_index=True)
    for row in np.sort(rows).tolist():
        if codes[row] >= 0:
            labels.setdefault(ids[codes[row]], []).append(texts[own[row]])


def name_items(raws: Sequence[RawFacts]) -> None:
    """Shorten the IRIs of Wikidata to ids, and name things by their labels where they have some.

    Labels that several things share are followed by the id, in all files alike, so that no two
    things become one.
    """
    labels: dict[str, list[str]] = {}
    for raw in raws:
        for text, own in raw.labels.items():
            labels[text] = [*dict.fromkeys([*labels.get(text, []), *own])]
    for positions in ((0, 2), (1,)):
        columns = [raw.names[at] for raw in raws for at in positions]
        iris = (pc.match_substring(column.values, "wikidata.org/") for column in columns)
        if not labels and not any(pc.any(some).as_py() for some in iris):
            continue
        ids: dict[str, str] = {}
        for text in (text for column in columns for text in column.values.to_pylist()):
            match = _IRI.fullmatch(text)
            ids[text] = match[1] if match else text
        things = set(ids.values())
        names = {ids[text]: labels[text][0] for text in reversed(ids) if text in labels}
        uses = Counter(names.get(one, one) for one in things)
        shared = [one for one, label in names.items() if uses[label] > 1 and label != one]
        names |= {one: f"{names[one]} ({one})" for one in shared}
        if len({names.get(one, one) for one in things}) < len(things):
            names = {}  # a label that is written like another one with its id
        for column in columns:
            texts = [names.get(ids[text], ids[text]) for text in column.values.to_pylist()]
            column.values = pa.array(texts, pa.string())
        kind = "predicates" if positions == (1,) else "entities"
        guesses = []
        if any(one != text for text, one in ids.items()):
            guesses.append(f"{kind}: the IRIs of Wikidata are shortened to ids")
        if names:
            told = f"; {len(shared):,} share one, and have their id behind it" if shared else ""
            several = sum(len(labels.get(text, ())) > 1 for text in ids)
            told += f"; {several:,} have several, the first of which counts" if several else ""
            guesses.append(f"{kind} are named by their labels{told}")
        for raw in raws:
            raw.guesses += guesses
