"""Workers: processes that train or evaluate one model together, by torch.distributed.

A process that has not joined others is the only worker, and nothing here costs it anything.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

from splime.errors import SplimeError

if TYPE_CHECKING:
    from torch import Tensor

_ENVIRONMENT = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_rank, _size = 0, 1
_store: Any = None
_stderr: TextIO | None = None  # the standard error of a worker that is silenced


class WorkerError(SplimeError):
    """Another worker ended, or cannot be reached."""


def rank() -> int:
    """The number of this worker, from 0; worker 0 writes and prints."""
    return _rank


def size() -> int:
    """How many workers there are."""
    return _size


def share(count: int) -> slice:
    """The range of `count` rows that this worker takes.

    >>> share(10)
    slice(0, 10, None)
    """
    return slice(count * _rank // _size, count * (_rank + 1) // _size)


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
            " command resumes from the last checkpoint, if there is one"
        ) from None


def all_reduce(tensor: Tensor) -> Tensor:
    """Put the sum over all workers in the place of a tensor, which is also returned."""
    if _size > 1:
        from torch import distributed

        with _reached():
            distributed.all_reduce(tensor)
    return tensor


def broadcast(number: int) -> int:
    """The number that worker 0 has. Only numbers are sent: nothing received can run code."""
    if _size == 1:
        return number
    import torch

    return int(all_reduce(torch.tensor(0 if _rank else number)))


def any_rank(*flags: bool) -> list[bool]:
    """Whether a flag is set on any worker, for each of the flags."""
    if _size == 1:
        return [*flags]
    import torch

    return [bool(count) for count in all_reduce(torch.tensor(flags, dtype=torch.int64))]


def wait() -> None:
    """Until all workers are here."""
    any_rank(False)


@contextmanager
def worker_0_first() -> Iterator[None]:
    """A block that worker 0 goes through before the others, who then have what it left."""
    if _rank:
        wait()
    yield
    if not _rank:
        wait()


def silence_other_ranks() -> None:
    """Let only worker 0 print, in a process of the command line."""
    global _stderr
    if launched():
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # which also reports lost workers
    if launched() and os.environ["RANK"] != "0":
        _stderr, quiet = sys.stderr, open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
        sys.stdout = sys.stderr = quiet


def should_report_error() -> bool:
    """Whether this worker reports what went wrong: only the first one that failed does.

    The others only notice that it ended. Before they have joined, all see the same error, and
    worker 0 reports it.
    """
    if _store is None:
        return _stderr is None
    try:
        first: bool = _store.compare_set("failed", "", str(_rank)) == str(_rank).encode()
    except RuntimeError:
        first = False  # worker 0 is gone, and said why if it could
    if first and _stderr is not None:
        sys.stderr = _stderr
    return first
