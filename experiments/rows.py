"""Cases, what running them gave, and the rows of the paper's tables, made from files in `data`.

A case is one training and the ways it is evaluated; a JSON file remembers what cases gave.
"""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from experiments import algorithm_2
from splime.errors import DataError, UsageError
from splime.io.files import locked, read_json, read_toml, whole_numbers, write_json

METRICS = ("mrr", "hits1", "hits3", "hits10")
RANKS = "reciprocals"
"""What an evaluation calls the reciprocal ranks that it keeps, packed."""
_WAIT = 60.0  # seconds, for another process that writes its results


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
    reading: str = "paper"
    """One of `running.READINGS`."""

    def key(self) -> str:
        """A name that is the same for equal cases only.

        >>> one = Case("demo", "merge", {"shrink": 4})
        >>> one.key() == Case("demo", "merge", {"shrink": 4.0}).key()
        True
        >>> one.key() == Case("demo", "vanilla").key()
        False

        What an evaluation is to keep beside its metrics is no part of it.
        """
        about = asdict(self)
        for case in (about, *about.get("members", ())):
            case["evaluations"] = [
                {name: value for name, value in options.items() if name != "keep"}
                for options in case["evaluations"]
            ]
        plain = json.dumps(whole_numbers(about), sort_keys=True)
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


@dataclass(frozen=True)
class Combination(Case):
    """Runs of other cases combined into one; it has nothing to train."""

    members: Sequence[Case] = ()

    def __str__(self) -> str:
        return f"{self.dataset}: {len(self.members)} runs combined"


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
        about = {"command": f"python -m experiments {self.path.stem} --run", "case": asdict(case)}
        with self._rewritten():
            self.records[case.key()] = {**about, **record}

    def keep_ranks(self, cases: Iterable[Case]) -> None:
        """Forget the reciprocal ranks of all other cases: they are most of the file."""
        keys = {case.key() for case in cases}
        if not any(_has_ranks(self.records[key]) for key in self.records.keys() - keys):
            return
        with self._rewritten():
            for record in (self.records[key] for key in self.records.keys() - keys):
                for evaluation in record["figures"]:
                    evaluation.pop(RANKS, None)

    @contextmanager
    def _rewritten(self) -> Iterator[None]:
        """Write the file again, with what others added to it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.path.parent, wait=_WAIT):
            if self.path.exists():
                self.records = read_json(self.path)
            yield
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
        columns = {name: [figures[name] for figures in metrics] for name in METRICS}
        mean = {name: statistics.fmean(values) for name, values in columns.items()}
        return Average(mean, columns["mrr"], statistics.fmean(predicates))

    def _metrics(self, case: Case, evaluation: Any, name: str | None) -> dict[str, float]:
        try:
            every = evaluation["metrics"]
            figures = every[name] if name else next(iter(every.values()))
            return {metric: float(figures[metric]) for metric in METRICS}
        except (AttributeError, KeyError, TypeError, ValueError, StopIteration) as error:
            raise DataError(
                f"{self.path}: the record {case.key()!r} has no metrics: {error!r}"
            ) from None


def _has_ranks(record: Mapping[str, Any]) -> bool:
    return any(RANKS in evaluation for evaluation in record["figures"])


DATA: Mapping[str, Mapping[str, Any]] = {
    path.stem: read_toml(path) for path in Path(__file__).with_name("data").glob("*.toml")
}
TITLES = {"wikidata12k": "Wikidata12k", "yago11k": "YAGO11k", "icews14": "ICEWS14"}
"""The datasets as people write them."""


@dataclass(frozen=True)
class TableRow:
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


def _case(table: str, **declared: Any) -> Case:
    """A case with what all of its table share."""
    return Case("", "vanilla", **DATA[table]["case"]).but(**declared)


def _row(table: str, title: str, **declared: Any) -> TableRow:
    """A row as a file declares it; `each` says what differs between its cases beside the seed."""
    printed, seeds = declared.pop("printed", {}), declared.pop("seeds", 1)
    changes = declared.pop("each", [{}])
    cases = [_case(table, **declared).but(**change) for change in changes]
    cases = [_seeded(case, seed) for case in cases for seed in range(seeds)]
    return TableRow(cases[0].dataset, title, cases, printed)


def _seeded(case: Case, seed: int) -> Case:
    drawn = {"seed": seed} if case.method == "random" else {}
    return case.but(parameters=drawn, training={"seed": seed})


MAIN = [_row("main", **row) for row in DATA["main"]["rows"]]
_LABELLED = {row.label: row for row in MAIN}
FILTERS = [_row("filters", **row) for row in DATA["filters"]["rows"]]


class Variation(NamedTuple):
    """A row of the main table with one thing switched on."""

    row: TableRow
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
    (variation for declared in DATA["main"]["variations"] for variation in _variations(**declared)),
    key=lambda variation: MAIN.index(variation.row),
)


class Sweep(NamedTuple):
    """A method on a dataset with several values of one parameter."""

    dataset: str
    title: str
    rows: Mapping[float, TableRow]
    """By the value."""
    paper: float | None
    """The value of the main table, if it has this method."""


def _sweep(
    title: str, over: str, values: Sequence[float], paper: float | None = None, **declared: Any
) -> Sweep:
    rows = {}
    for value in values:
        swept = [{"parameters": {over: value}}]
        rows[value] = _row("grid", f"{title}, {value:g}", each=swept, **declared)
    return Sweep(declared["dataset"], title, rows, paper)


SWEEPS = [_sweep(**sweep) for sweep in DATA["grid"]["sweeps"]]
GRID = [row for sweep in SWEEPS for row in sweep.rows.values()]


def _again(like: str, evaluations: Sequence[Mapping[str, Any]], folder: str = "") -> TableRow:
    """A row of the main table with the first seed, evaluated otherwise."""
    row = _LABELLED[like]
    return replace(row, cases=[row.cases[0].but(evaluations=evaluations)], folder=folder)


PREDICATES = [_again(**row) for row in DATA["predicates"]["rows"]]
TSNE = [_again(**row) for row in DATA["tsne"]["rows"]]


class PredicateQuestion(NamedTuple):
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


SIXTEEN = [PredicateQuestion(**question) for question in DATA["predicates"]["questions"]]


def _fair_rows(dataset: str) -> Iterator[TableRow]:
    """Every model with every method, which has the parameters of the main table."""
    cases = [row.cases[0] for row in MAIN if row.dataset == dataset]
    parameters = {case.method: case.parameters for case in reversed(cases)}  # split: by time
    for title, training in DATA["fair"]["models"].items():
        changes = [
            {"method": method, "parameters": {**parameters[method], "fit_on": "train"}}
            for method in DATA["fair"]["methods"]
        ]
        yield _row("fair", title, each=changes, dataset=dataset, training=training)


FAIR = [row for dataset in TITLES for row in _fair_rows(dataset)]
SEARCH = {
    dataset: [
        _case("fair", dataset=dataset).but(**DATA["fair"]["search_case"]).but(**tried)
        for tried in DATA["fair"]["search"][dataset]
    ]
    for dataset in TITLES
}


class ChosenCase(NamedTuple):
    """What is best on valid by the MRR of filter `exact`: a training, and how it aggregates."""

    case: Case
    aggregate: str
    valid: float

    def seeds(self) -> list[Case]:
        """The same with three seeds."""
        return [_seeded(self.case, seed) for seed in range(3)]


def choose(results: Results, dataset: str) -> ChosenCase | None:
    """The best on valid of all that was run with the first seed."""
    cases = [case for row in FAIR if row.dataset == dataset for case in row.cases]
    candidates = []
    for case in (*cases, *SEARCH[dataset]):
        for aggregate in ("mean", "ends"):
            ran = results.average([case], "exact", split="valid", aggregate=aggregate)
            candidates += [ChosenCase(case, aggregate, value) for value in ran.mrrs]
    return max(candidates, key=lambda chosen: chosen.valid, default=None)


def _path_rows(table: Mapping[str, Any]) -> Iterator[TableRow]:
    """The rows of one table of the path model, each made from a model of it or from rows above."""
    made: dict[str, TableRow] = {}
    for declared in table["rows"]:
        changes = dict(declared)
        title, seeds = changes.pop("title"), changes.pop("seeds", 1)
        case = _case("paths", **table["case"])
        if combines := changes.pop("combines", None):
            members = [case for above in combines for case in made[above].cases]
            cases: list[Case] = [
                Combination(
                    case.dataset,
                    case.method,
                    evaluations=case.evaluations,
                    reading=case.reading,
                    members=members,
                )
            ]
        else:
            case = case.but(**table["models"][changes.pop("like", "path")]).but(**changes)
            # A model that learns nothing has no seeds.
            cases = [_seeded(case, seed) for seed in range(seeds)] or [case]
        made[title] = TableRow(table["name"], title, cases)
    yield from made.values()


PATHS = {table["name"]: list(_path_rows(table)) for table in DATA["paths"]["tables"]}
