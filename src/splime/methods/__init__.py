"""The methods of the paper: each chooses cuts. One line here makes a method known everywhere."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from splime.errors import SplimeError, UsageError, check_name, checked, nearest
from splime.methods.base import Method, Vanilla
from splime.methods.changepoint import ChangePointSplit
from splime.methods.merge import Merge, Timestamp, at_every_timestamp
from splime.methods.split import RandomSplit, Split
from splime.segmentation import Segmentation

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        Vanilla,
        RandomSplit,
        Timestamp,
        Split,
        ChangePointSplit,
        Merge,
    )
}


@checked
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


def standard_method(name: str) -> Method:
    """A method by its name, with its standard parameters.

    >>> standard_method("merge").shrink
    4
    """
    check_name("method", name, METHODS)
    return make_method(name, **METHODS[name].standard)


@checked
def standard_methods(predicates: int | None = None) -> dict[str, Method]:  # noqa: ARG001
    """Every method with its standard parameters, which fit graphs of any number of predicates.

    >>> standard_methods()["merge"].shrink
    4
    """
    return {name: standard_method(name) for name in METHODS}


def restore_method(parameters: Mapping[str, Any]) -> Method | None:
    """The method that a segmentation remembers; None if it is none of those known here.

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
    """The change point method that chose the cuts of predicates; an error if it was another."""
    method = restore_method(segmentation.method)
    if not isinstance(method, ChangePointSplit):
        name = method.name if method else segmentation.method.get("method", "an unknown method")
        raise UsageError(f"only changepoint has costs of change points; these cuts are of {name}")
    if method.target == "entities":
        raise UsageError("the change points of these cuts are of entities, not of predicates")
    return method


__all__ = [
    "METHODS",
    "ChangePointSplit",
    "Merge",
    "Method",
    "RandomSplit",
    "Split",
    "Timestamp",
    "Vanilla",
    "at_every_timestamp",
    "change_method",
    "make_method",
    "restore_method",
    "standard_method",
    "standard_methods",
]
