"""Facts that are wrong on purpose, and how many of the first doubtful ones they are."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from string import ascii_lowercase
from typing import Any, NamedTuple

import numpy as np
import torch

from experiments.tables import ResultTable
from splime.datasets import load
from splime.embedding.presets import QUICKER, STRONG
from splime.evaluation.metrics import Floats
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, Facts, TemporalGraph
from splime.io.files import read_json, write_json
from splime.io.unfinished import Unfinished
from splime.progress import Progress, silent
from splime.query.doubting import DOUBTS, NAME, OVERLAP, Answered, Doubting, readable
from splime.query.doubting.aliases import find_aliases
from splime.query.doubting.asked import WAYS, changed, make_wrong
from splime.query.doubting.overlaps import find_overlaps
from splime.runs import train
from splime.runs.graph_run import GraphRun
from splime.scoring.queries import Scoring
from splime.times import Ints
from splime.vocabulary import Vocabulary

FILE = "doubts.json"
SHARE = 0.01
"""Facts that are made wrong in each way."""
FIRST = 100
TITLES = {"demo": "demo", "yago11k": "YAGO11k", "icews14": "ICEWS14"}
_OVERLAPPING = 0.04
"""The share of a predicate's facts that get another object at the same time, at most."""
_FEWEST, _FAR = 4, 10
"""Facts of an entity that gets a second name; the part of all time by which a fact moves."""


class Broken(NamedTuple):
    """A graph in which some facts are wrong."""

    graph: TemporalGraph
    kind: Ints
    """Of each fact: in which way it is wrong, the place in `DOUBTS`; -1 where it is right."""
    twins: list[tuple[str, str]]
    """The entities that have two names."""


def make_broken(graph: TemporalGraph, share: float = SHARE, seed: int = 0) -> Broken:
    """The facts of all splits, with wrong ones of each kind, as many of each kind.

    Wrong objects and subjects are others of the same predicate. A wrong time lies at least a tenth
    of all time away. An overlapping fact is a copy with another object, where a predicate has one
    object at a time. Half of the facts of some entities have another spelling of its name.
    """
    random = np.random.default_rng(seed)
    facts = graph.facts()
    count = max(1, round(share * len(facts)))
    order, kind = random.permutation(len(facts)), np.full(len(facts), -1)
    columns = [np.array(column) for column in facts.columns()]
    for number, way in enumerate(WAYS):
        free = order[kind[order] < 0]
        wrong = make_wrong(facts.take(free), way, facts, graph, random)
        good = np.flatnonzero(changed(facts.take(free), wrong) & ~_among(wrong, facts))[:count]
        if way == "time":
            far = np.abs(wrong.begin - facts.begin[free]) + np.abs(wrong.end - facts.end[free])
            least = (graph.timeline.last - graph.timeline.first) / _FAR
            good = np.flatnonzero((far >= least) & (facts.unknown[free] != 3))[:count]
        for column, changed_to in zip(columns, wrong.columns(), strict=True):
            column[free[good]] = changed_to[good]
        kind[free[good]] = number
    made = Facts.owning(*columns)
    made, kind = _with_overlaps(graph, made, kind, count, random)
    return _with_twins(graph, made, kind, count, random)


def _among(facts: Facts, others: Facts) -> Any:
    """Which facts have a triple that others have, too."""
    triples = np.concatenate([facts.array(), others.array()])
    number = np.unique(triples, axis=0, return_inverse=True)[1].reshape(-1)
    return np.isin(number[: len(facts)], number[len(facts) :])


def _with_overlaps(
    graph: TemporalGraph, facts: Facts, kind: Ints, count: int, random: np.random.Generator
) -> tuple[Facts, Ints]:
    """Copies of right facts with another object, of predicates with one object at a time."""
    single = find_overlaps(graph.facts(), len(graph.predicates)).predicates
    dated = facts.unknown != BEGIN_UNKNOWN | END_UNKNOWN
    free = random.permutation(np.flatnonzero((kind < 0) & np.isin(facts.predicate, single) & dated))
    copies = make_wrong(facts.take(free), "object", facts, graph, random)
    good = np.flatnonzero(copies.object != facts.object[free])
    # Of each predicate few enough for it to keep to one object at a time.
    own = facts.predicate[free[good]]
    order = np.argsort(own, kind="stable")
    place = np.arange(len(own)) - np.searchsorted(own[order], own[order])
    most = _OVERLAPPING * np.bincount(facts.predicate, minlength=len(graph.predicates))
    good = np.sort(good[order[place < most[own[order]]]])[:count]
    added = np.full(len(good), DOUBTS.index(OVERLAP))
    return Facts.concat([facts, copies.take(good)]), np.concatenate([kind, added])


def _with_twins(
    graph: TemporalGraph, facts: Facts, kind: Ints, count: int, random: np.random.Generator
) -> Broken:
    """Entities whose facts are half under another spelling, until so many facts are."""
    names, free = list(graph.entities), np.flatnonzero(kind < 0)
    subject, object_ = np.array(facts.subject), np.array(facts.object)
    twins: list[tuple[str, str]] = []
    moved = 0
    for entity in random.permutation(len(names)).tolist():
        own = free[(facts.subject[free] == entity) | (facts.object[free] == entity)]
        name = _misspelt(names[entity], random)
        if len(own) < _FEWEST or len(own) > count or name in names:
            continue
        own = random.permutation(own)[: len(own) // 2]
        if len(twins) % 2:  # of every other one the later facts
            every = free[(facts.subject[free] == entity) | (facts.object[free] == entity)]
            own = every[np.argsort(facts.begin[every], kind="stable")][-len(own) :]
        for column in (subject, object_):
            column[own[column[own] == entity]] = len(names)
        kind[own] = DOUBTS.index(NAME)
        twins.append((names[entity], name))
        names.append(name)
        moved += len(own)
        if moved >= count:
            break
    entities = Vocabulary(names, kind=graph.entities.kind)
    place = np.array([entities.id(name) for name in names], np.int32)
    made = replace(facts, subject=place[subject], object=place[object_])
    empty = Facts.empty()
    return Broken(
        replace(graph, train=made, valid=empty, test=empty, entities=entities), kind, twins
    )


def _misspelt(name: str, random: np.random.Generator) -> str:
    """A name with a letter exchanged for another, or with a letter more."""
    at, letter = int(random.integers(0, len(name))), ascii_lowercase[random.integers(0, 26)]
    return name[:at] + letter + name[at + int(random.integers(0, 2)) :]


class _Found(NamedTuple):
    k: int
    precision: float
    """Of the first k, as many as there are, so that the recall is the same."""
    first: float
    """The precision of the first 100."""
    recall: float
    """And their recall."""
    chance: float


def _found(score: Floats, wrong: Any) -> _Found:
    """How many of the first are wrong."""
    k, order = int(wrong.sum()), np.argsort(-score, kind="stable")
    hits = wrong[order]
    return _Found(
        k,
        float(hits[:k].mean()) if k else 0.0,
        float(hits[:FIRST].mean()),
        float(hits[:FIRST].sum() / max(k, 1)),
        float(wrong.mean()),
    )


def measure(dataset: str, facts: int | None = None, progress: Progress = silent) -> dict[str, Any]:
    """Break a dataset, and look for what is wrong; of so many facts of it, or of all."""
    broken = make_broken(load(dataset))
    graph = broken.graph
    random = np.random.default_rng(1)
    chosen = np.sort(random.permutation(len(graph.train))[: facts or len(graph.train)])
    work = Doubting(readable(GraphRun(graph)), DOUBTS, np.arange(len(graph.entities)))
    work.choose(facts=chosen)
    started = time.perf_counter()
    kept = Unfinished(None, "", Answered, Answered())
    work.ask(kept, progress)
    rows, numbers = kept.done.answered(), work.chosen
    record: dict[str, Any] = {"dataset": dataset, "facts": len(graph.train), "asked": len(numbers)}
    record["share"], record["seed"] = SHARE, 0
    work.limit = len(graph.train)
    scores = {"all": _scores(work, rows, [*range(len(WAYS))], True)}
    for number, way in enumerate(WAYS):
        scores[way] = _scores(work, rows, [number], False)
    scores[OVERLAP] = _scores(work, rows, [], True)
    record["seconds"] = round(time.perf_counter() - started, 1)
    kind = broken.kind[numbers]
    right = kind < 0
    complex_scores = _of_complex(graph, numbers, progress)
    found: dict[str, Any] = {}
    for number, one in enumerate((*WAYS, OVERLAP)):
        if not (kind == number).any():
            continue
        use = right | (kind == number)
        wrong = kind[use] == number
        found[one] = {
            "doubts of the kind": _found(scores[one][use], wrong)._asdict(),
            "all doubts": _found(scores["all"][use], wrong)._asdict(),
            **{name: _found(-one_[use], wrong)._asdict() for name, one_ in complex_scores.items()},
        }
    use = kind != DOUBTS.index(NAME)
    wrong = ~right[use]
    found["any of these"] = {
        "all doubts": _found(scores["all"][use], wrong)._asdict(),
        **{name: _found(-one_[use], wrong)._asdict() for name, one_ in complex_scores.items()},
    }
    return record | {"found": found, NAME: _of_names(broken)}


def _scores(work: Doubting, rows: Floats, ways: list[int], overlaps: bool) -> Floats:
    """The doubt about each chosen fact, where only some kinds are looked for."""
    before = work.ways, work.overlaps
    work.ways, work.overlaps = ways, overlaps
    best = work.judge(rows)
    work.ways, work.overlaps = before
    doubt = np.zeros(len(work.known))
    doubt[best.fact] = best.doubt
    return np.asarray(doubt[work.chosen])


def _of_names(broken: Broken) -> dict[str, Any]:
    """Where the entities with two names are among the pairs that look like one."""
    names, pairs = broken.graph.entities, find_aliases(broken.graph, broken.graph.train)
    twins = {frozenset(pair) for pair in broken.twins}
    found = [
        frozenset((names[int(one)], names[int(other)])) in twins
        for one, other in zip(pairs.one, pairs.other, strict=True)
    ]
    k, hits = len(twins), np.array(found)
    size = len(names) * (len(names) - 1) / 2
    made = {"k": k, "precision": float(hits[:k].sum() / k), "first": float(hits[:FIRST].mean())}
    return made | {"recall": float(hits[:FIRST].sum() / k), "chance": k / size}


def _of_complex(graph: TemporalGraph, numbers: Ints, progress: Progress) -> dict[str, Floats]:
    """Scores of facts by a ComplEx with timestamps that was trained on all of them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        # Not `quick`: it ends within a minute, which is too short for ComplEx on larger graphs.
        settings: dict[str, Any] = {
            "model": "complex",
            "preset": STRONG,
            **QUICKER,
            "validate_every": 0,
        }
        run = train(graph, "timestamp", path, progress=progress, **settings)
        return _own_scores(run.scoring(), graph.train.take(numbers))


def _own_scores(scoring: Scoring, facts: Facts) -> dict[str, Floats]:
    """The scores that facts have as their objects, and the log-probabilities of both ends."""
    score, logs = np.zeros(len(facts)), np.zeros(len(facts))
    with torch.inference_mode():
        for kind in ("object", "subject"):
            for block in scoring.blocks(kind, facts):
                values = (block.scores / block.weight[:, None]).double().cpu()
                right = torch.from_numpy(getattr(facts, kind)[block.rows].astype(np.int64))
                own = values.gather(1, right[:, None])[:, 0]
                score[block.rows] += own.numpy() / 2
                logs[block.rows] += (own - values.logsumexp(1)).numpy() / 2
    return {"ComplEx, score": score, "ComplEx, probability": logs}


def store(folder: Path, record: Mapping[str, Any]) -> None:
    """Keep a record in the place of an earlier one of the dataset."""
    path = folder / FILE
    records = read_json(path) if path.exists() else {}
    write_json(path, {**records, record["dataset"]: dict(record)})


def tables(folder: Path) -> list[ResultTable]:
    """What is stored."""
    path = folder / FILE
    records: Mapping[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    lists = ("doubts of the kind", "all doubts", "ComplEx, score", "ComplEx, probability")
    rows: list[tuple[str, ...]] = []
    for dataset in (name for name in TITLES if name in records):
        record = records[dataset]
        title = f"{TITLES[dataset]}, {record['asked']:,} facts"
        found = {**record["found"], NAME: {lists[0]: record[NAME]}}
        for kind, measured in found.items():
            one = next(iter(measured.values()))
            cells = (_shares(measured[name]) if name in measured else "" for name in lists)
            rows.append((title, kind, f"{one['k']:,}", f"{one['chance']:.2g}", *cells))
    note = (
        "Precision among the first k (as many as are wrong, so that recall is the same), precision"
        f" among the first {FIRST}, recall among these. Chance is the share that is wrong. For one"
        " way, the facts that are wrong in another are left out. Of names: pairs of entities."
    )
    columns = ("dataset", "wrong", "k", "chance", *lists)
    return [ResultTable("Wrong facts among the first", columns, rows, [note], words=2)]


def _shares(one: Mapping[str, Any]) -> str:
    return " / ".join(f"{one[name]:.2f}" for name in ("precision", "first", "recall"))
