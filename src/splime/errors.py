"""What can go wrong, said to a person: one hierarchy, with exit codes that scripts can use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

# What a terminal obeys instead of showing it, what turns the order of letters around, and what
# cannot be seen at all: C0 and C1, marks of direction, separators, spaces without width, halves of
# letters. Joiners are not among them: Persian and emoji need those.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069"
    r"\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    r"""Text for people, in which control characters are seen instead of obeyed.

    >>> print(visible("a\x1b[2Jb\u202ec"))
    a\x1b[2Jb\u202ec
    """
    # From \x7f on as JSON writes it, which leaves those as they are: so JSON stays JSON.
    return _UNSEEN.sub(lambda m: (r"\x%02x" if m[0] < " " else r"\u%04x") % ord(m[0]), text)


class SplimeError(Exception):
    """Base of every error that splime raises on purpose.

    The message says what was wrong, where, and what would be right. `exit_code` is what the
    command line ends with.
    """

    exit_code = 1

    def __str__(self) -> str:
        return visible(super().__str__())


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


_KINDS: Mapping[Any, tuple[type, str]] = {
    bool: (bool, "true or false"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "text"),
    Path: (Path, "a path"),
}
"""What fits a type (numpy's numbers too), and the words for it."""


def check_kind(name: str, value: object, hint: Any) -> None:
    """An error unless a value is of a type that a field allows; types not known here are.

    >>> check_kind("seed", "one", int | None)
    Traceback (most recent call last):
    splime.errors.UsageError: seed must be a whole number, not 'one'
    """
    kinds = [hint] if get_origin(hint) is Literal else [*(get_args(hint) or (hint,))]
    if value is None and type(None) in kinds:
        return
    kinds = [kind for kind in kinds if kind is not type(None)]
    choices = get_args(kinds[0]) if get_origin(kinds[0]) is Literal else ()
    if choices and value not in choices:
        raise UsageError(
            f"{name} is one of {', '.join(choices)}, not {value!r}.{nearest(str(value), choices)}"
        )
    if all(kind in _KINDS for kind in kinds):
        fits = isinstance(value, tuple(_KINDS[kind][0] for kind in kinds))
        if not fits or (isinstance(value, bool) and bool not in kinds):
            words = " or ".join(_KINDS[kind][1] for kind in kinds)
            raise UsageError(f"{name} must be {words}, not {value!r}")


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
