"""Make the space of a search: the defaults, changed by a file and by what is fixed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from splime.axes import Axis, Range, read_axis
from splime.embedding.presets import check_model
from splime.embedding.settings import SETTINGS
from splime.errors import SplimeError, UsageError, check_name
from splime.graph import TemporalGraph
from splime.io.files import read_toml
from splime.methods import METHODS, Timestamp
from splime.training.engines import make_settings
from splime.tuning.defaults import HOW_FAR, METHOD_AXES, SETTING_AXES
from splime.tuning.space import Axes, Configuration, Space


def read_space(path: str | Path) -> dict[str, Any]:
    """Read what somebody wants tried from a TOML file: `[method.NAME]` and `[settings]`."""
    return read_toml(Path(path))


def make_space(
    graph: TemporalGraph,
    methods: Iterable[str] | None = None,
    models: Iterable[str] = ("complex",),
    *,
    fixed: Mapping[str, Any] | None = None,
    given: Mapping[str, Any] | None = None,
) -> Space:
    """The space of some methods (by default all) and models.

    `fixed` are settings that all trials share, `given` is what `read_space` reads; it takes the
    place of the defaults of the parameters that it names. Whatever could be tried is checked here,
    not hours later.
    """
    fixed, given = fixed or {}, given or {}
    for key in given:
        check_name("table", key, ("method", "settings"))
    by_method, settings = _table(given, "method"), _table(given, "settings")
    wanted = list(METHODS) if methods is None else list(methods)
    for name in (*wanted, *by_method):
        check_name("method", name, METHODS)
        if name not in wanted:
            raise UsageError(f"[method.{name}]: {name} is not among the methods to try")
    names = [check_model(model) for model in models]
    if not wanted or not names:
        raise UsageError("a search needs at least one method and one model")
    most = len(Timestamp().fit(graph).predicates) / len(graph.predicates)
    space = Space(
        {name: _method_axes(name, _table(by_method, name), most) for name in wanted},
        {name: _setting_axes(name, fixed, settings) for name in names},
        dict(fixed),
    )
    for name in settings:
        check_name("setting", name, SETTINGS)
        if name in fixed:
            raise UsageError(f"[settings] {name}: it is fixed as {fixed[name]!r} at the same time")
        if not any(name in axes for axes in space.models.values()):
            raise UsageError(f"[settings] {name}: has no effect on {', '.join(names)}")
    _check(space, len(graph.predicates))
    return space


def _method_axes(name: str, given: Mapping[str, Any], most: float) -> Axes:
    """The axes of a method; one that says how far it goes takes the place of the default one."""
    own = {key: _axis(f"[method.{name}] {key}", value) for key, value in given.items()}
    known = [*(field.name for field in fields(METHODS[name])), *METHOD_AXES[name]]
    for key in own:
        check_name(f"parameter of {name}", key, known)
    default = {
        key: _reachable(key, axis, most)
        for key, axis in METHOD_AXES[name].items()
        if not (key in HOW_FAR and {*own} & {*HOW_FAR})
    }
    return {**default, **own}


def _reachable(key: str, axis: Axis, most: float) -> Axis:
    """Not more predicates than a graph can have; splitting stops at spans of four timestamps."""
    if key != "grow" or not isinstance(axis, Range):
        return axis
    return Range(axis.low, max(axis.low, min(axis.high, round(most / 3, 1))), axis.log)


def _setting_axes(model: str, fixed: Mapping[str, Any], given: Mapping[str, Any]) -> Axes:
    """The axes of the settings that have an effect on a model."""
    settings = make_settings(model, **fixed)
    if not settings.validate_every:
        raise UsageError("tuning looks at valid; validate_every must not be 0")
    found: dict[str, Axis] = {
        one.name: one.axis for one in SETTING_AXES if one.used(settings) and one.name not in fixed
    }
    ruled = {one.name for one in SETTING_AXES}
    for name, value in given.items():
        if name in found or name not in ruled:
            found[name] = _axis(f"[settings] {name}", value)
    return found


def _check(space: Space, predicates: int) -> None:
    for method, axes in space.methods.items():
        for parameters in _corners(axes):
            try:
                Configuration(method, parameters, "", {}).make_method(predicates)
            except (SplimeError, TypeError) as error:
                raise UsageError(f"[method.{method}]: {error}") from None
    for model, axes in space.models.items():
        for chosen in _corners(axes):
            try:
                make_settings(model, **{**chosen, **space.fixed})
            except SplimeError as error:
                raise UsageError(f"[settings]: {error}") from None


def _corners(axes: Axes) -> Iterator[dict[str, Any]]:
    """Every axis at each of its ends, the others at their first one."""
    first = {key: axis.ends()[0] for key, axis in axes.items()}
    yield first
    for key, axis in axes.items():
        for end in axis.ends():
            yield {**first, key: end}


def _axis(where: str, value: Any) -> Axis:
    try:
        return read_axis(value)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def _table(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = found.get(key, {})
    if not isinstance(value, Mapping):
        raise UsageError(f"{key} must be a table of names and values, not {value!r}")
    return value
