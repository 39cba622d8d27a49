"""What a parameter may be: some values, or all between two numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from splime.errors import UsageError, nearest

_KEYS = ("low", "high", "log")


@dataclass(frozen=True)
class Values:
    """One of some values; a single one is fixed."""

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise UsageError("there must be at least one value")
        if any(not isinstance(value, str | int | float) for value in self.values):
            raise UsageError(f"values are words, numbers, true or false, not {[*self.values]}")

    def suggest(self, trial: Any, name: str) -> Any:
        """A value for a trial."""
        if len(self.values) == 1:
            return self.values[0]
        return trial.suggest_categorical(name, self.values)

    def ends(self) -> tuple[Any, ...]:
        """Values that must be allowed."""
        return self.values

    def plain(self) -> Any:
        """As `read_axis` reads it."""
        return self.values[0] if len(self.values) == 1 else list(self.values)


@dataclass(frozen=True)
class Range:
    """A number between two, both included; whole if both are."""

    low: float
    high: float
    log: bool = False
    """Whether 1 to 10 counts as much as 10 to 100."""

    def __post_init__(self) -> None:
        for end in (self.low, self.high):
            if isinstance(end, bool) or not isinstance(end, int | float):
                raise UsageError(f"low and high must be numbers, not {end!r}")
        if not self.low <= self.high < float("inf"):
            raise UsageError(f"low must not be above high, nor infinite: {self.low}, {self.high}")
        if self.log and not self.low > 0:
            raise UsageError(f"with log = true low must be above 0, not {self.low}")

    def suggest(self, trial: Any, name: str) -> float:
        """A value for a trial, of three digits: more would make no difference."""
        if self.low == self.high:
            return self.low
        if self.whole:
            number: int = trial.suggest_int(name, self.low, self.high, log=self.log)
            return number
        found = float(f"{trial.suggest_float(name, self.low, self.high, log=self.log):.3g}")
        return min(max(found, self.low), self.high)

    @property
    def whole(self) -> bool:
        """Whether the numbers are whole ones."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def ends(self) -> tuple[Any, ...]:
        """Values that must be allowed."""
        return self.low, self.high

    def plain(self) -> Any:
        """As `read_axis` reads it."""
        return {"low": self.low, "high": self.high, "log": self.log}


Axis: TypeAlias = Values | Range


def read_axis(found: Any) -> Axis:
    """An axis as it is written in TOML: a value, a list of values, or a table with low and high.

    >>> read_axis({"low": 2.0, "high": 50.0, "log": True})
    Range(low=2.0, high=50.0, log=True)
    >>> read_axis([0.01, 0.1]), read_axis("count")
    (Values(values=(0.01, 0.1)), Values(values=('count',)))
    """
    if isinstance(found, Mapping):
        for key in found:
            if key not in _KEYS:
                raise UsageError(
                    f"a range has low, high and log, not {key!r}.{nearest(key, _KEYS)}"
                )
        if not {"low", "high"} <= found.keys():
            raise UsageError("a range needs low and high, such as {low = 2.0, high = 50.0}")
        if not isinstance(found.get("log", False), bool):
            raise UsageError(f"log is true or false, not {found['log']!r}")
        return Range(**found)
    return Values(tuple(found) if isinstance(found, list) else (found,))
