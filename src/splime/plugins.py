"""Registries that other installed packages add entries to, by entry points."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from splime.errors import SplimeError

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """The built-in entries of a registry, and behind them those of installed packages.

    Those that are `lazy` are given by their places, `module:name`. A package adds an entry in its
    pyproject.toml, under `[project.entry-points."splime.readers"]`. It is imported when the entry
    is used, so a broken package does not harm other entries.

    >>> registry = Registry("splime.examples", {"one": 1})
    >>> registry["one"], list(registry)
    (1, ['one'])
    """

    def __init__(
        self, group: str, builtin: Mapping[str, T], lazy: Mapping[str, str] | None = None
    ) -> None:
        self._group, self._builtin, self._lazy = group, builtin, lazy or {}
        self._loaded: dict[str, T] = {}

    @cached_property
    def _added(self) -> dict[str, EntryPoint]:
        """The entries of packages; one cannot take the place of another."""
        added = {name: EntryPoint(name, place, self._group) for name, place in self._lazy.items()}
        for point in entry_points(group=self._group):
            if point.name in self._builtin or point.name in added:
                logging.getLogger("splime").warning(
                    "%s is left out: the name %r is taken", _described(point), point.name
                )
            else:
                added[point.name] = point
        return added

    def __getitem__(self, name: str) -> T:
        if name in self._builtin:
            return self._builtin[name]
        if name not in self._loaded:
            point = self._added[name]
            try:
                self._loaded[name] = point.load()
            except Exception as error:
                if name in self._lazy:
                    raise
                raise SplimeError(
                    f"{_described(point)} cannot be loaded: {type(error).__name__}: {error};"
                    " update or uninstall the package"
                ) from error
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:  # Mapping's own would load the entry
        return name in self._builtin or name in self._added

    def __iter__(self) -> Iterator[str]:
        yield from self._builtin
        yield from self._added  # looked up only when all built-in entries were passed

    def __len__(self) -> int:
        return len(self._builtin) + len(self._added)


def _described(point: EntryPoint) -> str:
    package = point.dist.name if point.dist else "an unknown package"
    return f"the entry point {point.name!r} of {point.group} (package {package}, {point.value})"
