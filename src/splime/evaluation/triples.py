"""Protocol `triple`, the paper's: transformed triples are ranked, after a leak filter."""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import numpy as np
import torch

from splime.arrays import grouped
from splime.errors import UsageError
from splime.evaluation.filters import Known
from splime.evaluation.metrics import Stratum, measured
from splime.evaluation.ranking import Estimate, Side, Ties, check_ties, rank_sides
from splime.evaluation.results import Evaluation
from splime.graph import SplitName, check_split
from splime.leakage import LeakFilter
from splime.progress import Progress, silent
from splime.scoring.known import Keyed
from splime.scoring.queries import Queries
from splime.scoring.scorer import Room, Scorer, asking, memory_errors
from splime.static import StaticGraph, Triples
from splime.times import Bools


class Left(NamedTuple):
    """What is left of a static graph to rank."""

    known: StaticGraph
    """After the leak filter: what is known."""
    triples: Triples
    """What is ranked."""
    left_out: dict[str, int]
    candidates: Bools
    """Which (scoped) entities train names: a model knows no others."""


def triples_left(
    static: StaticGraph,
    split: SplitName = "test",
    filter: LeakFilter = "inter",
    distinct: bool = True,
) -> Left:
    """Drop what the leak filter removes, then repeated triples, then those unseen in train."""
    check_split(split)
    known, filtered = static.filter(filter)
    left_out = {"leak filter": filtered.removed[split]}
    left = known
    if distinct:
        left, repeated = left.distinct()
        left_out["repeated"] = repeated.removed[split]
    left, unseen = left.without_unseen()
    left_out["unseen in train"] = unseen[split]
    candidates = np.zeros(len(static.entities), bool)
    candidates[known.train.subject] = candidates[known.train.object] = True
    return Left(known, getattr(left, split), left_out, candidates)


def evaluate_triples(
    scorer: Scorer,
    static: StaticGraph,
    *,
    split: SplitName = "test",
    filter: LeakFilter = "inter",
    distinct: bool = True,
    ties: Ties = "worst",
    memory: int | None = None,
    bootstrap: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
    estimate: Estimate | None = None,
) -> Evaluation:
    """Rank the object and the subject of the triples of a split that the paper would rank.

    Candidates are the entities that train names; answers known from the triples of train, valid
    and test, as the leak filter leaves them, are not counted.
    """
    began = perf_counter()
    check_ties(ties)
    left = triples_left(static, split, filter, distinct)
    if not len(left.triples):
        reasons = ", ".join(f"{why} {count:,}" for why, count in left.left_out.items())
        raise UsageError(f"{split} has no triples left to rank (left out: {reasons})")
    with torch.inference_mode(), memory_errors():
        sides = [_side(scorer, static, left, kind, memory) for kind in ("object", "subject")]
        ranks = rank_sides(sides, 1, ties, progress=progress, estimate=estimate)
    source = static.predicates.sources[left.triples.predicate].astype(np.int64)
    strata = {"predicate": Stratum(source, list(static.predicates.names))}
    timeline = static.segmentation.timeline
    return Evaluation(
        protocol="triple",
        split=split,
        filters=("triple",),
        ties=ties,
        aggregate=None,
        leak_filter=filter,
        left_out=left.left_out,
        queries=ranks[0].size,
        candidates=int(left.candidates.sum()),
        timestamps=len(timeline),
        buckets=timeline.bucketed,
        seconds=perf_counter() - began,
        facts=left.triples.fact,
        **measured({"triple": ranks[0]}, strata, bootstrap, seed),
    )


def _side(scorer: Scorer, static: StaticGraph, left: Left, kind: str, memory: int | None) -> Side:
    columns = len(static.entities)
    ask = asking(scorer, kind, columns)
    probe = ask(np.zeros(1, np.int64), np.zeros(1, np.int64))
    room = Room(memory, scorer.device, probe.element_size(), columns)
    asked = _keyed(left.triples, kind, len(static.predicates))
    splits = [_keyed(triples, kind, len(static.predicates)) for _, triples in left.known.splits()]
    known = Keyed(*map(np.concatenate, zip(*splits, strict=True)))
    known = known.take(np.flatnonzero(left.candidates[known.id]))
    number, triple = grouped([asked.key])
    entity, predicate = np.divmod(asked.key[triple], len(static.predicates))

    def score(start: int, stop: int) -> torch.Tensor:
        return ask(entity[start:stop], predicate[start:stop])

    one = np.ones(len(triple), np.int64)
    return Side(
        Queries(number, one, one, score, room.queries),
        asked.id,
        Known(known, asked),
        torch.as_tensor(np.flatnonzero(~left.candidates)).to(scorer.device),
    )


def _keyed(triples: Triples, kind: str, predicates: int) -> Keyed:
    """Triples as answers; they hold always."""
    given, wanted = triples.subject, triples.object
    if kind == "subject":
        given, wanted = wanted, given
    always = np.zeros(len(triples), np.int64)
    key = given.astype(np.int64) * predicates + triples.predicate
    return Keyed(key, wanted.astype(np.int64), always, always)
