"""Errors: one hierarchy, with exit codes that scripts can use; and checks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from difflib import get_close_matches
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

# Control characters (C0 and C1), marks of direction, separators, spaces without width, lone
# surrogates. Joiners are not among them: Persian and emoji need those.
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


def counted(count: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "fact"), counted(2_000, "fact")
    ('1 fact', '2,000 facts')
    """
    return f"{count:,} {noun}" + "s" * (count != 1)


_command_line = [False]
"""Whether messages are for the command line; the last one counts, in all threads."""


@contextmanager
def speaking_of_flags() -> Iterator[None]:
    """Messages name options as they are typed on the command line."""
    _command_line.append(True)
    try:
        yield
    finally:
        _command_line.pop()


def option(name: str, value: object = True, *, flag: str = "") -> str:
    """An option as whoever reads the message gives it: in Python, or on the command line.

    >>> option("since", False), option("columns", ["who", "what", "whom", "when"])
    ('since=False', "columns=['who', 'what', 'whom', 'when']")
    >>> with speaking_of_flags():
    ...     option("since", False), option("columns", ["a b", "c"])
    ('--no-since', "--columns 'a b,c'")
    """
    if not _command_line[-1]:
        return f"{name}={value!r}"
    flag = f"--{flag or name.replace('_', '-')}"
    if isinstance(value, bool):
        return flag if value else f"--no-{flag[2:]}"
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return (
        f"{flag} {text if text.endswith('…') else shlex.quote(text)}"  # what ends so is filled in
    )


class SplimeError(Exception):
    """Base of every error that splime raises on purpose.

    The message says what was wrong, where, and what would be right. `exit_code` is what the
    command line ends with.
    """

    exit_code = 1

    def __str__(self) -> str:
        return visible(super().__str__())


class Interrupted(SplimeError):  # noqa: N818  # nothing went wrong
    """The training was asked to stop."""

    exit_code = 130


class UsageError(SplimeError):
    """A parameter that makes no sense, or names something that does not exist."""

    exit_code = 2


class DataError(SplimeError):
    """A file or table that cannot be read as facts."""

    exit_code = 3


class WriteError(SplimeError):
    """A file could not be written, perhaps because the disk is full."""


class DownloadError(SplimeError):
    """A dataset could not be fetched."""

    exit_code = 4


def check_name(kind: str, name: str, known: Iterable[str]) -> None:
    """Raise an error that suggests the nearest name, unless a name is among the known ones.

    >>> check_name("dataset", "icews15", ["icews14", "yago11k"])
    Traceback (most recent call last):
    splime.errors.UsageError: there is no dataset 'icews15'; there are icews14, yago11k. Did you ...
    """
    known = list(known)
    if name not in known:
        raise UsageError(
            f"there is no {kind} {name!r}; there are {', '.join(known)}.{nearest(str(name), known)}"
        )


def nearest(name: str, known: Iterable[str]) -> str:
    """The known names closest to a misspelt one, as the end of an error message.

    >>> nearest("icews15", ["icews14", "yago11k"])
    ' Did you mean icews14?'
    >>> nearest("zzz", ["icews14", "yago11k"])
    ''
    """
    matches = get_close_matches(name, list(known), n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(matches)}?" if matches else ""


_TYPES: Mapping[Any, tuple[type, str]] = {
    bool: (bool, "true or false"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "text"),
    Path: (Path, "a path"),
}
"""What is accepted for a type, numpy's numbers too, and the words for it in messages."""


def check_fields(value: Any) -> None:
    """Raise an error unless the fields of a dataclass have their declared types and choices."""
    hints = _type_hints(value.__class__)
    for field in fields(value):
        check_kind(field.name, getattr(value, field.name), hints[field.name])


_type_hints = cache(get_type_hints)


def check_kind(name: str, value: object, hint: Any) -> None:
    """Raise an error unless a value has the type, or is one of the choices, of a field.

    >>> check_kind("seed", "one", int | None)
    Traceback (most recent call last):
    splime.errors.UsageError: seed must be a whole number, not 'one'
    """
    if _matches(value, hint):
        return
    allowed = [one for one in _alternatives(hint) if one is not type(None)]
    if choices := [word for one in allowed if get_origin(one) is Literal for word in get_args(one)]:
        raise UsageError(
            f"{name} is one of {', '.join(choices)}, not {value!r:.80}."
            f"{nearest(str(value), choices)}"
        )
    words = " or ".join(
        _TYPES[one][1] if one in _TYPES else f"a {(get_origin(one) or one).__name__}"
        for one in allowed
    )
    raise UsageError(f"{name} must be {words}, not {value!r:.80}")


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _matches(value: Any, hint: Any) -> bool:
    if len(alternatives := _alternatives(hint)) > 1:
        return any(_matches(value, one) for one in alternatives)
    origin, items = get_origin(hint) or hint, get_args(hint)
    if origin is Literal:
        return isinstance(value, str) and value in items
    if origin in _TYPES:
        accepted = isinstance(value, _TYPES[origin][0])
        return accepted and (origin is bool or not isinstance(value, bool))
    if not isinstance(origin, type):  # such as a type that only type checkers know
        return True
    if "__call__" in vars(origin):  # a function, or a protocol of functions
        return callable(value)
    if origin is Sequence:
        return isinstance(value, list | tuple) and all(_matches(item, items[0]) for item in value)
    return isinstance(value, origin)


_EXTRAS = {
    **dict.fromkeys(("torch", "safetensors"), "train"),
    **dict.fromkeys(("matplotlib", "sklearn"), "plot"),
    "optuna": "tune",
    "pandas": "pandas",
    "ray": "cluster",
    "python_calamine": "excel",
    **dict.fromkeys(("adbc_driver_duckdb", "adbc_driver_manager", "duckdb"), "database"),
    "adbc_driver_postgresql": "database",
    **dict.fromkeys(("starlette", "uvicorn", "h11"), "serve"),
    "mcp": "mcp",
}


def not_installed(what: str, error: ImportError) -> SplimeError:
    """The error that says which extra to install; any other ImportError is raised as it is."""
    package = (error.name or "").partition(".")[0]
    if package not in _EXTRAS:
        raise error
    return SplimeError(
        f"{what} needs {package} ({error}); install it with:"
        f" pip install 'splime-kg[{_EXTRAS[package]}]'"
    )


@contextmanager
def explain_out_of_memory(advice: str) -> Iterator[None]:
    """Turn "out of memory" into an error that says which number to lower.

    The class of PyTorch's error depends on the version and the device, so the message is matched.
    """
    words = (
        *("out of memory", "not enough memory", "allocate memory"),
        *("storage size calculation overflowed", "multiplication overflow"),
    )
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        message = str(error)
        if not isinstance(error, MemoryError) and not any(one in message.lower() for one in words):
            raise
        reason = (message.splitlines() or [type(error).__name__])[0][:200]
        raise SplimeError(f"there is not enough memory: {advice} ({reason})") from None
