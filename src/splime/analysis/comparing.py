"""Compare runs: metrics with intervals, and which differences are larger than chance."""

from __future__ import annotations

import json
import math
import shlex
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from splime.errors import UsageError, check_name, visible
from splime.evaluation import Evaluation, Metrics
from splime.evaluation.filters import TIMED
from splime.evaluation.metrics import (
    COMPARED,
    FEWEST,
    METRICS,
    Difference,
    Floats,
    Intervals,
    check_bootstrap,
    compare_ranks,
    holm,
)
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, SPLITS, SplitName, TemporalGraph, check_split
from splime.leakage import FILTERS
from splime.progress import Progress, silent
from splime.runs import PROTOCOLS, Run, evaluate
from splime.runs.evaluating import kept
from splime.settings import PROTOCOL_OF
from splime.shown import Shown, Tabular
from splime.times import Ints


@dataclass(frozen=True)
class ComparedRun:
    """A run and its metrics."""

    name: str
    """The name of its folder, with as many parent folders as distinguish it from the other runs."""
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
    uses_time: bool | None
    """Whether there are cuts or relative scopes; None for a combination of runs."""
    metrics: Metrics
    test_set: int = 0
    """Runs with the same number here ranked the same queries, see `Comparison.test_sets`."""
    intervals: Intervals | None = None
    """None where the test set has too few facts."""


@dataclass(frozen=True)
class Pair:
    """Two runs that ranked the same queries; the first has the higher MRR."""

    first: str
    second: str
    differences: dict[str, Difference]
    """By metric, each tested by itself."""
    corrected: dict[str, float | None]
    """The p-values, corrected for the number of tested pairs (Holm); None where there are none."""


_TABLE = pa.schema(
    [
        *((name, pa.string()) for name in ("run", "path", "data", "method", "method_parameters")),
        *((name, pa.string()) for name in ("model", "settings")),
        *((name, pa.int64()) for name in ("predicates", "parameters")),
        ("seconds", pa.float64()),
        *((name, pa.int64()) for name in ("test_set", "queries")),
        *((name, pa.float64()) for name in METRICS),
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
    rows: list[ComparedRun]
    pairs: list[Pair]
    remarks: list[str]
    """What a reader must know to read the metrics."""

    def __repr__(self) -> str:
        mrr = ", ".join(f"{visible(row.name)} {row.metrics.mrr:.3f}" for row in self.rows)
        return f"Comparison(protocol {self.protocol}, {self.split}, {self.filter}: MRR {mrr})"

    def best(self, test_set: int = 0, metric: str = "mrr") -> ComparedRun:
        """The run with the best value of a metric on a test set."""
        rows = [row for row in self.rows if row.test_set == test_set]
        choose = max if METRICS[metric].higher_is_better else min
        return choose(rows, key=lambda row: getattr(row.metrics, metric))

    def too_few(self, test_set: int = 0) -> bool:
        """Whether a test set has too few facts to test anything."""
        return self.test_sets[test_set] < FEWEST

    def larger_than_chance(self, pair: Pair, metric: str = "mrr") -> bool | None:
        """Whether the difference of a pair is significant; None where it was not tested."""
        p = pair.corrected[metric]
        return None if p is None else p <= 1 - self.level

    def like_the_best(self, row: ComparedRun, metric: str = "mrr") -> bool:
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
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))  # lists for tuples
        for plain_pair, pair in zip(plain["pairs"], self.pairs, strict=True):
            plain_pair["larger_than_chance"] = {
                name: self.larger_than_chance(pair, name) for name in COMPARED
            }
        return plain


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

    >>> import splime, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     for name in ("vanilla", "split"):
    ...         _ = splime.train("demo", name, f"{here}/{name}", dimension=16, epochs=3)
    ...     comparison = compare([f"{here}/vanilla", f"{here}/split"], samples=100)
    >>> comparison.rows[0].name  # the better one
    'split'
    """
    check_name("protocol", protocol, PROTOCOLS)
    check_split(split)
    triple = protocol == "triple"
    filter = filter or ("inter" if triple else TIMED[0])
    check_name("filter", filter, FILTERS if triple else TIMED)
    opened = [Run.of(run, device=device) for run in runs]
    named = dict(zip(run_names(opened), opened, strict=True))
    _check_samples(len(named), samples, level)
    options: dict[str, Any] = {"split": split, **({"filter": filter} if triple else {})}
    other_facts = not triple and len({run.config["data"]["sha256"] for run in opened}) > 1
    if other_facts:
        options["questions"] = "all"  # samples would be of other facts
    evaluated = {
        name: kept(run, protocol, **options)
        or evaluate(run, protocol, warn=warn, progress=_share(progress, at, len(named)), **options)
        for at, (name, run) in enumerate(named.items())
    }
    ranks = {name: one.ranks["triple" if triple else filter] for name, one in evaluated.items()}
    rows = [_row(run, name, Metrics.of(ranks[name])) for name, run in named.items()]
    orders, remarks = _common_order(named, split) if other_facts else ({}, [])
    ranks |= {name: ranks[name][order] for name, order in orders.items()}
    sets: dict[object, list[ComparedRun]] = {}
    for row in sorted(rows, key=lambda row: -row.metrics.mrr):
        sets.setdefault(_test_set(named[row.name]) if triple else "", []).append(row)
    tested, pairs = _tested([*sets.values()], ranks, samples, level, seed)
    return Comparison(
        protocol=protocol,
        split=split,
        filter=filter,
        ties=evaluated[rows[0].name].ties,
        candidates=[_candidates(evaluated, members) for members in sets.values()],
        test_sets=[len(ranks[members[0].name]) for members in sets.values()],
        samples=samples,
        level=level,
        rows=tested,
        pairs=pairs,
        remarks=[*remarks, *_remarks(len(sets), evaluated)],
    )


def _tested(
    sets: Sequence[Sequence[ComparedRun]],
    ranks: Mapping[str, Floats],
    samples: int,
    level: float,
    seed: int,
) -> tuple[list[ComparedRun], list[Pair]]:
    """The runs with their test sets and intervals, and the pairs of runs of the same test set."""
    rows: list[ComparedRun] = []
    differing: list[tuple[str, str, dict[str, Difference]]] = []
    for number, members in enumerate(sets):
        intervals, of_pairs = compare_ranks(
            [ranks[row.name] for row in members], samples=samples, level=level, seed=seed
        )
        rows += [
            replace(row, test_set=number, intervals=ends)
            for row, ends in zip(members, intervals, strict=True)
        ]
        differing += [(members[i].name, members[j].name, each) for (i, j), each in of_pairs.items()]
    corrected = {name: _corrected([each[name].p for *_, each in differing]) for name in COMPARED}
    return rows, [
        Pair(*pair, {name: p_values[at] for name, p_values in corrected.items()})
        for at, pair in enumerate(differing)
    ]


def _remarks(test_sets: int, evaluated: Mapping[str, Evaluation]) -> Iterator[str]:
    if test_sets > 1:
        yield (
            "protocol triple gives every transform another test set: only runs of the same"
            " test set are compared (protocol fact compares all)"
        )
    if len({each.past for each in evaluated.values()}) > 1:
        known: dict[str | None, str] = {None: "train"}
        known |= {past: f"forecast, {of}" for past, of in PROTOCOL_OF.items()}
        listed = (f"{name}: {known[each.past]}" for name, each in evaluated.items())
        yield f"runs answer from different facts: {'; '.join(listed)}"


def run_names(runs: Sequence[Run]) -> list[str]:
    """The folders of runs, with as many parent folders as distinguish them all."""
    paths = [run.path.resolve() for run in runs]
    for path in paths:
        if paths.count(path) > 1:
            raise UsageError(f"{path}: this run is given more than once")
    length = 1
    while len({path.parts[-length:] for path in paths}) < len(paths):
        length += 1
    return ["/".join(path.parts[-length:]) for path in paths]


def kept_evaluations(runs: Sequence[Run]) -> dict[str, Evaluation]:
    """What `splime evaluate` has kept of each run, by protocol fact on test; by the run's name."""
    found = {}
    for name, run in zip(run_names(runs), runs, strict=True):
        if (evaluation := kept(run)) is None:
            path = shlex.quote(str(run.path))
            raise UsageError(f"{run.path}: was not evaluated yet; first: splime evaluate {path}")
        found[name] = evaluation
    return found


def _test_set(run: Run) -> tuple[object, ...]:
    """What distinguishes the triples of a run from those of others."""
    cuts, distinct = run.config.get("cuts", {}), run.settings.values().get("distinct", True)
    return run.config["data"]["sha256"], cuts.get("sha256"), distinct


def _candidates(evaluated: Mapping[str, Evaluation], members: Sequence[ComparedRun]) -> int:
    """Among how many candidates all runs of a test set rank."""
    first, *others = (row.name for row in members)
    expected = evaluated[first].candidates
    for name in others:
        if evaluated[name].candidates != expected:
            raise UsageError(
                f"{first} and {name} cannot be compared: one ranks among {expected:,} candidates,"
                f" the other among {evaluated[name].candidates:,}"
            )
    return expected


def _row(run: Run, name: str, metrics: Metrics) -> ComparedRun:
    parameters, settings = dict(run.config.get("method", {})), dict(run.config["settings"])
    method = parameters.pop("name", "none")
    if run.entry.cuts == "none":
        method, parameters = "none", {}
    elif run.method is not None:
        method, parameters = run.method.name, run.method.changed()
    return ComparedRun(
        name=name,
        path=str(run.path),
        data=run.config["data"]["name"],
        method=method,
        method_parameters=parameters,
        model=settings.pop("model"),
        settings=settings,
        predicates=len(run.segmentation.predicates),
        parameters=run.about["parameters"],
        seconds=run.about["seconds"],
        uses_time=run.uses_time,
        metrics=metrics,
    )


def _corrected(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction; None is no test."""
    corrected = iter(holm([p for p in p_values if p is not None]))
    return [None if p is None else next(corrected) for p in p_values]


def _check_samples(runs: int, samples: int, level: float) -> None:
    """The smallest p-value that the samples can give must be small enough after its correction."""
    if not runs:
        raise UsageError("there are no runs to compare")
    check_bootstrap(samples, level)
    pairs = runs * (runs - 1) // 2
    needed = math.ceil(2 * pairs / (1 - level))
    if samples < needed:
        raise UsageError(
            f"{samples:,} samples cannot separate any of {pairs:,} pairs; {needed:,} can"
            f" (--samples {needed})"
        )


def _share(progress: Progress, number: int, runs: int) -> Progress:
    """Progress of one of several evaluations of about the same size."""

    def update(what: str, done: int, total: int | None = None, note: str = "") -> None:  # noqa: ARG001
        whole = total or done
        progress("evaluating", number * whole + done, runs * whole)

    return update


def _common_order(runs: Mapping[str, Run], split: SplitName) -> tuple[dict[str, Ints], list[str]]:
    """For each run the facts of a split in an order that all share, and remarks on other splits.

    Facts are compared as given, by names and dates: buckets and what unknown times became do not
    matter. A fact that only one of two runs has is an error.
    """
    orders: dict[str, Ints] = {}
    remarks: list[str] = []
    first, graph = next((name, run.graph) for name, run in runs.items())
    expected = {part: _sorted(graph, graph, part)[0] for part in SPLITS}
    for name, run in runs.items():
        cannot = f"{first} and {name} cannot be compared"
        units = [one.timeline.granularity for one in (graph, run.graph)]
        if units[0] != units[1]:
            raise UsageError(f"{cannot}: their times are by {units[0]} and by {units[1]}")
        facts = {part: _sorted(run.graph, graph, part) for part in SPLITS}
        orders[name] = facts[split][1]
        differing = [part for part in SPLITS if not np.array_equal(facts[part][0], expected[part])]
        if split in differing:
            raise UsageError(
                f"{cannot}: their facts of {split} differ"
                f" ({_difference(graph, run.graph, split)}); read the data the same way for both"
            )
        if differing:
            remarks.append(
                f"{first} and {name} know different facts in {' and '.join(differing)}, so their"
                " filters leave out different answers"
            )
    return orders, remarks


def _sorted(graph: TemporalGraph, like: TemporalGraph, split: SplitName) -> tuple[Ints, Ints]:
    """A row of numbers for each fact, sorted, and their order; ids are those of another graph.

    Names that the other graph does not have become -1.
    """
    facts = getattr(graph, split).renumber(
        like.entities.ids(graph.entities.labels), like.predicates.ids(graph.predicates.labels)
    )
    rows = np.stack([column.astype(np.int64) for column in facts.columns()], axis=1)
    rows[facts.unknown & BEGIN_UNKNOWN != 0, 3] = 0
    rows[facts.unknown & END_UNKNOWN != 0, 4] = 0
    order = np.lexsort(rows.T)
    return rows[order], order


def _difference(one: TemporalGraph, other: TemporalGraph, split: SplitName) -> str:
    """What is not the same, in short."""
    counts = [len(getattr(graph, split)) for graph in (one, other)]
    if counts[0] != counts[1]:
        return f"{counts[0]:,} and {counts[1]:,} facts"
    fact = next(iter(Counter(other.rows(split)) - Counter(one.rows(split))))
    return f"such as {fact.subject}, {fact.predicate}, {fact.object}, {fact.begin}, {fact.end}"
