"""What the command line shows: results on standard output, messages on standard error."""

from __future__ import annotations

import codecs
import json
import logging
import os
import sys
import webbrowser
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import typer
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from splime.errors import visible


def show(*parts: RenderableType) -> None:
    """Print tables and lines; wide enough where no terminal says how wide it is."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120
    console = Console(highlight=False, markup=False, width=width)
    for part in parts:
        part = _safe(part)
        if isinstance(part, Table):
            _show_table(part, console)
        else:
            _show_text(part, console)


def _show_text(part: RenderableType, console: Console) -> None:
    """Print text: lines to copy as they are; others in lines of whole words."""
    free = console.options.update_width(10_000)
    too_long = Measurement.get(console, free, part).minimum > console.width
    console.print(part, soft_wrap=isinstance(part, str) or too_long)


def _show_table(table: Table, console: Console) -> None:
    """Print a table of whole words and numbers, without the columns that there is no room for."""
    if table.title:
        title = str(table.title)  # which rich would fold at the width of the table
        _show_text(Text(title, table.title_style or ""), console)
        table.title = None
    left_out = _fit(table, console)
    if left_out is None:
        headers = [str(column.header) for column in table.columns]
        for cells in zip(*(column.cells for column in table.columns), strict=True):
            for header, cell in zip(headers, cells, strict=True):
                text = Text(f"{header}: " * bool(header)).append_text(Text.assemble(cell))
                console.print(text, soft_wrap=True)
    else:
        console.print(table)
        if left_out:
            _show_text(Text(f"not shown, too narrow: {', '.join(left_out)}", "dim"), console)


def _fit(table: Table, console: Console) -> list[str] | None:
    """Drop columns from the right until no word and no number is broken; their headers.

    Then the widest columns are narrowed as rich does it, but not to less than their words. None if
    there is no room for two columns.
    """
    dropped: list[str] = []
    free = console.options.update_width(10_000)
    while True:
        ranges = [table._measure_column(console, free, column) for column in table.columns]
        least = [
            _least(table, column, one) for one, column in zip(ranges, table.columns, strict=True)
        ]
        widths = [one.maximum for one in ranges]
        room = console.width - table._extra_width
        if sum(widths) <= room:
            return dropped[::-1]
        if sum(least) <= room:
            break
        if len(least) <= 2:
            return None
        dropped.append(str(table.columns.pop().header))
    while sum(widths) > room:
        _, at = max((width, at) for at, width in enumerate(widths) if width > least[at])
        widths[at] -= 1
    for at, column in enumerate(table.columns):
        if not column.no_wrap:
            column.width = widths[at] - table._get_padding_width(at)
    return dropped[::-1]


def _least(table: Table, column: Column, measured: Measurement) -> int:
    """The width below which something would be broken."""
    if column.no_wrap:
        return measured.minimum if column.overflow == "crop" else measured.maximum
    if column.justify != "right":
        return measured.minimum
    # A number is never wrapped, as in "12.5 %"; its header is.
    lines = (line for cell in column.cells for line in str(cell).splitlines())
    widest = max(map(cell_len, lines), default=0) + table._get_padding_width(column._index)
    return max(measured.minimum, widest)


def _safe(part: RenderableType) -> RenderableType:
    """The same with the control characters of names made visible, in the cells of a table too."""
    if isinstance(part, str):
        return visible(part)
    if isinstance(part, Text):
        plain = visible(part.plain)
        return part if plain == part.plain else Text(plain, part.style)
    if isinstance(part, Table):
        part.title = part.title and _safe(part.title)  # type: ignore[assignment]  # text stays text
        for column in part.columns:
            column.header = _safe(column.header)
            column._cells = [_safe(cell) for cell in column._cells]
    return part


class Result(NamedTuple):
    """What a command has found: `--json` prints it as JSON, else tables and lines are printed."""

    found: Any
    """A result that has `to_json`, or what is JSON already."""
    parts: Iterable[RenderableType] | None = None
    """The tables and lines, made as they are printed; by default those of a result."""
    after: Iterable[str] = ()
    """Lines below: what was written, what to do next."""


def print_result(result: Result, *, as_json: bool) -> None:
    """Print what a command has found."""
    found, parts, after = result
    if as_json:
        show_json(found.to_json() if hasattr(found, "to_json") else found)
        return
    if parts is None:
        from splime.reporting.views import parts_of

        parts = parts_of(found)
    for part in chain(parts, after):
        show(part)


def written(**files: Path | str | None) -> list[str]:
    """A line for each file that there is.

    >>> written(windows=Path("windows.json"), picture=None)
    ['windows: windows.json']
    """
    return [f"{what.replace('_', ' ')}: {path}" for what, path in files.items() if path is not None]


def draw(path: Path | None, plot: Callable[..., Any], *shown: Any) -> None:
    """Draw a picture, if a file for it is given."""
    if path is not None:
        from splime.reporting.style import save_picture

        save_picture(plot(*shown), path)


def open_page(page: Path | str) -> None:
    """Open a page in the browser, if there is one."""
    if not webbrowser.open(page.resolve().as_uri() if isinstance(page, Path) else page):
        warn(f"there is no browser here; open {page} in one")


def lists(
    kinds: Mapping[str, tuple[Sequence[str], Sequence[Sequence[str]]]], after: Iterable[str] = ()
) -> Result:
    """Lists of things by kind: the columns and the rows of each."""

    found = {
        kind: [dict(zip(columns, row, strict=True)) for row in rows]
        for kind, (columns, rows) in kinds.items()
    }
    tables = [part for columns, rows in kinds.values() for part in (list_of(columns, rows), "")]
    return Result(found, tables, after)


def list_of(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A plain table."""
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    return table


def show_json(value: Any) -> None:
    """Print JSON, with escapes for what a terminal would obey, and what its encoding lacks."""
    encoding = codecs.lookup(sys.stdout.encoding or "utf-8").name
    text = json.dumps(value, indent=2, ensure_ascii=encoding != "utf-8")
    typer.echo(visible(text), file=sys.stdout)


def say(text: str, **style: Any) -> None:
    """Print a message, unless standard error is closed."""
    if os.environ.get("NO_COLOR"):
        style.pop("fg", None)
    with suppress(OSError):
        # Not `err`, for which click would change the encoding of some terminals.
        typer.secho(visible(text), file=sys.stderr, **style)


def warn(text: str) -> None:
    """Print a warning."""
    say(text, fg=typer.colors.YELLOW)


class Messages(logging.Handler):
    """Shows what the library says on standard error, which leaves standard output to results."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message; a warning stands out."""
        text = record.getMessage()
        if record.levelno >= logging.WARNING:
            warn(f"warning: {text}")
        else:
            say(text)
