"""A case: one training and the ways it is evaluated; and a file that remembers what cases gave."""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from splime.errors import DataError, UsageError
from splime.io.files import read_json, whole_numbers, write_json

Reading: TypeAlias = Literal["paper", "fact", "point", "years", "ended", "ended-test"]
METRICS = ("mrr", "hits1", "hits3", "hits10")


@dataclass(frozen=True)
class Case:
    """One training on one dataset, and what it is asked afterwards."""

    dataset: str
    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    """Model, preset and settings of `splime.train`; the seed among them."""
    evaluations: Sequence[Mapping[str, Any]] = ()
    """Protocol, split and options of `splime.evaluate`, once for each evaluation."""
    reading: Reading = "paper"

    def key(self) -> str:
        """A name that is the same for equal cases only.

        >>> one = Case("demo", "merge", {"shrink": 4})
        >>> one.key() == Case("demo", "merge", {"shrink": 4.0}).key()
        True
        >>> one.key() == Case("demo", "vanilla").key()
        False
        """
        plain = json.dumps(whole_numbers(asdict(self)), sort_keys=True)
        return hashlib.sha256(plain.encode()).hexdigest()[:16]

    def but(self, **changes: Any) -> Case:
        """The same with changes; parameters and settings are added to those that are there.

        >>> Case("demo", "split", {"grow": 2}).but(dataset="own", parameters={"by": "count"})
        Case(dataset='own', method='split', parameters={'grow': 2, 'by': 'count'}, ...)
        """
        for name in {"parameters", "training"} & changes.keys():
            changes[name] = {**getattr(self, name), **changes[name]}
        return replace(self, **changes)

    def __str__(self) -> str:
        parameters = "".join(f" {key} {value}" for key, value in self.parameters.items())
        training = "".join(f" {key} {value}" for key, value in self.training.items())
        return f"{self.dataset}: {self.method}{parameters},{training}"


class Average(NamedTuple):
    """Metrics averaged over several trainings."""

    mean: Mapping[str, float]
    """Empty where nothing was run."""
    mrrs: Sequence[float]
    """The MRR of each training."""
    predicates: float

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the MRR; None where there are not several trainings."""
        return statistics.stdev(self.mrrs) if len(self.mrrs) > 1 else None


class Results:
    """The records of a table, in a JSON file that is written again after every case."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.parent.exists() and not path.parent.is_dir():
            raise UsageError(f"{path.parent}: results are kept in a folder, and this is a file")
        self.records: dict[str, Any] = read_json(path) if path.exists() else {}
        for key, record in self.records.items():
            if not isinstance(record, dict) or not {"case", "figures"} <= set(record):
                raise DataError(f'{path}: the record {key!r} has no "case" or no "figures"')

    def __contains__(self, case: Case) -> bool:
        return case.key() in self.records

    def __getitem__(self, case: Case) -> Mapping[str, Any]:
        record: Mapping[str, Any] = self.records[case.key()]
        return record

    def missing(self, cases: Iterable[Case], again: Collection[str] = ()) -> list[Case]:
        """The cases that were not run yet or whose key is in `again`; each once, in their order."""
        keys = {case.key(): case for case in cases}
        return [case for key, case in keys.items() if key not in self.records or key in again]

    def add(self, case: Case, record: Mapping[str, Any]) -> None:
        """Remember what a case gave; its metrics are called figures in the file."""
        self.records[case.key()] = {
            "command": f"splime reproduce {self.path.stem} --run",
            "case": asdict(case),
            **record,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.path, dict(sorted(self.records.items())))

    def average(self, cases: Iterable[Case], name: str | None = None, **wanted: str) -> Average:
        """The mean over those of the cases that were run, and evaluated with the wanted options.

        `name` is the filter of protocol `fact`; protocol `triple` has one set of metrics.
        """
        metrics, predicates = [], []
        for case in (case for case in cases if case in self):
            for options, evaluation in zip(case.evaluations, self[case]["figures"], strict=True):
                if wanted.items() <= options.items():
                    metrics.append(self._metrics(case, evaluation, name))
                    predicates.append(self[case]["predicates"])
        if not metrics:
            return Average({}, (), 0)
        mean = {metric: statistics.fmean(own[metric] for own in metrics) for metric in METRICS}
        return Average(mean, [own["mrr"] for own in metrics], statistics.fmean(predicates))

    def _metrics(self, case: Case, evaluation: Any, name: str | None) -> dict[str, float]:
        try:
            every = evaluation["metrics"]
            own = every[name] if name else next(iter(every.values()))
            return {metric: float(own[metric]) for metric in METRICS}
        except (AttributeError, KeyError, TypeError, ValueError, StopIteration) as error:
            raise DataError(
                f"{self.path}: the record {case.key()!r} has no metrics: {error!r}"
            ) from None
