"""Names for the ids that facts are written with, from dictionary files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from splime.errors import DataError, option
from splime.io.columns import EncodedColumn, RawFacts
from splime.io.inputs import InputFile
from splime.io.options import ReadOptions

# The usual dictionary files.
_STEMS = {
    "entity": ("entity2id", "ent2id", "entities2id", "entity_ids", "ent_ids"),
    "predicate": ("relation2id", "rel2id", "predicate2id", "relation_ids", "rel_ids"),
    "time": ("time2id", "ts2id", "timestamp2id", "times2id", "time_ids", "time_id"),
}
_SUFFIXES = (".txt", ".tsv", ".dict", "")
_DICTIONARIES = {"entity": "entities.dict", "predicate": "relations.dict", "time": "times.dict"}


def name_ids(raws: list[RawFacts], source: object, options: ReadOptions) -> list[RawFacts]:
    """Give names to the ids in facts: by the dictionary files named, or those beside the facts."""
    named = {"entity": options.entities, "predicate": options.predicates, "time": options.times}
    for kind, path in named.items():
        if path is not None:
            raws = _named(raws, kind, read_ids(Path(path)), "the dictionary file")
        elif isinstance(source, str | Path):
            path = Path(source)
            is_folder = path.is_dir()
            folder = path if is_folder else path.parent
            beside = _dictionary_in(folder, kind, _number(path))
            if beside is not None and (is_folder or raws[0].is_text):
                raws = _named_by(beside, kind, raws, is_folder=is_folder)
            elif beside is None and raws[0].is_text:
                numbered = sorted(other.name for other in _numbered(folder, kind))
                name = {"entity": "entities", "predicate": "predicates", "time": "times"}[kind]
                chosen = option(name, "FILE", flag=f"{kind}-ids")
                remark = f"{' and '.join(numbered)} left alone: choose with {chosen}"
                raws = [raw.remarked(remark) for raw in raws] if numbered else raws
    return raws


def dictionaries_of(source: Path) -> list[Path]:
    """The dictionary files beside or in a source that are looked at unless others are named."""
    folder, number = source if source.is_dir() else source.parent, _number(source)
    return [path for kind in _STEMS if (path := _dictionary_in(folder, kind, number)) is not None]


def _number(source: Path) -> str:
    """The number of a source that is one of several, `_2` of `triples_2.txt`; empty for others."""
    match = re.search(r"_?[1-9]$", source.name.split(".")[0])
    return match[0] if match else ""


def _dictionary_in(folder: Path, kind: str, number: str) -> Path | None:
    stems = [stem + end for end in dict.fromkeys((number, "")) for stem in _STEMS[kind]]
    names = [stem + suffix for stem in stems for suffix in _SUFFIXES]
    paths = (folder / name for name in (*names, _DICTIONARIES[kind]))
    return next((path for path in paths if path.is_file()), None)


def _numbered(folder: Path, kind: str) -> list[Path]:
    """Dictionary files for one of several graphs each, such as `ent_ids_2`."""
    stems = "|".join(_STEMS[kind])
    pattern = re.compile(rf"(?:{stems})_?[1-9](?:\.[a-z]+)?")
    return [path for path in folder.iterdir() if pattern.fullmatch(path.name)]


def _named_by(beside: Path, kind: str, raws: list[RawFacts], *, is_folder: bool) -> list[RawFacts]:
    """Use a dictionary file that was not named, where the facts are written with its ids."""
    used = {
        value.strip(" ")
        for raw in raws
        for at in _positions(raw, kind)
        for value in _columns(raw)[at].used()
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
        return raws  # facts that only use names of a dictionary are written with names already
    if strict or ids == len(used) or (is_folder and ids > labels):
        raws = _named(raws, kind, names, f"{beside.name}, which lies beside it")
        remark = f"{kind} ids are named by {beside.name}"
    else:
        remark = f"{beside.name} was left alone: {why}"
    return [raw.remarked(remark) for raw in raws]


def _columns(raw: RawFacts) -> list[EncodedColumn]:
    return [*raw.names, *raw.times]


def _positions(raw: RawFacts, kind: str) -> Sequence[int]:
    """The columns that a dictionary is for."""
    return {"entity": (0, 2), "predicate": (1,)}.get(kind, range(3, 3 + len(raw.times)))


def _named(raws: list[RawFacts], kind: str, names: dict[str, str], file: str) -> list[RawFacts]:
    """Replace the ids in facts by their names; an unknown time has none."""
    named = []
    for raw in raws:
        columns = _columns(raw)
        for at in _positions(raw, kind):
            column = columns[at]
            for value, code in column.used().items():
                if value.strip(" ") not in names and (kind != "time" or value.strip(" -#")):
                    where = raw.locate([column.first_row(code)])[0]
                    swapped = kind == "predicate" and names.keys() >= raw.names[2].used().keys()
                    other = option("columns", [1, 3, 2, 4])
                    advice = f"; is the predicate in column 3? {other}" if swapped else ""
                    raise DataError(
                        f"{where}: the {kind} id {value!r} is not in {file}; expected one of its"
                        f" {len(names):,} ids{advice}"
                    )
            columns[at] = column.mapped(lambda value: names.get(value.strip(" "), value))
        named.append(replace(raw, names=columns[:3], times=columns[3:]))
    return named


def read_ids(path: Path) -> dict[str, str]:
    """Id to name, from lines of a name and an id, or an id and a name.

    They are separated by a tab, and further columns are ignored; or by spaces.
    """
    rows = [row for row in InputFile(path).rows("\t") if row[1][0].strip() or len(row[1]) > 1]
    if len(rows) > 1 and len(rows[0][1]) == 1 and is_id(rows[0][1][0].strip()):
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
    if not any(map(is_id, heads)) and any(head.endswith("id") for head in heads):
        rows, last, first = rows[1:], last[1:], first[1:]  # a header
    sides = [side for side in (last, first) if all(is_id(identifier) for identifier, _ in side)]
    if not sides or not rows:
        raise DataError(f"{path}: neither the first nor the second column holds ids 0, 1, 2, …")
    if len(sides) == 2 and [id for id, _ in last] != [id for id, _ in first]:
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


def is_id(text: str) -> bool:
    """Whether a text is a number that can be an id."""
    return text.isascii() and text.isdigit() and len(text) < 19


def _counts_up(numbers: list[int]) -> bool:
    """Whether they are 0, 1, 2, … or 1, 2, 3, … in any order."""
    low = min(numbers)
    return low in (0, 1) and sorted(numbers) == list(range(low, low + len(numbers)))
