"""Folders and patterns: which files hold the facts, and of which splits."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable
from pathlib import Path

from splime.errors import DataError
from splime.graph import SPLITS, SplitName
from splime.io.files import is_there
from splime.io.ids import dictionaries_of
from splime.io.parts import MANIFEST, UNFINISHED, is_triples, read_manifest
from splime.io.readers import READERS

_WORDS: dict[str, SplitName] = {
    "train": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
}
_OF_TABLE = re.compile(r"[^.].*\.(csv|tsv)(?:\.gz|\.zst)?")


def split_files(folder: Path) -> dict[SplitName, list[tuple[int, Path]]]:
    """The files of a folder that may hold the facts of a split, each with a rank, best first.

    The name has one of the words for the split, in any case: `train.txt` (rank 0), `train` without
    a suffix (1), or `icews_2014_train.txt`, `train2id.txt` and `icews.train`, with other words (2).
    """
    files: dict[SplitName, list[tuple[int, Path]]] = {}
    try:
        for path in sorted(folder.iterdir()):
            name = path.name.lower()
            if not _splits(name) or not path.is_file():
                continue
            suffixes = (reader.suffix_of(name) for reader in READERS.values())
            suffix = next(filter(None, suffixes), "")
            stem = name.removesuffix(suffix)
            ending = Path(stem).suffix.removeprefix(".")
            if not suffix and ending and ending not in _WORDS and not ending.isdigit():
                continue  # such as train.log and train.py
            if len(splits := _splits(stem)) == 1:
                rank = 2 if stem not in _WORDS else 0 if suffix else 1
                files.setdefault(splits.pop(), []).append((rank, path))
    except OSError as error:
        raise DataError(f"{folder}: cannot be opened: {error}") from None
    return {split: sorted(ranked) for split, ranked in files.items()}


def _splits(name: str) -> set[SplitName]:
    return {_WORDS[word] for word in re.findall("[a-z]+", name) if word in _WORDS}


def best_files(folder: Path) -> dict[SplitName, tuple[Path, list[Path]]]:
    """The file of each split that a folder has, and the others that give way to it."""
    files = split_files(folder)
    if "train" not in files:
        raise DataError(_without_train(folder))
    chosen = {}
    for split in (split for split in SPLITS if split in files):
        (best, path), *others = files[split]
        if alike := [other.name for rank, other in others if rank == best]:
            raise DataError(
                f"{folder}: both {path.name} and {' and '.join(alike)} are there; expected one"
                f" file for {split}. Keep one of them in the folder, or choose in Python:"
                f" splime.read({{{split!r}: {str(path)!r}, …}})"
            )
        chosen[split] = path, [other for _, other in others]
    return chosen


def _without_train(folder: Path) -> str:
    """What to say of a folder without train."""
    others = sorted(path.name for path in folder.iterdir() if path.is_file())
    numbered = _numbered(others)
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
            f" of them, {folder / numbered[0]}, or all as one table by a pattern,"
            f" '{folder / re.sub('[1-9]', '*', numbered[0])}'"
        )
    return message


def _numbered(names: Iterable[str]) -> list[str]:
    """Names such as triples_1 and triples_2; not those of ids, which are dictionaries."""
    return [name for name in names if re.fullmatch(r"(?!.*id)\w*[a-z]_?[1-9](\.\w+)?", name)]


def table_files(source: str | os.PathLike[str]) -> list[Path]:
    """The files that are one table together: those of a pattern, or a folder's CSV (or TSV) files.

    Such a folder has none for train, and not both kinds; those of Parquet are `files_of` it.
    """
    path = Path(source)
    if has_parts(path):
        return []
    if not is_there(path):
        if not glob.has_magic(str(source)):
            return []
        found = map(Path, glob.glob(str(source), recursive=True))  # noqa: PTH207  # of any folder
        files = sorted(each for each in found if each.is_file())
        if not files:
            raise DataError(f"{source}: no file is called so")
        return files
    if not path.is_dir() or split_files(path):
        return []
    kinds: dict[str, list[Path]] = {}
    for file in sorted(set(path.iterdir()) - set(dictionaries_of(path))):
        match = _OF_TABLE.fullmatch(file.name.lower())
        if match and file.is_file():
            kinds.setdefault(match[1], []).append(file)
    files = next(iter(kinds.values())) if len(kinds) == 1 else []
    return files if len(files) > 1 and not _numbered(file.name for file in files) else []


def has_parts(source: str | os.PathLike[str]) -> bool:
    """Whether a source is a pattern, or a folder of Parquet files without a file for train.

    A file that has the characters of a pattern in its name is that file.
    """
    path = Path(source)
    if not is_there(path):
        return bool(glob.has_magic(str(source))) and path.suffix.lower() == ".parquet"
    if not path.is_dir():
        return False
    if is_triples(path) or (path / UNFINISHED).exists():
        return True
    return "train" not in split_files(path) and any(path.glob("*.parquet"))


def files_of(source: str | os.PathLike[str]) -> list[Path]:
    """The Parquet files of a source in their order: by name, or as the manifest lists them."""
    path = Path(source)
    if is_there(path) and path.is_dir():
        if is_triples(path):
            return [path / file.name for file in read_manifest(path).files]
        if (path / UNFINISHED).exists():
            raise DataError(
                f"{path}: the triples are not complete, there is no {MANIFEST}; resume the"
                " command that began to write them"
            )
        return sorted(path.glob("*.parquet"))
    if has_parts(source):
        names = glob.glob(str(source), recursive=True)  # noqa: PTH207  # of any folder
        if not names:
            raise DataError(f"{source}: there is no such Parquet file")
        return sorted(map(Path, names))
    return [path]
