"""The rivals fact by fact: what chance may explain, and what train says of a fact's entities.

Both follow from stored reciprocal ranks. They take minutes and the datasets, so they are stored.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.rivals import KEPT, Entry, by_dataset, entries, first_rival
from experiments.rows import RANKS, Results
from splime.evaluation.metrics import Floats, compare_ranks, holm
from splime.graph import Facts, TemporalGraph
from splime.io.files import read_json, write_json
from splime.times import Ints

FILE = "rivals_facts.json"
SAMPLES = 100_000
GROUPS = ("reverse", "same time", "other time", "never")
"""What train has of a fact of test: the same predicate the other way at the same time; else another
fact of the two entities at that time; else one at another time; or none."""
PATH = "path"
"""What others are compared with, beside the first rival."""


def groups_of_facts(graph: TemporalGraph) -> Ints:
    """For each fact of test its place in `GROUPS`."""
    linked: dict[tuple[int, int], set[tuple[int, int, int]]] = defaultdict(set)
    for subject, predicate, object_, begin, end in _plain(graph.train):
        linked[subject, object_].add((predicate, begin, end))
    found = []
    for subject, predicate, object_, begin, end in _plain(graph.test):
        back = linked.get((object_, subject), set())
        both = back | linked.get((subject, object_), set())
        same = any((from_, to) == (begin, end) for _, from_, to in both)
        reverse = (predicate, begin, end) in back
        found.append(0 if reverse else 1 if same else 2 if both else 3)
    return np.array(found)


def _plain(facts: Facts) -> Iterator[tuple[int, ...]]:
    return zip(*(column.tolist() for column in facts.columns()[:5]), strict=True)


def measure(listed: Sequence[Entry], graph: TemporalGraph, samples: int = SAMPLES) -> Any:
    """What is stored of a dataset: shares, MRRs by group, and p-values."""
    group = groups_of_facts(graph)
    compared = [entry for entry in listed if entry.kept(RANKS)]
    ranks = {entry.title: {name: entry.reciprocals(name) for name in KEPT} for entry in compared}
    counts = np.bincount(group, minlength=len(GROUPS))
    strata = {
        title: {name: _means(own[name], group, counts) for name in KEPT}
        for title, own in ranks.items()
    }
    return {
        "facts": len(group),
        "groups": dict(zip(GROUPS, counts.tolist(), strict=True)),
        "ranks": {entry.title: digest(entry) for entry in compared},
        "strata": strata,
        "samples": samples,
        "p": _p_values(ranks, pairs(listed), samples),
    }


def _means(reciprocals: Floats, group: Ints, counts: Ints) -> dict[str, float]:
    sums = np.bincount(group, reciprocals.mean(1), minlength=len(GROUPS))
    means = zip(GROUPS, sums, counts, strict=True)
    return {name: round(float(total / count), 6) for name, total, count in means if count}


def pairs(listed: Sequence[Entry]) -> list[tuple[str, str]]:
    """Everything that has ranks against path, and against the first rival."""
    titles = [entry.title for entry in listed if entry.kept(RANKS)]
    rival = first_rival(listed)
    against = [PATH, *([rival.title] if rival else [])]
    both = [(one, other) for other in against if other in titles for one in titles if one != other]
    return [*{frozenset(pair): pair for pair in both}.values()]


def _p_values(
    ranks: Mapping[str, Mapping[str, Floats]], compared: Sequence[tuple[str, str]], samples: int
) -> dict[str, list[tuple[str, str, float]]]:
    """By filter; the filters of events give the same ranks, and count once."""
    titles = [*ranks]
    places = [(titles.index(one), titles.index(other)) for one, other in compared]
    found: dict[str, list[tuple[str, str, float]]] = {}
    for name in KEPT:
        own = [ranks[title][name] for title in titles]
        first = [ranks[title][KEPT[0]] for title in titles]
        if name != KEPT[0] and all(map(np.array_equal, own, first)):
            continue
        with np.errstate(divide="ignore"):  # what rounds to 0 has an infinite rank
            _, differences = compare_ranks(
                [1 / each for each in own], samples=samples, pairs=places
            )
        values = (
            (*pair, differences[at]["mrr"].p) for pair, at in zip(compared, places, strict=True)
        )
        found[name] = [(one, other, p) for one, other, p in values if p is not None]
    return found


def digest(entry: Entry) -> str:
    """Of the ranks that were compared; other ranks need another comparison."""
    text = "".join(kept[name] for kept in entry.kept(RANKS) for name in sorted(kept))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def store(results: Results, dataset: str, measured: Any) -> None:
    """Keep what was measured, in the place of what was there of the dataset."""
    path = results.path.with_name(FILE)
    write_json(path, {**_stored(results), dataset: measured})


def _stored(results: Results) -> dict[str, Any]:
    path = results.path.with_name(FILE)
    return read_json(path) if path.exists() else {}


class Factwise:
    """What is stored, as far as it is of the ranks that are there now."""

    def __init__(self, results: Results) -> None:
        self._datasets = {
            name: own for name, own in _stored(results).items() if name in by_dataset()
        }
        self._fresh = {
            (name, entry.title)
            for name, own in self._datasets.items()
            for entry in entries(results, name)
            if own["ranks"].get(entry.title) == digest(entry)
        }
        values = {
            (name, filter_, frozenset((one, other))): p
            for name, own in self._datasets.items()
            for filter_, of in own["p"].items()
            for one, other, p in of
        }
        self._chances = dict(zip(values, holm([*values.values()]), strict=True))

    @property
    def compared(self) -> int:
        """How many differences were tested, over all datasets and filters."""
        return len(self._chances)

    def chance(self, dataset: str, name: str, one: str, other: str) -> float | None:
        """How likely chance alone makes their difference, corrected for all that were tested."""
        if {(dataset, one), (dataset, other)} - self._fresh:
            return None
        for of in (name, KEPT[0]):  # of events the filters are the same
            if (dataset, of, frozenset((one, other))) in self._chances:
                return self._chances[dataset, of, frozenset((one, other))]
        return None

    def share(self, dataset: str, group: str) -> float | None:
        """Of the facts of test that are in a group."""
        own = self._datasets.get(dataset)
        return own["groups"][group] / own["facts"] if own else None

    def stratum(self, dataset: str, title: str, name: str, group: str) -> float | None:
        """The MRR of a model on the facts of a group."""
        if (dataset, title) not in self._fresh:
            return None
        value: float | None = self._datasets[dataset]["strata"][title][name].get(group)
        return value
