"""What can go wrong, said to a person: one hierarchy, with exit codes that scripts can use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class SplimeError(Exception):
    """Base of every error that splime raises on purpose.

    The message says what was wrong, where, and what would be right. `exit_code` is what the
    command line ends with.
    """

    exit_code = 1


class UsageError(SplimeError):
    """A parameter that makes no sense, or names something that does not exist."""

    exit_code = 2


class DataError(SplimeError):
    """A file or table that cannot be read as facts."""

    exit_code = 3


class DownloadError(SplimeError):
    """A dataset could not be fetched."""

    exit_code = 4


def check_name(kind: str, name: str, known: Iterable[str]) -> None:
    """An error that suggests the nearest, unless a name is among the known ones.

    >>> check_name("dataset", "icews15", ["icews14", "yago11k"])
    Traceback (most recent call last):
    splime.errors.UsageError: there is no dataset 'icews15'; there are icews14, yago11k. Did you ...
    """
    known = list(known)
    if name not in known:
        raise UsageError(
            f"there is no {kind} {name!r}; there are {', '.join(known)}.{nearest(name, known)}"
        )


def nearest(name: str, known: Iterable[str], *, most: int = 3) -> str:
    """The known names closest to a misspelt one, as the end of an error message.

    >>> nearest("icews15", ["icews14", "yago11k"])
    ' Did you mean icews14?'
    >>> nearest("zzz", ["icews14", "yago11k"])
    ''
    """
    matches = get_close_matches(name, list(known), n=most, cutoff=0.6)
    return f" Did you mean {' or '.join(matches)}?" if matches else ""


@contextmanager
def enough_memory(advice: str) -> Iterator[None]:
    """Turn "out of memory" into an error that says which number to lower.

    PyTorch's own error has different names in different versions, and none on a processor, so it is
    known by its words.
    """
    words = ("out of memory", "not enough memory", "allocate memory")
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        text = (str(error).splitlines() or [type(error).__name__])[0][:200]
        if not isinstance(error, MemoryError) and not any(w in str(error).lower() for w in words):
            raise
        raise SplimeError(f"there is not enough memory: {advice} ({text})") from None
