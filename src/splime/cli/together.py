"""Commands that several processes carry out together: `--workers`, or what torchrun started."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from multiprocessing import connection, get_context, parent_process
from multiprocessing.context import SpawnProcess
from threading import Thread
from typing import cast

import typer

from splime import collective
from splime.cli.console import warn
from splime.errors import UsageError
from splime.progress import SIGNALS

# Seconds until workers must have noticed that one of them failed, and then until they must end.
_NOTICE, _END = 15.0, 5.0


def work_together(workers: int | None, device: str) -> None:
    """Meet the other workers; or start them, and end as they do."""
    if collective.launched():
        started = int(os.environ["WORLD_SIZE"])
        if workers not in (None, started):
            raise UsageError(
                f"{started} workers were started, and --workers asks for {workers}; leave it out"
            )
        collective.join(device)
    elif workers is not None and workers != 1:
        if workers < 1:
            raise UsageError(f"workers must be at least 1, not {workers}")
        raise typer.Exit(_launch(workers))


def _launch(workers: int) -> int:
    """Run this command in so many processes; the exit code of the first one that fails, or 0."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    threads = max(1, (os.cpu_count() or 1) // workers)
    shared = {
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(threads)),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        **dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(workers)),
    }
    context, processes = get_context("spawn"), []
    for rank in range(workers):
        own = dict.fromkeys(("RANK", "LOCAL_RANK"), str(rank))
        processes.append(context.Process(target=_work, args=({**shared, **own}, sys.argv)))

    def forward(number: int, _: object) -> None:
        for process in processes:
            if process.is_alive() and process.pid is not None:
                os.kill(process.pid, number)

    before = {each: signal.signal(each, forward) for each in SIGNALS}
    try:
        for process in processes:
            process.start()
        return _wait_for(processes)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _wait_for(processes: Sequence[SpawnProcess]) -> int:
    running = {process.sentinel: process for process in processes}
    while running:
        for sentinel in connection.wait(list(running)):
            process = running.pop(cast(int, sentinel))
            process.join()
            code = process.exitcode or 0
            if code:
                if code < 0:
                    number, name = processes.index(process), signal.Signals(-code).name
                    # Without worker 0 the others do not know which of them should say it.
                    more = "" if number else "; the same command goes on from the last checkpoint"
                    warn(f"worker {number} was ended by {name}{more}")
                _end(running.values())
                return code if code > 0 else 1
    return 0


def _end(processes: Iterable[SpawnProcess]) -> None:
    """Wait for processes that notice that another one failed; those that do not are ended."""
    for process in processes:
        process.join(_NOTICE)
        for end in (process.terminate, process.kill):
            if process.is_alive():
                end()
                process.join(_END)


def _work(environment: Mapping[str, str], arguments: list[str]) -> None:
    """What a process that was started does: this command, as one of the workers."""
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C reaches the process that started this one, which forwards it
    os.environ.update(environment)
    sys.argv = arguments
    Thread(target=_outlive_nobody, daemon=True).start()
    from splime.__main__ import main

    main()


def _outlive_nobody() -> None:
    """End this process when the one that started it is gone."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
