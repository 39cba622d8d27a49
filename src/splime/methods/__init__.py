"""The methods of the paper: each chooses cuts. One line here makes a method known everywhere.

Other packages add methods by the entry point group `splime.methods`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from splime.errors import SplimeError, UsageError, check_name, nearest
from splime.methods.base import Method as Method, Vanilla as Vanilla
from splime.methods.changepoint import ChangePointSplit as ChangePointSplit
from splime.methods.merge import (
    Merge as Merge,
    Timestamp as Timestamp,
    at_every_timestamp as at_every_timestamp,
)
from splime.methods.split import RandomSplit as RandomSplit, Split as Split
from splime.plugins import Registry
from splime.segmentation import Segmentation

_BUILTIN: list[type[Method]] = [Vanilla, RandomSplit, Timestamp, Split, ChangePointSplit, Merge]
METHODS = Registry("splime.methods", {method.name: method for method in _BUILTIN})


def make_method(name: str, **parameters: Any) -> Method:
    """A method by its name.

    >>> make_method("merge", shrink=4).shrink
    4
    """
    check_name("method", name, METHODS)
    known = [field.name for field in fields(METHODS[name])]
    for parameter in parameters:
        if parameter not in known:
            raise UsageError(
                f"{name} has no parameter {parameter!r}; it has {', '.join(known)}."
                f"{nearest(parameter, known)}"
            )
    try:
        return METHODS[name](**parameters)
    except TypeError as error:
        raise UsageError(f"{name} cannot be made with {parameters}: {error}") from None


def make_methods(
    names: Sequence[str], parameters: Mapping[str, Any], others: Mapping[str, Any]
) -> list[Method]:
    """Methods, each with those of the parameters, and of other values, that it has.

    >>> [method.name for method in make_methods(["merge", "vanilla"], {"shrink": 4}, {"seed": 1})]
    ['merge', 'vanilla']
    """
    if not names and parameters:
        raise UsageError(
            f"--{next(iter(parameters))} belongs to a method; choose one with --method"
        )
    chosen = [make_method(name, **parameters_of(name, {**others, **parameters})) for name in names]
    for key in parameters:
        if not any(parameters_of(name, {key: None}) for name in names):
            raise UsageError(f"none of {', '.join(names)} has a parameter {key}")
    return chosen


def parameters_of(method: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some values that a method has a parameter for.

    >>> parameters_of("merge", {"shrink": 4, "grow": 5})
    {'shrink': 4}
    """
    names = {field.name for field in fields(METHODS[method])} if method in METHODS else set()
    return {name: value for name, value in values.items() if name in names}


def standard_method(name: str) -> Method:
    """A method by its name, with its standard parameters.

    >>> standard_method("merge").shrink
    4
    """
    check_name("method", name, METHODS)
    return make_method(name, **METHODS[name].standard)


def standard_methods() -> dict[str, Method]:
    """Every method with its standard parameters.

    >>> standard_methods()["merge"].shrink
    4
    """
    return {name: standard_method(name) for name in METHODS}


def restore_method(parameters: Mapping[str, Any]) -> Method | None:
    """The method that a segmentation was made by; None if there is no such method here.

    >>> restore_method({"method": "Merge", "shrink": 4}).name
    'merge'
    """
    given = {key: value for key, value in parameters.items() if key != "method"}
    for name, kind in METHODS.items():
        if kind.__name__ == parameters.get("method"):
            try:
                return make_method(name, **given)
            except SplimeError as error:
                raise UsageError(f"the cuts name a method with wrong parameters: {error}") from None
    return None


def change_method(segmentation: Segmentation) -> ChangePointSplit:
    """The change point method that chose the cuts of predicates; an error for other methods."""
    method = restore_method(segmentation.method)
    if not isinstance(method, ChangePointSplit):
        name = method.name if method else segmentation.method.get("method", "an unknown method")
        raise UsageError(f"only changepoint has costs of change points; these cuts are of {name}")
    if method.target == "entities":
        raise UsageError("the change points of these cuts are of entities, not of predicates")
    return method
