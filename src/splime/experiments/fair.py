"""The paper's future work, measured fairly: more models, protocol `fact`, time learned from train.

First every model with every method, set up alike. Then a search for the strongest: ComplEx with
finer cuts and more dimensions; what is best on valid is trained with more seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from splime.experiments import main_table
from splime.experiments.case import Case
from splime.experiments.readings import Reading

DATASETS = ("wikidata12k", "yago11k", "icews14")
AGGREGATES = ("mean", "ends")

# A fact counts once in an epoch, as it does in the protocol. Distances and products learn at
# different speeds.
_DISTANCES = {"each": "fact", "epochs": 300, "validate_every": 30, "patience": 2}
_PRODUCTS = {"each": "fact", "epochs": 200, "validate_every": 20, "patience": 2}
MODELS: Mapping[str, Mapping[str, Any]] = {
    "TransE, the paper's settings": {"preset": "paper"},
    "TransE": {"model": "transe", **_DISTANCES},
    "RotatE": {"model": "rotate", **_DISTANCES},
    "SimplE": {"model": "simple", **_PRODUCTS},
    "ComplEx": {"model": "complex", **_PRODUCTS},
}
METHODS = ("vanilla", "timestamp", "split", "changepoint", "merge")


class Row(NamedTuple):
    """A model on a dataset, with every method."""

    dataset: str
    title: str
    """The model."""

    def case(self, method: str) -> Case:
        """The training with one method."""
        own = (row for row in main_table.rows() if row.dataset == self.dataset)
        parameters = next(row.parameters for row in own if row.method == method)  # split: by time
        return fair_case(self.dataset, method, parameters, {**MODELS[self.title], "seed": 0})

    def cases(self) -> list[Case]:
        """The trainings of the row."""
        return [self.case(method) for method in METHODS]


def rows() -> Iterator[Row]:
    """Every model on every dataset."""
    for dataset in DATASETS:
        for model in MODELS:
            yield Row(dataset, model)


def fair_case(
    dataset: str,
    method: str,
    parameters: Mapping[str, Any],
    training: Mapping[str, Any],
    aggregates: tuple[str, ...] = ("mean",),
    reading: Reading = "fact",
) -> Case:
    """A training that sees only train, asked for every fact of valid and of test."""
    return Case(
        dataset,
        method,
        {**parameters, "fit_on": "train"},
        training,
        tuple(
            {"protocol": "fact", "split": split, "aggregate": aggregate}
            for aggregate in aggregates
            for split in ("valid", "test")
        ),
        reading=reading,
    )


class Tried(NamedTuple):
    """Settings of ComplEx with a method, for the strongest model."""

    method: str
    settings: Mapping[str, Any]
    parameters: Mapping[str, Any] = {}  # nobody writes into it
    reading: Reading = "fact"


def search(dataset: str) -> list[Case]:
    """What was tried for the strongest model."""
    common = {"model": "complex", "validate_every": 20, "patience": 1}
    return [
        fair_case(
            dataset,
            tried.method,
            tried.parameters,
            {**common, **tried.settings, "seed": 0},
            AGGREGATES,
            tried.reading,
        )
        for tried in _SEARCH[dataset]
    ]


def _settings(
    dimension: int, n3: float, smooth: float, epochs: int, each: str = "triple"
) -> dict[str, Any]:
    return {"dimension": dimension, "n3": n3, "smooth": smooth, "epochs": epochs, "each": each}


def _each_fact(dimension: int, n3: float, smooth: float) -> dict[str, Any]:
    """The same with one triple of each fact in an epoch, which then is short."""
    return {**_settings(dimension, n3, smooth, 320, "fact"), "validate_every": 40}


_SEARCH: Mapping[str, tuple[Tried, ...]] = {
    "icews14": (
        Tried("timestamp", _settings(1000, 0.01, 3, 60)),
        Tried("timestamp", _settings(1000, 0.01, 10, 60)),
        Tried("timestamp", _settings(1000, 0.003, 3, 60)),
        Tried("timestamp", _settings(1000, 0.003, 10, 60)),
        Tried("timestamp", _settings(1000, 0.01, 1, 60)),
    ),
    "yago11k": (
        Tried("split", _settings(1000, 0.05, 0.01, 40), {"grow": 20}),
        Tried("timestamp", _settings(1000, 0.05, 0.01, 40)),
        Tried("timestamp", _settings(1000, 0.03, 0.1, 40)),
        Tried("merge", _settings(1000, 0.05, 0.01, 40), {"shrink": 2}),
        Tried("split", _settings(1000, 0.05, 0.1, 40), {"grow": 20}),
        Tried("timestamp", _each_fact(1000, 0.1, 0.1)),
        Tried("timestamp", _each_fact(1000, 0.05, 0.1), reading="point"),
        Tried("timestamp", _each_fact(1000, 0.1, 0.1), reading="point"),
        Tried("timestamp", _each_fact(1000, 0.2, 0.1), reading="point"),
        Tried("timestamp", _each_fact(1000, 0.1, 1), reading="point"),
        Tried("timestamp", _each_fact(2000, 0.1, 0.1), reading="point"),
        Tried("timestamp", _each_fact(2000, 0.2, 0.1), reading="point"),
        Tried("timestamp", _each_fact(1000, 0.3, 0.1), reading="point"),
        Tried("timestamp", _each_fact(1000, 0.2, 0.03), reading="point"),
        Tried("timestamp", _each_fact(1000, 0.2, 0.01), reading="point"),
        Tried("timestamp", _each_fact(2000, 0.15, 0.03), reading="point"),
        Tried("timestamp", _settings(200, 0.05, 0.1, 60, "fact"), reading="point"),
    ),
    "wikidata12k": (
        Tried("timestamp", _settings(1000, 0.1, 0.001, 60)),
        Tried("merge", _settings(1000, 0.1, 0.001, 60), {"shrink": 2}),
        Tried("merge", _settings(1000, 0.1, 0.001, 60), {"shrink": 4}),
        Tried("timestamp", _settings(1000, 0.07, 0.001, 60)),
        Tried("split", _settings(1000, 0.1, 0, 60), {"grow": 20}),
        Tried("timestamp", _each_fact(1000, 0.05, 0.001)),
        Tried("timestamp", _each_fact(1000, 0.1, 0.001)),
        Tried("timestamp", _each_fact(1000, 0.05, 0.0001)),
        Tried("timestamp", _each_fact(2000, 0.05, 0.001)),
        Tried("merge", _each_fact(1000, 0.05, 0.001), {"shrink": 2}),
        Tried("timestamp", _each_fact(1000, 0.05, 0.001), reading="point"),
        Tried("timestamp", _each_fact(1000, 0.1, 0.001), reading="point"),
        Tried("timestamp", _each_fact(1000, 0.1, 0.01), reading="point"),
        Tried("timestamp", _each_fact(1000, 0.2, 0.001), reading="point"),
        Tried("timestamp", _each_fact(2000, 0.1, 0.001), reading="point"),
        Tried("timestamp", _each_fact(2000, 0.07, 0.001), reading="point"),
        Tried("timestamp", _each_fact(2000, 0.1, 0.0003), reading="point"),
    ),
}
