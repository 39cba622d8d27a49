"""The rows of the paper's tables, made from the files in `data`: which cases each needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from splime.experiments import algorithm_2
from splime.experiments.case import Case, Results
from splime.io.files import read_toml

DATA: Mapping[str, Mapping[str, Any]] = {
    path.stem: read_toml(path) for path in Path(__file__).with_name("data").glob("*.toml")
}
TITLES = {"wikidata12k": "Wikidata12k", "yago11k": "YAGO11k", "icews14": "ICEWS14"}
"""The datasets as people write them."""


@dataclass(frozen=True)
class Row:
    """A row of a table: the trainings it is made from, and what the paper prints."""

    dataset: str
    title: str
    cases: Sequence[Case]
    printed: Mapping[str, float] = field(default_factory=dict)
    """Metrics as fractions; of the main table the number of predicates too."""
    folder: str = ""
    """Where its run is kept for a picture."""

    @property
    def label(self) -> str:
        """What rows are chosen by."""
        return f"{self.dataset} {self.title}"


def _case(table: str, **own: Any) -> Case:
    """A case with what all of its table share."""
    return Case("", "vanilla", **DATA[table]["case"]).but(**own)


def _row(table: str, title: str, **own: Any) -> Row:
    """A row as a file declares it; `each` says what differs between its cases beside the seed."""
    printed, seeds, each = own.pop("printed", {}), own.pop("seeds", 1), own.pop("each", [{}])
    cases = [_case(table, **own).but(**change) for change in each]
    cases = [_seeded(case, seed) for case in cases for seed in range(seeds)]
    return Row(cases[0].dataset, title, cases, printed)


def _seeded(case: Case, seed: int) -> Case:
    drawn = {"seed": seed} if case.method == "random" else {}
    return case.but(parameters=drawn, training={"seed": seed})


MAIN = [_row("main", **row) for row in DATA["main"]["rows"]]
_LABELLED = {row.label: row for row in MAIN}
FILTERS = [_row("filters", **row) for row in DATA["filters"]["rows"]]


class Variation(NamedTuple):
    """A row of the main table with one thing switched on."""

    row: Row
    title: str
    cases: Sequence[Case]
    explains: bool
    """Whether the row comes out so."""


def _variations(
    title: str, rows: Sequence[str], seeds: int = 1, explains: bool = False, **change: Any
) -> Iterator[Variation]:
    for row in (_LABELLED[label] for label in rows):
        cases = []
        for case in (case.but(**change) for case in row.cases[:seeds]):
            parameters = dict(case.parameters)
            if case.method == algorithm_2.NAME:
                del parameters["fit_on"]  # it always learns from all splits
            cases.append(replace(case, parameters=parameters))
        yield Variation(row, title, cases, explains)


VARIATIONS = sorted(
    (each for declared in DATA["main"]["variations"] for each in _variations(**declared)),
    key=lambda variation: MAIN.index(variation.row),
)


class Sweep(NamedTuple):
    """A method on a dataset with several values of one parameter."""

    dataset: str
    title: str
    rows: Mapping[float, Row]
    """By the value."""
    paper: float | None
    """The value of the main table, if it has this method."""


def _sweep(
    title: str, over: str, values: Sequence[float], paper: float | None = None, **own: Any
) -> Sweep:
    rows = {}
    for value in values:
        swept = [{"parameters": {over: value}}]
        rows[value] = _row("grid", f"{title}, {value:g}", each=swept, **own)
    return Sweep(own["dataset"], title, rows, paper)


SWEEPS = [_sweep(**sweep) for sweep in DATA["grid"]["sweeps"]]
GRID = [row for sweep in SWEEPS for row in sweep.rows.values()]


def _again(like: str, evaluations: Sequence[Mapping[str, Any]], folder: str = "") -> Row:
    """A row of the main table with the first seed, evaluated otherwise."""
    row = _LABELLED[like]
    return replace(row, cases=[row.cases[0].but(evaluations=evaluations)], folder=folder)


PREDICATES = [_again(**row) for row in DATA["predicates"]["rows"]]
TSNE = [_again(**row) for row in DATA["tsne"]["rows"]]


class Question(NamedTuple):
    """A question of the paper's qualitative table: which predicate links two entities."""

    subject: str
    predicate: str
    object: str
    begin: int
    end: int
    transe: str
    """The first two answers that the paper prints for vanilla TransE."""
    splime: str
    """And for the graph split by time, grow 20."""
    in_train: bool = False

    @property
    def text(self) -> str:
        """The question with its answer, for a table."""
        names = f"{self.subject}, {self.predicate}, {self.object}".replace("_", " ")
        return f"{names}, {self.begin}..{self.end}{' (train)' if self.in_train else ''}"


SIXTEEN = [Question(**question) for question in DATA["predicates"]["questions"]]


def _fair_rows(dataset: str) -> Iterator[Row]:
    """Every model with every method, which has the parameters of the main table."""
    cases = [row.cases[0] for row in MAIN if row.dataset == dataset]
    parameters = {case.method: case.parameters for case in reversed(cases)}  # split: by time
    for title, training in DATA["fair"]["models"].items():
        each = [
            {"method": method, "parameters": {**parameters[method], "fit_on": "train"}}
            for method in DATA["fair"]["methods"]
        ]
        yield _row("fair", title, each=each, dataset=dataset, training=training)


FAIR = [row for dataset in TITLES for row in _fair_rows(dataset)]
SEARCH = {
    dataset: [
        _case("fair", dataset=dataset).but(**DATA["fair"]["search_case"]).but(**tried)
        for tried in DATA["fair"]["search"][dataset]
    ]
    for dataset in TITLES
}


class Chosen(NamedTuple):
    """What is best on valid by the MRR of filter `exact`: a training, and how it aggregates."""

    case: Case
    aggregate: str
    valid: float

    def seeds(self) -> list[Case]:
        """The same with three seeds."""
        return [_seeded(self.case, seed) for seed in range(3)]


def choose(results: Results, dataset: str) -> Chosen | None:
    """The best on valid of all that was run with the first seed."""
    cases = [case for row in FAIR if row.dataset == dataset for case in row.cases]
    candidates = []
    for case in (*cases, *SEARCH[dataset]):
        for aggregate in ("mean", "ends"):
            ran = results.average([case], "exact", split="valid", aggregate=aggregate)
            candidates += [Chosen(case, aggregate, value) for value in ran.mrrs]
    return max(candidates, key=lambda chosen: chosen.valid, default=None)
