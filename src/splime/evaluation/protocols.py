"""Protocol `fact` ranks the object and the subject of every fact, `predicate` its predicate."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

import numpy as np
import torch

from splime.errors import UsageError
from splime.evaluation.filters import TIMED, Known
from splime.evaluation.metrics import measured
from splime.evaluation.ranking import Estimate, Side, Ties, check_ties, rank_sides
from splime.evaluation.results import Evaluation, strata_of
from splime.graph import SplitName, TemporalGraph, check_split
from splime.progress import Progress, silent
from splime.scoring.known import Kind, keyed
from splime.scoring.queries import Aggregate, Scoring
from splime.scoring.scoping import Scoping
from splime.scoring.scorer import Scorer, memory_errors
from splime.segmentation import Segmentation
from splime.static import apply


@dataclass(frozen=True)
class Options:
    """What can be chosen about an evaluation, see `evaluate_facts`."""

    split: SplitName = "test"
    aggregate: Aggregate = "mean"
    ties: Ties = "mean"
    memory: int | None = None
    bootstrap: int | None = None
    seed: int = 0
    progress: Progress = silent
    estimate: Estimate | None = None


def evaluate_facts(
    scorer: Scorer,
    graph: TemporalGraph,
    segmentation: Segmentation,
    *,
    split: SplitName = "test",
    aggregate: Aggregate = "mean",
    ties: Ties = "mean",
    memory: int | None = None,
    bootstrap: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
    estimate: Estimate | None = None,
) -> Evaluation:
    """Rank the object and the subject of every fact of a split among all entities.

    The score of a candidate is aggregated over the scoped predicates of the fact's interval; a
    scope that train does not have is replaced by the nearest one of its predicate. Where entities
    are cut too, every timestamp of the interval is a part of weight 1. `memory` is the number of
    bytes that blocks of scores may take; `bootstrap` the number of samples for confidence
    intervals, drawn with `seed`; `estimate` takes the seconds that it will take.
    """
    options = Options(split, aggregate, ties, memory, bootstrap, seed, progress, estimate)
    return evaluate_scoped("fact", scorer, Scoping(apply(segmentation, graph)), options)


def evaluate_predicates(
    scorer: Scorer,
    graph: TemporalGraph,
    segmentation: Segmentation,
    *,
    split: SplitName = "test",
    aggregate: Aggregate = "mean",
    ties: Ties = "mean",
    memory: int | None = None,
    bootstrap: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
    estimate: Estimate | None = None,
) -> Evaluation:
    """Rank the predicate of every fact of a split among all source predicates.

    The score of a predicate is aggregated over its scopes that the fact's interval lies in, as in
    protocol `fact`; its other scopes are left out.
    """
    options = Options(split, aggregate, ties, memory, bootstrap, seed, progress, estimate)
    return evaluate_scoped("predicate", scorer, Scoping(apply(segmentation, graph)), options)


def evaluate_scoped(
    protocol: Literal["fact", "predicate"], scorer: Scorer, scoping: Scoping, options: Options
) -> Evaluation:
    """Evaluate by a protocol over facts on a graph whose cuts are applied already."""
    began = perf_counter()
    scoring = Scoring(scorer, scoping, options.aggregate, options.memory)
    check_ties(options.ties)
    check_split(options.split)
    graph, asked = scoping.graph, scoping.of_split(options.split)
    if not len(asked.facts):
        raise UsageError(f"{options.split} has no facts to rank; splime.split_graph makes splits")
    kinds: tuple[Kind, ...] = ("object", "subject") if protocol == "fact" else ("predicate",)
    every = graph.facts()
    with torch.inference_mode(), memory_errors():
        sides = []
        for kind in kinds:
            own, known = (keyed(kind, facts, graph) for facts in (asked.facts, every))
            sides.append(Side(scoring.queries(kind, asked), own.id, Known(known, own)))
        ranks = rank_sides(
            sides, len(TIMED), options.ties, progress=options.progress, estimate=options.estimate
        )
    dropped: Counter[str] = Counter()
    for source in graph.reading.sources:
        if source.split == options.split:
            dropped.update(source.dropped)
    return Evaluation(
        protocol=protocol,
        split=options.split,
        filters=TIMED,
        ties=options.ties,
        aggregate=options.aggregate,
        leak_filter=None,
        left_out=dict(dropped),
        queries=ranks[0].size,
        candidates=len(graph.entities if protocol == "fact" else graph.predicates),
        timestamps=len(graph.timeline),
        buckets=graph.timeline.bucketed,
        seconds=perf_counter() - began,
        facts=np.arange(len(asked.facts)),
        **measured(
            dict(zip(TIMED, ranks, strict=True)),
            strata_of(graph, asked.facts),
            options.bootstrap,
            options.seed,
        ),
    )
