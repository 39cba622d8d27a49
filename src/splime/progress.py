"""Progress: bars for people, in a terminal or a notebook; a line now and then for log files."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from types import FrameType
from typing import Any, Protocol

from splime.errors import SplimeError, checked, visible

SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
"""What asks the program to end."""
INTERRUPTED = 130
"""The exit code of what was asked to stop, and stopped well."""

EVERY = 30.0
"""Seconds between two lines where no terminal shows a bar; what takes less than that has none."""


OFTEN = 0.2
"""Seconds between two drawings of a bar in a notebook."""


class Progress(Protocol):
    """The callback that hears of progress."""

    def __call__(self, what: str, done: int, total: int | None = None, note: str = "") -> None:
        """Take what is being worked on, how much is done, and how much there is (if known)."""


def silent(what: str, done: int, total: int | None = None, note: str = "") -> None:
    """Show nothing: the default."""


@checked
@contextmanager
def progress_bar(*, bytes: bool = False) -> Iterator[Progress]:
    """A bar for each thing that is worked on; lines where there is no terminal and no notebook.

    What it gives is what functions take as `progress`.

    >>> with progress_bar() as progress:
    ...     progress("counting", 10, 10)
    """
    if not sys.stderr.isatty():
        lines = _Cell(bytes) if _in_notebook() else _Lines(bytes)
        yield lines
        lines.end()
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


class _Lines:
    """A line every so often, and one for the end of what had a line before."""

    def __init__(self, bytes: bool) -> None:
        self._bytes, self._last = bytes, time.monotonic()
        self._begun: set[str] = set()
        self._untold: dict[str, str] = {}

    def __call__(self, what: str, done: int, total: int | None = None, note: str = "") -> None:
        """Take the progress, and perhaps tell it."""
        self._untold[what] = self._line(what, done, total, note)
        if time.monotonic() - self._last >= EVERY or (what in self._begun and done == total):
            self._tell(what)

    def end(self) -> None:
        """Tell how far it came."""
        for what in [*self._untold]:
            if what in self._begun:
                self._tell(what)

    def _tell(self, what: str) -> None:
        _write(self._untold.pop(what))
        self._last = time.monotonic()
        self._begun.add(what)

    def _line(self, what: str, done: int, total: int | None, note: str) -> str:
        amount = self._amount(done)
        if total is not None:
            amount += f" of {self._amount(total)}"
        return f"{what}: {amount}{', ' * bool(note)}{note}"

    def _amount(self, number: int) -> str:
        if not self._bytes:
            return f"{number:,}"
        from rich.filesize import decimal

        return decimal(number)


def _in_notebook() -> bool:
    """Whether a notebook shows what this process displays; a terminal of IPython has no kernel."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


class _Cell(_Lines):
    """Bars below the cell of a notebook, which needs no further package for them."""

    def __init__(self, bytes: bool) -> None:
        super().__init__(bytes)
        self._bars: dict[str, str] = {}
        self._shown: Any = None

    def __call__(self, what: str, done: int, total: int | None = None, note: str = "") -> None:
        """Take the progress, and draw it some times a second."""
        self._untold[what] = line = visible(self._line(what, done, total, note))
        place = "" if total is None else f' value="{done}" max="{total}"'
        self._bars[what] = f"<div><progress{place}></progress> {escape(line)}</div>"
        if self._shown is None or time.monotonic() - self._last >= OFTEN:
            self.end()

    def end(self) -> None:
        """Draw it."""
        from IPython.display import display

        drawn = {
            "text/html": "".join(self._bars.values()),
            "text/plain": "\n".join(self._untold.values()),
        }
        if self._shown is not None:
            self._shown.update(drawn, raw=True)
        elif self._bars:
            self._shown = display(drawn, raw=True, display_id=True)
        self._last = time.monotonic()


def _write(line: str) -> None:
    sys.stderr.write(f"{visible(line)}\n")
    sys.stderr.flush()


@contextmanager
def working(what: str) -> Iterator[None]:
    """A sign of life for work of unknown length; lines where there is no terminal."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.text import Text

        with Console(stderr=True).status(Text(visible(what))):  # a name with brackets is no markup
            yield
        return
    done, start = threading.Event(), time.monotonic()

    def tell() -> None:
        while not done.wait(EVERY):
            _write(f"{what} {time.monotonic() - start:,.0f} s")

    threading.Thread(target=tell, daemon=True).start()
    try:
        yield
    finally:
        done.set()


class Validated(Protocol):
    """An epoch of a training."""

    @property
    def valid(self) -> float | None:
        """The MRR on valid, if it was measured."""


class Showing:
    """Shows the progress of a training."""

    def __init__(self, progress: Progress, name: str = "training") -> None:
        self._progress, self._name = progress, name
        self._start: tuple[float, int] | None = None  # when, and at which step
        self._valid = ""

    def step(self, epoch: int, epochs: int, step: int, steps: int, loss: float) -> None:
        """Move the bar."""
        done, now = epoch * steps + step, time.monotonic()
        self._start = self._start or (now, done)
        speed = (done - self._start[1]) / max(1e-9, now - self._start[0])
        note = f"loss {loss:.4g}, {speed:,.{1 if speed < 10 else 0}f} steps/s{self._valid}"
        self._progress(self._name, done, epochs * steps, note)

    def epoch(self, epoch: Validated, best: bool) -> None:
        """Remember the last validation."""
        if epoch.valid is not None:
            self._valid = f", valid MRR {epoch.valid:.3f}{' (best)' if best else ''}"

    def stop(self) -> bool:
        """Nobody asks here."""
        return False


class Watching(Showing):
    """Shows the progress of a training; the first Ctrl-C or SIGTERM ends it well, a second at once.

    Containers, Slurm and systemd send SIGTERM, and some seconds later kill.
    """

    _signal = 0  # that was received

    def __enter__(self) -> Watching:
        self._before = {each: signal.signal(each, self._interrupt) for each in SIGNALS}
        return self

    def __exit__(self, _: object, error: object, __: object) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)
        if self._signal and isinstance(error, SplimeError) and error.exit_code == INTERRUPTED:
            error.exit_code = 128 + self._signal

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._signal:
            before = self._before[signal.Signals(number)]
            if callable(before):
                before(number, frame)
            raise KeyboardInterrupt
        self._signal = number

    def stop(self) -> bool:
        """Whether somebody asked to stop."""
        return bool(self._signal)
