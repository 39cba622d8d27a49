"""WIKI, a benchmark of forecasts: each fact of Wikidata12k in every year in which it holds."""

from __future__ import annotations

import re
from pathlib import Path

from splime.io.files import atomic_write

_FIRST, _LAST = 1786, 2017
_SPLITS = {"train": (0, 211, 0), "valid": (211, 222, 1), "test": (222, 232, 1)}
"""The first step, the one after the last, and how many of the rows in between are missing."""


def unroll(source: Path, folder: Path) -> None:
    """Write the files of WIKI from those of Wikidata12k, byte for byte as they are published."""
    rows: list[list[str]] = [[] for _ in range(_FIRST, _LAST + 1)]
    for split in _SPLITS:
        for line in (source / f"{split}.txt").read_text(encoding="utf-8").splitlines():
            subject, predicate, object_, begin, end = line.split("\t")
            first, last = _year(begin, _FIRST), _year(end, _LAST)
            for year in range(max(first, _FIRST), min(last, _LAST) + 1):
                step = year - _FIRST
                rows[step].append(f"{subject}\t{predicate}\t{object_}\t{step}\t0\n")
    folder.mkdir(parents=True, exist_ok=True)
    for split, (first, after, missing) in _SPLITS.items():
        lines = [line for step in rows[first:after] for line in step][missing:]
        with atomic_write(folder / f"{split}.txt") as beside:
            beside.write_text("".join(lines), encoding="utf-8", newline="\n")


def _year(text: str, unknown: int) -> int:
    """The year of a time such as `2012-##-##`."""
    year = re.match("-?[0-9]+", text)
    return int(year[0]) if year else unknown
