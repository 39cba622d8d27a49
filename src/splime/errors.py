"""What can go wrong, said to a person: one hierarchy, with exit codes that scripts can use."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from difflib import get_close_matches
from functools import cache, wraps
from numbers import Integral, Real
from pathlib import Path
from types import SimpleNamespace, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

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


class WriteError(SplimeError):
    """A file could not be written: the disk is full, perhaps. What was to be written is fine."""


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
            f"there is no {kind} {name!r}; there are {', '.join(known)}.{nearest(str(name), known)}"
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
    type(None): (type(None), "None"),
}
"""What fits a type (numpy's numbers too), and the words for it."""


def check_kind(name: str, value: object, hint: Any) -> None:
    """An error unless a value is of a type that a field or parameter allows.

    >>> check_kind("seed", "one", int | None)
    Traceback (most recent call last):
    splime.errors.UsageError: seed must be a whole number, not 'one'
    """
    if not _fits(value, hint):
        literals = (each for each in _either(hint) if get_origin(each) is Literal)
        if choices := [word for each in literals for word in get_args(each)]:
            raise UsageError(
                f"{name} is one of {', '.join(choices)}, not {value!r:.80}."
                f"{nearest(str(value), choices)}"
            )
        words = [_words(each) for each in _either(hint) if each is not type(None)]
        raise UsageError(f"{name} must be {' or '.join(words)}, not {value!r:.80}")
    if name == "seed" and isinstance(value, Integral) and value < 0:
        raise UsageError(f"seed must be 0 or more, not {value}")


def _either(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type; of types that say nothing here everything is."""
    if len(either := _either(hint)) > 1:
        return any(_fits(value, each) for each in either)
    kind = get_origin(hint) or hint
    if kind is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if hint in _KINDS:
        return isinstance(value, _KINDS[hint][0]) and (hint is bool or not isinstance(value, bool))
    if getattr(kind, "_is_protocol", False):
        names = [name for name in vars(kind) if name == "__call__" or not name.startswith("_")]
        return all(inspect.getattr_static(value, name, None) is not None for name in names)
    if hint is Any or not isinstance(kind, type):
        return True
    if kind is not str and isinstance(value, str | bytes):
        return False  # text has letters, which nobody means as items
    # The first ones are enough to see a mistake, and cost nothing.
    items = value[:100] if isinstance(value, list | tuple) and issubclass(kind, Iterable) else ()
    inner = get_args(hint)
    return isinstance(value, (tuple, list) if kind is tuple else kind) and all(
        _fits(item, inner[0]) for item in items if inner
    )


def _words(hint: Any) -> str:
    if hint in _KINDS:
        return _KINDS[hint][1]
    kind = get_origin(hint) or hint
    if kind is tuple:
        return "a pair"
    if kind is Callable or "__call__" in vars(kind):
        return "something to call"
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"


def check_fields(made: Any, *, choices: bool = True) -> None:
    """An error unless the fields of a dataclass are of their types.

    Without `choices` a word need not be one of those that a field allows: somebody else looks.
    """
    hints = _hints(made.__class__, choices)
    for field in fields(made):
        if field.name in hints:
            check_kind(field.name, getattr(made, field.name), hints[field.name])


@cache
def _hints(what: Any, choices: bool) -> dict[str, Any]:
    """The types of fields or parameters; not those that only type checkers import."""
    hints: dict[str, Any] = {}
    for owner in reversed(what.__mro__) if isinstance(what, type) else (what,):
        names = vars(sys.modules[owner.__module__])
        for name, text in inspect.get_annotations(owner).items():
            with suppress(NameError, TypeError):  # TypeError: a ClassVar, which is no field
                alone = SimpleNamespace(__annotations__={name: text})
                hint = get_type_hints(alone, names)[name]
                if not choices:
                    either = (str if get_origin(e) is Literal else e for e in _either(hint))
                    hint = Union[tuple(either)]  # noqa: UP007
                hints[name] = hint
    return hints


P = ParamSpec("P")
R = TypeVar("R")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """A function that people call: arguments of other types than it says are an error of ours.

    Which words it knows it says itself.
    """
    signature = inspect.signature(function)
    single = [one.name for one in signature.parameters.values() if one.kind.name[:3] != "VAR"]

    @wraps(function)
    def entrance(*args: P.args, **kwargs: P.kwargs) -> R:
        hints = _hints(function, False)
        given = signature.bind(*args, **kwargs).arguments
        for name in single:
            if name in given and name in hints:
                check_kind(name, given[name], hints[name])
        return function(*args, **kwargs)

    return entrance


_EXTRAS = {
    **dict.fromkeys(("torch", "safetensors"), "train"),
    **dict.fromkeys(("matplotlib", "sklearn"), "plot"),
    "pandas": "pandas",
    "ray": "cluster",
}


def not_installed(what: str, error: ImportError) -> SplimeError:
    """The error that says which extra to install; another ImportError is raised as it is."""
    package = (error.name or "").partition(".")[0]
    if package not in _EXTRAS:
        raise error
    return SplimeError(
        f"{what} needs {package} ({error}); install it with:"
        f" pip install 'splime[{_EXTRAS[package]}]'"
    )


class Missing:
    """Stands for a public name that cannot be imported: to use it is an error that says why."""

    def __init__(self, name: str, error: ImportError) -> None:
        self._error = not_installed(name, error)

    def __call__(self, *_: object, **__: object) -> None:
        """Say what is missing."""
        raise self._error

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):  # what inspecting it looks for
            raise AttributeError(name)
        raise self._error

    def __repr__(self) -> str:
        return f"<{self._error}>"


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
