"""Shows a training to whoever sits in front of the terminal."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from splime.progress import Progress

if TYPE_CHECKING:
    from splime.runs import Epoch


class Watching:
    """Shows the progress of a training; the first Ctrl-C ends it well, a second one at once."""

    def __init__(self, update: Progress, name: str = "training") -> None:
        self._update, self._name, self._stopped = update, name, False
        self._began: float | None = None
        self._first = 0
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
        if self._began is None:
            self._began, self._first = now, done
        speed = (done - self._first) / max(1e-9, now - self._began)
        note = f"loss {loss:.4g}, {speed:,.0f} steps/s{self._valid}"
        self._update(self._name, done, epochs * steps, note)

    def epoch(self, found: Epoch, best: bool) -> None:
        """Remember the last look at valid."""
        if found.valid is not None:
            self._valid = f", valid MRR {found.valid:.3f}{' (best)' if best else ''}"
