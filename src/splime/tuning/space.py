"""The space of a search: methods and models, with what their parameters may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from splime.axes import Axis, Values, read_axis
from splime.methods import Method, make_method

Axes: TypeAlias = Mapping[str, Axis]


@dataclass(frozen=True)
class Configuration:
    """One point of the space."""

    method: str
    parameters: dict[str, Any]
    model: str
    settings: dict[str, Any]
    """Those that the search chose, and those that are the same for all."""

    def make_method(self, predicates: int) -> Method:
        """The method, for a graph with so many predicates."""
        parameters = dict(self.parameters)
        if self.method == "random" and "grow" in parameters:
            parameters["predicates"] = max(1, round(parameters.pop("grow") * predicates))
        return make_method(self.method, **parameters)


@dataclass(frozen=True)
class Space:
    """Methods and models with their axes, and the settings that are fixed for all."""

    methods: Mapping[str, Axes]
    models: Mapping[str, Axes]
    fixed: Mapping[str, Any]

    def suggest(self, trial: Any) -> Configuration:
        """A point for a trial of optuna; the same one, if it has got one before."""
        method: str = Values(tuple(self.methods)).suggest(trial, "method")
        parameters = {
            name: axis.suggest(trial, f"{method}.{name}")
            for name, axis in self.methods[method].items()
        }
        model: str = Values(tuple(self.models)).suggest(trial, "model")
        chosen = {
            name: axis.suggest(trial, self.prefix(model) + name)
            for name, axis in self.models[model].items()
            if name != "smooth" or method != "vanilla"  # whose predicates have no neighbours
        }
        return Configuration(method, parameters, model, {**chosen, **self.fixed})

    def prefix(self, model: str) -> str:
        """Before the names of settings, where models have settings of their own."""
        return f"{model}." if len(self.models) > 1 else ""

    def plain(self) -> dict[str, dict[str, Any]]:
        """Tables that TOML can hold, and `Space.of` reads."""
        return {
            title: {
                name: {key: axis.plain() for key, axis in axes.items()}
                for name, axes in tables.items()
            }
            for title, tables in (("methods", self.methods), ("models", self.models))
        } | {"fixed": dict(self.fixed)}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Space:
        """The inverse of `plain`."""
        methods, models = (
            {
                name: {key: read_axis(axis) for key, axis in axes.items()}
                for name, axes in plain[title].items()
            }
            for title in ("methods", "models")
        )
        return cls(methods, models, plain["fixed"])
