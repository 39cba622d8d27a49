"""The arguments with which every command is told what to read, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from splime.cli.parameters import field_options
from splime.io.options import ReadOptions

if TYPE_CHECKING:
    from splime.graph import TemporalGraph

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="The name of a dataset (see `splime datasets list`), a file (.tsv .csv .txt, also .gz"
        " or .zst; .parquet) or a folder with such files called train, valid and test.",
    ),
]

_NAMES = {
    one.metadata.get("flag", one.name): one.name
    for one in fields(ReadOptions)
    if one.name not in ("keep_duplicates", "name")
}
"""The options of `splime.read` that commands have, by their names there."""

READING: Mapping[str, Any] = field_options(ReadOptions, _NAMES, panel="How to read the facts")


def reading_options(given: dict[str, Any]) -> dict[str, Any]:
    """Take the options of `READING` out of all that were given, as `splime.load` names them.

    >>> given = {"columns": "a,b,c,d", "split_seed": 3, "bucket": None, "shrink": 4}
    >>> reading_options(given), given
    ({'columns': ['a', 'b', 'c', 'd'], 'seed': 3}, {'shrink': 4})
    """
    options = {
        name: value
        for option, name in _NAMES.items()
        if (value := given.pop(option, None)) is not None
    }
    if "columns" in options:
        options["columns"] = [column.strip() for column in options["columns"].split(",")]
    return options


def load_graph(data: str, options: dict[str, Any]) -> TemporalGraph:
    """Load with a sign of life; named datasets show their own bar where they are downloaded."""
    from splime.datasets import DATASETS, load
    from splime.progress import working

    if data in DATASETS:
        return load(data, **options)
    with working(f"reading {data} …"):
        return load(data, **options)
