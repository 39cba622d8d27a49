"""Protocol `triple`, the paper's: transformed triples are ranked, after a leak filter."""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import numpy as np
import torch

from splime.errors import UsageError
from splime.evaluation.blocks import Estimate, Progress, Side, rank_sides
from splime.evaluation.filters import Known, Questions, untimed
from splime.evaluation.groups import grouped
from splime.evaluation.memory import Room, memory_errors
from splime.evaluation.ranking import Ties, check_ties
from splime.evaluation.results import Evaluation, figures
from splime.evaluation.scorer import Scorer, asking
from splime.evaluation.strata import Stratum
from splime.graph import SplitName, check_split
from splime.leakage import LeakFilter
from splime.static import StaticGraph, Triples
from splime.times import Bools, Ints


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
    progress: Progress | None = None,
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
        sides = [_side(scorer, static, left, side, memory) for side in ("object", "subject")]
        ranks = rank_sides(
            sides,
            levels=1,
            ties=ties,
            device=scorer.device,
            progress=progress,
            estimate=estimate,
        )
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
        **figures({"triple": ranks[0]}, strata, bootstrap, seed),
    )


def _side(scorer: Scorer, static: StaticGraph, left: Left, side: str, memory: int | None) -> Side:
    columns = len(static.entities)
    ask = asking(scorer, side, columns)
    probe = ask(np.zeros(1, np.int64), np.zeros(1, np.int64))
    room = Room(memory, scorer.device, probe.element_size(), columns)
    asked = _questions(left.triples, side, len(static.predicates))
    splits = [_questions(some, side, len(static.predicates)) for _, some in left.known.splits()]
    known = Questions(*map(np.concatenate, zip(*splits, strict=True)))
    known = known.take(np.flatnonzero(left.candidates[known.id]))
    number, first = grouped([asked.key])
    entity, predicate = np.divmod(asked.key[first], len(static.predicates))

    def score(start: int, stop: int) -> torch.Tensor:
        return ask(entity[start:stop], predicate[start:stop])

    return Side(
        query=number,
        target=asked.id,
        score=score,
        cost=np.ones(len(first), np.int64),
        known=lambda order: Known(known, asked.take(order)),
        block=room.queries,
        never=np.flatnonzero(~left.candidates),
    )


def _questions(triples: Triples, side: str, predicates: int) -> Questions:
    given, wanted = triples.subject, triples.object
    if side == "subject":
        given, wanted = wanted, given
    key: Ints = given.astype(np.int64) * predicates + triples.predicate
    return untimed(key, wanted.astype(np.int64))
