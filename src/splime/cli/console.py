"""What the command line shows: results on standard output, trainings as they run."""

from __future__ import annotations

import codecs
import json
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from splime.errors import visible
from splime.progress import Progress

if TYPE_CHECKING:
    from splime.runs import Epoch


def show(*parts: RenderableType) -> None:
    """Print tables and lines; wide enough where no terminal says how wide it is."""
    width = None if sys.stdout.isatty() else 120
    console = Console(highlight=False, markup=False, width=width)
    for part in parts:
        console.print(_safe(part), soft_wrap=isinstance(part, str))


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


def show_json(value: Any) -> None:
    """Print JSON, with escapes for what a terminal would obey, and what its encoding lacks."""
    encoding = codecs.lookup(sys.stdout.encoding or "utf-8").name
    text = json.dumps(value, indent=2, ensure_ascii=encoding != "utf-8")
    typer.echo(visible(text), file=sys.stdout)


def warn(text: str) -> None:
    """Print a warning."""
    typer.secho(visible(text), fg=typer.colors.YELLOW, file=sys.stderr)


class Watching:
    """Shows the progress of a training; the first Ctrl-C ends it well, a second one at once."""

    def __init__(self, progress: Progress, name: str = "training") -> None:
        self._progress, self._name, self._stopped = progress, name, False
        self._start: tuple[float, int] | None = None  # when, and at which step
        self._valid = ""

    def __enter__(self) -> Watching:
        self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _interrupt(self, *_: object) -> None:
        if self._stopped:
            raise KeyboardInterrupt
        self._stopped = True

    def stop(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._stopped

    def step(self, epoch: int, epochs: int, step: int, steps: int, loss: float) -> None:
        """Move the bar."""
        done, now = epoch * steps + step, time.monotonic()
        self._start = self._start or (now, done)
        speed = (done - self._start[1]) / max(1e-9, now - self._start[0])
        note = f"loss {loss:.4g}, {speed:,.0f} steps/s{self._valid}"
        self._progress(self._name, done, epochs * steps, note)

    def epoch(self, epoch: Epoch, best: bool) -> None:
        """Remember the last validation."""
        if epoch.valid is not None:
            self._valid = f", valid MRR {epoch.valid:.3f}{' (best)' if best else ''}"
