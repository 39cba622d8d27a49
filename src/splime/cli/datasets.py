"""`splime datasets`: list, show, fetch and make datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from splime.cli.console import console

app = typer.Typer(no_args_is_help=True, help="The named datasets, and worlds made to order.")

_Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of a dataset.")]


@app.command("list")
def list_datasets() -> None:
    """List the named datasets."""
    from splime.datasets import DATASETS
    from splime.datasets.loading import where

    table = Table("name", "what it is", "where it is", box=None, pad_edge=False)
    for dataset in DATASETS.values():
        place = where(dataset)
        table.add_row(dataset.name, dataset.about, "not here yet" if place is None else str(place))
    console().print(table)


@app.command()
def show(name: _Name) -> None:
    """Show where a dataset comes from, and how it is read."""
    from splime.datasets.loading import find, where

    dataset = find(name)
    out = console()
    out.print(f"{dataset.name}: {dataset.about}", soft_wrap=True)
    out.print(f"published: {dataset.published}", soft_wrap=True)
    if dataset.options:
        options = ", ".join(f"{key}={value}" for key, value in dataset.options.items())
        out.print(f"read with: {options}", soft_wrap=True)
    for file in dataset.files():
        out.print(f"{file.url}\n  SHA-256 {file.sha256}", soft_wrap=True)
    place = where(dataset)
    out.print(f"here: {'not yet; splime datasets fetch ' + name if place is None else place}")


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="The names of datasets.")],
) -> None:
    """Download datasets into the cache, and check every byte."""
    from splime.datasets import fetch_dataset

    for name in names:
        console().print(f"{name}: {fetch_dataset(name)}", soft_wrap=True)


@app.command()
def make(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The Parquet file to write.")],
    facts: Annotated[
        int, typer.Option(help="How many facts, from 1,000 to 1,000,000,000.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(help="The same seed makes the same world.")] = 0,
) -> None:
    """Make a synthetic world of any size: people who move, change clubs and get elected.

    The file is streamed, whatever its size; it also records the years at which predicates change
    their behaviour. Example: splime datasets make big.parquet --facts 10000000
    """
    from splime.datasets import World, make_world
    from splime.progress import progress_bar

    world = World(facts=facts, seed=seed)
    with progress_bar() as update:
        make_world(path, world, progress=update)
    out = console()
    out.print(f"{path}: {facts:,} facts from seed {seed}", soft_wrap=True)
    for predicate, years in world.planted().items():
        if years:
            out.print(f"  {predicate} changes in {', '.join(map(str, years))}")
