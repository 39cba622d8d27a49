"""The two tables of the paper that only count: the datasets, and what leaks between splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from splime import leakage
from splime.errors import DataError
from splime.experiments.rows import DATA, TITLES
from splime.experiments.running import load_graph
from splime.experiments.tables import Table
from splime.graph import SPLITS
from splime.io.files import read_json, write_json
from splime.statistics import describe

EXACT = ("datasets", "duplicates")
FILE = "counts.json"
"""The results that the document takes the two tables from."""


class Counts(msgspec.Struct):
    """What is counted of a dataset."""

    sizes: tuple[int, int, int, int, int, int]
    """Entities, predicates, timestamps; rows of train, valid and test as they were read."""
    leaks: tuple[str, str, str, str, str]
    """Repeated rows of train, test and valid; those of test and of valid that are in train."""


def count(data: Path | None = None) -> dict[str, Counts]:
    """Both tables, counted from the datasets."""
    counts = {}
    for dataset in TITLES:
        graph = load_graph(dataset, "paper", data)
        about, leaks = describe(graph), leakage.report(graph)
        sizes = [about.entities, about.predicates, about.timestamps]
        sizes += [about.rows[split] for split in SPLITS]
        shares = [leaks.duplicates[split] for split in ("train", "test", "valid")]
        shares += [leaks.in_train[split] for split in ("test", "valid")]
        plain = {"sizes": sizes, "leaks": [str(share) for share in shares]}
        counts[dataset] = msgspec.convert(plain, Counts)
    return counts


def write_counts(path: Path, counts: Mapping[str, Counts]) -> None:
    """Remember them, for the document."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, msgspec.to_builtins(counts))


def read_counts(path: Path) -> dict[str, Counts]:
    """What was remembered; a DataError where it is something else."""
    stored, counts = read_json(path), {}
    for dataset in TITLES:
        try:
            counts[dataset] = msgspec.convert(stored.get(dataset), Counts)
        except msgspec.ValidationError as error:
            raise DataError(f"{path}: not the counts of {dataset}: {error}") from None
    return counts


def counts_table(name: str, counts: Mapping[str, Counts]) -> Table:
    """The datasets, or the duplicates once the time is stripped, beside the paper's."""
    printed = DATA["counts"][name]
    ours: dict[str, Sequence[str]]
    if name == "datasets":
        ours = {TITLES[each]: [f"{size:,}" for size in own.sizes] for each, own in counts.items()}
    else:
        columns = (own.leaks for own in counts.values())
        ours = dict(zip(printed, zip(*columns, strict=True), strict=True))
    rows = [(title, *map(_beside, ours[title], theirs)) for title, theirs in printed.items()]
    wrong = sum("paper:" in cell for row in rows for cell in row)
    note = f"{wrong} figures differ from the paper's." if wrong else "All as the paper prints them."
    return Table(**DATA["counts"][f"{name}_table"], rows=rows, notes=[note])


def _beside(count: str, printed: str) -> str:
    """One count where they agree, both where they do not."""
    return count if count == printed else f"{count} (paper: {printed})"
