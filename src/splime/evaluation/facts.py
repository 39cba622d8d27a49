"""What the protocols over facts share: from options and queries to an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import torch

from splime.evaluation.blocks import Estimate, Progress, Side, rank_sides
from splime.evaluation.filters import TIMED
from splime.evaluation.memory import memory_errors
from splime.evaluation.parts import Aggregate, check_aggregate
from splime.evaluation.ranking import Ties, check_ties
from splime.evaluation.results import Evaluation, figures
from splime.evaluation.setting import Setting
from splime.evaluation.strata import strata_of
from splime.graph import SplitName, TemporalGraph
from splime.segmentation import Segmentation


@dataclass(frozen=True)
class Options:
    """What a person chooses."""

    split: SplitName
    aggregate: Aggregate
    ties: Ties
    bootstrap: int | None
    seed: int
    progress: Progress | None
    estimate: Estimate | None


def evaluate(
    protocol: str,
    graph: TemporalGraph,
    segmentation: Segmentation,
    options: Options,
    *,
    sides: Callable[[Setting], Sequence[Side]],
    candidates: int,
    device: torch.device,
) -> Evaluation:
    """Rank what the sides ask for, by the three filters."""
    began = perf_counter()
    check_aggregate(options.aggregate)
    check_ties(options.ties)
    setting = Setting.of(graph, segmentation, options.split)
    with torch.inference_mode(), memory_errors():
        ranks = rank_sides(
            sides(setting),
            levels=len(TIMED),
            ties=options.ties,
            device=device,
            progress=options.progress,
            estimate=options.estimate,
        )
    by_filter = dict(zip(TIMED, ranks, strict=True))
    strata = strata_of(graph, setting.facts)
    return Evaluation(
        protocol=protocol,
        split=options.split,
        filters=TIMED,
        ties=options.ties,
        aggregate=options.aggregate,
        leak_filter=None,
        left_out=setting.left_out,
        queries=ranks[0].size,
        candidates=candidates,
        timestamps=len(graph.timeline),
        buckets=graph.timeline.bucketed,
        seconds=perf_counter() - began,
        facts=np.arange(len(setting.facts)),
        **figures(by_filter, strata, options.bootstrap, options.seed),
    )
