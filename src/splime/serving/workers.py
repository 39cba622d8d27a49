"""Several processes that answer at one socket. One that dies is replaced."""

from __future__ import annotations

import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from splime.errors import SplimeError
from splime.progress import SIGNALS
from splime.reading import LOG
from splime.serving.access import Access
from splime.serving.http import configure
from splime.workers import available, begin_worker

if TYPE_CHECKING:
    from splime.runs import Run


_BEGINNING = 600
"""Seconds in which a worker must be ready, where it takes the place of one that still answers."""


def serve_with_workers(
    open_run: Callable[[], Run], access: Access, at: socket.socket, workers: int
) -> None:
    """Answer in so many processes until the first SIGINT or SIGTERM; a second one kills them.

    SIGHUP replaces them one by one, by those that read the facts anew.
    """
    make = partial(_open_worker, open_run, access, access.hosts(at), workers)
    before = {number: signal.getsignal(number) for number in SIGNALS}
    config = configure(make, factory=True, workers=workers, timeout_worker_healthcheck=_BEGINNING)
    supervisor = _Supervisor(config, [at])
    supervisor.run()
    for number, handler in before.items():
        signal.signal(number, handler)
    if not supervisor.received:
        raise SplimeError("a worker could not begin")
    signal.raise_signal(supervisor.received[0])


class _Supervisor(Multiprocess):
    """uvicorn's, which says when a worker died, and can be ended at once."""

    def __init__(self, config: object, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)  # type: ignore[arg-type]
        self.received: list[int] = []
        for number in SIGNALS:
            signal.signal(number, self._end)

    def _end(self, number: int, _: object) -> None:
        self.received.append(number)
        self.should_exit.set()

    def keep_subprocess_alive(self) -> None:
        """Replace those that ended; a busy one is alive, however long it says nothing."""
        for at, process in enumerate(self.processes):
            if process.process.is_alive():
                continue
            if process.exitcode == STARTUP_FAILURE:  # another one would fail, too
                self.should_exit.set()
                return
            LOG.warning(f"worker {process.pid} ended ({process.exitcode}); another one begins")
            process.kill()  # which closes its pipes
            self.processes[at] = Process(self.config, self.sockets)
            self.processes[at].start()

    def join_all(self) -> None:
        """Wait for the answers that are being made."""
        while any(process.process.is_alive() for process in self.processes):
            if len(self.received) > 1:
                for process in self.processes:
                    process.process.kill()
            time.sleep(0.05)


def _open_worker(
    open_run: Callable[[], Run], access: Access, hosts: Sequence[str] | None, workers: int
) -> Starlette:
    """The application of a worker, which a signal ends at once until it is ready."""
    end = signal.getsignal(signal.SIGTERM)
    begin_worker(max(1, available() // workers))
    try:
        # Not before: PyTorch reads how many threads it may have.
        from splime.query import Query
        from splime.serving.api import make_service
        from splime.serving.service import Service

        service = Service(Query(open_run()), access.timeout)
        service.prepare()
    except (SplimeError, OSError) as error:
        LOG.error(f"error: {error}")
        sys.exit(STARTUP_FAILURE)
    signal.signal(signal.SIGTERM, end)
    return make_service(service, hosts, access.token)
