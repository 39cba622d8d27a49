"""Options of commands that are made from the fields of dataclasses: name, type and help."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import typer

from splime.methods import METHODS

Command: TypeAlias = Callable[..., None]


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


def field_options(kind: type, names: Mapping[str, str], *, panel: str) -> dict[str, Any]:
    """An option for some fields of a dataclass; `names` gives the field of each option."""
    by_name = {one.name: one for one in fields(kind)}
    hints = get_type_hints(kind)
    return {
        option: _option(option, by_name[name], hints[name], panel) for option, name in names.items()
    }


def method_options() -> dict[str, Any]:
    """An option for every parameter of every method."""
    users: dict[str, list[str]] = {}
    for method, kind in METHODS.items():
        for one in fields(kind):
            users.setdefault(one.name, []).append(method)
    options = {}
    for name, methods in users.items():
        kind = METHODS[methods[0]]
        own = next(one for one in fields(kind) if one.name == name)
        whose = "" if len(methods) == len(METHODS) else f"{', '.join(methods)}: "
        default = "" if own.default in (None, MISSING) else f" Default: {own.default}."
        options[name] = _option(
            name, own, get_type_hints(kind)[name], "Parameters of the method", whose, default
        )
    return options


def setting_options() -> dict[str, Any]:
    """An option for every setting of a training, called `set_…` to keep apart from methods'."""
    from splime.embedding.settings import SETTINGS, Settings

    panel = "Settings of the training (default: those of the preset)"
    options = field_options(Settings, {name: name for name in SETTINGS}, panel=panel)
    return {f"set_{name}": option for name, option in options.items()}


def taken_by(method: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some values that a method has a parameter for.

    >>> taken_by("merge", {"shrink": 4, "grow": 5})
    {'shrink': 4}
    """
    own = {field.name for field in fields(METHODS[method])} if method in METHODS else set()
    return {name: value for name, value in values.items() if name in own}


def _option(
    name: str, own: Field[Any], hint: Any, panel: str, before: str = "", after: str = ""
) -> Any:
    """The option of a field: choices are checked by the command line, other values later."""
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(part for part in get_args(hint) if part is not type(None))
    if get_origin(hint) not in (None, Literal):
        hint = str  # of a list: its parts with commas between them
    flag = f"--{name.replace('_', '-')}"
    if hint is bool:
        flag += f"/--no-{flag[2:]}"
    about: str = own.metadata["help"]
    option = typer.Option(
        flag,
        metavar=own.metadata.get("metavar"),
        help=f"{before}{about if before else about[0].upper() + about[1:]}.{after}",
        show_default=False,
        rich_help_panel=panel,
    )
    return Annotated[hint | None, option]
