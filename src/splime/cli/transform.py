"""`splime transform` and `splime methods`: move the time into the predicates."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, cast

from rich.table import Table
from rich.text import Text
from typer import Option

from splime.cli.console import show
from splime.cli.options import Data, load_graph, with_options
from splime.errors import UsageError, check_name
from splime.exports import FORMATS, check_folder, export
from splime.leakage import FILTERS, LeakFilter
from splime.methods import METHODS, Method, make_method

_SEGMENTATION = "segmentation.json"


@with_options
def transform(
    data: Data,
    method: Annotated[str, Option(help=f"How to choose the cuts: {', '.join(METHODS)}.")],
    out: Annotated[Path, Option(metavar="DIR", help="The folder to write to.")],
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
    plot: Annotated[
        Path | None, Option(metavar="FILE", help="Also draw the scopes (.png, .svg or .pdf).")
    ] = None,
    stream: Annotated[
        bool | None,
        Option(
            "--stream/--no-stream",
            help="Stream a Parquet file that need not fit into memory, to Parquet: the same triples"
            " as when it is loaded, or an error. Default: where it has more than 5 million rows.",
            show_default=False,
        ),
    ] = None,
    *,
    reading: dict[str, Any],
    parameters: dict[str, Any],
) -> None:
    """Cut predicates in time, and write the triples that any static model can be trained on.

    Example: splime transform icews14 --method split --by count --grow 25 --fit-on all
    --filter inter --format tsv --out icews14-split
    """
    from splime.io import save_segmentation
    from splime.progress import progress_bar
    from splime.report.plots import plot_segmentation
    from splime.report.style import check_picture, save_picture
    from splime.report.tables import segmentation_table, transform_table
    from splime.streaming import is_large

    # Mistakes are errors before the facts are read.
    chosen = make_method(method, **parameters)
    check_name("format", format, FORMATS)
    check_name("filter", filter, FILTERS)
    check_folder(out, overwrite=overwrite)
    if plot is not None:
        check_picture(plot)
    whole = format != "parquet" or filter != "none" or distinct or plot is not None
    if stream or (stream is None and not whole and is_large(Path(data), chosen)):
        if whole:
            raise UsageError(
                "streaming writes Parquet, without --filter, --distinct and --plot; --no-stream"
                " loads the facts into memory"
            )
        _stream(Path(data), chosen, out, reading)
        return
    graph = load_graph(data, reading)
    with progress_bar() as progress:
        static = chosen.fit_transform(graph, progress=progress)
    segmentation = static.segmentation
    filtered, removed = static.filter(cast(LeakFilter, filter))
    if distinct:
        filtered, _ = filtered.distinct()
    export(
        filtered,
        out,
        format,
        overwrite=overwrite,
        also=lambda folder: save_segmentation(segmentation, folder / _SEGMENTATION),
    )
    if plot is not None:
        save_picture(plot_segmentation(segmentation, graph), plot)
    show(segmentation_table(segmentation), transform_table(graph, static, filtered, removed))
    show(f"written to {out}")


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
        save_segmentation(result.segmentation, folder / _SEGMENTATION)
    show(segmentation_table(result.segmentation), *stream_table(result), f"written to {out}")


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
