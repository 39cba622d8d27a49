"""How many rows of scores fit into the memory that a person allows."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch

from splime.errors import UsageError, enough_memory

_DEFAULT = {"cpu": 512 << 20, "cuda": 4 << 30}
# Larger blocks are given back to the system and faulted in again by the C library each time, and
# fall out of the cache between scoring and counting; but for each a model reads all its entities.
_CPU_BLOCK, _CPU_ROWS = 16 << 20, 128


class Room:
    """The rows of scores that fit into `memory` bytes, for queries and for their parts.

    A query has a row of scores over `candidates`, and while it is ranked a copy of it and two
    masks. Where it may have parts, a part has a row over `columns`, and two copies over
    `candidates` while it is added.
    """

    def __init__(
        self,
        memory: int | None,
        device: torch.device,
        itemsize: int,
        candidates: int,
        columns: int | None = None,
    ) -> None:
        given = _DEFAULT.get(device.type, 512 << 20) if memory is None else memory
        if isinstance(given, bool) or not isinstance(given, int) or given < 1:
            raise UsageError(f"memory is a number of bytes, such as {512 << 20}, not {memory!r}")
        query = candidates * (2 * itemsize + 2)
        part = 0 if columns is None else (columns + 2 * candidates) * itemsize
        if given < query + part:
            raise UsageError(
                f"{given:,} bytes of memory are too few for one query over {candidates:,}"
                f" candidates; it needs at least {query + part:,}"
            )
        # Half for the queries, but a part must fit beside them.
        whole = given if columns is None else min(given // 2, given - part)
        self.queries = max(1, whole // query)
        self.parts = (given - self.queries * query) // part if part else 0
        if device.type == "cpu":
            most = max(_CPU_ROWS, _CPU_BLOCK // (max(candidates, columns or 0) * itemsize))
            self.queries, self.parts = min(self.queries, most), min(self.parts, most)


def memory_errors() -> AbstractContextManager[None]:
    """Running out of memory as an error that names the number to lower."""
    return enough_memory(
        "lower `memory` (--memory), the bytes that blocks of scores may take, to rank with less"
    )
