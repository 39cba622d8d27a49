"""Data: `splime inspect`, `transform`, `methods`, `datasets` and `cache`."""

from __future__ import annotations

import shlex
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from typer import Argument, Option, Typer

from splime.cli import options
from splime.cli.ask import question_to
from splime.cli.console import Result, draw, list_of, lists, show, written
from splime.cli.help import Command, Group
from splime.errors import UsageError, not_installed
from splime.exports import FORMATS
from splime.leakage import FILTERS
from splime.methods import METHODS, make_method
from splime.progress import progress_bar, working
from splime.reading import LOG

if TYPE_CHECKING:
    from splime.graph import TemporalGraph

datasets = Typer(cls=Group, no_args_is_help=True, help="The datasets that splime knows by name.")


@options.with_options()
def inspect(
    data: options.Data,
    plot: Annotated[Path | None, options.picture("the facts over time")] = None,
    *,
    reading: dict[str, Any],
) -> Result:
    """Show what is in a temporal knowledge graph, what was dropped, and what leaks into the test.

    Example: splime inspect icews14 --plot facts.png
    """
    from splime.datasets import inspect
    from splime.reporting.plots import plot_facts_over_time

    LOG.setLevel("INFO")  # remarks are among the tables
    graph = options.load_graph(data, reading)
    with working("looking for leaks …"):
        inspection = inspect(graph)
    draw(plot, plot_facts_over_time, graph)
    after = [*written(facts_over_time=plot), *_next(data, graph, reading)]
    return Result(inspection, after=after)


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
    distinct=options.flag("--distinct", "Write repeated triples only once."),
    overwrite=options.flag("--overwrite", "Replace the folder if it exists."),
    stream=options.flag(
        "--stream/--no-stream",
        "Stream Parquet larger than memory, in one process, to one file: the same triples as when"
        " it is loaded, or an error. Default: with more than 5 million rows.",
        options.LARGE,
    ),
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
) -> Result:
    """Cut predicates in time, and write triples for any static model.

    Example: splime transform icews14 --method split --by count --grow 25 --fit-on all
    --filter inter --format tsv --out icews14-split
    """
    from splime.datasets import Transformed, transform
    from splime.reporting.plots import plot_segmentation

    if plot is not None:
        if given.get("stream") or "engine" in given:
            raise UsageError("--plot needs the facts in memory, without --stream and --engine")
        given["stream"] = False
    cuts = make_method(method, **parameters)
    shorter = "--method split; --bucket N, for fewer timestamps"
    with progress_bar(shorter=shorter) as progress:
        result = transform(data, cuts, out, progress=progress, **given, **reading)
    if isinstance(result, Transformed):
        draw(plot, plot_segmentation, result.segmentation, result.graph)
    return Result(result, after=[f"written to {out}", *written(scopes=plot)])


@options.with_options()
def methods() -> Result:
    """List the methods and their parameters."""
    described, parameters = [], []
    for name, method in METHODS.items():
        described.append((name, (method.__doc__ or "").partition("\n")[0]))
        for field in fields(method):
            default = "" if field.default is None else str(field.default)
            default = "one of these" if field.name in method.one_of else default
            flag = f"--{field.name.replace('_', '-')}"
            parameters.append((name, flag, default, field.metadata["help"]))
    return lists(
        {
            "methods": (("method", "what it does"), described),
            "parameters": (("method", "parameter", "default", "what it is"), parameters),
        }
    )


@datasets.command("list", cls=Command)
@options.with_options()
def list_datasets() -> Result:
    """List the named datasets."""
    from splime.datasets import DATASETS
    from splime.datasets.loading import where

    rows = [
        (one.name, one.about, ", ".join(one.same_facts), str(where(one) or "not here yet"))
        for one in DATASETS.values()
    ]
    columns = ("name", "what it is", "same facts as", "where it is")
    return lists({"datasets": (columns, rows)})


@datasets.command("show", cls=Command)
@options.with_options()
def show_dataset(
    name: Annotated[str, Argument(metavar="NAME", help="The name of a dataset.")],
) -> Result:
    """Show where a dataset comes from, and how it is read."""
    from splime.datasets.loading import find, where

    one, here = find(name), where(find(name))
    read = ", ".join(f"{key}={value}" for key, value in one.options.items())
    files = [{"url": file.url, "sha256": file.sha256} for file in one.files()]
    lines = [
        f"{one.name}: {one.about}",
        f"published: {one.published}",
        *[f"read with: {read}"] * bool(read),
        *(f"{file['url']}\n  SHA-256 {file['sha256']}" for file in files),
        f"here: {here or f'not yet; splime datasets fetch {name}'}",
    ]
    shown: dict[str, Any] = {"name": one.name, "about": one.about, "published": one.published}
    shown |= {"options": one.options, "files": files, "path": here and str(here)}
    return Result(shown, lines)


@datasets.command(cls=Command)
def fetch(
    names: Annotated[list[str], Argument(metavar="NAME", help="The names of datasets.")],
) -> None:
    """Download datasets into the cache, and check every byte."""
    from splime.datasets import fetch_dataset

    for name in names:
        show(f"{name}: {fetch_dataset(name)}")


@options.with_options()
def cache(
    clear: Annotated[bool, Option("--clear", help="Empty the cache.")] = False,
    on: Annotated[
        bool | None,
        Option("--on/--off", help="Switch the cache on or off.", show_default=False),
    ] = None,
) -> Result:
    """List, empty or switch off the cache of files that were asked without training.

    Entries belong to the content of a file; the least recently used go first. SPLIME_NO_CACHE=1
    switches the cache off for one command.

    Example: splime cache --clear
    """
    from splime.io.cache import MOST
    from splime.runs.keeping import kept_graphs

    graphs = kept_graphs()
    if on is not None:
        graphs.switch(on)
    if clear:
        graphs.clear()
    entries: list[dict[str, Any]] = [
        {
            "source": one.source,
            "facts": one.facts,
            "bytes": one.bytes,
            "used": datetime.fromtimestamp(one.used).astimezone().isoformat(" ", "seconds"),
        }
        for one in graphs.kept()
    ]
    rows = [
        (one["source"], f"{one['facts']:,}", f"{one['bytes'] / 1e6:,.2f}", one["used"][:19])
        for one in entries
    ]
    size = sum(one["bytes"] for one in entries)
    about = {"folder": str(graphs.folder), "on": not graphs.is_off, "bytes": size, "most": MOST}
    after = [f"{size / 1e6:,.1f} of {MOST / 1e6:,.0f} MB in {graphs.folder}"]
    after += ["off: nothing is kept or looked up; splime cache --on"] * graphs.is_off
    parts = [list_of(("source", "facts", "MB", "last used"), rows)] * bool(rows)
    return Result({**about, "entries": entries}, parts, after)
