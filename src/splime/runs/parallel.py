"""Many trainings at once: on processes of this machine, or on the machines of a Ray cluster."""

from __future__ import annotations

import platform
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from splime.device import choose_device
from splime.errors import Interrupted, SplimeError, UsageError, check_name
from splime.training.registry import LIBRARIES
from splime.workers import ENGINES, Parallel, available, never, worker_pool

T = TypeVar("T")
R = TypeVar("R")
_SHARED = "on a Ray cluster, all machines must see the folder of the trainings under the same path"


def sort_engines(engine: str | Iterable[str]) -> tuple[str, str | None]:
    """The engine that trains (splime's, if none is named), and the one that runs several at once.

    >>> sort_engines("pykeen"), sort_engines(["pykeen", "ray"]), sort_engines("ray")
    (('pykeen', None), ('pykeen', 'ray'), ('splime', 'ray'))
    """
    names = [engine] if isinstance(engine, str) else [*engine]
    for name in names:
        check_name("engine", name, [*LIBRARIES, *ENGINES])
    pools = [name for name in names if name in ENGINES]
    trainers = [name for name in names if name not in ENGINES]
    for several in (pools, trainers):
        if len(several) > 1:
            raise UsageError(f"choose one engine of {' and '.join(several)}")
    return trainers[0] if trainers else "splime", pools[0] if pools else None


def as_parallel(parallel: Parallel | int | None, device: str) -> Parallel:
    """What to train on: as it is given, or so many processes; by default this process."""
    if not isinstance(parallel, Parallel):
        parallel = Parallel(processes=parallel)
    return replace(parallel, device=device)


def map_trainings(
    function: Callable[[T], R],
    tasks: Iterable[T],
    parallel: Parallel,
    *,
    stop: Callable[[], bool] = never,
) -> Iterator[tuple[int, R]]:
    """Call a function with each task; gives (number of the task, result) as they end.

    A training whose worker dies is taken up by another one, from its last checkpoint.
    """
    if parallel.one_by_one:
        yield from ((number, function(task)) for number, task in enumerate(tasks))
        return
    if parallel.engine == "ray":
        if parallel.gpu is None:
            on_gpu = choose_device(parallel.device).type == "cuda"
            parallel = replace(parallel, gpu=float(on_gpu))
    elif isinstance(tasks, Sized):  # fewer, with more cores for each
        most = min(parallel.processes or available(), len(tasks))
        parallel = replace(parallel, processes=max(1, most))
    with worker_pool(parallel) as pool:
        work = partial(_on_worker, function, sys.argv)
        for number, (result, warned) in pool.map_unordered(work, tasks, stop=stop):
            for text in warned:
                warnings.warn(text, stacklevel=2)
            yield number, result


def _on_worker(function: Callable[[T], R], command: list[str], task: T) -> tuple[R, list[str]]:
    """The result of a task, and what it warned of."""
    sys.argv = command  # a run remembers the command that made it, which is not Ray's
    with warnings.catch_warnings(record=True) as warned:
        try:
            return function(task), [str(warning.message) for warning in warned]
        except Interrupted:
            # A worker that was asked to end is one that died, but for its checkpoint.
            raise KeyboardInterrupt from None


def check_seen(path: Path) -> None:
    """An error on a worker that does not see a file which the others have."""
    if not path.exists():
        raise UsageError(f"{path}: is not there on {platform.node()}; {_SHARED}")


def check_left(there: bool, folder: Path) -> None:
    """An error where a worker has trained, and nothing of it is here."""
    if not there:
        raise SplimeError(
            f"{folder}: a worker has finished this training, and it is not here; {_SHARED}"
        )
