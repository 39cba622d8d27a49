"""Every model in one harness: what is tried for each, what valid chose, and what it gave."""

from __future__ import annotations

import base64
import statistics
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments import rows
from experiments.published import preset_for, resolved
from experiments.rows import DATA, RANKS, Case, Combination, Results, TableRow
from splime.evaluation.metrics import Floats
from splime.training.registry import make_settings

STRATA = {
    "train": ("triple seen in train", "triple unseen in train"),
    "time": ("instant", "interval", "open"),
}
"""What results keep beside the metrics."""
KEPT = ("exact", "overlap")
"""The filters whose strata and reciprocal ranks results keep; where both have the same ranks, those
of exact."""


NEAR = 0.01
"""So near to the first rival on valid, models have three seeds."""


def pack(ranks: Floats) -> str:
    """Reciprocal ranks in thousandths as text: small, and enough to compare runs by their MRR.

    >>> unpack(pack(np.array([[1.0, 2.0], [3.0, 5000.0]]))).tolist()
    [[1.0, 0.5], [0.333, 0.0]]
    """
    thousandths = np.rint(1000 / ranks).astype("<u2")
    return base64.b85encode(zlib.compress(thousandths.tobytes(), 9)).decode()


def unpack(text: str) -> Floats:
    """A row for each fact, a column for each side."""
    thousandths = np.frombuffer(zlib.decompress(base64.b85decode(text)), "<u2")
    return thousandths.reshape(-1, 2) / 1000


def rival_rows(declared: Mapping[str, Any]) -> Iterator[TableRow]:
    """Every model on every dataset but what is left out; the cases of a row are what is tried."""
    for model in declared["models"]:
        shared = model["training"]
        for dataset in declared["datasets"]:
            frames = declared["frames"][model["frame"]]
            if dataset not in frames or f"{dataset} {model['title']}" in declared["left_out"]:
                continue
            tries = [
                {**frame, "training": {**shared, **frame["training"]}} for frame in frames[dataset]
            ]
            if "published" in model:
                differs = model["published"].get(dataset, {})
                training = {"model": shared["model"], "preset": preset_for(dataset)}
                training |= differs.get("training", {})
                tries.insert(0, {"reading": "fact", **differs, "training": training})
            start = Case(dataset, "timestamp", **declared["case"])
            yield TableRow(dataset, model["title"], [start.but(**change) for change in tries])


ROWS = list(rival_rows(DATA["rivals"]))


def chosen(results: Results, row: TableRow) -> list[Case]:
    """What is best on valid of what was tried, with three seeds; nothing if nothing was run."""
    ran = [case for case in row.cases if case in results]
    best = max(ran, key=lambda case: on_valid(results, case), default=None)
    return [] if best is None else [best.but(training={"seed": seed}) for seed in range(3)]


def ranked(results: Results) -> list[Case]:
    """What valid chose of every row: these are compared fact by fact."""
    return [case for row in ROWS for case in chosen(results, row)]


def on_valid(results: Results, case: Case) -> float:
    """The MRR that chooses."""
    return results.average([case], "exact", split="valid").mean["mrr"]


def more_seeds(results: Results) -> list[Case]:
    """Two more of all that may be first: not more than `NEAR` below the first rival on valid.

    Those of other models stay where they were run: better models may come later.
    """
    seeds: list[Case] = []
    for table in by_dataset().values():
        whole = not results.missing(case for row in table for case in row.cases)
        best = {row.title: cases for row in table if (cases := chosen(results, row))}
        valid = {title: on_valid(results, cases[0]) for title, cases in best.items()}
        rivals = [valid[row.title] for row in table if row.title in valid and knows_time(row)]
        lowest = max(rivals, default=0.0) - NEAR
        seeds += [
            case
            for title, (_, *others) in best.items()
            for case in others
            if case in results or (whole and valid[title] >= lowest)
        ]
    return seeds


def knows_time(row: TableRow) -> bool:
    """Whether it is a temporal model; these have the settings of their authors first."""
    return "preset" in row.cases[0].training


def by_dataset() -> dict[str, list[TableRow]]:
    """The rows of each dataset."""
    datasets = dict.fromkeys(row.dataset for row in ROWS)
    return {dataset: [row for row in ROWS if row.dataset == dataset] for dataset in datasets}


class Entry(NamedTuple):
    """A line of the tables: a model with the settings that valid chose."""

    title: str
    cases: Sequence[Case]
    """Those that were run, one for each seed."""
    results: Results
    """Where they are remembered."""
    tries: int
    """How many settings were run, of which valid chose; 0 where there was no choice."""
    row: TableRow | None = None
    """The row it was chosen from; None for the models of the study `paths`."""

    def mean(self, name: str) -> Mapping[str, float]:
        """Metrics on test, by filter; empty if nothing was run."""
        return self.results.average(self.cases, name, split="test").mean

    def about(self, name: str) -> float | None:
        """The mean of what a training says of itself."""
        values = [self.results[case][name] for case in self.cases]
        return statistics.fmean(values) if values else None

    @property
    def knows_time(self) -> bool:
        """Whether it is a temporal model of others."""
        return self.row is not None and knows_time(self.row)

    @property
    def theirs(self) -> float | None:
        """The MRR on test with the settings of its authors."""
        ran = [self.row.cases[0]] if self.row is not None and self.knows_time else []
        return self.results.average(ran, "exact", split="test").mean.get("mrr")

    @property
    def valid(self) -> float | None:
        """The MRR on valid, by the evaluation on it or, where there is none, in training."""
        mean = self.results.average(self.cases, "exact", split="valid").mean
        return mean["mrr"] if mean else self.about("valid")

    @property
    def first_valid(self) -> float:
        """The MRR on valid that chose, of the first seed; 0 if nothing was run."""
        return on_valid(self.results, self.cases[0]) if self.row and self.cases else 0.0

    @property
    def ended(self) -> bool | None:
        """Whether the first training was over before its declared end; None without a check."""
        settings = make_settings(**resolved(self.cases[0].training))
        if not settings.validate_every or settings.patience is None:
            return None
        return bool(self.results[self.cases[0]]["epochs"] < settings.epochs)

    def kept(self, name: str) -> list[Any]:
        """What the evaluations on test keep beside the metrics."""
        figures = (self.results[case]["figures"][-1] for case in self.cases)
        return [figure[name] for figure in figures if name in figure]

    def reciprocals(self, name: str) -> Floats:
        """The reciprocal ranks of facts by filter, averaged over seeds."""
        every = [unpack(kept.get(name, kept["exact"])) for kept in self.kept(RANKS)]
        return np.asarray(np.mean(every, axis=0))

    def stratum(self, name: str, kind: str, group: str) -> float | None:
        """An MRR; None where it is not kept, or the group is empty."""
        values = [kept[name][kind].get(group) for kept in self.kept("strata")]
        return statistics.fmean(values) if values and None not in values else None


def entries(results: Results, dataset: str) -> list[Entry]:
    """The lines of a dataset, the highest MRR first, and those without one last."""
    found = []
    for row in by_dataset()[dataset]:
        ran = [case for case in chosen(results, row) if case in results]
        tries = sum(case in results for case in row.cases)
        found.append(Entry(row.title, ran, results, tries, row))
    found += _ours(Results(results.path.with_name("paths.json")), dataset)
    return sorted(found, key=lambda entry: -entry.mean("exact").get("mrr", 0.0))


def _ours(paths: Results, dataset: str) -> Iterator[Entry]:
    """The path model as chosen, without time, with counted messages, and combined."""
    table = rows.PATHS.get(dataset, ())
    for title, begins in DATA["rivals"]["ours"].items():
        for row in [row for row in table if row.title.startswith(begins)][:1]:
            ran = [case for case in row.cases if case in paths]
            alike = (other for other in table if _searched(other) == _searched(row))
            tries = sum(any(case in paths for case in other.cases) for other in alike)
            yield Entry(title, ran, paths, tries if _searched(row) else 0)


def _searched(row: TableRow) -> tuple[str, str] | None:
    """The search that a row of the study `paths` is of; None where nothing was searched."""
    training = row.cases[0].training
    if isinstance(row.cases[0], Combination) or training.get("relative") == "none":
        return None
    return training["model"], training.get("messages", "learned")


def first_rival(listed: Sequence[Entry]) -> Entry | None:
    """The temporal model that is best on valid."""
    rivals = [entry for entry in listed if entry.knows_time and entry.cases]
    return max(rivals, key=lambda entry: entry.first_valid, default=None)
