"""Tasks on many workers: processes of this machine, or of a Ray cluster."""

from __future__ import annotations

import ctypes
import math
import os
import pickle
import signal
import socket
import sys
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from multiprocessing import parent_process
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from splime.errors import SplimeError, UsageError, check_fields, check_name, not_installed

T = TypeVar("T")
R = TypeVar("R")
_Outcome: TypeAlias = tuple[Exception | None, Any]
"""The error that a task raised, or its result."""
ENGINES = ("processes", "ray")
"""The kinds of worker pools."""
_ATTEMPTS = 3
_LOCAL = "local"
# Seconds that a worker has to clean up or to save a checkpoint before it is killed, and seconds
# between two looks at whether to stop.
_GRACE = 30.0
_POLL = 0.2
_PARENT_DEATH_SIGNAL = 1
"""The option of prctl: what a process gets when the one that started it ends."""


def available() -> int:
    """How many processors this process may use."""
    with suppress(AttributeError):  # not everywhere
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory() -> int | None:
    """The bytes that processes of this machine can still take; None where that is not known."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    kilobytes = {name: text for name, _, text in (line.partition(":") for line in lines)}
    available = kilobytes.get("MemAvailable", "").split()
    return 1024 * int(available[0]) if available else None


def check_workers(count: int, name: str = "workers") -> None:
    """An error unless this machine can have so many processes; more would only exhaust it."""
    most = max(64, 4 * available())
    if not 1 <= count <= most:
        bound = "at least 1" if count < 1 else f"at most {most} on this machine"
        raise UsageError(f"{name} must be {bound}, not {count:,}")


def _about(text: str, metavar: str | None = None) -> Any:
    """A field that is an option of commands, with its help."""
    return field(default=None, metadata={"help": text, "metavar": metavar})


@dataclass(frozen=True)
class Parallel:
    """What to run several tasks at once on, how many, and what each needs.

    >>> Parallel(processes=4).one_by_one
    False
    """

    engine: str | None = None
    """processes or ray; None is processes if there are to be several, else this process."""
    processes: int | None = _about(
        "how many at once; on this machine they share the cores. Default: 1 (tune: 2), or with"
        " --engine processes or ray as many as there is room for"
    )
    processors: int | None = _about("with --engine ray: how many processors each needs. Default: 1")
    gpu: float | None = _about(
        "with --engine ray: how much of a GPU each needs, such as 0.25, if four fit on one."
        " Default: 1 if this machine computes on a GPU, else 0"
    )
    address: str | None = _about(
        "with --engine ray: the cluster to join. Default: RAY_ADDRESS, or else a cluster of this"
        " machine alone is started",
        "HOST:PORT",
    )
    device: str = "auto"
    """Where each computes: auto, cpu or cuda. Functions that have a device put theirs here."""

    def __post_init__(self) -> None:
        check_fields(self)
        ray = self.engine == "ray"
        if self.engine is not None:
            check_name("engine", self.engine, ENGINES)
        if self.processes is not None and not (ray and _cluster(self.address) != _LOCAL):
            check_workers(self.processes, "processes")
        for name in ("processes", "processors"):
            if (count := getattr(self, name)) is not None and count < 1:
                raise UsageError(f"{name} must be at least 1, not {count}")
        if self.gpu is not None and not 0 <= self.gpu < math.inf:
            raise UsageError(f"gpu must be 0 or more, not {self.gpu}")
        for name in ("processors", "gpu", "address"):
            if not ray and getattr(self, name) is not None:
                raise UsageError(f"{name} belongs to the engine ray")
        if ray:
            need_ray(self.address)  # without it, it fails now

    @property
    def one_by_one(self) -> bool:
        """Whether one task follows the other, in this process."""
        return self.engine is None and self.processes in (None, 1)


def never() -> bool:
    """Never stop: the default."""
    return False


@contextmanager
def worker_pool(parallel: Parallel) -> Iterator[WorkerPool]:
    """Workers for several calls of `map_unordered`; they end with the block.

    By default as many as there are processors for. Without an address of a Ray cluster that of
    RAY_ADDRESS is joined, or else one of this machine alone is started, and stopped in the end.
    """
    with ExitStack() as stack:
        ray = parallel.engine == "ray"
        pool = _ray_pool(parallel, stack) if ray else _Processes(parallel.processes or available())
        stack.callback(pool.stop)
        yield pool


class WorkerPool(ABC):
    """Workers that do tasks; what differs between engines is abstract."""

    most: float
    """How many tasks may be submitted at once."""
    most_ahead: float
    """The same where all tasks are known, and some may wait for a worker."""

    def map_unordered(
        self, function: Callable[[T], R], tasks: Iterable[T], *, stop: Callable[[], bool] = never
    ) -> Iterator[tuple[int, R]]:
        """Call a function with each task; gives (number of the task, result) as they end.

        A task whose worker died is done again, twice at most, and then it is an error that names
        the task. An error of a task itself ends all. Function, tasks and results are sent between
        processes; `str` of a task names it in errors. An iterator is advanced only when a task can
        begin. Once `stop` is true, or when the generator is closed, workers are asked to end.
        """
        prepared = self.prepare(function)
        most = self.most_ahead if isinstance(tasks, Sized) else self.most
        numbered, deaths = enumerate(tasks), Counter[int]()
        again: list[tuple[int, T]] = []
        running: dict[Future[_Outcome], tuple[int, T]] = {}

        def begin() -> None:
            while len(running) < most:
                if (waiting := again.pop() if again else next(numbered, None)) is None:
                    return
                running[self.submit(prepared, waiting[1])] = waiting

        try:
            begin()
            while running:
                if stop():
                    self.stop_gracefully()
                    return
                ended = next(iter(wait(running, _POLL, FIRST_COMPLETED).done), None)
                if ended is None:
                    continue
                number, task = running.pop(ended)
                if (death := self.death(ended)) is not None:
                    deaths[number] += 1
                    if deaths[number] == _ATTEMPTS:
                        raise SplimeError(
                            f"{task}: the worker died {_ATTEMPTS} times ({death}); if it ran out"
                            " of memory, take fewer workers"
                        )
                    again.append((number, task))
                    begin()
                    continue
                if unsent := ended.exception():
                    raise SplimeError(f"{task}: it or its result cannot be sent: {unsent}")
                error, result = ended.result()
                if error is not None:
                    raise error
                begin()  # before the result is used
                yield number, result
        finally:
            if running:
                self.stop()

    @abstractmethod
    def prepare(self, function: Callable[[Any], Any]) -> Any:
        """The function, in the form that `submit` takes."""

    @abstractmethod
    def submit(self, function: Any, task: Any) -> Future[_Outcome]:
        """Begin a task."""

    @abstractmethod
    def death(self, ended: Future[_Outcome]) -> str | None:
        """How the worker of a task died; None if it did not."""

    @abstractmethod
    def stop(self) -> None:
        """End all workers."""

    def stop_gracefully(self) -> None:
        """Ask all workers to end, as Ctrl-C does, and end those that take too long."""
        self.stop()


def _attempt(function: Callable[[Any], Any], task: Any) -> _Outcome:
    """The outcome of a task; its error is one that can be sent to another process."""
    try:
        return None, function(task)
    except Exception as error:
        if not isinstance(error, SplimeError):
            error.add_note(f"in a worker:\n{traceback.format_exc()}")
        try:
            return pickle.loads(pickle.dumps(error)), None
        except Exception:  # one that cannot be sent
            return SplimeError(f"{task}: {type(error).__name__}: {error}"), None


# Processes of this machine


class _Spawn(SpawnContext):
    """Spawns processes, since CUDA and the threads of Arrow do not survive a fork."""

    process: SpawnProcess | None = None
    """The last one: executors neither report how it ended, nor end it."""

    def Process(self, *args: Any, **options: Any) -> SpawnProcess:  # type: ignore[override] # noqa: N802
        """Make a process."""
        self.process = SpawnProcess(*args, **options)
        return self.process


class _Worker:
    """A process with a separate executor: in a shared one, a death ends the tasks of all."""

    def __init__(self, threads: int) -> None:
        self.context = _Spawn()
        self.executor = ProcessPoolExecutor(1, self.context, begin_worker, (threads,))
        self.future: Future[_Outcome] | None = None

    def is_busy(self) -> bool:
        return self.future is not None and not self.future.done()


class _Processes(WorkerPool):
    """Processes of this machine, each with one task at a time."""

    def __init__(self, workers: int) -> None:
        self.most = self.most_ahead = workers
        self._threads = max(1, available() // workers)
        self._workers: list[_Worker] = []
        self._running: dict[Future[_Outcome], _Worker] = {}

    def prepare(self, function: Callable[[Any], Any]) -> bytes:
        """Pickled once; a worker unpickles it once."""
        return pickle.dumps(function)

    def submit(self, function: bytes, task: Any) -> Future[_Outcome]:
        """Begin a task on a worker that has none."""
        while True:
            worker = next((idle for idle in self._workers if not idle.is_busy()), None)
            if worker is None:
                worker = _Worker(self._threads)
                self._workers.append(worker)
            try:
                worker.future = worker.executor.submit(_call, function, task)
            except BrokenProcessPool:  # it died
                self._workers.remove(worker)
            else:
                self._running[worker.future] = worker
                return worker.future

    def death(self, ended: Future[_Outcome]) -> str | None:
        """A worker that is asked to end by SIGTERM counts as dead, but for what it saved."""
        process, error = self._running.pop(ended).context.process, ended.exception()
        if isinstance(error, KeyboardInterrupt):
            return "terminated"
        if not isinstance(error, BrokenProcessPool):
            return None
        assert process is not None
        process.join(1.0)
        return f"exit code {process.exitcode}"

    def stop(self) -> None:
        """Ask them to end, and kill those that take too long; all at once if interrupted again."""
        stopped, self._workers = self._workers, []
        self._running.clear()
        processes = [process for worker in stopped if (process := worker.context.process)]
        until = time.monotonic() + _GRACE
        try:
            for worker in stopped:
                if worker.is_busy() and worker.context.process:
                    worker.context.process.terminate()
                worker.executor.shutdown(wait=False)
            for process in processes:
                process.join(max(0.0, until - time.monotonic()))
        finally:
            for process in processes:
                process.kill()
            for worker in stopped:
                worker.executor.shutdown()


_at_work = threading.Lock()
"""Held while this process, a worker, does a task."""


def begin_worker(threads: int) -> None:
    """Set up a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # SIGTERM is what Ctrl-C is, so that temporary folders are removed.
    signal.signal(signal.SIGTERM, _interrupt_task)
    follow_parent(partial(_at_work.acquire, timeout=_GRACE))
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))  # before torch and Arrow see it


def follow_parent(grace: Callable[[], object]) -> None:
    """End this process when the one that started it ends, even if that was killed.

    It gets SIGTERM, and `grace` returns when it has had its time. Ctrl-C in a terminal is for the
    parent alone.
    """
    with suppress(AttributeError):  # not everywhere
        os.setsid()
    if sys.platform == "linux":  # a stopped process goes on, so that it can end
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGCONT)
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        grace()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _interrupt_task(number: int, _: object) -> None:
    if _at_work.locked():
        raise KeyboardInterrupt
    os._exit(128 + number)


@lru_cache(maxsize=1)
def _unpickled(function: bytes) -> Callable[[Any], Any]:
    unpickled: Callable[[Any], Any] = pickle.loads(function)
    return unpickled


def _call(function: bytes, task: Any) -> _Outcome:
    """Do a task in a worker process."""
    with _at_work:
        return _attempt(_unpickled(function), task)


# Ray


class _Ray(WorkerPool):
    """Workers of a Ray cluster."""

    def __init__(self, workers: int | None, room: int, processors: int, gpu: float) -> None:
        import ray

        self._ray = ray
        # With tasks that wait ahead of their time, a cluster may grow.
        self.most, self.most_ahead = workers or room, workers or math.inf
        self._running: dict[Future[_Outcome], Any] = {}
        # `map_unordered` tries again, for all that can happen to a worker.
        needs = {"num_cpus": processors, "num_gpus": gpu, "max_retries": 0}
        self._attempt = ray.remote(**needs)(_attempt)

    def prepare(self, function: Callable[[Any], Any]) -> Any:
        """In Ray's store of objects."""
        return self._ray.put(function)

    def submit(self, function: Any, task: Any) -> Future[_Outcome]:
        """Begin a task."""
        reference = self._attempt.remote(function, task)
        future: Future[_Outcome] = reference.future()
        self._running[future] = reference
        future.add_done_callback(lambda ended: self._running.pop(ended, None))
        return future

    def death(self, ended: Future[_Outcome]) -> str | None:
        """Errors of tasks are outcomes; a RayTaskError is about what cannot be sent."""
        errors, error = self._ray.exceptions, ended.exception()
        if isinstance(error, errors.RayError) and not isinstance(error, errors.RayTaskError):
            return str(error).partition("\n")[0]
        return None

    def stop(self) -> None:
        """Cancel tasks by force."""
        for future, reference in [*self._running.items()]:
            if not future.done():  # Ray crashes where an ended task is cancelled again
                self._ray.cancel(reference, force=True)
        self._running.clear()

    def stop_gracefully(self) -> None:
        """Cancel tasks, which is a KeyboardInterrupt for them; then by force."""
        running = {**self._running}
        try:
            for reference in running.values():
                self._ray.cancel(reference)
            wait(running, _GRACE)
        finally:
            self.stop()


def _ray_pool(parallel: Parallel, stack: ExitStack) -> WorkerPool:
    """The workers of a cluster: the one that this process has joined already, or another."""
    ray, address = need_ray(parallel.address), _cluster(parallel.address)
    processors, gpu = parallel.processors or 1, parallel.gpu or 0.0
    if not ray.is_initialized():
        size: dict[str, Any] = {}
        if address == _LOCAL:
            count = parallel.processes or max(1, available() // processors)
            size = {"num_cpus": processors * count, "include_dashboard": False}
        _join_ray(ray, address, size)
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
    return _Ray(parallel.processes, room, processors, gpu)


def _join_ray(ray: Any, address: str, size: Mapping[str, Any]) -> None:
    """Start or join a cluster; what this process does with signals stays as it is."""
    main = threading.current_thread() is threading.main_thread()
    signals = (signal.SIGINT, signal.SIGTERM) if main else ()
    handlers = {number: signal.getsignal(number) for number in signals}
    try:
        host, _, port = address.rpartition(":")
        if host and port.isdecimal() and "/" not in host:
            # If nothing listens there, Ray would wait for some minutes.
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        ray.init(address, log_to_driver=False, logging_level="error", **size)
    except Exception as error:  # Ray has many kinds of them
        text = str(error).partition("\n")[0]
        token = "" if address == _LOCAL else "; are address and token (RAY_AUTH_MODE) right?"
        raise SplimeError(f"the Ray cluster {address} cannot be reached: {text}{token}") from None
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _cluster(address: str | None) -> str:
    return address or os.environ.get("RAY_ADDRESS") or _LOCAL


def need_ray(address: str | None = None) -> Any:
    """Ray; an error that says how to install it, where it is not there."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if _cluster(address) == _LOCAL and "ray" not in sys.modules:
        # Read when Ray is imported: a cluster of this machine alone listens on 127.0.0.1 only.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
    except ImportError as error:
        raise not_installed("the engine ray", error) from None
    return ray
