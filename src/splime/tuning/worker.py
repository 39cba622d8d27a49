"""A process that takes trials of a search until there are enough, or until nobody waits for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Event, Thread

from splime.errors import SplimeError
from splime.tuning.search import Search
from splime.tuning.trying import attempt


def work(
    search: Search,
    trials: int,
    begun: Iterable[int] = (),
    *,
    device: str = "auto",
    stop: Callable[[], bool],
    told: Callable[[], None] = lambda: None,
) -> None:
    """Go on with the trials that were begun, then take new ones until there are `trials`."""
    study, graph = search.study(), search.graph()
    waiting = list(begun)
    while not stop():
        trial = search.again(study, waiting.pop(0)) if waiting else search.ask(study, trials)
        if trial is None or not attempt(search, study, trial, graph, device=device, stop=stop):
            return
        told()


def main(folder: str, trials: str, device: str, *begun: str) -> None:
    """What `python -m splime.tuning.worker` does; the end of its input asks it to stop."""
    ended = Event()

    def wait() -> None:
        while os.read(0, 1 << 10):  # not through sys.stdin, which would be locked at the end
            pass
        ended.set()

    Thread(target=wait, daemon=True).start()
    try:
        search = Search.open(Path(folder))
        work(search, int(trials), map(int, begun), device=device, stop=ended.is_set)
    except SplimeError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main(*sys.argv[1:])
