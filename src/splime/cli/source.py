"""The arguments with which every command is told what to read, and how."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from splime.graph import TemporalGraph

_PANEL = "How to read the facts"

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="The name of a dataset (see `splime datasets list`), a file (.tsv .csv .txt, also .gz"
        " or .zst; .parquet) or a folder with train.*, valid.* and test.*.",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,…",
        help="The columns to use as subject, predicate, object and time (or begin and end), by"
        " name or by number from 1.",
        rich_help_panel=_PANEL,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of text files holds names. Found out by default.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
Entities = Annotated[
    Path | None,
    typer.Option(
        "--entity-ids",
        metavar="FILE",
        help="Dictionary file of entity ids, where facts are written with ids.",
        rich_help_panel=_PANEL,
    ),
]
Predicates = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Dictionary file of predicate ids.", rich_help_panel=_PANEL),
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
    error = "error"


class SplitChoice(StrEnum):
    """How to split facts that come without splits."""

    random = "random"
    time = "time"
    none = "none"


Granularity = Annotated[
    GranularityChoice | None,
    typer.Option(help="The unit of time. Found out by default.", rich_help_panel=_PANEL),
]
First = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="What an unknown begin becomes. Default: the first time of the facts.",
        rich_help_panel=_PANEL,
    ),
]
Last = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="What an unknown end becomes. Default: the last time of the facts.",
        rich_help_panel=_PANEL,
    ),
]
Order = Annotated[
    OrderChoice | None,
    typer.Option(
        "--end-before-begin",
        help="What to do with facts that end before they begin. Default: drop.",
        rich_help_panel=_PANEL,
    ),
]
Split = Annotated[
    SplitChoice | None,
    typer.Option(
        help="How to split facts that come without splits. Default: random.",
        rich_help_panel=_PANEL,
    ),
]
Valid = Annotated[
    float | None,
    typer.Option(help="Share of valid in such a split. Default: 0.1.", rich_help_panel=_PANEL),
]
Test = Annotated[
    float | None,
    typer.Option(help="Share of test in such a split. Default: 0.1.", rich_help_panel=_PANEL),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--split-seed", help="Seed of a random split. Default: 0.", rich_help_panel=_PANEL
    ),
]
AllowUnseen = Annotated[
    bool | None,
    typer.Option(
        "--allow-unseen",
        help="Let valid and test name entities and predicates that train does not.",
        rich_help_panel=_PANEL,
    ),
]
Bucket = Annotated[
    int | None,
    typer.Option(
        metavar="FACTS",
        help="Merge timestamps until each holds this many facts (the paper uses 300).",
        rich_help_panel=_PANEL,
    ),
]


def reading_options(**given: object) -> dict[str, object]:
    """The options that were given, as `splime.load` takes them.

    >>> reading_options(columns="a,b,c,d", seed=None)
    {'columns': ['a', 'b', 'c', 'd']}
    """
    options = {name: value for name, value in given.items() if value is not None}
    if isinstance(columns := options.get("columns"), str):
        options["columns"] = [column.strip() for column in columns.split(",")]
    return options


def load_graph(data: str, options: dict[str, object]) -> TemporalGraph:
    """Load with a sign of life; named datasets show their own bar where they are downloaded."""
    from splime.datasets import DATASETS, load
    from splime.progress import working

    if data in DATASETS:
        return load(data, **options)
    with working(f"reading {data} …"):
        return load(data, **options)
