"""Commands that several processes execute together: `--workers`, or what torchrun started."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from functools import partial
from multiprocessing import resource_tracker
from typing import Any

import typer

from splime import collective
from splime.cli.console import say, warn
from splime.errors import Interrupted, UsageError
from splime.progress import SIGNALS
from splime.workers import available, check_workers, follow_parent

# Seconds that workers have to notice that one of them failed, and then to end.
_GRACE = 15.0


def join_workers(workers: int | None, device: str) -> None:
    """Join the other workers; or start them, and end as they do."""
    if collective.launched():
        started = int(os.environ["WORLD_SIZE"])
        if workers not in (None, started):
            raise UsageError(
                f"{started} workers were started, not the {workers} of --workers; leave it out"
            )
        collective.join(device)
    elif workers is not None and workers != 1:
        check_workers(workers)
        raise typer.Exit(_launch(workers))


def _launch(workers: int) -> int:
    """Run this command in so many processes; the exit code of the first one that fails, or 0."""
    from torch.multiprocessing.spawn import ProcessExitedException, start_processes

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(max(1, available() // workers))),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        **dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(workers)),
    }
    received: list[int] = []
    context: Any = None

    def tell() -> None:
        """The first signal asks the workers to end, another one kills them."""
        for process in context.processes if context and received else ():
            if not process.is_alive():
                continue
            if len(received) == 1:
                os.kill(process.pid, received[0])
            else:
                process.kill()

    def forward(number: int, _: object) -> None:
        received.append(number)
        tell()

    before = {number: signal.signal(number, forward) for number in SIGNALS}
    try:
        # The workers inherit this: a signal waits until they can hear it. Python's tracker of
        # resources, which comes with the first one, would let signals through again.
        resource_tracker.ensure_running()
        _mask(block=True)
        context = start_processes(_work, (environment, sys.argv), workers, join=False)
        _mask(block=False)
        tell()  # of what another thread took meanwhile
        while not context.join(grace_period=_GRACE):
            pass
    except ProcessExitedException as failed:
        if len(received) > 1:
            return 128 + received[-1]
        if failed.signal_name is None:
            # Those that stop with a worker that got SIGTERM know only that they were interrupted.
            codes = [process.exitcode for process in context.processes]
            terminated = failed.exit_code == Interrupted.exit_code and 128 + signal.SIGTERM in codes
            return 128 + signal.SIGTERM if terminated else failed.exit_code
        # Without worker 0 the others do not know which of them should say it.
        more = "" if failed.error_index else "; the same command resumes from the last checkpoint"
        warn(f"worker {failed.error_index} was ended by {failed.signal_name}{more}")
        return 1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


def _mask(*, block: bool) -> None:
    """Keep signals waiting, or let them through."""
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_BLOCK if block else signal.SIG_UNBLOCK, SIGNALS)


def _work(rank: int, environment: Mapping[str, str], arguments: list[str]) -> None:
    """Run this command as one of the workers."""
    os.environ.update(environment, RANK=str(rank), LOCAL_RANK=str(rank))
    sys.argv = arguments

    def end(number: int, _: object) -> None:
        """Until the program hears signals itself."""
        if not rank:
            say(SIGNALS[signal.Signals(number)])
        os._exit(128 + number)

    for number in SIGNALS:
        signal.signal(number, end)
    _mask(block=False)
    # Ctrl-C reaches the parent, which forwards it. Torch would interrupt this process once for each
    # thread of its parent.
    follow_parent(partial(time.sleep, _GRACE))
    from splime.__main__ import main

    main()
