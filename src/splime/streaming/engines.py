"""Engines: each maps a function over parts of a source, with the results in the same order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from splime.errors import SplimeError, UsageError

Engine: TypeAlias = Callable[..., Iterator[Any]]
"""Called like `map`; function, arguments and results may have to go to another process."""


def in_one_process(function: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
    """One part after the other."""
    return map(function, *arguments)


def in_processes(workers: int) -> Engine:
    """Several parts at a time, each in a process of this machine."""
    if workers < 1:
        raise UsageError(f"there must be at least 1 process, not {workers}")

    def engine(function: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import get_context

        # Started anew: a fork of a process with threads, which Arrow has, can hang.
        pool = ProcessPoolExecutor(workers, get_context("spawn"))
        try:
            yield from pool.map(function, *arguments)
        except BrokenProcessPool:
            raise SplimeError(
                "a worker process ended before its work was done; if it ran out of memory, take"
                " fewer processes or smaller batches"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)

    return engine
