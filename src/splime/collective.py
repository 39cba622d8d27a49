"""Workers: processes that train or evaluate one model together, by torch.distributed.

A process that has not joined others is the only worker, and nothing here costs it anything.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from splime.errors import SplimeError, UsageError

if TYPE_CHECKING:
    from torch import Tensor

_ENVIRONMENT = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_rank, _size = 0, 1
_store: Any = None
_heard: TextIO | None = None  # standard error, of a worker that is quiet


class WorkerError(SplimeError):
    """Another worker ended, or cannot be reached."""


@dataclass(frozen=True)
class Rows:
    """The rows of a table that this worker holds, where others hold the rest.

    >>> Rows(4, 7, 11).most
    11
    """

    start: int
    stop: int
    total: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def most(self) -> int:
        """How many rows the worker with the most holds: what all must decide alike goes by it."""
        return -(-self.total // _size)

    def own(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Which of some ids are here, as positions among them, and their rows here."""
        at = ((ids >= self.start) & (ids < self.stop)).nonzero().squeeze(-1)
        return at, ids[at] - self.start


def rank() -> int:
    """The number of this worker, from 0; worker 0 writes and prints."""
    return _rank


def size() -> int:
    """How many workers there are."""
    return _size


def share(count: int) -> slice:
    """Which of some rows are this worker's.

    >>> share(10)
    slice(0, 10, None)
    """
    return slice(count * _rank // _size, count * (_rank + 1) // _size)


def rows(total: int) -> Rows:
    """The rows of a table that this worker holds."""
    if total < _size:
        raise UsageError(
            f"{total:,} entities cannot be divided over {_size:,} workers: take at most {total:,}"
            " workers (--workers)"
        )
    own = share(total)
    return Rows(own.start, own.stop, total)


def launched() -> bool:
    """Whether torchrun, or `--workers`, started this process as one of several."""
    return all(name in os.environ for name in _ENVIRONMENT) and os.environ["WORLD_SIZE"] != "1"


def join(device: str = "auto") -> None:
    """Meet the other workers, if this process was started as one of several.

    On GPUs each takes one; where there are fewer of them than workers, several share one, and talk
    to each other through the processor (gloo).
    """
    global _rank, _size, _store
    if not launched() or _size > 1:
        return
    import torch
    from torch import distributed
    from torch.distributed.rendezvous import rendezvous

    backend = "gloo"
    if device != "cpu" and torch.cuda.is_available():
        here, cards = int(os.environ.get("LOCAL_RANK", 0)), torch.cuda.device_count()
        torch.cuda.set_device(here % cards)
        if int(os.environ.get("LOCAL_WORLD_SIZE", os.environ["WORLD_SIZE"])) <= cards:
            backend = "cpu:gloo,cuda:nccl"
    with _reached():
        _store, number, count = next(rendezvous("env://"))
        distributed.init_process_group(backend, store=_store, rank=number, world_size=count)
    _rank, _size = number, count


def leave() -> None:
    """Part from the other workers, when all is done."""
    global _rank, _size, _store
    if _size > 1:
        from torch import distributed

        with suppress(WorkerError):
            wait()
        distributed.destroy_process_group()
        _rank, _size, _store = 0, 1, None


@contextmanager
def _reached() -> Iterator[None]:
    """What fails between workers is an error of ours."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise WorkerError(
            f"another worker ended, or cannot be reached, so this one stops ({why:.200}); the same"
            " command goes on from the last checkpoint, if there is one"
        ) from None


def add_up(tensor: Tensor) -> Tensor:
    """Put the sum over all workers in the place of a tensor, which is also returned."""
    if _size > 1:
        from torch import distributed

        with _reached():
            distributed.all_reduce(tensor)
    return tensor


def gathered(tensor: Tensor) -> list[Tensor]:
    """The tensors of all workers, which have the same shape."""
    if _size == 1:
        return [tensor]
    import torch
    from torch import distributed

    every = [torch.empty_like(tensor) for _ in range(_size)]
    with _reached():
        distributed.all_gather(every, tensor.contiguous())
    return every


def told(number: int) -> int:
    """The number that worker 0 has. Numbers alone are told: nothing here can run code."""
    if _size == 1:
        return number
    import torch

    return int(add_up(torch.tensor(0 if _rank else number)))


def any_of(*flags: bool) -> list[bool]:
    """Whether some worker says yes, for each of some questions."""
    if _size == 1:
        return [*flags]
    import torch

    return [bool(each) for each in add_up(torch.tensor(flags, dtype=torch.int64))]


def wait() -> None:
    """Until all workers are here."""
    any_of(False)


@contextmanager
def worker_0_first() -> Iterator[None]:
    """A block that worker 0 goes through before the others, who then have what it left."""
    if _rank:
        wait()
    yield
    if not _rank:
        wait()


def hush() -> None:
    """Let worker 0 alone print, in a process that is a program of ours."""
    global _heard
    if launched():
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # which also tells of lost workers
    if launched() and os.environ["RANK"] != "0":
        _heard, quiet = sys.stderr, open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
        sys.stdout = sys.stderr = quiet


def tells() -> bool:
    """Whether this worker is the one that says what went wrong: the first that failed.

    What the others see is that it ended. Before they have met, they all see the same, and worker 0
    says it.
    """
    if _store is None:
        return _heard is None
    try:
        first: bool = _store.compare_set("failed", "", str(_rank)) == str(_rank).encode()
    except RuntimeError:
        first = False  # worker 0 is gone, and said why if it could
    if first and _heard is not None:
        sys.stderr = _heard
    return first
