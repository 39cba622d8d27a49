"""The methods that are compared where nobody says which."""

from __future__ import annotations

from splime.methods import METHODS, Method, make_method

_GROW, _SHRINK, _EPSILON = 5, 4, 5.0


def standard_methods(predicates: int) -> dict[str, Method]:
    """Every method of the paper with moderate parameters, for a graph with so many predicates.

    Random ends with as many predicates as split, so that the two differ only in where they cut.

    >>> list(standard_methods(10)), standard_methods(10)["random"].predicates
    (['vanilla', 'random', 'timestamp', 'split', 'changepoint', 'merge'], 50)
    """
    parameters: dict[str, dict[str, object]] = {
        "random": {"predicates": _GROW * predicates},
        "split": {"grow": _GROW},
        "changepoint": {"epsilon": _EPSILON},
        "merge": {"shrink": _SHRINK},
    }
    return {name: make_method(name, **parameters.get(name, {})) for name in METHODS}
