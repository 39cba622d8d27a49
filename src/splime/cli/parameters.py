"""Options of commands that are made from tables: how to read, and the parameters of methods."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import typer

from splime.methods import METHODS
from splime.methods.base import Method

Command: TypeAlias = Callable[..., None]
_PANEL = "Parameters of the method"
_SETTINGS = "Settings of the training (default: those of the preset)"


def with_options(options: Mapping[str, Any]) -> Callable[[Command], Command]:
    """Give a command that takes `**given` an option for each of some names, None by default."""

    def extend(command: Command) -> Command:
        signature = inspect.signature(command)
        hints = get_type_hints(command, include_extras=True)
        own = [
            parameter.replace(annotation=hints[parameter.name])
            for parameter in signature.parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        more = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
            )
            for name, annotation in options.items()
        ]
        # What typer looks at.
        command.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in (*own, *more)}
        return command

    return extend


def method_options() -> dict[str, Any]:
    """An option for every parameter of every method."""
    return {name: _option(name, uses) for name, uses in _parameters().items()}


def setting_options() -> dict[str, Any]:
    """An option for every setting of a training, called `set_…` to keep apart from methods'."""
    from splime.embedding.settings import Settings

    hints = get_type_hints(Settings)
    found = {}
    for field in fields(Settings):
        if field.name == "model":
            continue
        name = field.name.replace("_", "-")
        kind = _plain_type(hints[field.name])
        flag = f"--{name}/--no-{name}" if kind is bool else f"--{name}"
        choices = get_args(hints[field.name]) if get_origin(hints[field.name]) is Literal else ()
        one_of = f" One of {', '.join(choices)}." if choices else ""
        about: str = field.metadata["help"]
        option = typer.Option(
            flag,
            help=f"{about[0].upper()}{about[1:]}.{one_of}",
            show_default=False,
            rich_help_panel=_SETTINGS,
        )
        found[f"set_{field.name}"] = Annotated[kind | None, option]
    return found


def taken_by(method: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some values that a method has a parameter for.

    >>> taken_by("merge", {"shrink": 4, "grow": 5})
    {'shrink': 4}
    """
    own = {field.name for field in fields(METHODS[method])} if method in METHODS else set()
    return {name: value for name, value in values.items() if name in own}


def _parameters() -> dict[str, list[tuple[str, type[Method], Field[Any]]]]:
    """Every parameter, with the methods that have it."""
    found: dict[str, list[tuple[str, type[Method], Field[Any]]]] = {}
    for name, method in METHODS.items():
        for field in fields(method):
            found.setdefault(field.name, []).append((name, method, field))
    return found


def _option(name: str, uses: list[tuple[str, type[Method], Field[Any]]]) -> Any:
    _, method, field = uses[0]
    users = "" if len(uses) == len(METHODS) else f"{', '.join(user for user, _, _ in uses)}: "
    default = field.default
    shown = "" if default is None or default is MISSING else f" Default: {default}."
    help_text = f"{users}{field.metadata['help']}.{shown}"
    option = typer.Option(
        f"--{name.replace('_', '-')}", help=help_text, show_default=False, rich_help_panel=_PANEL
    )
    kind = _plain_type(get_type_hints(method)[name])
    if kind is bool:
        option = typer.Option(
            f"--{name}/--no-{name}", help=help_text, show_default=False, rich_help_panel=_PANEL
        )
    return Annotated[kind | None, option]


def _plain_type(hint: Any) -> Any:
    """The type of an option: what may be None is an option that may be left out."""
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(part for part in get_args(hint) if part is not type(None))
    return str if get_origin(hint) is Literal else hint
