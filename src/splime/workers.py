"""Work on many workers: processes of this machine, or of a Ray cluster, which only this knows."""

from __future__ import annotations

import math
import os
import pickle
import signal
import socket
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, TypeAlias, TypeVar

from splime.errors import SplimeError, UsageError, check_name, not_installed

T = TypeVar("T")
R = TypeVar("R")
_Outcome: TypeAlias = tuple[Exception | None, Any]
"""What a task raised, or gave."""
_ATTEMPTS = 3
_LOCAL = "local"
# How long a worker may take to clean up or to save a checkpoint when it is asked to end, and how
# long nobody asks whether to stop, in seconds.
_GRACE = 30.0
_POLL = 0.2


class _Died(str):
    """How a worker ended before its task did."""

    __slots__ = ()


def available() -> int:
    """How many processors this process may use."""
    with suppress(AttributeError):  # not everywhere
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Spread(Protocol):
    """Does a function of each task; gives (number of the task, result) as they end."""

    def __call__(
        self, function: Callable[[T], R], tasks: Iterable[T], /, stop: Callable[[], bool] = ...
    ) -> Iterator[tuple[int, R]]:
        """Do it; what is not needed any more when this is closed is ended."""


def never() -> bool:
    """Nobody asks to stop: the default."""
    return False


def spread(
    function: Callable[[T], R],
    tasks: Iterable[T],
    *,
    stop: Callable[[], bool] = never,
    **options: Any,
) -> Iterator[tuple[int, R]]:
    """Do a function of each task on many workers; gives (number of the task, result) as they end.

    A task whose worker died is done again, twice at most, and then an error that names the task. An
    error of a task itself ends all. The function, the tasks and the results are sent between
    processes; `str` of a task names it in errors. Of an iterator no more tasks are taken than there
    is room for. Once `stop` says so, workers are asked to end. The options are those of `crew`.
    """
    if tasks:
        with crew(**options) as over:
            yield from over(function, tasks, stop)


@contextmanager
def crew(
    *,
    engine: str = "processes",
    workers: int | None = None,
    address: str | None = None,
    processors: int = 1,
    gpu: float = 0.0,
) -> Iterator[Spread]:
    """Workers that are kept for several calls: what it gives does what `spread` does.

    Args:
        engine: `processes` of this machine, or `ray`.
        workers: how many tasks to do at once; by default as many as there are processors for.
        address: the Ray cluster to join. By default that of RAY_ADDRESS, or else a cluster of this
            machine alone is started, and stopped in the end.
        processors: how many of them a task needs.
        gpu: what share of a GPU a task needs, of those that Ray knows.
    """
    check_name("engine", engine, ENGINES)
    for name, value in (("workers", workers), ("processors", processors)):
        if value is not None and value < 1:
            raise UsageError(f"{name} must be at least 1, not {value}")
    if engine != "ray" and address is not None:
        raise UsageError(f"an address belongs to the engine ray, not to {engine}")
    with ENGINES[engine](workers, address, processors, gpu) as pool:
        yield partial(_spread, pool)


def _spread(
    pool: _Processes | _Ray,
    function: Callable[[T], R],
    tasks: Iterable[T],
    stop: Callable[[], bool] = never,
) -> Iterator[tuple[int, R]]:
    numbered, deaths = enumerate(tasks), Counter[int]()
    again: list[tuple[int, T]] = []
    running: dict[int, T] = {}
    pool.take(function, ahead=isinstance(tasks, Sized))

    def begin() -> None:
        while pool.has_room() and (one := again.pop() if again else next(numbered, None)):
            number, task = one
            running[number] = task
            pool.begin(number, task)

    try:
        begin()
        while running:
            if stop():
                pool.end_well()
                return
            if (ended := pool.next()) is None:
                continue
            number, outcome = ended
            task = running.pop(number)
            if isinstance(outcome, _Died):
                deaths[number] += 1
                if deaths[number] == _ATTEMPTS:
                    raise SplimeError(
                        f"{task}: the worker died {_ATTEMPTS} times ({outcome}); if it ran out of"
                        " memory, take fewer workers"
                    )
                again.append((number, task))
                begin()
                continue
            error, result = outcome
            if error is not None:
                raise error
            begin()  # nobody has to wait until the result is taken
            yield number, result
    finally:
        if running:
            pool.stop()


def _attempt(function: Callable[[Any], Any], task: Any) -> _Outcome:
    """The outcome of a task, which can be sent to another process."""
    try:
        return None, function(task)
    except Exception as error:
        if not isinstance(error, SplimeError):
            error.add_note(f"in a worker:\n{traceback.format_exc()}")
        try:
            return pickle.loads(pickle.dumps(error)), None
        except Exception:  # one that cannot be sent
            return SplimeError(f"{task}: {type(error).__name__}: {error}"), None


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    number: int | None = None
    """The task that it works on."""
    function: bytes = b""
    """What it knows that it has to do."""


class _Processes:
    """Processes of this machine, each with one task at a time."""

    def __init__(self, workers: int) -> None:
        self._most = workers
        self._function = b""
        self._workers: list[_Worker] = []

    def take(self, function: Callable[[Any], Any], *, ahead: bool) -> None:  # noqa: ARG002
        """Do this from now on; tasks begin when there is a worker, never ahead."""
        self._function = pickle.dumps(function)

    def has_room(self) -> bool:
        """Whether another task can begin at once."""
        return sum(worker.number is not None for worker in self._workers) < self._most

    def begin(self, number: int, task: Any) -> None:
        """Begin a task."""
        while True:
            idle = next((each for each in self._workers if each.number is None), None)
            worker = idle or self._start()
            new = self._function if worker.function != self._function else None
            try:
                worker.connection.send((new, task))
            except OSError:  # it died while it had nothing to do
                self._workers.remove(worker)
                _stop([worker])
            else:
                worker.number, worker.function = number, self._function
                return

    def next(self) -> tuple[int, _Outcome | _Died] | None:
        """The outcome of the task that ends next; None if none does for a while."""
        at_work = {each.connection: each for each in self._workers if each.number is not None}
        if not (ended := wait([*at_work], _POLL)):
            return None
        worker = at_work[ended[0]]  # type: ignore[index]
        number, worker.number = worker.number, None
        assert number is not None
        try:
            return number, worker.connection.recv()
        except (EOFError, OSError):
            self._workers.remove(worker)
            worker.process.join()
            return number, _Died(f"exit code {worker.process.exitcode}")

    def stop(self) -> None:
        """End all workers; they have a while to end well."""
        _stop(self._workers)
        self._workers.clear()

    end_well = stop

    def _start(self) -> _Worker:
        # Started anew: CUDA does not survive a fork, and threads, which Arrow has, can hang in one.
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        threads = max(1, available() // self._most)
        process = context.Process(target=_serve, args=(theirs, threads), daemon=True)
        self._workers.append(worker := _Worker(process, ours))
        process.start()
        theirs.close()
        return worker


def _stop(workers: Sequence[_Worker]) -> None:
    started = [each.process for each in workers if each.process.pid is not None]
    for process in started:
        process.terminate()
    # Only now: a worker ends without it too, and the signal would come while Python ends.
    for worker in workers:
        worker.connection.close()
    for process in started:
        process.join(_GRACE)
        process.kill()
        process.join()


def _serve(connection: Connection, threads: int) -> None:
    """What a worker process does: one task after the other, as long as there is somebody to ask."""
    try:
        # Ctrl-C in a terminal is for the process that started this, and ends it. SIGTERM is what
        # Ctrl-C is, so that temporary folders are removed.
        with suppress(AttributeError):  # not everywhere
            os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        threading.Thread(target=_end_with_parent, daemon=True).start()
        os.environ.setdefault("OMP_NUM_THREADS", str(threads))  # before torch and Arrow see it
        while True:
            new, task = connection.recv()
            if new is not None:
                function = pickle.loads(new)
            outcome = _attempt(function, task)
            try:
                connection.send(outcome)
            except (pickle.PicklingError, TypeError, AttributeError) as error:
                connection.send((SplimeError(f"a result cannot be sent: {error}"), None))
    except (KeyboardInterrupt, EOFError, OSError):
        return


def _end_with_parent() -> None:
    """End this process when the one that started it was killed."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE)
    os._exit(1)


@contextmanager
def _in_processes(
    workers: int | None, _address: str | None, processors: int, _gpu: float
) -> Iterator[_Processes]:
    """The processes, which are no more when the block ends."""
    pool = _Processes(workers or max(1, available() // processors))
    try:
        yield pool
    finally:
        pool.stop()


class _Ray:
    """Workers of a Ray cluster."""

    def __init__(self, workers: int | None, room: int, processors: int, gpu: float) -> None:
        import ray

        self._ray, self._workers, self._room = ray, workers, room
        self._running: dict[Any, int] = {}
        # Whoever asked tries again, for all that can happen to a worker.
        needs = {"num_cpus": processors, "num_gpus": gpu, "max_retries": 0}
        self._attempt = ray.remote(**needs)(_attempt)

    def take(self, function: Callable[[Any], Any], *, ahead: bool) -> None:
        """Do this from now on; with tasks that wait ahead of their time, a cluster may grow."""
        self._function = self._ray.put(function)
        self._most = self._workers or (math.inf if ahead else self._room)

    def has_room(self) -> bool:
        """Whether another task can begin at once."""
        return len(self._running) < self._most

    def begin(self, number: int, task: Any) -> None:
        """Begin a task."""
        self._running[self._attempt.remote(self._function, task)] = number

    def next(self) -> tuple[int, _Outcome | _Died] | None:
        """The outcome of the task that ends next; None if none does for a while."""
        try:
            ready, _ = self._ray.wait([*self._running], timeout=_POLL)
        except SystemError as error:  # Ray makes it of what handlers of signals raise
            raise error.__cause__ or error from None
        if not ready:
            return None
        ended = ready[0]
        number = self._running.pop(ended)
        try:
            return number, self._ray.get(ended)
        except self._ray.exceptions.RayTaskError as error:
            # Not of the task, whose errors are outcomes: it or its result could not be sent.
            return number, (SplimeError(f"a task or result cannot be sent: {error.cause}"), None)
        except self._ray.exceptions.RayError as error:
            return number, _Died(str(error).partition("\n")[0])

    def end_well(self) -> None:
        """Ask what is still going on to end, as Ctrl-C does, and wait a while."""
        for task in self._running:
            self._ray.cancel(task)
        every = [*self._running]
        ended, _ = self._ray.wait(every, num_returns=len(every), timeout=_GRACE)
        for task in ended:
            del self._running[task]  # Ray crashes where such a task is cancelled again

    def stop(self) -> None:
        """End what is still going on."""
        for task in self._running:
            self._ray.cancel(task, force=True)
        self._running.clear()


@contextmanager
def _in_ray(
    workers: int | None, address: str | None, processors: int, gpu: float
) -> Iterator[_Ray]:
    """The workers of a cluster: the one that this process has joined already, or another."""
    ray = need_ray()
    begun = not ray.is_initialized()
    address = address or os.environ.get("RAY_ADDRESS") or _LOCAL
    own: dict[str, Any] = {}
    if address == _LOCAL:
        own = {
            "num_cpus": processors * (workers or max(1, available() // processors)),
            "include_dashboard": False,
        }
    with ExitStack() as stack:
        if begun:
            from ray._private import ray_constants, worker

            # Ray has no options for these: nothing may listen where other machines can reach it,
            # and what it says about dead workers does not belong among results.
            reach = ray_constants.ENABLE_RAY_CLUSTER and address != _LOCAL
            stack.enter_context(_instead(worker, "print_to_stdstream", lambda *_, **__: None))
            with _instead(ray_constants, "ENABLE_RAY_CLUSTER", reach), _handlers_kept():
                try:
                    _check_address(address)
                    ray.init(address, log_to_driver=False, logging_level="error", **own)
                except Exception as error:  # Ray has many kinds of them
                    text = str(error).partition("\n")[0]
                    token = (
                        ""
                        if address == _LOCAL
                        else "; are address and token (RAY_AUTH_MODE) right?"
                    )
                    raise SplimeError(
                        f"the Ray cluster {address} cannot be reached: {text}{token}"
                    ) from None
            stack.callback(ray.shutdown)
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        rooms = (
            int(min(node.get("CPU", 0) / processors, node.get("GPU", 0) / gpu if gpu else math.inf))
            for node in nodes
        )
        if not (room := sum(rooms)):
            raise UsageError(
                f"no node of the Ray cluster has {processors} processors"
                + (f" and {gpu:g} of a GPU" if gpu else "")
            )
        pool = _Ray(workers, room, processors, gpu)
        stack.callback(pool.stop)
        yield pool


def _check_address(address: str) -> None:
    """An error if nothing listens there, which Ray would wait for some minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def need_ray() -> Any:
    """Ray; an error that says how to install it, where it is not there."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise not_installed("the engine ray", error) from None
    return ray


@contextmanager
def _instead(module: Any, name: str, value: Any) -> Iterator[None]:
    """Let a name of a module stand for something else, for a while."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Keep what this process does with signals, which Ray would change."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


ENGINES: Mapping[str, Callable[..., AbstractContextManager[_Processes | _Ray]]] = {
    "processes": _in_processes,
    "ray": _in_ray,
}
"""What spreads work over many workers."""
