"""What becomes of facts: `splime inspect`, `transform`, `methods` and `datasets`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

from rich.table import Table
from rich.text import Text
from typer import Argument, Option, Typer

from splime.cli import options
from splime.cli.console import show, show_json
from splime.errors import UsageError, check_name
from splime.exports import FORMATS, check_folder
from splime.leakage import FILTERS
from splime.methods import METHODS, make_method
from splime.progress import progress_bar, working
from splime.reading import LOG
from splime.workers import ENGINES

datasets = Typer(no_args_is_help=True, help="The named datasets, and worlds made to order.")


@options.with_options
def inspect(
    data: options.Data,
    as_json: options.AsJson = False,
    plot: Annotated[Path | None, options.picture("the facts over time")] = None,
    *,
    reading: dict[str, Any],
) -> None:
    """Show what is in a temporal knowledge graph, what was dropped, and what leaks into the test.

    Example: splime inspect icews14 --plot facts.png
    """
    from splime.datasets import inspect
    from splime.report.plots import plot_facts_over_time
    from splime.report.style import check_picture, save_picture
    from splime.report.tables import inspection_tables

    if plot is not None:
        check_picture(plot)  # before the work, not after it
    LOG.setLevel("INFO")  # remarks are among the tables
    graph = options.load_graph(data, reading)
    with working("looking for leaks …"):
        inspection = inspect(graph)
    if plot is not None:
        save_picture(plot_facts_over_time(graph), plot)
    if as_json:
        show_json(inspection.to_json())
        return
    show(*inspection_tables(inspection))
    if plot is not None:
        show(f"facts over time: {plot}")


@options.with_options
def transform(
    data: options.Data,
    method: Annotated[str, Option(help=f"How to choose the cuts: {', '.join(METHODS)}.")],
    out: Annotated[Path, options.folder(help="The folder to write to.")],
    format: Annotated[
        str,
        Option(
            metavar=f"<{'|'.join(FORMATS)}>",
            help="What to write; tsv is the folder that the paper's code writes.",
        ),
    ] = "parquet",
    filter: Annotated[
        str,
        Option(
            metavar=f"<{'|'.join(FILTERS)}>",
            help="The leak filter to apply to the transformed triples.",
        ),
    ] = "none",
    distinct: Annotated[
        bool, Option("--distinct", help="Write repeated triples of a split only once.")
    ] = False,
    overwrite: Annotated[
        bool, Option("--overwrite", help="Replace the folder if it exists.")
    ] = False,
    plot: Annotated[Path | None, options.picture("the scopes")] = None,
    stream: Annotated[
        bool | None,
        Option(
            "--stream/--no-stream",
            help="Stream Parquet that need not fit into memory, in one process, to one file: the"
            " same triples as when it is loaded, or an error. Default: where it has more than 5"
            " million rows.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        str | None,
        Option(
            metavar=f"<{'|'.join(ENGINES)}>",
            help="Transform Parquet part by part on many workers, into a folder of Parquet files:"
            " processes of this machine, or a Ray cluster. The same command again goes on where it"
            " was. Default: processes, where there are more than 10 million rows.",
            show_default=False,
        ),
    ] = None,
    workers: options.Workers = None,
    address: options.Address = None,
    *,
    reading: dict[str, Any],
    parameters: dict[str, Any],
) -> None:
    """Cut predicates in time, and write the triples that any static model can be trained on.

    Example: splime transform icews14 --method split --by count --grow 25 --fit-on all
    --filter inter --format tsv --out icews14-split
    """
    from splime.datasets import transform
    from splime.datasets.preparing import SEGMENTATION
    from splime.io import save_segmentation
    from splime.io.files import written_folder
    from splime.report.plots import plot_segmentation
    from splime.report.style import check_picture, save_picture
    from splime.report.tables import segmentation_table, stream_table, transformed_tables
    from splime.streaming import LARGE, PART, rows_to_stream, stream_transform, transform_parts

    # Mistakes are errors before the facts are read.
    chosen = make_method(method, **parameters)
    check_name("format", format, FORMATS)
    check_name("filter", filter, FILTERS)
    if plot is not None:
        check_picture(plot)
    whole = format != "parquet" or filter != "none" or distinct or plot is not None
    rows = rows_to_stream(data, chosen) if stream is None and not whole else 0
    if engine is not None and stream is not None:
        raise UsageError("--engine writes a folder of parts, --stream one file; choose one of them")
    if engine is None and (workers is not None or address is not None):
        raise UsageError("--workers and --address need --engine processes or --engine ray")
    if engine is None and rows > PART:
        engine = "processes"
    if engine is not None or stream or rows > LARGE:
        if whole:
            raise UsageError(
                "streaming writes Parquet, without --filter, --distinct and --plot; --no-stream"
                " loads the facts into memory"
            )
        with progress_bar() as progress:
            if engine is not None:
                result = transform_parts(
                    data,
                    out,
                    chosen,
                    engine=engine,
                    workers=workers,
                    address=address,
                    overwrite=overwrite,
                    progress=progress,
                    **reading,
                )
            else:
                check_folder(out, overwrite=overwrite)
                with written_folder(out) as folder:
                    target = folder / "triples.parquet"
                    result = stream_transform(data, target, chosen, progress=progress, **reading)
                    save_segmentation(result.segmentation, folder / SEGMENTATION)
                    # Somebody may have made it in the meantime.
                    check_folder(out, overwrite=overwrite)
        show(segmentation_table(result.segmentation), *stream_table(result), f"written to {out}")
        return
    check_folder(out, overwrite=overwrite)
    graph = options.load_graph(data, reading)
    with progress_bar() as progress:
        made = transform(
            graph,
            chosen,
            out,
            format=format,
            filter=filter,
            distinct=distinct,
            overwrite=overwrite,
            progress=progress,
        )
    if plot is not None:
        save_picture(plot_segmentation(made.whole.segmentation, graph), plot)
    show(*transformed_tables(made), f"written to {out}")


def methods() -> None:
    """List the methods and their parameters."""
    for name, method in METHODS.items():
        about = (method.__doc__ or "").strip().splitlines()[0]
        table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2))
        for field in fields(method):
            default = "" if field.default is None else f"default {field.default}"
            default = "one of these" if field.name in method.one_of else default
            flag = f"--{field.name.replace('_', '-')}"
            table.add_row("   ", flag, default, field.metadata["help"])
        show(Text.assemble((name, "bold"), f"  {about}"), table)


@datasets.command("list")
def list_datasets() -> None:
    """List the named datasets."""
    from splime.datasets import DATASETS
    from splime.datasets.loading import where

    table = Table("name", "what it is", "where it is", box=None, pad_edge=False)
    for dataset in DATASETS.values():
        table.add_row(dataset.name, dataset.about, str(where(dataset) or "not here yet"))
    show(table)


@datasets.command("show")
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


@datasets.command()
def fetch(
    names: Annotated[list[str], Argument(metavar="NAME…", help="The names of datasets.")],
) -> None:
    """Download datasets into the cache, and check every byte."""
    from splime.datasets import fetch_dataset

    for name in names:
        show(f"{name}: {fetch_dataset(name)}")


@datasets.command()
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

    world = World(facts=facts, seed=seed)
    with progress_bar() as progress:
        make_world(path, world, progress=progress)
    show(f"{path}: {facts:,} facts from seed {seed}")
    for predicate, years in world.planted().items():
        if years:
            show(f"  {predicate} changes in {', '.join(map(str, years))}")
