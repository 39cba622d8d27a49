"""What the command line shows: results on standard output, messages on standard error."""

from __future__ import annotations

import codecs
import json
import logging
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import typer
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from splime.errors import visible


def show(*parts: RenderableType) -> None:
    """Print tables and lines; wide enough where no terminal says how wide it is."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120
    console = Console(highlight=False, markup=False, width=width)
    for part in parts:
        part = _safe(part)
        left_out = _fit(part, console) if isinstance(part, Table) else []
        console.print(part, soft_wrap=isinstance(part, str))
        if left_out:
            console.print(Text(f"not shown, too narrow: {', '.join(left_out)}", style="dim"))


def _fit(table: Table, console: Console) -> list[str]:
    """Drop columns from the right until no word and no number is broken; their headers.

    Then the widest columns are narrowed as rich does it, but not to less than their words.
    """
    dropped: list[str] = []
    free = console.options.update_width(10_000)
    while True:
        ranges = [table._measure_column(console, free, column) for column in table.columns]
        least = [
            one.maximum if column.no_wrap and column.overflow != "crop" else one.minimum
            for one, column in zip(ranges, table.columns, strict=True)
        ]
        widths = [one.maximum for one in ranges]
        room = console.width - table._extra_width
        if sum(widths) <= room:
            return dropped[::-1]
        if sum(least) <= room or len(least) <= 2:
            break
        dropped.append(str(table.columns.pop().header))
    while sum(widths) > room and widths != least:
        _, at = max((width, at) for at, width in enumerate(widths) if width > least[at])
        widths[at] -= 1
    for at, column in enumerate(table.columns):
        if sum(least) <= room and not column.no_wrap:
            column.width = widths[at] - table._get_padding_width(at)
    return dropped[::-1]


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


def show_lists(
    lists: Mapping[str, tuple[Sequence[str], Iterable[Sequence[str]]]], *, as_json: bool
) -> None:
    """Print lists of things by kind: the columns and the rows of each, as tables or as JSON."""
    if as_json:
        show_json(
            {
                kind: [dict(zip(columns, row, strict=True)) for row in rows]
                for kind, (columns, rows) in lists.items()
            }
        )
        return
    for columns, rows in lists.values():
        table = Table(*columns, box=None, pad_edge=False)
        for row in rows:
            table.add_row(*row)
        show(table, "")


def show_json(value: Any) -> None:
    """Print JSON, with escapes for what a terminal would obey, and what its encoding lacks."""
    encoding = codecs.lookup(sys.stdout.encoding or "utf-8").name
    text = json.dumps(value, indent=2, ensure_ascii=encoding != "utf-8")
    typer.echo(visible(text), file=sys.stdout)


def say(text: str, **style: Any) -> None:
    """Print a message, unless standard error is closed."""
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
