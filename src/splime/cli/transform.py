"""`splime transform` and `splime methods`: move the time into the predicates."""

from __future__ import annotations

from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.table import Table
from rich.text import Text

from splime.cli import source
from splime.cli.console import console
from splime.cli.parameters import method_options, with_options
from splime.errors import UsageError
from splime.exports import FORMATS
from splime.leakage import FILTERS, LeakFilter
from splime.methods import METHODS, Method, make_method

FilterChoice = StrEnum("FilterChoice", {name: name for name in FILTERS})  # type: ignore[misc]
FormatChoice = StrEnum("FormatChoice", {name: name for name in FORMATS})  # type: ignore[misc]
_PARQUET, _NO_FILTER = FormatChoice("parquet"), FilterChoice("none")


@with_options({**source.READING, **method_options()})
def transform(
    data: source.Data,
    method: Annotated[str, typer.Option(help=f"How to choose the cuts: {', '.join(METHODS)}.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write to.")],
    format: Annotated[
        FormatChoice,
        typer.Option(help="What to write; tsv is the folder that the paper's code writes."),
    ] = _PARQUET,
    filter: Annotated[
        FilterChoice,
        typer.Option(help="The leak filter to apply to the transformed triples."),
    ] = _NO_FILTER,
    distinct: Annotated[
        bool, typer.Option("--distinct", help="Write repeated triples of a split only once.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the folder if it exists.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also draw the scopes (.png, .svg or .pdf)."),
    ] = None,
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream",
            help="Stream a Parquet file that need not fit into memory, to Parquet: the same triples"
            " as when it is loaded, or an error. Default: where it has more than 5 million rows.",
            show_default=False,
        ),
    ] = None,
    **given: Any,
) -> None:
    """Cut predicates in time, and write the triples that any static model can be trained on.

    Example: splime transform icews14 --method split --by count --grow 25 --fit-on all
    --filter inter --format tsv --out icews14-split
    """
    from splime.exports import check_folder
    from splime.report.style import check_picture
    from splime.streaming import is_large

    reading = source.reading_options(given)
    chosen = make_method(
        method, **{name: value for name, value in given.items() if value is not None}
    )
    check_folder(out, overwrite=overwrite)
    if plot is not None:
        check_picture(plot)
    whole = format is not _PARQUET or filter is not _NO_FILTER or distinct or plot is not None
    if stream or (stream is None and not whole and is_large(Path(data), chosen)):
        if whole:
            raise UsageError(
                "streaming writes Parquet, without --filter, --distinct and --plot; --no-stream"
                " loads the facts into memory"
            )
        _stream(Path(data), chosen, out, reading)
        return
    _transform(data, chosen, out, reading, format, filter, distinct, overwrite, plot)


def _transform(
    data: str,
    method: Method,
    out: Path,
    reading: dict[str, Any],
    format: FormatChoice,
    filter: FilterChoice,
    distinct: bool,
    overwrite: bool,
    plot: Path | None,
) -> None:
    """Load, transform, filter, write, and show what was done."""
    from splime.exports import export
    from splime.io import save_segmentation
    from splime.progress import progress_bar
    from splime.report.plots import plot_segmentation
    from splime.report.style import save_picture
    from splime.report.tables import segmentation_table, transform_table

    graph = source.load_graph(data, reading)
    with progress_bar() as update:
        static = method.fit_transform(graph, progress=update)
    filtered, removed = static.filter(cast(LeakFilter, filter.value))
    if distinct:
        filtered, _ = filtered.distinct()
    export(
        filtered,
        out,
        format.value,
        overwrite=overwrite,
        also=lambda folder: save_segmentation(static.segmentation, folder / "segmentation.json"),
    )
    if plot is not None:
        save_picture(plot_segmentation(static.segmentation, graph), plot)
    printer = console()
    printer.print(segmentation_table(static.segmentation))
    printer.print(transform_table(graph, static, filtered, removed))
    printer.print(f"written to {out}", soft_wrap=True)


def _stream(data: Path, method: Method, out: Path, reading: dict[str, Any]) -> None:
    """Stream from Parquet to Parquet, and show what was done."""
    from splime.io import save_segmentation
    from splime.io.files import written_folder
    from splime.progress import progress_bar
    from splime.report.tables import segmentation_table, stream_table
    from splime.streaming import stream_transform

    with written_folder(out) as folder, progress_bar() as progress:
        target = folder / "triples.parquet"
        result = stream_transform(data, target, method, progress=progress, **reading)
        save_segmentation(result.segmentation, folder / "segmentation.json")
    printer = console()
    printer.print(segmentation_table(result.segmentation))
    for part in stream_table(result):
        printer.print(part)
    printer.print(f"written to {out}", soft_wrap=True)


def methods() -> None:
    """List the methods and their parameters."""
    out = console()
    for name, method in METHODS.items():
        lines = (method.__doc__ or "").strip().splitlines()
        out.print(Text.assemble((name, "bold"), f"  {lines[0]}"))
        table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2))
        for field in fields(method):
            default = "" if field.default is None else f"default {field.default}"
            default = "one of these" if field.name in method.one_of else default
            table.add_row(
                "   ", f"--{field.name.replace('_', '-')}", default, field.metadata["help"]
            )
        out.print(table)
