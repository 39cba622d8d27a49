"""Files written beside and renamed over, so that nothing half-written is ever found."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from splime.errors import SplimeError


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """A path to write to; when the block ends well, the file is moved to where it belongs."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield beside
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise SplimeError(f"{path}: cannot be written: {error}") from None
    finally:
        with suppress(OSError):
            beside.unlink()
