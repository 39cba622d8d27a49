"""Names for the ids that facts are written with, from dictionary files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from splime.errors import DataError
from splime.io.columns import EncodedColumn, RawFacts
from splime.io.inputs import InputFile
from splime.io.options import ReadOptions

# The usual dictionary files.
_STEMS = {
    "entity": ("entity2id", "ent2id", "entities2id", "entity_ids", "ent_ids"),
    "predicate": ("relation2id", "rel2id", "predicate2id", "relation_ids", "rel_ids"),
    "time": ("time2id", "ts2id", "timestamp2id", "times2id", "time_ids", "time_id"),
}
_DICTIONARIES = {"entity": "entities.dict", "predicate": "relations.dict", "time": "times.dict"}


def name_ids(raws: list[RawFacts], source: object, options: ReadOptions) -> list[RawFacts]:
    """Give names to the ids in facts: by the dictionary files named, or those beside the facts."""
    named = {"entity": options.entities, "predicate": options.predicates, "time": options.times}
    for kind, path in named.items():
        if path is not None:
            raws = _named(raws, kind, read_ids(Path(path)), "the dictionary file")
        elif isinstance(source, str | Path):
            is_folder = Path(source).is_dir()
            folder = Path(source) if is_folder else Path(source).parent
            beside = _dictionary_in(folder, kind)
            if beside is not None and (is_folder or raws[0].is_text):
                raws = _named_by(beside, kind, raws, is_folder=is_folder)
    return raws


def dictionaries_in(folder: Path) -> list[Path]:
    """The dictionary files of a folder that are looked at unless others are named."""
    return [path for kind in _STEMS if (path := _dictionary_in(folder, kind)) is not None]


def _dictionary_in(folder: Path, kind: str) -> Path | None:
    names = [stem + end for stem in _STEMS[kind] for end in (".txt", ".tsv", ".dict", "")]
    paths = (folder / name for name in (*names, _DICTIONARIES[kind]))
    return next((path for path in paths if path.is_file()), None)


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
                    advice = "; is the predicate in column 3? --columns 1,3,2,4" if swapped else ""
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
