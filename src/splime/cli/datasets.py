"""`splime datasets`: list, show, fetch and make datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.table import Table
from typer import Argument, Option, Typer

from splime.cli.console import show

app = Typer(no_args_is_help=True, help="The named datasets, and worlds made to order.")


@app.command("list")
def list_datasets() -> None:
    """List the named datasets."""
    from splime.datasets import DATASETS
    from splime.datasets.loading import where

    table = Table("name", "what it is", "where it is", box=None, pad_edge=False)
    for dataset in DATASETS.values():
        table.add_row(dataset.name, dataset.about, str(where(dataset) or "not here yet"))
    show(table)


@app.command("show")
def show_dataset(
    name: Annotated[str, Argument(metavar="NAME", help="The name of a dataset.")],
) -> None:
    """Show where a dataset comes from, and how it is read."""
    from splime.datasets.loading import find, where

    dataset = find(name)
    show(f"{dataset.name}: {dataset.about}", f"published: {dataset.published}")
    if dataset.options:
        options = ", ".join(f"{key}={value}" for key, value in dataset.options.items())
        show(f"read with: {options}")
    show(*(f"{file.url}\n  SHA-256 {file.sha256}" for file in dataset.files()))
    show(f"here: {where(dataset) or f'not yet; splime datasets fetch {name}'}")


@app.command()
def fetch(
    names: Annotated[list[str], Argument(metavar="NAME…", help="The names of datasets.")],
) -> None:
    """Download datasets into the cache, and check every byte."""
    from splime.datasets import fetch_dataset

    for name in names:
        show(f"{name}: {fetch_dataset(name)}")


@app.command()
def make(
    path: Annotated[Path, Argument(metavar="FILE", help="The Parquet file to write.")],
    facts: Annotated[int, Option(help="How many facts, from 1,000 to 1,000,000,000.")] = 10_000,
    seed: Annotated[int, Option(help="The same seed makes the same world.")] = 0,
) -> None:
    """Make a synthetic world of any size: people who move, change clubs and get elected.

    The file is streamed, whatever its size; it also records the years at which predicates change
    their behaviour. Example: splime datasets make big.parquet --facts 10000000
    """
    from splime.datasets import World, make_world
    from splime.progress import progress_bar

    world = World(facts=facts, seed=seed)
    with progress_bar() as progress:
        make_world(path, world, progress=progress)
    show(f"{path}: {facts:,} facts from seed {seed}")
    for predicate, years in world.planted().items():
        if years:
            show(f"  {predicate} changes in {', '.join(map(str, years))}")
