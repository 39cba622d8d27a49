"""Progress: bars in a terminal or a notebook, a line now and then in log files."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

from splime.errors import Interrupted, visible

SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
"""Signals that ask the program to end."""

EVERY = 30.0
"""Seconds between two lines in log files; shorter work has none."""

LONG = 30.0
"""Seconds from which on work is announced."""

MEASURED, FIRST = 3.0, 30.0
"""Seconds of steps that an announcement rests on. The first step also prepares, such as compiling
for some ten seconds, and counts only if it is a longer one."""

REDRAW = 0.2
"""Seconds between two drawings of a bar in a notebook."""


class Progress(Protocol):
    """A callback for progress."""

    def __call__(self, what: str, done: int, total: int | None = None, note: str = "") -> None:
        """Take the name of the work, how much of it is done, and how much there is, if known."""


def silent(what: str, done: int, total: int | None = None, note: str = "") -> None:
    """Show nothing: the default."""


@contextmanager
def progress_bar(*, bytes: bool = False, shorter: str = "") -> Iterator[Progress]:
    """A bar for each thing that is worked on; lines where there is no terminal and no notebook.

    Functions take it as `progress`. What will take more than half a minute is announced once its
    first steps are measured; `shorter` says what would take less.

    >>> with progress_bar() as progress:
    ...     progress("counting", 10, 10)
    """
    # IPython in a terminal has no kernel.
    ipython = sys.modules.get("IPython")
    notebook = ipython is not None and hasattr(ipython.get_ipython(), "kernel")
    if not sys.stderr.isatty() and not notebook:
        lines = _Lines(bytes)
        yield _Announcing(lines, _write, shorter)
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
        disable=notebook,
    ) as bars:
        tasks: dict[str, rich.TaskID] = {}
        cell = _Cell(bars) if notebook else None

        def update(what: str, done: int, total: int | None = None, note: str = "") -> None:
            note = visible(note)
            if what not in tasks:
                tasks[what] = bars.add_task(visible(what), total=total, note=note)
            bars.update(tasks[what], completed=done, total=total, note=note)
            if cell and time.monotonic() - cell.drawn >= REDRAW:
                cell.draw()

        def say(text: str) -> None:
            bars.console.print(visible(text), markup=False, highlight=False)

        # In a notebook the bar below the cell says how long it takes.
        yield update if notebook else _Announcing(update, say, shorter)
        if cell and tasks:
            cell.draw()


class _Announcing:
    """Says before long work how long it will take, and passes its progress on."""

    def __init__(self, progress: Progress, say: Callable[[str], None], shorter: str) -> None:
        self._progress, self._say = progress, say
        self._shorter = f"; shorter: {shorter}" if shorter else ""
        self._began: dict[str, tuple[float, int]] = {}
        self._prepared: set[str] = set()
        self._announced: set[str] = set()

    def __call__(self, what: str, done: int, total: int | None = None, note: str = "") -> None:
        """Take what is done."""
        if total is not None and what not in self._announced:
            self._measure(what, done, total)
        self._progress(what, done, total, note)

    def _measure(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        began, first = self._began.setdefault(what, (now, done))
        if done <= first:
            return
        taken = now - began
        if taken >= (MEASURED if what in self._prepared else FIRST):
            left = taken * (total - done) / (done - first)
            if taken + left > LONG:
                self._announced.add(what)
                self._say(f"{what}: about {duration(taken + left)} in all{self._shorter}")
        elif what not in self._prepared:
            self._prepared.add(what)
            self._began[what] = now, done


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(40), duration(400), duration(40_000)
    ('40 s', '7 min', '11 h')
    """
    if seconds < 100:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 6000 else f"{seconds / 3600:,.0f} h"


class _Cell:
    """Bars below the cell of a notebook, where those that rich draws itself need ipywidgets."""

    def __init__(self, bars: Any) -> None:
        self._bars, self._output = bars, None
        self.drawn = -REDRAW

    def draw(self) -> None:
        """Draw them, in the place of what was drawn before."""
        from IPython.display import display

        table = self._bars.make_tasks_table(self._bars.tasks)._repr_mimebundle_([], [])
        if self._output is None:
            self._output = display(table, raw=True, display_id=True)
        else:
            self._output.update(table, raw=True)
        self.drawn = time.monotonic()


class _Lines:
    """A line now and then, and one for the end of work that had a line before."""

    def __init__(self, bytes: bool) -> None:
        from rich.filesize import decimal

        self._amount: Callable[[int], str] = decimal if bytes else "{:,}".format
        self._last = time.monotonic()
        self._started: set[str] = set()
        self._pending: dict[str, str] = {}

    def __call__(self, what: str, done: int, total: int | None = None, note: str = "") -> None:
        """Print a line if it is time."""
        amount = " of ".join(self._amount(one) for one in (done, total) if one is not None)
        self._pending[what] = f"{what}: {amount}{', ' * bool(note)}{note}"
        late = done and time.monotonic() - self._last >= EVERY
        if late or (what in self._started and done == total):
            self._print(what)

    def end(self) -> None:
        """Print how far it came."""
        for what in [*self._pending]:
            if what in self._started:
                self._print(what)

    def _print(self, what: str) -> None:
        _write(self._pending.pop(what))
        self._last = time.monotonic()
        self._started.add(what)


def _write(line: str) -> None:
    sys.stderr.write(f"{visible(line)}\n")
    sys.stderr.flush()


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner for work of unknown length; lines where there is no terminal."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.text import Text

        with Console(stderr=True).status(Text(visible(what))):  # a name with brackets is no markup
            yield
        return
    done, start = threading.Event(), time.monotonic()

    def report() -> None:
        while not done.wait(EVERY):
            _write(f"{what} {time.monotonic() - start:,.0f} s")

    threading.Thread(target=report, daemon=True).start()
    try:
        yield
    finally:
        done.set()


class Showing:
    """Shows the progress of a training."""

    def __init__(self, progress: Progress, name: str = "training") -> None:
        self._progress, self._name = progress, name
        self._start: tuple[float, int] | None = None  # when, and at which step
        self._valid = ""
        self.most: int | None = None
        """How many steps there are, where that is not all of each epoch."""

    def step(self, epoch: int, epochs: int, step: int, steps: int, loss: float) -> None:
        """Move the bar."""
        done, now = epoch * steps + step, time.monotonic()
        self._start = self._start or (now, done)
        speed = (done - self._start[1]) / max(1e-9, now - self._start[0])
        note = f"loss {loss:.4g}, {speed:,.{1 if speed < 10 else 0}f} steps/s{self._valid}"
        self._progress(self._name, done, self.most or epochs * steps, note)

    def validating(self, what: str, done: int, total: int | None = None, note: str = "") -> None:
        """Show a validation, beside the steps."""
        self._progress(self._name.replace("training", "validating"), done, total, note)

    def epoch(self, epoch: Any, best: bool) -> None:
        """Remember the last validation: `epoch.valid` is its MRR, or None."""
        if epoch.valid is not None:
            self._valid = f", valid MRR {epoch.valid:.3f}{' (best)' if best else ''}"

    def stop(self) -> bool:
        """Never stops."""
        return False


class Watching(Showing):
    """Shows the progress of a training; the first Ctrl-C or SIGTERM saves it, a second ends it.

    Containers, Slurm and systemd send SIGTERM, and some seconds later kill.
    """

    _signal = 0  # the number of the one that was received

    def __enter__(self) -> Watching:
        self._before = {number: signal.signal(number, self._interrupt) for number in SIGNALS}
        return self

    def __exit__(self, _: object, error: object, __: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._signal and isinstance(error, Interrupted):
            error.exit_code = 128 + self._signal

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._signal:
            before = self._before[signal.Signals(number)]
            if callable(before):
                before(number, frame)
            raise KeyboardInterrupt
        self._signal = number

    def stop(self) -> bool:
        """Whether a signal asked to stop."""
        return bool(self._signal)
