"""The search space of a parameter: a list of values, or a range of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from splime.errors import UsageError, check_name


@dataclass(frozen=True)
class Values:
    """A list of values; a single value is fixed."""

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
        """The values that must be valid."""
        return self.values

    def plain(self) -> Any:
        """The axis in the form that `read_axis` takes."""
        return self.values[0] if len(self.values) == 1 else list(self.values)


class Range(msgspec.Struct, frozen=True):
    """A range of numbers, both ends included; of integers if both ends are."""

    low: int | float
    high: int | float
    log: bool = False
    """Whether to search on a logarithmic scale: 1 to 10 counts as much as 10 to 100."""

    def __post_init__(self) -> None:
        if not self.low <= self.high < float("inf"):
            raise UsageError(f"low must not be above high, nor infinite: {self.low}, {self.high}")
        if self.log and not self.low > 0:
            raise UsageError(f"with log = true low must be above 0, not {self.low}")

    def suggest(self, trial: Any, name: str) -> float:
        """A value for a trial, rounded to three digits."""
        if self.low == self.high:
            return self.low
        if self.whole:
            return int(trial.suggest_int(name, self.low, self.high, log=self.log))
        rounded = float(f"{trial.suggest_float(name, self.low, self.high, log=self.log):.3g}")
        return min(max(rounded, self.low), self.high)

    @property
    def whole(self) -> bool:
        """Whether the numbers are integers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def ends(self) -> tuple[Any, ...]:
        """The values that must be valid."""
        return self.low, self.high

    def plain(self) -> Any:
        """The axis in the form that `read_axis` takes."""
        return {"low": self.low, "high": self.high, "log": self.log}


Axis: TypeAlias = Values | Range


def read_axis(value: Any) -> Axis:
    """An axis as it is written in TOML: a value, a list of values, or a table with low and high.

    >>> read_axis({"low": 2.0, "high": 50.0, "log": True})
    Range(low=2.0, high=50.0, log=True)
    >>> read_axis([0.01, 0.1]), read_axis("count")
    (Values(values=(0.01, 0.1)), Values(values=('count',)))
    """
    if isinstance(value, Mapping):
        for key in value:
            check_name("key of a range", key, Range.__struct_fields__)
        try:
            return msgspec.convert(value, Range)
        except msgspec.ValidationError as error:
            raise UsageError(
                f"low and high must be numbers, log is true or false: {error}"
            ) from None
    return Values(tuple(value) if isinstance(value, list) else (value,))
