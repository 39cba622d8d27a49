"""Where to compute, and how precisely."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from splime.errors import UsageError
from splime.workers import available_memory


def choose_device(name: str = "auto") -> torch.device:
    """The GPU if there is one, else the processor; or the one that is given, if it exists."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda"):
        raise UsageError(f"device is auto, cpu or cuda, not {name!r}")
    if name == "cuda" and not torch.cuda.is_available():
        build = "this PyTorch has no CUDA" if torch.version.cuda is None else "no GPU was found"
        raise UsageError(f"cuda is not available: {build}; leave device out, or use cpu")
    return torch.device(name)


def free_memory(device: torch.device) -> int | None:
    """The bytes that can still be taken on a device; None where that cannot be known."""
    if device.type == "cuda":
        # What PyTorch keeps for later is free to it, though not to others.
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + kept
    return available_memory()


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch in one thread, for small work: on a busy machine threads that wait cost far more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def matrix_precision(precision: str) -> Iterator[None]:
    """Let matrix products use tf32, only inside of the block."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
