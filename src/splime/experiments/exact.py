"""The two tables of the paper that only count: the datasets, and what leaks between splits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from splime import leakage
from splime.errors import DataError
from splime.experiments.readings import load_graph
from splime.experiments.table import TITLES, Table
from splime.io.files import read_json, write_json
from splime.statistics import describe

_SIZES = ("entities", "predicates", "timestamps", "train", "valid", "test")
_PRINTED_SIZES = {
    "yago11k": (10_526, 10, 59, 16_408, 2_050, 2_051),
    "wikidata12k": (12_554, 24, 70, 32_497, 4_062, 4_062),
    "icews14": (7_128, 230, 365, 72_826, 8_941, 8_963),
}
_LEAKS = (
    "duplicates in train",
    "duplicates in test",
    "duplicates in valid",
    "test triples in train",
    "valid triples in train",
)
_PRINTED_LEAKS = {
    "wikidata12k": (
        "4,720 (14.53 %)",
        "214 (5.27 %)",
        "193 (4.75 %)",
        "1,042 (27.10 %)",
        "1,027 (26.54 %)",
    ),
    "yago11k": ("0 (0.00 %)",) * 5,
    "icews14": (
        "30,136 (41.38 %)",
        "1,544 (17.23 %)",
        "1,610 (18.01 %)",
        "3,499 (47.16 %)",
        "3,527 (48.11 %)",
    ),
}


def count(data: Path | None = None) -> dict[str, dict[str, Any]]:
    """Both tables, counted from the datasets."""
    found = {}
    for name in TITLES:
        graph = load_graph(name, "paper", data)
        sizes, leaks = describe(graph), leakage.report(graph)
        rows = [sizes.rows[split] for split in ("train", "valid", "test")]
        in_split, in_train = leaks.duplicates, leaks.in_train
        shares = (
            *(in_split[split] for split in ("train", "test", "valid")),
            *(in_train[split] for split in ("test", "valid")),
        )
        found[name] = {
            "sizes": [sizes.entities, sizes.predicates, sizes.timestamps, *rows],
            "leaks": [str(share) for share in shares],
        }
    return found


def write_counts(path: Path, found: Mapping[str, Any]) -> None:
    """Remember them, for the document."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, dict(found))


def read_counts(path: Path) -> dict[str, Any]:
    """What was remembered; a DataError where it is something else."""
    found = read_json(path)
    for name in TITLES:
        each = found.get(name)
        parts = [each.get(key) for key in ("sizes", "leaks")] if isinstance(each, dict) else []
        lengths = [len(part) for part in parts if isinstance(part, list)]
        if lengths != [len(_SIZES), len(_LEAKS)]:
            raise DataError(f"{path}: not the counts of {name}")
    return found


def datasets_table(found: Mapping[str, Any]) -> Table:
    """The dataset table; |train|, |valid| and |test| are rows as they were read."""
    rows = [
        (TITLES[name], *map(_beside, found[name]["sizes"], printed))
        for name, printed in _PRINTED_SIZES.items()
    ]
    columns = ("dataset", *(f"|{size}|" if size in _SIZES[3:] else size for size in _SIZES))
    return Table("Datasets", columns, rows, [_exactly(rows)])


def duplicates_table(found: Mapping[str, Any]) -> Table:
    """The table of duplicates, once the time is stripped."""
    columns = [
        [_beside(*each) for each in zip(found[name]["leaks"], printed, strict=True)]
        for name, printed in _PRINTED_LEAKS.items()
    ]
    rows = [(leak, *cells) for leak, *cells in zip(_LEAKS, *columns, strict=True)]
    titles = ("once the time is stripped", *(TITLES[name] for name in _PRINTED_LEAKS))
    return Table("Duplicates", titles, rows, [_exactly(rows)])


def _beside(found: Any, printed: Any) -> str:
    """One figure where they agree, both where they do not."""
    text, paper = (f"{each:,}" if isinstance(each, int) else each for each in (found, printed))
    return text if text == paper else f"{text} (paper: {paper})"


def _exactly(rows: list[tuple[str, ...]]) -> str:
    wrong = sum("paper:" in cell for row in rows for cell in row)
    return f"{wrong} figures differ from the paper's." if wrong else "All as the paper prints them."
