"""The space of a search: methods and models, with what is tried for their parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, TypeAlias

from splime.axes import Axis, Range, Values, read_axis
from splime.embedding.losses import LOSSES
from splime.errors import SplimeError, UsageError, check_name
from splime.graph import TemporalGraph
from splime.methods import METHODS, Method, Timestamp, Vanilla, make_method
from splime.settings import ALL_SETTINGS, BaseSettings
from splime.training.registry import ModelEntry, entry_for, find_engine, find_model

Axes: TypeAlias = Mapping[str, Axis]


@dataclass(frozen=True)
class Configuration:
    """One point of the space."""

    method: str
    parameters: dict[str, Any]
    model: str
    settings: dict[str, Any]
    """Those that the search chose, and those that are the same for all."""

    def make_method(self) -> Method:
        """The method with its parameters."""
        return make_method(self.method, **self.parameters)


@dataclass(frozen=True)
class Space:
    """Methods and models with their axes, and the settings that are fixed for all."""

    methods: Mapping[str, Axes]
    models: Mapping[str, Axes]
    fixed: Mapping[str, Any]
    """Settings of all trainings, and their engine where it is not splime's own."""

    def suggest(self, trial: Any) -> Configuration:
        """A point for a trial of optuna; always the same one for the same trial."""
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
        if self.entry(model).cuts == "none":
            method, parameters = "vanilla", {}
        return Configuration(method, parameters, model, {**chosen, **self.fixed})

    def searched(self, point: Configuration) -> dict[str, Any]:
        """The settings of a point, without those that are the same for all."""
        return {name: value for name, value in point.settings.items() if name not in self.fixed}

    def chosen(self, point: Configuration) -> dict[str, Any]:
        """What the search chose for a point, by the names that `suggest` gives it."""
        parameters = {f"{point.method}.{name}": value for name, value in point.parameters.items()}
        prefix = self.prefix(point.model)
        settings = {prefix + name: value for name, value in self.searched(point).items()}
        return {"method": point.method, **parameters, "model": point.model, **settings}

    def entry(self, model: str) -> ModelEntry:
        """What one of its models says about itself."""
        return find_model(model, self.fixed.get("engine", "splime"))

    def prefix(self, model: str) -> str:
        """What stands before the names of settings, where models have separate settings."""
        return f"{model}." if len(self.models) > 1 else ""

    def plain(self) -> dict[str, dict[str, Any]]:
        """Tables that TOML can hold."""
        methods, models = (
            {name: {key: axis.plain() for key, axis in axes.items()} for name, axes in part.items()}
            for part in (self.methods, self.models)
        )
        return {"methods": methods, "models": models, "fixed": dict(self.fixed)}


def make_space(
    graph: TemporalGraph,
    methods: Iterable[str] | None = None,
    models: Iterable[str] = ("complex",),
    *,
    fixed: Mapping[str, Any] | None = None,
    given: Mapping[str, Any] | None = None,
) -> Space:
    """The space of some methods (by default all; timestamp if all models are temporal) and models.

    `fixed` has the settings that all trials share, and perhaps an `engine`. `given` has
    the tables `[method.NAME]` and `[settings]`, which replace the defaults of the parameters that
    they name. Whatever could be tried is checked here, not hours later.
    """
    fixed, given = fixed or {}, given or {}
    for key in given:
        check_name("table", key, ("method", "settings"))
    by_method, settings = _table(given, "method"), _table(given, "settings")
    names, engine = list(models), fixed.get("engine", "splime")
    entries = [entry_for(name, fixed.get("preset"), engine) for name in names]
    default = list(METHODS)
    if entries and all(entry.is_temporal for entry in entries):
        cut = sorted({entry.method for entry in entries if entry.cuts != "none"})
        default = cut or [Vanilla.name]
    wanted = default if methods is None else list(methods)
    for name in (*wanted, *by_method):
        check_name("method", name, METHODS)
        if name not in wanted:
            raise UsageError(f"[method.{name}]: {name} is not among the methods to try")
    fixed_settings = {name: value for name, value in fixed.items() if name != "engine"}
    chosen = {entry.name: (entry, entry.make_settings(**fixed_settings)) for entry in entries}
    if not wanted or not chosen:
        raise UsageError("a search needs at least one method and one model")
    if all(entry.cuts == "none" for entry in entries):
        for name in wanted:
            entries[0].check_cuts(name)
    most = len(Timestamp().fit(graph).predicates) / len(graph.predicates)
    space = Space(
        {name: _method_axes(name, _table(by_method, name), most) for name in wanted},
        {name: _model_axes(*one, fixed, settings) for name, one in chosen.items()},
        dict(fixed),
    )
    for name in settings:
        check_name("setting", name, ALL_SETTINGS)
        if name in fixed:
            raise UsageError(f"[settings] {name}: it is fixed as {fixed[name]!r} at the same time")
        if not any(name in axes for axes in space.models.values()):
            raise UsageError(f"[settings] {name}: has no effect on {', '.join(space.models)}")
    for name, axes in space.methods.items():
        _check(f"[method.{name}]", axes, partial(make_method, name))
    for name, axes in space.models.items():
        _check("[settings]", axes, partial(chosen[name][0].make_settings, **fixed_settings))
    return space


def _method_axes(name: str, given: Mapping[str, Any], most: float) -> Axes:
    """The axes of a method; one that says how far it goes replaces the default one."""
    kind = METHODS[name]
    chosen = {key: _axis(f"[method.{name}] {key}", value) for key, value in given.items()}
    for key in chosen:
        check_name(f"parameter of {name}", key, [field.name for field in fields(kind)])
    default = {
        key: axis
        for key, axis in kind.search.items()
        if not (key in kind.one_of and {*chosen} & {*kind.one_of})
    }
    if isinstance(grow := default.get("grow"), Range):
        # Not more predicates than a graph can have; splitting stops at spans of four timestamps.
        high = max(grow.low, min(grow.high, round(most / 3, 1)))
        default["grow"] = Range(grow.low, high, grow.log)
    return {**default, **chosen}


def _model_axes(
    entry: ModelEntry, settings: BaseSettings, fixed: Mapping[str, Any], given: Mapping[str, Any]
) -> Axes:
    """The axes of the settings that have an effect on a model."""
    if not settings.validate_every and entry.engine != "pykeen":
        raise UsageError("tuning needs the MRR on valid; validate_every must not be 0")
    default = find_engine(entry.engine).search_space(settings)
    of_losses = {name for loss in LOSSES.values() for name in loss.search}
    chosen = {
        name: _axis(f"[settings] {name}", value)
        for name, value in given.items()
        if name in default or name not in of_losses
    }
    return {n: axis for n, axis in default.items() if n not in fixed} | chosen


def _check(where: str, axes: Axes, make: Callable[..., object]) -> None:
    """An error unless all axes can be at each of their ends, the others at their lower one."""
    lowest = {key: axis.ends()[0] for key, axis in axes.items()}
    others = ({**lowest, key: end} for key, axis in axes.items() for end in axis.ends())
    for chosen in (lowest, *others):
        try:
            make(**chosen)
        except SplimeError as error:
            raise UsageError(f"{where}: {error}") from None


def _axis(where: str, value: Any) -> Axis:
    try:
        return read_axis(value)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def _table(tables: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = tables.get(key, {})
    if not isinstance(table, Mapping):
        raise UsageError(f"{key} must be a table of names and values, not {table!r}")
    return table
