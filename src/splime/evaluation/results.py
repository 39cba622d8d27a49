"""The result of an evaluation: figures, and everything that one must know to read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from splime.errors import DataError
from splime.evaluation.intervals import Intervals, bootstrap
from splime.evaluation.metrics import Floats, Metrics, by_group
from splime.evaluation.strata import Strata
from splime.times import Ints

_ARRAYS = ("ranks", "facts")


@dataclass(frozen=True)
class Evaluation:
    """Figures by filter, with how they came about; `to_json` holds all but the ranks."""

    protocol: str
    """`triple`, `fact` or `predicate`."""
    split: str
    filters: tuple[str, ...]
    ties: str
    aggregate: str | None
    """How the scores of a query's parts became one; None where there are no parts."""
    leak_filter: str | None
    """What was removed before ranking; None where nothing is."""
    left_out: dict[str, int]
    """How many facts (or triples) of the split are not ranked, by reason."""
    queries: int
    candidates: int
    timestamps: int
    buckets: bool
    """Whether timestamps stand for more than one date."""
    seconds: float
    metrics: dict[str, dict[str, Metrics]]
    """By filter; `both` pools all queries, `object` and `subject` are what was asked for."""
    strata: dict[str, dict[str, dict[str, Metrics]]]
    """By filter, way of dividing, and group; over all queries of the group."""
    intervals: dict[str, dict[str, Intervals]] = field(default_factory=dict)
    """By filter and side, where they were asked for."""
    ranks: dict[str, Floats] = field(default_factory=dict, repr=False, compare=False)
    """By filter, a row for each fact (or triple); columns are the query for the object and the one
    for the subject, or the one for the predicate. Not in the JSON."""
    facts: Ints = field(default_factory=lambda: np.empty(0, np.int64), repr=False, compare=False)
    """The fact of each row, as its position in the split. Not in the JSON."""

    def to_json(self) -> dict[str, Any]:
        """The same as plain dictionaries, without the ranks."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _ARRAYS}
        plain["filters"] = list(self.filters)
        plain["metrics"] = _plain(self.metrics)
        plain["strata"] = _plain(self.strata)
        plain["intervals"] = _plain(self.intervals)
        return plain

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Evaluation:
        """The inverse of `to_json`; there are no ranks."""
        names = [f.name for f in fields(cls) if f.name not in _ARRAYS]
        missing = [name for name in names if name not in data]
        if missing:
            raise DataError(f"this is no evaluation: {', '.join(missing)} missing")
        given = {name: data[name] for name in names}
        given["filters"] = tuple(given["filters"])
        try:
            given["metrics"] = {
                name: {side: Metrics(**each) for side, each in sides.items()}
                for name, sides in given["metrics"].items()
            }
            given["strata"] = {
                name: {
                    kind: {group: Metrics(**each) for group, each in groups.items()}
                    for kind, groups in kinds.items()
                }
                for name, kinds in given["strata"].items()
            }
            given["intervals"] = {
                name: {
                    side: {figure: tuple(ends) for figure, ends in each.items()}
                    for side, each in sides.items()
                }
                for name, sides in given["intervals"].items()
            }
        except (AttributeError, TypeError) as error:
            raise DataError(f"this is no evaluation: {error}") from error
        return cls(**given)


def _plain(value: Any) -> Any:
    if isinstance(value, Metrics):
        return asdict(value)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return list(value) if isinstance(value, tuple) else value


def figures(
    ranks: Mapping[str, Floats], strata: Strata, samples: int | None, seed: int
) -> dict[str, Any]:
    """The fields of an evaluation that follow from its ranks."""
    sides = {name: _sides(table) for name, table in ranks.items()}
    found: dict[str, Any] = {
        "metrics": {
            name: {side: Metrics.of(table) for side, table in tables.items()}
            for name, tables in sides.items()
        },
        "strata": {
            name: {kind: by_group(table, *stratum) for kind, stratum in strata.items()}
            for name, table in ranks.items()
        },
        "ranks": dict(ranks),
    }
    if samples:
        found["intervals"] = {
            name: {side: bootstrap(t, samples=samples, seed=seed) for side, t in tables.items()}
            for name, tables in sides.items()
        }
    return found


def _sides(ranks: Floats) -> dict[str, Floats]:
    if ranks.shape[1] == 1:
        return {"both": ranks}
    return {"both": ranks, "object": ranks[:, :1], "subject": ranks[:, 1:]}
