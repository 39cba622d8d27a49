"""The history of a training: the loss of every epoch, and the looks at valid."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from splime.errors import DataError
from splime.io.files import written_beside


@dataclass(frozen=True)
class Epoch:
    """One line of the history; `valid` is the MRR on valid where it was looked at."""

    epoch: int
    loss: float
    valid: float | None = None


def write_history(path: Path, history: Sequence[Epoch]) -> None:
    """Write a table of CSV, in which numbers keep all their digits."""
    lines = [f"{e.epoch},{e.loss!r},{'' if e.valid is None else repr(e.valid)}" for e in history]
    with written_beside(path) as beside:
        beside.write_text("\n".join(["epoch,loss,valid", *lines, ""]), encoding="utf-8")


def read_history(path: Path) -> list[Epoch]:
    """Read it back; a DataError if it is not what was written."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, strict=True))
        found = [
            Epoch(
                int(row["epoch"]),
                float(row["loss"]),
                None if row["valid"] == "" else float(row["valid"]),
            )
            for row in rows
        ]
    except (OSError, KeyError, ValueError, TypeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
    if [one.epoch for one in found] != list(range(1, len(found) + 1)) or not found:
        raise DataError(f"{path}: not the history of a training")
    return found
