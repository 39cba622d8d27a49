"""Progress bars on the error stream, shown only to people."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Update = Callable[[str, int, int | None], None]
"""Takes what is being worked on, how much of it is done, and how much there is (if known)."""


@contextmanager
def progress_bar(*, bytes: bool = False) -> Iterator[Update]:
    """A bar for each thing that the updates name; nothing where no terminal is looking."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    amount = [DownloadColumn(), TransferSpeedColumn()] if bytes else [MofNCompleteColumn()]
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *amount,
        TimeRemainingColumn(),
        console=Console(stderr=True),
    ) as bars:
        tasks: dict[str, TaskID] = {}

        def update(name: str, done: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done, total=total)

        yield update


@contextmanager
def working(what: str) -> Iterator[None]:
    """A sign of life for work whose end cannot be told; nothing where no terminal is looking."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield
