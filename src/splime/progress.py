"""Progress bars on the error stream, shown only to people."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from splime.errors import visible


class Progress(Protocol):
    """The callback that hears of progress."""

    def __call__(self, what: str, done: int, total: int | None = None, note: str = "") -> None:
        """Take what is being worked on, how much is done, and how much there is (if known)."""


def silent(what: str, done: int, total: int | None = None, note: str = "") -> None:
    """Show nothing: the default."""


@contextmanager
def progress_bar(*, bytes: bool = False) -> Iterator[Progress]:
    """A bar for each thing that is worked on; nothing where there is no terminal."""
    if not sys.stderr.isatty():
        yield silent
        return
    from rich import progress as rich
    from rich.console import Console

    in_bytes = rich.DownloadColumn(), rich.TransferSpeedColumn()
    amount = in_bytes if bytes else (rich.MofNCompleteColumn(),)
    with rich.Progress(
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(),
        *amount,
        rich.TimeRemainingColumn(),
        rich.TextColumn("{task.fields[note]}", markup=False),
        console=Console(stderr=True),
    ) as bars:
        tasks: dict[str, rich.TaskID] = {}

        def update(what: str, done: int, total: int | None = None, note: str = "") -> None:
            note = visible(note)
            if what not in tasks:
                tasks[what] = bars.add_task(visible(what), total=total, note=note)
            bars.update(tasks[what], completed=done, total=total, note=note)

        yield update


@contextmanager
def working(what: str) -> Iterator[None]:
    """A sign of life for work of unknown length; nothing where there is no terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(visible(what))):  # a name with brackets is no markup
        yield
