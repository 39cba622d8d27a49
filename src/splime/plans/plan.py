"""A plan: which data to read, which methods and models to run on them; a TOML file holds one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from splime.embedding.presets import make_settings
from splime.errors import DataError, SplimeError, UsageError, nearest
from splime.io.files import read_toml, to_toml
from splime.io.options import ReadOptions
from splime.methods import METHODS, Method, make_method

_KEYS = ("data", "reading", "training", "run")
_RUN_KEYS = ("name", "method", "parameters", "training")


@dataclass(frozen=True)
class PlannedRun:
    """One training: a method with its parameters, and the settings of the model."""

    name: str
    """The name of its folder."""
    method: Method
    training: Mapping[str, Any] = field(default_factory=dict)
    """What differs from the settings that all runs share: model, preset, settings."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w][\w.+=, -]*", self.name):
            raise UsageError(f"a run cannot be called {self.name!r}: it is the name of a folder")


@dataclass(frozen=True)
class Plan:
    """What `splime run` does; every mistake in it is found when it is made, not hours later.

    >>> plan = Plan("demo", (PlannedRun("merge", make_method("merge", shrink=4)),),
    ...             training={"model": "complex", "epochs": 20})
    >>> plan.settings_of(plan.runs[0])
    {'model': 'complex', 'epochs': 20}
    """

    data: str
    runs: Sequence[PlannedRun]
    reading: Mapping[str, Any] = field(default_factory=dict)
    """Options of `splime.load`."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """What all runs share: model, preset, settings of `splime.train`."""

    def __post_init__(self) -> None:
        if not self.runs:
            raise UsageError("a plan needs at least one run")
        ReadOptions.of(self.reading)
        names = [run.name for run in self.runs]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"two runs are called {name!r}; give one of them another name")
        for run in self.runs:
            try:
                make_settings(**self.settings_of(run))
            except SplimeError as error:
                raise UsageError(f"run {run.name!r}: {error}") from None

    def settings_of(self, run: PlannedRun) -> dict[str, Any]:
        """Model, preset and settings of a run."""
        return {**self.training, **run.training}

    def to_toml(self) -> str:
        """The text of a file that `read_plan` reads back."""
        tables = {"data": self.data, "reading": self.reading, "training": self.training}
        runs = []
        for run in self.runs:
            name = next(name for name, kind in METHODS.items() if type(run.method) is kind)
            given = {
                key: value for key, value in run.method.parameters().items() if key != "method"
            }
            table = {
                "name": run.name,
                "method": name,
                "parameters": given,
                "training": run.training,
            }
            runs.append({key: value for key, value in table.items() if value})
        return to_toml({**{key: value for key, value in tables.items() if value}, "run": runs})


def read_plan(path: str | Path) -> Plan:
    """Read a plan from a TOML file; a mistake in it is an error that says where it is."""
    path = Path(path)
    found = read_toml(path)
    try:
        _check_keys(found, _KEYS)
        data, runs = found.get("data"), found.get("run", [])
        if not isinstance(data, str):
            raise UsageError('it needs a line such as data = "demo", the facts to read')
        if not isinstance(runs, list) or not runs:
            raise UsageError('it needs at least one [[run]], such as [[run]] with method = "split"')
        planned = [_planned(run, number) for number, run in enumerate(runs, 1)]
        return Plan(data, planned, _table(found, "reading"), _table(found, "training"))
    except SplimeError as error:
        raise DataError(f"{path}: {error}") from None


def _planned(found: Any, number: int) -> PlannedRun:
    try:
        if not isinstance(found, dict):
            raise UsageError("not a table; write it as [[run]]")
        _check_keys(found, _RUN_KEYS)
        method = found.get("method")
        if not isinstance(method, str):
            raise UsageError(f"it needs a method, one of {', '.join(METHODS)}")
        chosen = make_method(method, **_table(found, "parameters"))
        return PlannedRun(str(found.get("name", method)), chosen, _table(found, "training"))
    except (SplimeError, TypeError) as error:
        raise UsageError(f"[[run]] number {number}: {error}") from None


def _table(found: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = found.get(key, {})
    if not isinstance(value, dict):
        raise UsageError(f"{key} must be a table of names and values, not {value!r}")
    return value


def _check_keys(found: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in found:
        if key not in known:
            raise UsageError(
                f"there is no key {key!r}; there are {', '.join(known)}.{nearest(key, known)}"
            )
