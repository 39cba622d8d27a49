"""Many trainings at once: on processes of this machine, or on the machines of a Ray cluster."""

from __future__ import annotations

import platform
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from splime.embedding.device import choose_device
from splime.errors import SplimeError, UsageError, check_name
from splime.training.engines import ENGINES as TRAINERS, Interrupted
from splime.workers import ENGINES, available, need_ray, never, spread

T = TypeVar("T")
R = TypeVar("R")
_SHARED = "on a Ray cluster, all machines must see the folder of the trainings under the same path"


def sort_engines(engine: str | Iterable[str]) -> tuple[str, str | None]:
    """The engine that trains (splime's, if none is named), and the one that spreads trainings.

    >>> sort_engines("pykeen"), sort_engines(["pykeen", "ray"]), sort_engines("ray")
    (('pykeen', None), ('pykeen', 'ray'), ('splime', 'ray'))
    """
    names = [engine] if isinstance(engine, str) else [*engine]
    for name in names:
        check_name("engine", name, [*TRAINERS, *ENGINES])
    spreads = [name for name in names if name in ENGINES]
    trains = [name for name in names if name not in ENGINES]
    for several in (spreads, trains):
        if len(several) > 1:
            raise UsageError(f"choose one engine of {' and '.join(several)}")
    return trains[0] if trains else "splime", spreads[0] if spreads else None


@dataclass(frozen=True)
class Spreading:
    """Where trainings run, how many at once, and what each of them needs."""

    engine: str | None = None
    """processes or ray; None is processes if there are to be several, else this process."""
    processes: int | None = None
    """How many at once; None is one in this process, and as many as there is room for elsewhere."""
    processors: int | None = None
    """Of a Ray cluster, for each training; None is one."""
    gpu: float | None = None
    """The share of a GPU of a Ray cluster; None is a whole one, if `device` is a GPU here."""
    address: str | None = None
    """The Ray cluster to join; None is that of RAY_ADDRESS, or else one of this machine alone."""
    device: str = "auto"

    def __post_init__(self) -> None:
        if self.engine is not None:
            check_name("engine", self.engine, ENGINES)
        for name in ("processes", "processors"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"{name} must be at least 1, not {value}")
        if self.gpu is not None and not 0 <= self.gpu < float("inf"):
            raise UsageError(f"gpu must be 0 or more, not {self.gpu}")
        if self.engine == "ray":
            need_ray()  # without it, it fails now
            return
        for name in ("processors", "gpu", "address"):
            if getattr(self, name) is not None:
                raise UsageError(f"{name} belongs to the engine ray")

    @property
    def one_by_one(self) -> bool:
        """Whether one training follows the other, in this process."""
        return self.engine is None and self.processes in (None, 1)

    def over(
        self,
        function: Callable[[T], R],
        tasks: Iterable[T],
        *,
        stop: Callable[[], bool] = never,
    ) -> Iterator[tuple[int, R]]:
        """What a function gives for each task, with the number of the task, as they end.

        A training whose worker dies is taken up by another one, from its last checkpoint.
        """
        if self.one_by_one:
            yield from ((number, function(task)) for number, task in enumerate(tasks))
            return
        workers, gpu = self.processes, self.gpu
        if self.engine == "ray":
            gpu = float(choose_device(self.device).type == "cuda") if gpu is None else gpu
        elif isinstance(tasks, Sized):
            workers = min(workers or available(), len(tasks))  # fewer, with more cores for each
        results = spread(
            partial(_on_worker, function, sys.argv),
            tasks,
            stop=stop,
            engine=self.engine or "processes",
            workers=workers,
            processors=self.processors or 1,
            gpu=gpu or 0.0,
            address=self.address,
        )
        for number, (result, told) in results:
            for text in told:
                warnings.warn(text, stacklevel=2)
            yield number, result


def _on_worker(function: Callable[[T], R], command: list[str], task: T) -> tuple[R, list[str]]:
    """The result of a task, and what it warned of."""
    sys.argv = command  # a run remembers who made it, which is not Ray
    with warnings.catch_warnings(record=True) as told:
        try:
            return function(task), [str(each.message) for each in told]
        except Interrupted:
            # A worker that was asked to end is one that died, but for its checkpoint.
            raise KeyboardInterrupt from None


def check_seen(path: Path) -> None:
    """An error on a worker that does not see what whoever spreads the trainings has written."""
    if not path.exists():
        raise UsageError(f"{path}: is not there on {platform.node()}; {_SHARED}")


def check_left(there: bool, folder: Path) -> None:
    """An error where a worker has trained, and nothing of it is here."""
    if not there:
        raise SplimeError(
            f"{folder}: a worker has finished this training, and it is not here; {_SHARED}"
        )
