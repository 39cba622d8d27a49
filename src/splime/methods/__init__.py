"""The methods of the paper: each chooses cuts. One line here makes a method known everywhere."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from splime.errors import UsageError, check_name, nearest
from splime.methods.base import Method
from splime.methods.changepoint import ChangePointSplit
from splime.methods.merge import Merge
from splime.methods.random_split import RandomSplit
from splime.methods.split import Split
from splime.methods.timestamp import Timestamp
from splime.methods.vanilla import Vanilla

METHODS: Mapping[str, type[Method]] = {
    "vanilla": Vanilla,
    "random": RandomSplit,
    "timestamp": Timestamp,
    "split": Split,
    "changepoint": ChangePointSplit,
    "merge": Merge,
}


def make_method(name: str, **parameters: Any) -> Method:
    """A method by its name.

    >>> make_method("merge", shrink=4).shrink
    4
    """
    check_name("method", name, METHODS)
    own = {field.name: field for field in fields(METHODS[name])}
    for parameter in parameters:
        if parameter not in own:
            raise UsageError(
                f"{name} has no parameter {parameter!r}; it has {', '.join(own)}."
                f"{nearest(parameter, own)}"
            )
    missing = [n for n, field in own.items() if field.default is MISSING and n not in parameters]
    if missing:
        raise UsageError(f"{name} needs {' and '.join(missing)}")
    return METHODS[name](**parameters)


__all__ = [
    "METHODS",
    "ChangePointSplit",
    "Merge",
    "Method",
    "RandomSplit",
    "Split",
    "Timestamp",
    "Vanilla",
    "make_method",
]
