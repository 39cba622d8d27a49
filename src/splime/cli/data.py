"""Data: `splime inspect`, `transform`, `methods` and `datasets`."""

from __future__ import annotations

import shlex
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from typer import Argument, Option, Typer

from splime.cli import options
from splime.cli.ask import question_to
from splime.cli.console import show, show_json, show_lists
from splime.cli.help import Command, Group
from splime.errors import UsageError, not_installed
from splime.exports import FORMATS
from splime.leakage import FILTERS
from splime.methods import METHODS, make_method
from splime.progress import progress_bar, working
from splime.reading import LOG

if TYPE_CHECKING:
    from splime.graph import TemporalGraph

datasets = Typer(cls=Group, no_args_is_help=True, help="The named datasets.")


@options.with_options()
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
    from splime.reporting.plots import plot_facts_over_time
    from splime.reporting.style import save_picture
    from splime.reporting.tables import inspection_tables

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
    show(*_next(data, graph, reading))


def _next(data: str, graph: TemporalGraph, reading: dict[str, Any]) -> list[str]:
    """What to do next with these facts, as commands to copy: they work without training."""
    if not len(graph.train):
        return []
    read = options.spelled(reading, *options.OF_GRAPHS)
    often = np.bincount(graph.train.predicate).argmax()
    facts = graph.train.take(graph.train.predicate == often)
    fact = next(replace(graph, train=facts.take(slice(-1, None))).rows("train"))
    was_split = any(remark.startswith("split ") for remark in graph.reading.remarks)
    has_splits = len(graph.test) and not was_split
    then = shlex.join(["splime", "evaluate" if has_splits else "predict", data, *read])
    try:
        return [f"next: {question_to(data, fact, reading=read)}", f"or: {then}"]
    except ImportError as error:
        return [f"next: {not_installed('asking', error)}"]


@options.with_options(
    format=options.name(
        f"What to write: {', '.join(FORMATS)}. Default: parquet; the paper's code writes tsv."
    ),
    filter=options.name(f"Leak filter of the triples: {', '.join(FILTERS)}. Default: none."),
    distinct=Annotated[bool, Option("--distinct", help="Write repeated triples only once.")],
    overwrite=Annotated[bool, Option("--overwrite", help="Replace the folder if it exists.")],
    stream=Annotated[
        bool | None,
        Option(
            "--stream/--no-stream",
            help="Stream Parquet larger than memory, in one process, to one file: the same triples"
            " as when it is loaded, or an error. Default: with more than 5 million rows.",
            show_default=False,
            rich_help_panel=options.LARGE,
        ),
    ],
    engine=options.name(
        "Transform Parquet part by part on many workers, into a folder of Parquet files: processes"
        " of this machine, or a Ray cluster. The same command resumes. Default: processes, with"
        " more than 10 million rows.",
        options.LARGE,
    ),
    workers=options.number(
        "How many workers. Default: one for each processor.", panel=options.LARGE
    ),
    address=options.option(
        "HOST:PORT",
        "ray: the cluster to join. Default: RAY_ADDRESS, or else one of this machine alone.",
        options.LARGE,
    ),
)
def transform(
    data: options.Data,
    method: Annotated[str, options.name(options.CUTS)],
    out: Annotated[Path, options.folder("The folder to write to.")],
    *,
    given: dict[str, Any],
    plot: Annotated[Path | None, options.picture("the scopes")] = None,
    reading: dict[str, Any],
    parameters: dict[str, Any],
) -> None:
    """Cut predicates in time, and write triples for any static model.

    Example: splime transform icews14 --method split --by count --grow 25 --fit-on all
    --filter inter --format tsv --out icews14-split
    """
    from splime.datasets import Transformed, transform
    from splime.reporting.plots import plot_segmentation
    from splime.reporting.style import save_picture
    from splime.reporting.tables import stream_table, transformed_tables

    if plot is not None:
        if given.get("stream") or "engine" in given:
            raise UsageError("--plot needs the facts in memory, without --stream and --engine")
        given["stream"] = False
    cuts = make_method(method, **parameters)
    shorter = "--method split; --bucket N, for fewer timestamps"
    with progress_bar(shorter=shorter) as progress:
        result = transform(data, cuts, out, progress=progress, **given, **reading)
    if not isinstance(result, Transformed):
        show(*stream_table(result), f"written to {out}")
        return
    if plot is not None:
        save_picture(plot_segmentation(result.segmentation, result.graph), plot)
    show(*transformed_tables(result), f"written to {out}")


def methods(as_json: options.AsJson = False) -> None:
    """List the methods and their parameters."""
    described, parameters = [], []
    for name, method in METHODS.items():
        described.append((name, (method.__doc__ or "").partition("\n")[0]))
        for field in fields(method):
            default = "" if field.default is None else str(field.default)
            default = "one of these" if field.name in method.one_of else default
            flag = f"--{field.name.replace('_', '-')}"
            parameters.append((name, flag, default, field.metadata["help"]))
    show_lists(
        {
            "methods": (("method", "what it does"), described),
            "parameters": (("method", "parameter", "default", "what it is"), parameters),
        },
        as_json=as_json,
    )


@datasets.command("list", cls=Command)
def list_datasets(as_json: options.AsJson = False) -> None:
    """List the named datasets."""
    from splime.datasets import DATASETS
    from splime.datasets.loading import where

    rows = [
        (one.name, one.about, ", ".join(one.same_facts), str(where(one) or "not here yet"))
        for one in DATASETS.values()
    ]
    columns = ("name", "what it is", "same facts as", "where it is")
    show_lists({"datasets": (columns, rows)}, as_json=as_json)


@datasets.command("show", cls=Command)
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


@datasets.command(cls=Command)
def fetch(
    names: Annotated[list[str], Argument(metavar="NAME…", help="The names of datasets.")],
) -> None:
    """Download datasets into the cache, and check every byte."""
    from splime.datasets import fetch_dataset

    for name in names:
        show(f"{name}: {fetch_dataset(name)}")
