"""The arguments with which every command is told what to read, and how."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from splime.graph import TemporalGraph

_PANEL = "How to read the facts"

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="The name of a dataset (see `splime datasets list`), a file (.tsv .csv .txt, also .gz"
        " or .zst; .parquet) or a folder with such files called train, valid and test.",
    ),
]


class GranularityChoice(StrEnum):
    """The granularities, for the command line."""

    year = "year"
    month = "month"
    day = "day"
    hour = "hour"
    minute = "minute"
    second = "second"
    step = "step"


class OrderChoice(StrEnum):
    """What to do with facts that end before they begin."""

    drop = "drop"
    swap = "swap"
    repair = "repair"
    error = "error"


class BucketOnChoice(StrEnum):
    """Whose facts decide the buckets."""

    train = "train"
    all = "all"


class SplitChoice(StrEnum):
    """How to split facts that come without splits."""

    random = "random"
    time = "time"
    none = "none"


READING: Mapping[str, Any] = {
    "columns": Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="The columns to use as subject, predicate, object and time (or begin and end), by"
            " name or by number from 1.",
            rich_help_panel=_PANEL,
        ),
    ],
    "header": Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether the first line of text files holds names. Found out by default.",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ],
    "entity_ids": Annotated[
        Path | None,
        typer.Option(
            "--entity-ids",
            metavar="FILE",
            help="Dictionary file of entity ids, where facts are written with ids.",
            rich_help_panel=_PANEL,
        ),
    ],
    "predicate_ids": Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Dictionary file of predicate ids.", rich_help_panel=_PANEL
        ),
    ],
    "granularity": Annotated[
        GranularityChoice | None,
        typer.Option(help="The unit of time. Found out by default.", rich_help_panel=_PANEL),
    ],
    "first": Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="What an unknown begin becomes: a time, or end for the fact's own end. Default:"
            " the first time of the facts.",
            rich_help_panel=_PANEL,
        ),
    ],
    "last": Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="What an unknown end becomes: a time, or begin for the fact's own begin. Default:"
            " the last time of the facts.",
            rich_help_panel=_PANEL,
        ),
    ],
    "end_before_begin": Annotated[
        OrderChoice | None,
        typer.Option(
            "--end-before-begin",
            help="What to do with facts that end before they begin; repair drops those of train"
            " and swaps those of valid and test. Default: drop.",
            rich_help_panel=_PANEL,
        ),
    ],
    "split": Annotated[
        SplitChoice | None,
        typer.Option(
            help="How to split facts that come without splits. Default: random.",
            rich_help_panel=_PANEL,
        ),
    ],
    "valid": Annotated[
        float | None,
        typer.Option(help="Share of valid in such a split. Default: 0.1.", rich_help_panel=_PANEL),
    ],
    "test": Annotated[
        float | None,
        typer.Option(help="Share of test in such a split. Default: 0.1.", rich_help_panel=_PANEL),
    ],
    "split_seed": Annotated[
        int | None,
        typer.Option(
            "--split-seed", help="Seed of a random split. Default: 0.", rich_help_panel=_PANEL
        ),
    ],
    "allow_unseen": Annotated[
        bool | None,
        typer.Option(
            "--allow-unseen",
            help="Let valid and test name entities and predicates that train does not.",
            rich_help_panel=_PANEL,
        ),
    ],
    "bucket": Annotated[
        int | None,
        typer.Option(
            metavar="FACTS",
            help="Merge timestamps until each holds this many facts (the paper uses 300).",
            rich_help_panel=_PANEL,
        ),
    ],
    "bucket_on": Annotated[
        BucketOnChoice | None,
        typer.Option(
            "--bucket-on",
            help="Whose facts decide the buckets. Default: all, as in the paper.",
            rich_help_panel=_PANEL,
        ),
    ],
}
"""The options that say how to read, with their types and help."""


_NAMES = {"entity_ids": "entities", "predicate_ids": "predicates", "split_seed": "seed"}


def reading_options(given: dict[str, Any]) -> dict[str, Any]:
    """Take the options of `READING` out of all that were given, as `splime.load` names them.

    >>> given = {"columns": "a,b,c,d", "split_seed": 3, "bucket": None, "shrink": 4}
    >>> reading_options(given), given
    ({'columns': ['a', 'b', 'c', 'd'], 'seed': 3}, {'shrink': 4})
    """
    options = {name: value for name in READING if (value := given.pop(name, None)) is not None}
    if "columns" in options:
        options["columns"] = [column.strip() for column in options["columns"].split(",")]
    return {_NAMES.get(name, name): value for name, value in options.items()}


def load_graph(data: str, options: dict[str, Any]) -> TemporalGraph:
    """Load with a sign of life; named datasets show their own bar where they are downloaded."""
    from splime.datasets import DATASETS, load
    from splime.progress import working

    if data in DATASETS:
        return load(data, **options)
    with working(f"reading {data} …"):
        return load(data, **options)
