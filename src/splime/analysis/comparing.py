"""Compare runs: metrics with intervals, and which differences are larger than chance."""

from __future__ import annotations

import json
import math
import shlex
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from splime.errors import UsageError, check_name, checked, visible
from splime.evaluation import Evaluation, Metrics
from splime.evaluation.filters import TIMED
from splime.evaluation.metrics import (
    FEWEST,
    METRICS,
    Difference,
    Intervals,
    check_bootstrap,
    compare_ranks,
    holm,
)
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, SPLITS, SplitName, TemporalGraph, check_split
from splime.leakage import FILTERS
from splime.progress import Progress, silent
from splime.runs import PROTOCOLS, Run, evaluate, evaluations
from splime.runs.evaluating import kept
from splime.shown import Shown, Tabular
from splime.times import Ints


@dataclass(frozen=True)
class Row:
    """A run and its metrics."""

    name: str
    """The name of its folder, with as many parent folders as tell it from the other runs."""
    path: str
    data: str
    method: str
    method_parameters: dict[str, Any]
    """Those that differ from the defaults."""
    model: str
    settings: dict[str, Any]
    predicates: int
    """The number of scoped predicates."""
    parameters: int
    """The number of values that the model learned."""
    seconds: float
    """The duration of the training."""
    test_set: int
    """Runs with the same number here ranked the same queries, see `Comparison.test_sets`."""
    metrics: Metrics
    intervals: Intervals | None
    """None where the test set has too few facts."""


@dataclass(frozen=True)
class Pair:
    """Two runs that ranked the same queries; the first has the higher MRR."""

    first: str
    second: str
    differences: dict[str, Difference]
    """Of mrr, hits1, hits3 and hits10, each tested by itself."""
    corrected: dict[str, float | None]
    """The p-values, corrected for the number of tested pairs (Holm); None where there are none."""


_TABLE = pa.schema(
    [
        *((name, pa.string()) for name in ("run", "path", "data", "method", "method_parameters")),
        *((name, pa.string()) for name in ("model", "settings")),
        *((name, pa.int64()) for name in ("predicates", "parameters")),
        ("seconds", pa.float64()),
        *((name, pa.int64()) for name in ("test_set", "queries")),
        *((name, pa.float64()) for name in ("mrr", "mr", "hits1", "hits3", "hits10")),
        *((name, pa.float64()) for name in ("mrr_low", "mrr_high")),
        ("like_the_best", pa.bool_()),
    ]
)
"""The columns of a comparison as a table."""


@dataclass(frozen=True)
class Comparison(Shown, Tabular):
    """Runs by test set and MRR, best first, and every pair that ranked the same queries."""

    protocol: str
    split: str
    filter: str
    ties: str
    candidates: list[int]
    """By test set."""
    test_sets: list[int]
    """How many facts (triples, by protocol `triple`) each test set has; usually there is one."""
    samples: int
    level: float
    rows: list[Row]
    pairs: list[Pair]
    remarks: list[str]
    """What a reader must know to read the metrics."""

    shown_by = "splime.report.comparison:comparison_table"

    def __repr__(self) -> str:
        mrr = ", ".join(f"{visible(row.name)} {row.metrics.mrr:.3f}" for row in self.rows)
        return f"Comparison(protocol {self.protocol}, {self.split}, {self.filter}: MRR {mrr})"

    def best(self, test_set: int = 0, metric: str = "mrr") -> Row:
        """The run with the highest value of a metric on a test set."""
        rows = [row for row in self.rows if row.test_set == test_set]
        return max(rows, key=lambda row: getattr(row.metrics, metric))

    def too_few(self, test_set: int = 0) -> bool:
        """Whether a test set has too few facts to test anything."""
        return self.test_sets[test_set] < FEWEST

    def larger_than_chance(self, pair: Pair, metric: str = "mrr") -> bool | None:
        """Whether the difference of a pair is significant; None where it was not tested."""
        p = pair.corrected[metric]
        return None if p is None else p <= 1 - self.level

    def like_the_best(self, row: Row, metric: str = "mrr") -> bool:
        """Whether a run's difference from the best of its test set could be chance.

        No difference is where it was not tested.
        """
        both = {self.best(row.test_set, metric).name, row.name}
        return any(
            {pair.first, pair.second} == both and self.larger_than_chance(pair, metric) is False
            for pair in self.pairs
        )

    def to_table(self) -> pa.Table:
        """As an Arrow table: a row for each run, with its metrics and the interval of its MRR.

        Parameters of the method and settings of the model are JSON, since runs have different ones.
        """
        rows = []
        for row in self.rows:
            about = {**vars(row), **vars(row.metrics)}
            low, high = row.intervals["mrr"] if row.intervals else (None, None)
            about |= {"run": row.name, "like_the_best": self.like_the_best(row)}
            about |= {"mrr_low": low, "mrr_high": high}
            about |= {name: json.dumps(about[name]) for name in ("method_parameters", "settings")}
            rows.append(about)
        return pa.Table.from_pylist(rows, schema=_TABLE)

    def to_json(self) -> dict[str, Any]:
        """The same as plain dictionaries."""
        plain = asdict(self)
        for row in plain["rows"]:
            if row["intervals"] is not None:
                row["intervals"] = {name: list(ends) for name, ends in row["intervals"].items()}
        for plain_pair, pair in zip(plain["pairs"], self.pairs, strict=True):
            plain_pair["larger_than_chance"] = {
                name: self.larger_than_chance(pair, name) for name in METRICS
            }
        return plain


@checked
def compare(
    runs: Iterable[Run | str | Path],
    protocol: str = "fact",
    *,
    split: SplitName = "test",
    filter: str | None = None,
    samples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
    device: str = "auto",
    progress: Progress = silent,
    warn: Callable[[str], None] = warnings.warn,
) -> Comparison:
    """Compare runs on the same queries, by the rank of every query (paired bootstrap).

    Evaluations that the folders keep are used, others are made and kept. The runs must have the
    same facts in the split; buckets, cuts and models may differ.

    Args:
        runs: runs, or their folders.
        protocol: fact, triple or predicate. By protocol triple every transform has a test set of
            its own; then only runs with the same cuts are compared.
        split: valid or test.
        filter: exact (the default), overlap or static; of protocol triple the leak filter.
        samples: the number of bootstrap samples.
        level: of the intervals; 1 - level is what the corrected p-values are compared with.
        seed: of the samples.
        device: where to evaluate.
        progress: how many queries are ranked, over all runs.
        warn: called where an evaluation cannot be kept.
    """
    check_name("protocol", protocol, PROTOCOLS)
    check_split(split)
    triple = protocol == "triple"
    filter = filter or ("inter" if triple else TIMED[0])
    check_name("filter", filter, FILTERS if triple else TIMED)
    opened = [Run.of(run, device=device) for run in runs]
    names = run_names(opened)
    _check_samples(len(opened), samples, level)
    options: dict[str, Any] = {"split": split, **({"filter": filter} if triple else {})}
    same_facts = len({run.config["data"]["sha256"] for run in opened}) == 1
    if not triple and not same_facts:
        options["questions"] = "all"  # samples would be of other facts
    evaluated = []
    for number, run in enumerate(opened):
        update = _share(progress, number, len(opened))
        evaluated.append(
            kept(run, protocol, **options)
            or evaluate(run, protocol, warn=warn, progress=update, **options)
        )
    column = "triple" if triple else filter
    ranks = [each.ranks[column] for each in evaluated]
    remarks: list[str] = []
    if not triple and not same_facts:
        orders, remarks = _common_order(opened, names, split)
        ranks = [each[order] for each, order in zip(ranks, orders, strict=True)]
    metrics = [each.metrics[column]["both"] for each in evaluated]
    sets: dict[object, list[int]] = {}
    for at in sorted(range(len(opened)), key=lambda at: -metrics[at].mrr):
        sets.setdefault(_test_set(opened[at]) if triple else "", []).append(at)
    if len(sets) > 1:
        remarks.append(
            "protocol triple gives every transform a test set of its own: only runs of the same"
            " test set are compared (protocol fact compares all)"
        )
    if len({each.past for each in evaluated}) > 1:
        known = {None: "train", "train": "train before the question", "all": "all splits before it"}
        listed = (f"{name}: {known[one.past]}" for name, one in zip(names, evaluated, strict=True))
        remarks.append(f"runs answer from different facts: {'; '.join(listed)}")
    rows: list[Row] = []
    differing: list[tuple[int, int, dict[str, Difference]]] = []
    for number, members in enumerate(sets.values()):
        _check_candidates([(names[at], evaluated[at].candidates) for at in members])
        intervals, differences = compare_ranks(
            [ranks[at] for at in members], samples=samples, level=level, seed=seed
        )
        rows += [
            _row(opened[at], names[at], number, metrics[at], own)
            for at, own in zip(members, intervals, strict=True)
        ]
        differing += [(members[i], members[j], each) for (i, j), each in differences.items()]
    corrected = {name: _corrected([each[name].p for *_, each in differing]) for name in METRICS}
    return Comparison(
        protocol=protocol,
        split=split,
        filter=filter,
        ties=evaluated[0].ties,
        candidates=[evaluated[members[0]].candidates for members in sets.values()],
        test_sets=[len(ranks[members[0]]) for members in sets.values()],
        samples=samples,
        level=level,
        rows=rows,
        pairs=[
            Pair(names[i], names[j], each, {name: own[at] for name, own in corrected.items()})
            for at, (i, j, each) in enumerate(differing)
        ],
        remarks=remarks,
    )


def run_names(runs: Sequence[Run]) -> list[str]:
    """The folders of runs, with as many parent folders as tell them all apart."""
    paths = [run.path.resolve() for run in runs]
    for path in paths:
        if paths.count(path) > 1:
            raise UsageError(f"{path}: this run is given more than once")
    length = 1
    while len({path.parts[-length:] for path in paths}) < len(paths):
        length += 1
    return ["/".join(path.parts[-length:]) for path in paths]


def kept_evaluations(runs: Sequence[Run]) -> dict[str, Evaluation]:
    """An evaluation that each run already has, by the run's name.

    By protocol fact on test if all have that, else by protocol triple, else on valid.
    """
    kinds = {}
    for name, run in zip(run_names(runs), runs, strict=True):
        kinds[name] = {(one.protocol, one.split): one for one in reversed(evaluations(run))}
        if not kinds[name]:
            path = shlex.quote(str(run.path))
            raise UsageError(f"{run.path}: was not evaluated yet; first: splime evaluate {path}")
    for kind in (("fact", "test"), ("triple", "test"), ("fact", "valid"), ("triple", "valid")):
        if all(kind in each for each in kinds.values()):
            return {name: each[kind] for name, each in kinds.items()}
    raise UsageError(
        "no protocol and split were evaluated for all runs: first splime evaluate them"
    )


def _test_set(run: Run) -> tuple[object, ...]:
    """What tells the triples that a run is asked for from those of others."""
    config = run.config
    return config["data"]["sha256"], config["cuts"]["sha256"], run.settings.distinct


def _check_candidates(members: Sequence[tuple[str, int]]) -> None:
    """An error unless all runs of a test set, given by name, rank among as many candidates."""
    (first, expected), *others = members
    for name, candidates in others:
        if candidates != expected:
            raise UsageError(
                f"{first} and {name} cannot be compared: one ranks among {expected:,} candidates,"
                f" the other among {candidates:,}"
            )


def _corrected(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction of those that there are."""
    corrected = iter(holm([p for p in p_values if p is not None]))
    return [None if p is None else next(corrected) for p in p_values]


def _row(run: Run, name: str, test_set: int, metrics: Metrics, intervals: Intervals | None) -> Row:
    parameters, settings = dict(run.config["method"]), dict(run.config["settings"])
    method = parameters.pop("name")
    if run.method is not None:
        method, parameters = run.method.name, run.method.changed()
    return Row(
        name=name,
        path=str(run.path),
        data=run.config["data"]["name"],
        method=method,
        method_parameters=parameters,
        model=settings.pop("model"),
        settings=settings,
        predicates=run.config["cuts"]["predicates"],
        parameters=run.about["parameters"],
        seconds=run.about["seconds"],
        test_set=test_set,
        metrics=metrics,
        intervals=intervals,
    )


def _check_samples(runs: int, samples: int, level: float) -> None:
    """The smallest p-value that the samples can give must be small enough after its correction."""
    if not runs:
        raise UsageError("there are no runs to compare")
    check_bootstrap(samples, level)
    pairs = runs * (runs - 1) // 2
    needed = math.ceil(2 * pairs / (1 - level))
    if samples < needed:
        raise UsageError(
            f"{samples:,} samples cannot tell any of {pairs:,} pairs apart; {needed:,} can"
            f" (--samples {needed})"
        )


def _share(progress: Progress, number: int, runs: int) -> Progress:
    """Progress of one of several evaluations of about the same size."""

    def update(what: str, done: int, total: int | None = None, note: str = "") -> None:  # noqa: ARG001
        whole = total or done
        progress("evaluating", number * whole + done, runs * whole)

    return update


def _common_order(
    runs: Sequence[Run], names: Sequence[str], split: SplitName
) -> tuple[list[Ints], list[str]]:
    """For each run the facts of a split in an order that all share, and remarks on other splits.

    Facts are compared as given, by names and dates: buckets and what unknown times became do not
    matter. A fact that only one of two runs has is an error.
    """
    checksums = [run.config["data"]["sha256"] for run in runs]
    orders: dict[str, Ints] = {}
    remarks: list[str] = []
    graph = runs[0].graph
    expected = {each: _sorted(graph, graph, each)[0] for each in SPLITS}
    for run, name, checksum in zip(runs, names, checksums, strict=True):
        if checksum in orders:
            continue
        cannot = f"{names[0]} and {name} cannot be compared"
        units = [one.timeline.granularity for one in (graph, run.graph)]
        if units[0] != units[1]:
            raise UsageError(f"{cannot}: their times are by {units[0]} and by {units[1]}")
        own = {each: _sorted(run.graph, graph, each) for each in SPLITS}
        orders[checksum] = own[split][1]
        differing = [each for each in SPLITS if not np.array_equal(own[each][0], expected[each])]
        if split in differing:
            raise UsageError(
                f"{cannot}: their facts of {split} differ"
                f" ({_difference(graph, run.graph, split)}); read the data the same way for both"
            )
        if differing:
            remarks.append(
                f"{names[0]} and {name} know different facts in {' and '.join(differing)}, so their"
                " filters leave out different answers"
            )
    return [orders[checksum] for checksum in checksums], remarks


def _sorted(graph: TemporalGraph, like: TemporalGraph, split: SplitName) -> tuple[Ints, Ints]:
    """A row of numbers for each fact, sorted, and their order; ids are those of another graph.

    Names that the other graph does not have become -1.
    """
    facts = getattr(graph, split).renumber(
        like.entities.ids(graph.entities.labels), like.predicates.ids(graph.predicates.labels)
    )
    begin = np.where(facts.unknown & BEGIN_UNKNOWN, 0, facts.begin)
    end = np.where(facts.unknown & END_UNKNOWN, 0, facts.end)
    columns = (facts.subject, facts.predicate, facts.object, begin, end, facts.unknown)
    rows = np.stack([column.astype(np.int64) for column in columns], axis=1)
    order = np.lexsort(rows.T)
    return rows[order], order


def _difference(one: TemporalGraph, other: TemporalGraph, split: SplitName) -> str:
    """What is not the same, in short."""
    counts = [len(getattr(graph, split)) for graph in (one, other)]
    if counts[0] != counts[1]:
        return f"{counts[0]:,} and {counts[1]:,} facts"
    fact = next(iter(Counter(other.rows(split)) - Counter(one.rows(split))))
    return f"such as {fact.subject}, {fact.predicate}, {fact.object}, {fact.begin}, {fact.end}"
